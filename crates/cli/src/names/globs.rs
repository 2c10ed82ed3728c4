//! Patterns of the tools: shell globs with extended groups, as `fnmatch(FNM_EXTMATCH)` reads them,
//! and lists of paths whose components are patterns.

use packfs::{Error, ImagePath, Name, Result};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::HashSet;

/// A pattern of one name.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// A shell glob.
    Glob(Glob),
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
    /// Compiles it.
    ///
    /// Errors: `Usage` for an invalid expression.
    pub fn new(text: &[u8], kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Glob => Pattern::Glob(Glob::new(text, Rules::Name)),
            Kind::Regex => Pattern::Regex(regex(text)?),
            Kind::Exact => Pattern::Exact(text.to_vec()),
        })
    }

    /// True if it matches a name.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Pattern::Glob(glob) => glob.is_match(name),
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
    exact: HashSet<ImagePath>,
    /// Directories above the exact ones.
    above: HashSet<ImagePath>,
}

impl PathPatterns {
    /// Adds a path; behind `... ` it may start at any depth.
    ///
    /// Errors: `Usage` for an invalid expression.
    pub fn add(&mut self, text: &[u8], kind: Kind) -> Result<()> {
        match text.strip_prefix(b"... ") {
            Some(rest) => Self::add_to(&mut self.sticky, rest, kind),
            None => self.add_rooted(text, kind),
        }
    }

    /// Adds a path that starts at the root.
    ///
    /// Errors: `Usage` for an invalid expression.
    pub fn add_rooted(&mut self, text: &[u8], kind: Kind) -> Result<()> {
        Self::add_to(&mut self.rooted, text, kind)
    }

    fn add_to(list: &mut Vec<Vec<Pattern>>, text: &[u8], kind: Kind) -> Result<()> {
        let components = text.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
        let components: Vec<Pattern> =
            components.map(|part| Pattern::new(part, kind)).collect::<Result<_>>()?;
        if !components.is_empty() {
            list.push(components);
        }
        Ok(())
    }

    /// Adds exactly this path.
    pub fn add_path(&mut self, path: ImagePath) {
        let mut above = path.clone();
        while above.pop() && self.above.insert(above.clone()) {}
        self.exact.insert(path);
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.rooted.is_empty() && self.sticky.is_empty() && self.exact.is_empty()
    }

    /// Returns true for a path that matches, and for all below one that does.
    pub fn cover(&self, path: &ImagePath) -> bool {
        let mut above = path.clone();
        while !self.exact.is_empty() {
            if self.exact.contains(&above) {
                return true;
            }
            if !above.pop() {
                break;
            }
        }
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
        self.above.contains(path)
            || self.rooted.iter().any(|patterns| {
                patterns.len() > names.len()
                    && patterns.iter().zip(&names).all(|(pattern, name)| pattern.matches(name.as_bytes()))
            })
    }
}

/// Matches a whole name with a glob: `*`, `?`, `[...]`, `\\`, and the groups `?(..)`, `*(..)`,
/// `+(..)`, `@(..)`, `!(..)`.
pub fn matches_all(glob: &[u8], name: &[u8]) -> bool {
    Glob::new(glob, Rules::Any).is_match(name)
}

/// Matches a whole path, as `fnmatch(FNM_PATHNAME)` does: without groups, and a slash is matched by
/// a slash alone.
pub fn matches_path(glob: &[u8], path: &[u8]) -> bool {
    Glob::new(glob, Rules::Path).is_match(path)
}

/// Bytes that wildcards do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// A dot at the beginning.
    Name,
    /// None.
    Any,
    /// Slashes.
    Path,
}

#[derive(Clone, Debug)]
enum Item {
    Star,
    One,
    Byte(u8),
    Set(Set),
    /// A group, by its place in the list of them.
    Group(usize),
}

#[derive(Clone, Debug, Default)]
struct Group {
    kind: u8,
    choices: Vec<Vec<Item>>,
}

/// A glob, matched by the sets of places that its items can lead to, so that alternatives add up
/// instead of multiplying.
#[derive(Clone, Debug)]
pub struct Glob {
    items: Vec<Item>,
    /// Each behind those within it.
    groups: Vec<Group>,
    rules: Rules,
}

