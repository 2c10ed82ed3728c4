//! Patterns of the tools, and lists of paths with patterns as components.

use packfs::{Dialect, Error, Glob, ImagePath, Name, Result};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::HashSet;

/// `fnmatch(FNM_EXTMATCH | FNM_PERIOD)`.
const NAME: Dialect = Dialect { hides_dots: true, groups: true, ..Dialect::PLAIN };
/// `fnmatch(FNM_EXTMATCH)`.
const ANY: Dialect = Dialect { groups: true, ..Dialect::PLAIN };
/// `fnmatch(FNM_PATHNAME)`.
const PATH: Dialect = Dialect { is_of_paths: true, ..Dialect::PLAIN };

#[derive(Clone, Debug)]
pub enum Pattern {
    Glob(Glob),
    /// Matched anywhere in the name.
    Regex(Regex),
    Exact(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Glob,
    Regex,
    Exact,
}

/// Compiles an expression that may match anywhere in a text.
pub fn regex(text: &[u8]) -> Result<Regex> {
    let shown = match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        // Not UTF-8.
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
    pub fn new(text: &[u8], kind: Kind) -> Result<Self> {
        Ok(match kind {
            Kind::Glob => Pattern::Glob(Glob::new(text, NAME)),
            Kind::Regex => Pattern::Regex(regex(text)?),
            Kind::Exact => Pattern::Exact(text.to_vec()),
        })
    }

    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Pattern::Glob(glob) => glob.is_match(name),
            Pattern::Regex(regex) => regex.is_match(name),
            Pattern::Exact(exact) => exact == name,
        }
    }
}

/// A matching path includes everything below it.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    rooted: Vec<Vec<Pattern>>,
    /// May start at any depth.
    sticky: Vec<Vec<Pattern>>,
    exact: HashSet<ImagePath>,
    /// Directories above exact paths.
    above: HashSet<ImagePath>,
}

impl PathPatterns {
    /// A path after `... ` may start at any depth.
    pub fn add(&mut self, text: &[u8], kind: Kind) -> Result<()> {
        match text.strip_prefix(b"... ") {
            Some(rest) => Self::add_to(&mut self.sticky, rest, kind),
            None => self.add_rooted(text, kind),
        }
    }

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

    pub fn add_path(&mut self, path: ImagePath) {
        let mut above = path.clone();
        while above.pop() && self.above.insert(above.clone()) {}
        self.exact.insert(path);
    }

    pub fn is_empty(&self) -> bool {
        self.rooted.is_empty() && self.sticky.is_empty() && self.exact.is_empty()
    }

    /// Also true below a matching path.
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

    /// True for a directory above a possible match.
    pub fn lead_through(&self, path: &ImagePath) -> bool {
        let names: Vec<Name<'_>> = path.names().collect();
        self.above.contains(path)
            || self.rooted.iter().any(|patterns| {
                patterns.len() > names.len()
                    && patterns.iter().zip(&names).all(|(pattern, name)| pattern.matches(name.as_bytes()))
            })
    }
}

pub fn matches_all(glob: &[u8], name: &[u8]) -> bool {
    Glob::new(glob, ANY).is_match(name)
}

pub fn matches_plain(glob: &[u8], text: &[u8]) -> bool {
    Glob::new(glob, Dialect::PLAIN).is_match(text)
}

pub fn matches_path(glob: &[u8], path: &[u8]) -> bool {
    Glob::new(glob, PATH).is_match(path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
