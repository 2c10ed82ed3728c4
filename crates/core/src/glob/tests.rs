use super::{Dialect, Glob};

const NAMES: Dialect = Dialect { hides_dots: true, groups: true, ..Dialect::PLAIN };
const CHARACTERS: Dialect = Dialect { characters: true, ..Dialect::PLAIN };
const PATHS: Dialect = Dialect { is_of_paths: true, ..Dialect::PLAIN };
const RULES: Dialect = Dialect { is_of_paths: true, braces: true, ..Dialect::PLAIN };

fn check(dialect: Dialect, rows: &[(&str, &str, &str)]) {
    for (glob, yes, no) in rows {
        let parsed = Glob::new(glob.as_bytes(), dialect);
        assert!(parsed.is_match(yes.as_bytes()), "{glob} {yes}");
        assert!(!parsed.is_match(no.as_bytes()), "{glob} {no}");
    }
}

#[test]
fn globs_match_as_in_the_shell() {
    check(
        NAMES,
        &[
            ("*.so", "a.so", "a.so.1"),
            ("a?c", "abc", "ac"),
            ("[!a-c]x", "dx", "ax"),
            ("[[:digit:]]*", "1a", "a1"),
            ("!(boot|etc)", "usr", "etc"),
            ("+(ab|c)d", "abcabd", "d"),
            ("?(a)b", "ab", "aab"),
            ("*(a|b)", "abba", "abc"),
            ("@(a|b*)", "bcd", "cd"),
            ("\\*", "*", "a"),
            (".*", ".a", "a"),
            ("*", "a", ".a"),
            ("[", "[", "a"),
            ("!(etc)", ".etc", "etc"),
            ("!(!(a))", "a", "b"),
            ("+([()])", "()", "(a)"),
            ("*(b", "x(b", "b"),
            ("@(a|", "@(a|", "a"),
            ("[\\]a-]", "]", "b"),
            ("?(a)*", "xa", ".a"),
            ("[[:blank:][:cntrl:]]", "\t", "a"),
        ],
    );
}

#[test]
fn alternatives_that_multiply_are_matched_to_the_end() {
    let (name, other) = ([b'a'; 99], [&[b'a'; 98][..], b"b"].concat());
    let nested = "+(".repeat(9) + "a|aa" + &")".repeat(9);
    for glob in ["*(a|a|aa)a", &"*a".repeat(50), "+(+(*(a*a)|?(a)*)a)", &nested] {
        let parsed = Glob::new(glob.as_bytes(), NAMES);
        assert!(parsed.is_match(&name), "{glob}");
        assert!(!parsed.is_match(&other), "{glob}");
    }
}

#[test]
fn slashes_of_paths_are_matched_by_slashes_alone() {
    check(
        PATHS,
        &[
            ("a/*", "a/b", "a/b/c"),
            ("*/b*", "a/bc", "a/c/b"),
            ("a/?dot", "a/.dot", "adot"),
            ("a?b", "acb", "a/b"),
            ("a[!x]b", "acb", "a/b"),
            ("+(a)", "+(a)", "a"),
            ("{a}**", "{a}b", "a"),
        ],
    );
}

#[test]
fn rules_have_alternatives_and_any_number_of_directories() {
    check(
        RULES,
        &[
            ("**/b", "a/x/b", "ab"),
            ("**/*.so", "a.so", "a.so/b"),
            ("**/*.so", "a/b/c.so", "a/b/c"),
            ("a/**", "a/b/c", "a"),
            ("a/**/b", "a/b", "ab"),
            ("a/**/b", "a/x/y/b", "a/xb"),
            ("a**b", "axb", "a/b"),
            ("*.{jpg,p{n,k}g}", "a.pkg", "a.pg"),
            ("{a,b/*}.c", "b/x.c", "b/x/y.c"),
            ("\\{a}", "{a}", "a"),
        ],
    );
    for (glob, is_unclosed) in [("[a", true), ("{a,b", true), ("[{]", false), ("{a}", false), ("a}", false)] {
        assert_eq!(Glob::new(glob.as_bytes(), RULES).is_unclosed(), is_unclosed, "{glob}");
    }
}

fn like(pattern: &str, name: &[u8], expected: bool) {
    let glob = Glob::new(pattern.as_bytes(), CHARACTERS);
    assert_eq!(glob.is_match(name), expected, "{pattern} against {name:?}");
}

#[test]
fn stars_take_any_run_of_characters() {
    like("*", b"", true);
    like("*.so*", b"libc.so.6", true);
    like("*.so", b"libc.so.6", false);
    like("a*b*c", b"axxbyybzc", true);
    like("a**c", b"ac", true);
    like("*a", b"aab", false);
    like("a*a", b"a", false);
    like("a*a\u{e4}b", "axa\u{e4}b".as_bytes(), true);
}

#[test]
fn question_marks_take_one_character_whether_it_is_utf8_or_not() {
    like("k?se", "käse".as_bytes(), true);
    like("k?se", b"k\xe4se", true);
    like("k?se", b"kse", false);
    like("???", b"\xff\xfe\xfd", true);
}

#[test]
fn classes_hold_ranges_single_characters_and_their_opposite() {
    like("[a-c]x", b"bx", true);
    like("[a-c]x", b"dx", false);
    like("[!a-c]x", b"dx", true);
    like("[^a-c]x", b"ax", false);
    like("[]]", b"]", true);
    like("[a-]", b"-", true);
    like("[ä-ö]", "ö".as_bytes(), true);
    like("ä[ä-ö]ä", "äöä".as_bytes(), true);
}

#[test]
fn a_class_that_nothing_closes_means_itself() {
    like("[", b"[", true);
    like("[ab", b"[ab", true);
    like("[ab", b"a", false);
}

#[test]
fn a_backslash_makes_the_next_character_plain() {
    like("\\*", b"*", true);
    like("\\*", b"x", false);
    like("a\\", b"a\\", true);
    like("[\\]]", b"]", true);
}

#[test]
fn many_stars_do_not_take_exponential_time() {
    let pattern = "*a".repeat(100) + "b";
    like(&pattern, &[b'a'; 255], false);
}
