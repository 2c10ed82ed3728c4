//! Rules with remaining faults. The maximum number of each must be lowered when faults are fixed.

use super::sources::File;

/// Maximum lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Maximum columns of a comment line.
const COMMENT_COLUMNS_MAX: usize = 100;
/// Words that no paragraph of a doc comment begins with, because readers scan for nouns and verbs.
const PRONOUNS: [&str; 6] = ["What", "Who", "Whoever", "How", "Whether", "Which"];
/// Further words that the first line of a doc comment does not begin with.
const PREPOSITIONS: [&str; 3] = ["Where", "As", "Of"];

/// Words that no comment contains: agents are the caller, the kernel, the encoder, the user.
const PEOPLE: [&str; 5] = ["somebody", "nobody", "anybody", "everybody", "whoever"];

/// Exceptions by signature: loops whose state must stay in registers.
const LOOPS: [(&str, &str); 2] = [
    ("crates/codec/src/lzma/decode/fast.rs", "pub(super) fn decode<S: Steps>("),
    ("crates/codec/src/zstd/coders/fit/quick.rs", "pub(super) fn advance("),
];

struct Count {
    of: &'static str,
    in_file: fn(&File) -> usize,
    most: usize,
}

const COUNTS: [Count; 5] = [
    Count { of: "functions of more than 70 lines", in_file: long_functions, most: 0 },
    Count { of: "lines of comment beyond 100 columns", in_file: wide_comments, most: 0 },
    Count {
        of: "doc comments or paragraphs that open with a relative pronoun or preposition",
        in_file: odd_openings,
        most: 0,
    },
    Count { of: "conditions written as a match of nothing", in_file: matches_of_nothing, most: 0 },
    Count { of: "lines of comment with somebody, anybody, or the like", in_file: people, most: 0 },
];

pub fn check(files: &[File]) -> Vec<String> {
    COUNTS.iter().filter_map(|count| count.fault(files)).collect()
}

impl Count {
    fn fault(&self, files: &[File]) -> Option<String> {
        let found: usize = files.iter().map(self.in_file).sum();
        let (of, most) = (self.of, self.most);
        let worst = files.iter().max_by_key(|file| (self.in_file)(file)).map_or("", |file| &file.path);
        match found {
            _ if found > most => {
                Some(format!("{found} {of}, at most {most} allowed; most of them in {worst}"))
            }
            _ if found < most => {
                Some(format!("{found} {of}: fewer than the {most} of xtask/src/tidy/counts.rs; lower it"))
            }
            _ => None,
        }
    }
}

/// Counts functions from the line of `fn` to the brace in the same column.
fn long_functions(file: &File) -> usize {
    let lines: Vec<&str> = file.text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| is_function(line));
    let is_loop = |line: &str| {
        LOOPS.iter().any(|(path, signature)| file.path == *path && line.trim_start().starts_with(signature))
    };
    let is_long = |(start, line): (usize, &&str)| {
        let column = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..column]);
        let len = lines[start..].iter().position(|line| *line == end).map_or(0, |len| len + 1);
        len > FUNCTION_LINES_MAX && !is_loop(line)
    };
    starts.filter(|start| is_long(*start)).count()
}

fn is_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ').skip_while(|word| {
        word.starts_with("pub") || matches!(*word, "const" | "unsafe" | "extern" | "\"C\"")
    });
    words.next() == Some("fn") && !line.ends_with(';') && !line.ends_with('}')
}

fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']).trim_start())
}

fn wide_comments(file: &File) -> usize {
    let is_wide = |line: &&str| line.chars().count() > COMMENT_COLUMNS_MAX && comment(line).is_some();
    file.text.lines().filter(is_wide).count()
}

fn odd_openings(file: &File) -> usize {
    let mut before = "";
    let mut count = 0;
    for line in file.text.lines().map(str::trim_start) {
        let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
        let is_first = is_doc(line) && !is_doc(before);
        let opens = is_first || is_doc(line) && matches!(before, "///" | "//!");
        let word = comment(line).and_then(|text| text.split([' ', ',']).next());
        let is_odd = |word| opens && PRONOUNS.contains(&word) || is_first && PREPOSITIONS.contains(&word);
        count += usize::from(word.is_some_and(is_odd));
        before = line;
    }
    count
}

fn people(file: &File) -> usize {
    let names_people = |line: &&str| {
        let mut words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
        words.any(|word| PEOPLE.contains(&word.to_lowercase().as_str()))
    };
    file.text.lines().filter_map(comment).filter(names_people).count()
}

fn matches_of_nothing(file: &File) -> usize {
    file.text.lines().filter(|line| line.ends_with(concat!("match ", "() {"))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_wide_comments_odd_openings_and_people_are_counted() {
        let long = |lines: usize| {
            format!("impl X {{\n    pub fn f() {{\n{}    }}\n}}\n", "        g();\n".repeat(lines))
        };
        assert_eq!(long_functions(&File::new("a.rs", &long(68))), 0);
        assert_eq!(long_functions(&File::new("a.rs", &long(69))), 1);
        assert_eq!(wide_comments(&File::new("a.rs", &format!("// {}\n", "x".repeat(97)))), 0);
        assert_eq!(
            wide_comments(&File::new("a.rs", &format!("// {}\nlet {}", "x".repeat(98), "x".repeat(99)))),
            1
        );
        let text =
            "/// What it is.\n/// How it is.\nfn f() {}\n\n/// Returns it.\n/// What else?\nfn g() {}\n";
        assert_eq!(odd_openings(&File::new("a.rs", text)), 1);
        let text = "//! A noun.\n//!\n//! Which it is.\n//!\n//! As said.\n\n/// As said.\nfn f() {}\n";
        assert_eq!(odd_openings(&File::new("a.rs", text)), 2);
        let text = "// Nobody reads it.\nlet nobody = 1;\n// Runs `as_nobody`.\n/// For whoever asks.\n";
        assert_eq!(people(&File::new("a.rs", text)), 2);
        let text = format!("let x = match {} {{\n    () if a => 1,\n}};\n", "()");
        assert_eq!(matches_of_nothing(&File::new("a.rs", &text)), 1);
    }

    #[test]
    fn a_count_may_only_become_lower() {
        let count = |most| Count { of: "x", in_file: |file| file.text.len(), most };
        let files = [File::new("a.rs", "ab"), File::new("b.rs", "abc")];
        assert!(count(4).fault(&files).unwrap().contains("at most 4 allowed; most of them in b.rs"));
        assert!(count(6).fault(&files).unwrap().contains("lower it"));
        assert_eq!(count(5).fault(&files), None);
    }
}
