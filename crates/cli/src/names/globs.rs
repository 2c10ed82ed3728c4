//! Patterns of the tools: shell globs with extended groups, as `fnmatch(FNM_EXTMATCH)` reads them,
//! and lists of paths whose components are patterns.

use packfs::{Error, ImagePath, Name, Result};
use regex::bytes::{Regex, RegexBuilder};

/// A pattern of one name.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A shell glob.
    Glob(Vec<u8>),
    /// A regular expression, matched anywhere in the name.
    Regex(Regex),
    /// Exactly this name.
    Exact(Vec<u8>),
}

/// Kind of patterns in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Glob,
    Regex,
    Exact,
}

/// Compiles an expression that is matched anywhere in a text.
///
/// Errors: `Usage`.
pub fn regex(text: &[u8]) -> Result<Regex> {
    let shown = match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        // Bytes that are no text.
        Err(_) => text.iter().map(byte_of_regex).collect(),
    };
    let mut builder = RegexBuilder::new(&shown);
    let built = builder.unicode(false).dot_matches_new_line(true).size_limit(1 << 22).build();
    built.map_err(|fault| {
        let why = fault.to_string();
        Error::usage(format!("invalid regular expression {shown:?}: {}", packfs::last_line(&why)))
    })
}

fn byte_of_regex(byte: &u8) -> String {
    if byte.is_ascii() { char::from(*byte).to_string() } else { format!("\\x{byte:02x}") }
}

impl Pattern {
    fn new(text: &[u8], kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Glob => Pattern::Glob(text.to_vec()),
            Kind::Regex => Pattern::Regex(regex(text)?),
            Kind::Exact => Pattern::Exact(text.to_vec()),
        })
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Pattern::Glob(glob) => matches(glob, name),
            Pattern::Regex(regex) => regex.is_match(name),
            Pattern::Exact(exact) => exact == name,
        }
    }
}

/// Paths whose components are patterns. A path that matches stands for everything below it.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    rooted: Vec<Vec<Pattern>>,
    /// Patterns that may start at any depth.
    sticky: Vec<Vec<Pattern>>,
}

impl PathPatterns {
    /// Adds a path.
    ///
    /// Errors: `Usage` for an invalid expression.
    pub fn add(&mut self, text: &[u8], kind: Kind) -> Result<()> {
        let (text, list) = match text.strip_prefix(b"... ") {
            Some(rest) => (rest, &mut self.sticky),
            None => (text, &mut self.rooted),
        };
        let components = text.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        let components: Vec<Pattern> =
            components.map(|part| Pattern::new(part, kind)).collect::<Result<_>>()?;
        if !components.is_empty() {
            list.push(components);
        }
        Ok(())
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.rooted.is_empty() && self.sticky.is_empty()
    }

    /// Returns true for a path that matches, and for all below one that does.
    pub fn cover(&self, path: &ImagePath) -> bool {
        let names: Vec<Name<'_>> = path.names().collect();
        let starts = |patterns: &[Pattern], names: &[Name<'_>]| {
            patterns.len() <= names.len()
                && patterns.iter().zip(names).all(|(pattern, name)| pattern.matches(name.as_bytes()))
        };
        self.rooted.iter().any(|patterns| starts(patterns, &names))
            || self
                .sticky
                .iter()
                .any(|patterns| (0..names.len()).any(|from| starts(patterns, &names[from..])))
    }

    /// Returns true for a directory above a path that may match.
    pub fn lead_through(&self, path: &ImagePath) -> bool {
        let names: Vec<Name<'_>> = path.names().collect();
        self.rooted.iter().any(|patterns| {
            patterns.len() > names.len()
                && patterns.iter().zip(&names).all(|(pattern, name)| pattern.matches(name.as_bytes()))
        })
    }
}

/// Matches a whole name with a glob: `*`, `?`, `[...]`, `\`, and the groups `?(..)`, `*(..)`,
/// `+(..)`, `@(..)`, `!(..)`. A leading dot must be matched by a dot.
pub fn matches(glob: &[u8], name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.');
    if hidden && matches!(glob.first(), Some(b'*' | b'?' | b'[')) && glob.get(1) != Some(&b'(') {
        return false;
    }
    matches_all(glob, name)
}

/// The same without the rule of leading dots.
pub fn matches_all(glob: &[u8], name: &[u8]) -> bool {
    Matcher { steps: 0, is_path: false }.run(glob, name)
}

/// Matches a whole path, as `fnmatch(FNM_PATHNAME)` does: without groups, and a slash is matched by
/// a slash alone.
pub fn matches_path(glob: &[u8], path: &[u8]) -> bool {
    Matcher { steps: 0, is_path: true }.run(glob, path)
}

/// Bounds the search, whose alternatives multiply.
struct Matcher {
    steps: u32,
    is_path: bool,
}

impl Matcher {
    const STEPS_MAX: u32 = 1 << 20;