impl Glob {
    fn new(text: &[u8], rules: Rules) -> Self {
        let closed = if rules == Rules::Path { Vec::new() } else { closed(text) };
        let (mut groups, mut open, mut items, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while let Some(&byte) = text.get(at) {
            if closed.contains(&at) {
                open.push((Group { kind: byte, choices: Vec::new() }, std::mem::take(&mut items)));
                at += 2;
                continue;
            }
            match (byte, open.last_mut()) {
                (b'|', Some((group, _))) => group.choices.push(std::mem::take(&mut items)),
                (b')', Some(_)) => {
                    let (mut group, around) = open.pop().unwrap_or_default();
                    group.choices.push(std::mem::replace(&mut items, around));
                    items.push(Item::Group(groups.len()));
                    groups.push(group);
                }
                _ => {
                    let (item, behind) = item(text, at);
                    items.push(item);
                    at = behind;
                    continue;
                }
            }
            at += 1;
        }
        Glob { items, groups, rules }
    }

    fn is_match(&self, name: &[u8]) -> bool {
        let mut ends: Vec<Vec<Places>> = Vec::new();
        for group in &self.groups {
            let mut found = Vec::new();
            for start in (0..=name.len()).rev() {
                let of_start = self.ends(group, start, name, (&ends, &found));
                found.push(of_start);
            }
            found.reverse();
            ends.push(found);
        }
        self.walked(&self.items, only(0, name), name, &ends).last() == Some(&true)
    }

    /// True if a wildcard matches the byte at a place.
    fn is_free(&self, name: &[u8], at: usize) -> bool {
        match self.rules {
            Rules::Name => at > 0 || name.first() != Some(&b'.'),
            Rules::Any => true,
            Rules::Path => name.get(at) != Some(&b'/'),
        }
    }

    /// Returns the places behind items that begin at any of the places.
    fn walked(&self, items: &[Item], from: Places, name: &[u8], ends: &[Vec<Places>]) -> Places {
        items.iter().fold(from, |from, item| {
            let mut to = vec![false; from.len()];
            let mut is_reached = false;
            for at in 0..from.len() {
                let (free, byte) = (self.is_free(name, at), name.get(at));
                is_reached |= from[at];
                match item {
                    Item::Star => {
                        to[at] = is_reached;
                        is_reached &= free;
                    }
                    Item::Group(group) if from[at] => add(&mut to, &ends[*group][at]),
                    Item::Group(_) => {}
                    Item::One => step(&mut to, at, from[at] && free),
                    Item::Set(set) => {
                        step(&mut to, at, from[at] && free && byte.is_some_and(|byte| set.has(*byte)))
                    }
                    Item::Byte(own) => step(&mut to, at, from[at] && byte == Some(own)),
                }
            }
            to
        })
    }

    /// Returns the places behind a group that begins at a place; `later` are those of it at the
    /// places behind, from the last one on.
    fn ends(
        &self,
        group: &Group,
        start: usize,
        name: &[u8],
        (inner, later): (&[Vec<Places>], &[Places]),
    ) -> Places {
        let begin = only(start, name);
        let mut once = vec![false; begin.len()];
        for items in &group.choices {
            add(&mut once, &self.walked(items, begin.clone(), name, inner));
        }
        let mut found = once.clone();
        match group.kind {
            b'!' => found.iter_mut().enumerate().for_each(|(at, end)| *end = at >= start && !*end),
            b'*' | b'+' => {
                let again = later.iter().zip(once.iter().rev()).filter(|(_, is_end)| **is_end);
                again.for_each(|(later, _)| add(&mut found, later));
            }
            _ => {}
        }
        if matches!(group.kind, b'?' | b'*') {
            add(&mut found, &begin);
        }
        found
    }
}

/// The places of a name, and that behind its last byte: true for those that are reached.
type Places = Vec<bool>;

fn only(at: usize, name: &[u8]) -> Places {
    (0..=name.len()).map(|place| place == at).collect()
}

fn add(to: &mut Places, more: &Places) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to |= more);
}