    fn run(&mut self, glob: &[u8], name: &[u8]) -> bool {
        self.steps += 1;
        if self.steps > Self::STEPS_MAX {
            return false;
        }
        let Some((&first, rest)) = glob.split_first() else { return name.is_empty() };
        if !self.is_path
            && matches!(first, b'?' | b'*' | b'+' | b'@' | b'!')
            && rest.first() == Some(&b'(')
            && let Some(group) = Group::parse(first, rest)
        {
            return self.group(&group, name);
        }
        match first {
            b'*' => {
                let len = name.iter().position(|&byte| self.is_path && byte == b'/').unwrap_or(name.len());
                (0..=len).any(|at| self.run(rest, &name[at..]))
            }
            b'?' | b'[' if self.is_path && name.first() == Some(&b'/') => false,
            b'?' => !name.is_empty() && self.run(rest, &name[1..]),
            b'[' => match (set(rest), name.split_first()) {
                (Some((set, behind)), Some((byte, name))) => set.has(*byte) && self.run(behind, name),
                (None, Some((b'[', name))) => self.run(rest, name),
                _ => false,
            },
            b'\\' if !rest.is_empty() => name.first() == Some(&rest[0]) && self.run(&rest[1..], &name[1..]),
            byte => name.first() == Some(&byte) && self.run(rest, &name[1..]),
        }
    }

    fn group(&mut self, group: &Group<'_>, name: &[u8]) -> bool {
        let any = |matcher: &mut Self, part: &[u8]| group.choices.iter().any(|glob| matcher.run(glob, part));
        for at in 0..=name.len() {
            let (part, behind) = name.split_at(at);
            let is_part = match group.kind {
                b'!' => !any(self, part),
                b'?' => part.is_empty() || any(self, part),
                b'@' => any(self, part),
                b'*' => part.is_empty() || self.repeated(group, part),
                _ => self.repeated(group, part),
            };
            if is_part && self.run(group.behind, behind) {
                return true;
            }
        }
        false
    }

    /// One or more parts that each match a choice.
    fn repeated(&mut self, group: &Group<'_>, part: &[u8]) -> bool {
        let lens = if part.is_empty() { 0..=0 } else { 1..=part.len() };
        for len in lens {
            let (first, rest) = part.split_at(len);
            let found = group.choices.iter().any(|glob| self.run(glob, first));
            if found && (rest.is_empty() || self.repeated(group, rest)) {
                return true;
            }
        }
        false
    }
}

struct Group<'g> {
    kind: u8,
    choices: Vec<&'g [u8]>,
    behind: &'g [u8],
}

impl<'g> Group<'g> {
    /// Parses `(a|b)...`; `None` without an end.
    fn parse(kind: u8, text: &'g [u8]) -> Option<Self> {
        let (mut depth, mut start, mut choices, mut at) = (0_u32, 1, Vec::new(), 0);
        while at < text.len() {
            match text[at] {
                b'\\' => at += 1,
                b'(' => depth += 1,
                b'|' if depth == 1 => {
                    choices.push(&text[start..at]);
                    start = at + 1;
                }
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        choices.push(&text[start..at]);
                        return Some(Group { kind, choices, behind: &text[at + 1..] });
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}

struct Set<'g> {
    body: &'g [u8],
    negated: bool,
}

/// Parses what stands behind `[`; returns the set, and what stands behind it.
fn set(text: &[u8]) -> Option<(Set<'_>, &[u8])> {
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    let body = &text[usize::from(negated)..];
    let mut at = usize::from(body.first() == Some(&b']'));
    while *body.get(at)? != b']' {
        at += if body[at..].starts_with(b"[:") {
            body[at..].windows(2).position(|two| two == b":]").map_or(1, |end| end + 2)
        } else {
            1
        };
    }
    Some((Set { body: &body[..at], negated }, &body[at + 1..]))
}

impl Set<'_> {
    fn has(&self, byte: u8) -> bool {
        let (mut body, mut found) = (self.body, false);
        while let Some((&first, rest)) = body.split_first() {
            if let Some(class) = body.strip_prefix(b"[:")
                && let Some(end) = class.windows(2).position(|two| two == b":]")
            {
                found |= in_class(&class[..end], byte);
                body = &class[end + 2..];
                continue;
            }
            match rest {
                [b'-', last, behind @ ..] => {
                    found |= (first..=*last).contains(&byte);
                    body = behind;
                }
                _ => {
                    found |= first == byte;
                    body = rest;
                }
            }
        }
        found != self.negated
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace(),
        b"punct" => byte.is_ascii_punctuation(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_the_shell() {
        for (glob, yes, no) in [
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
        ] {
            assert!(matches(glob.as_bytes(), yes.as_bytes()), "{glob} {yes}");
            assert!(!matches(glob.as_bytes(), no.as_bytes()), "{glob} {no}");
        }
    }

    #[test]
    fn slashes_of_paths_are_matched_by_slashes_alone() {
        for (glob, yes, no) in [
            ("a/*", "a/b", "a/b/c"),
            ("*/b*", "a/bc", "a/c/b"),
            ("a/?dot", "a/.dot", "adot"),
            ("a?b", "acb", "a/b"),
            ("a[!x]b", "acb", "a/b"),
            ("+(a)", "+(a)", "a"),
        ] {
            assert!(matches_path(glob.as_bytes(), yes.as_bytes()), "{glob} {yes}");
            assert!(!matches_path(glob.as_bytes(), no.as_bytes()), "{glob} {no}");
        }
    }

    #[test]
    fn paths_match_component_by_component_and_with_all_below() {
        let mut paths = PathPatterns::default();
        paths.add(b"proc/*", Kind::Glob).unwrap();
        paths.add(b"... *.pyc", Kind::Glob).unwrap();
        let covers = |text: &str| paths.cover(&ImagePath::parse(text.as_bytes()).unwrap());
        assert_eq!(
            ["proc", "proc/1", "proc/1/fd", "a/b.pyc", "b.pyc/c", "b.py"].map(covers),
            [false, true, true, true, true, false]
        );
    }
}