fn step(to: &mut Places, at: usize, is_match: bool) {
    if let Some(next) = to.get_mut(at + 1) {
        *next |= is_match;
    }
}

/// Returns the item at a place that is none of a group's signs, and the place behind it.
fn item(text: &[u8], at: usize) -> (Item, usize) {
    match (text[at], text.get(at + 1)) {
        (b'*', _) => (Item::Star, at + 1),
        (b'?', _) => (Item::One, at + 1),
        (b'\\', Some(&byte)) => (Item::Byte(byte), at + 2),
        (b'[', _) => set(text, at + 1).unwrap_or((Item::Byte(b'['), at + 1)),
        (byte, _) => (Item::Byte(byte), at + 1),
    }
}

/// Returns the places of the groups that have an end; the signs of others are bytes.
fn closed(text: &[u8]) -> Vec<usize> {
    let (mut open, mut closed, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        if matches!(byte, b'?' | b'*' | b'+' | b'@' | b'!') && text.get(at + 1) == Some(&b'(') {
            open.push(at);
            at += 2;
            continue;
        }
        if byte == b')' {
            closed.extend(open.pop());
        }
        at = item(text, at).1;
    }
    closed
}

#[derive(Clone, Debug)]
struct Set {
    body: Vec<u8>,
    negated: bool,
}

/// Parses what stands behind `[`; returns the set, and the place behind it.
fn set(text: &[u8], start: usize) -> Option<(Item, usize)> {
    let negated = matches!(text.get(start), Some(b'!' | b'^'));
    let body = start + usize::from(negated);
    let mut at = body + usize::from(text.get(body) == Some(&b']'));
    while *text.get(at)? != b']' {
        at += match &text[at..] {
            [b'[', b':', rest @ ..] => rest.windows(2).position(|two| two == b":]").map_or(1, |end| end + 4),
            [b'\\', _, ..] => 2,
            _ => 1,
        };
    }
    Some((Item::Set(Set { body: text[body..at].to_vec(), negated }), at + 1))
}

impl Set {
    fn has(&self, byte: u8) -> bool {
        let (mut body, mut found) = (&self.body[..], false);
        while let Some((&first, rest)) = body.split_first() {
            if let Some(class) = body.strip_prefix(b"[:")
                && let Some(end) = class.windows(2).position(|two| two == b":]")
            {
                found |= in_class(&class[..end], byte);
                body = &class[end + 2..];
                continue;
            }
            let (first, rest) = match (first, rest) {
                (b'\\', [escaped, rest @ ..]) => (*escaped, rest),
                _ => (first, rest),
            };
            match rest {
                [b'-', b'\\', last, behind @ ..] | [b'-', last, behind @ ..] => {
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
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"graph" => byte.is_ascii_graphic(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &[u8], name: &[u8]) -> bool {
        Glob::new(glob, Rules::Name).is_match(name)
    }

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
            ("!(etc)", ".etc", "etc"),
            ("!(!(a))", "a", "b"),
            ("+([()])", "()", "(a)"),
            ("*(b", "x(b", "b"),
            ("@(a|", "@(a|", "a"),
            ("[\\]a-]", "]", "b"),
            ("?(a)*", "xa", ".a"),
            ("[[:blank:][:cntrl:]]", "\t", "a"),
        ] {
            assert!(matches(glob.as_bytes(), yes.as_bytes()), "{glob} {yes}");
            assert!(!matches(glob.as_bytes(), no.as_bytes()), "{glob} {no}");
        }
    }

    #[test]
    fn alternatives_that_multiply_are_matched_to_the_end() {
        let (name, other) = ([b'a'; 99], [&[b'a'; 98][..], b"b"].concat());
        let nested = "+(".repeat(9) + "a|aa" + &")".repeat(9);
        for glob in ["*(a|a|aa)a", &"*a".repeat(50), "+(+(*(a*a)|?(a)*)a)", &nested] {
            assert!(matches(glob.as_bytes(), &name), "{glob}");
            assert!(!matches(glob.as_bytes(), &other), "{glob}");
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
