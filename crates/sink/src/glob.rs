//! Glob patterns for one path component, over bytes.
//!
//! Supports `*`, `?`, `[a-z]`, `[!a-z]` (or `[^a-z]`), and `\` before a literal character. A
//! character is a Unicode character if the name is UTF-8, otherwise a byte. Not recursive: the
//! worst case is the product of both lengths.

/// A character of a name: a code point, or a byte that is not UTF-8, numbered outside all code
/// points.
type Unit = u32;

/// First number of bytes that are not UTF-8: the low surrogates, which valid text cannot contain.
const STRAY_BYTE_BASE: Unit = 0xdc00;

/// A part of a [`Glob`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// This character.
    One(Unit),
    /// Any character.
    Any,
    /// Any number of characters.
    Run,
    /// A character inside one of the ranges, or outside all of them.
    Class { inside: bool, ranges: Vec<(Unit, Unit)> },
}

impl Part {
    fn takes(&self, unit: Unit) -> bool {
        match self {
            Part::One(own) => *own == unit,
            Part::Any => true,
            Part::Run => false,
            Part::Class { inside, ranges } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&unit)) == *inside
            }
        }
    }
}

/// A pattern for the name of one directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob(Vec<Part>);

impl Glob {
    /// Returns true if `bytes` contain a character with a special meaning.
    pub(crate) fn is_pattern(bytes: &[u8]) -> bool {
        bytes.iter().any(|b| b"*?[\\".contains(b))
    }

    /// Parses a pattern. An unclosed `[`, and a `\` at the end, are literal.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let units = units(bytes);
        let mut parts = Vec::with_capacity(units.len());
        let mut at = 0;
        while let Some(&unit) = units.get(at) {
            at += 1;
            parts.push(match char::from_u32(unit) {
                Some('*') if parts.last() == Some(&Part::Run) => continue,
                Some('*') => Part::Run,
                Some('?') => Part::Any,
                Some('\\') if at < units.len() => {
                    at += 1;
                    Part::One(units[at - 1])
                }
                Some('[') => match parse_class(&units[at..]) {
                    Some((class, len)) => {
                        at += len;
                        class
                    }
                    None => Part::One(unit),
                },
                _ => Part::One(unit),
            });
        }
        Glob(parts)
    }

    /// Returns true if the pattern matches the whole of `name`.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        let name = units(name);
        let (mut part, mut unit) = (0, 0);
        // Where to continue when a run has to take one more character: the part after it, and the
        // name's position.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(part), name.get(unit)) {
                (None, None) => return true,
                (Some(Part::Run), _) => {
                    part += 1;
                    retry = Some((part, unit));
                }
                (Some(own), Some(&found)) if own.takes(found) => {
                    part += 1;
                    unit += 1;
                }
                _ => match retry {
                    Some((after_run, from)) if from < name.len() => {
                        retry = Some((after_run, from + 1));
                        (part, unit) = (after_run, from + 1);
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Parses a class after its `[` and returns the number of units read. A `]` right after the opening
/// is a member.
fn parse_class(units: &[Unit]) -> Option<(Part, usize)> {
    let char_at = |at: usize| units.get(at).copied().and_then(char::from_u32);
    let mut at = 0;
    let inside = !matches!(char_at(0), Some('!' | '^'));
    if !inside {
        at += 1;
    }
    let first_member = at;
    let mut ranges = Vec::new();
    loop {
        let mut first = *units.get(at)?;
        match char::from_u32(first) {
            Some(']') if at > first_member => return Some((Part::Class { inside, ranges }, at + 1)),
            Some('\\') => {
                at += 1;
                first = *units.get(at)?;
            }
            _ => {}
        }
        at += 1;
        let mut last = first;
        if char_at(at) == Some('-') && char_at(at + 1).is_some_and(|c| c != ']') {
            last = units[at + 1];
            at += 2;
        }
        ranges.push((first, last));
    }
}

fn units(bytes: &[u8]) -> Vec<Unit> {
    let mut units = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        units.extend(chunk.valid().chars().map(u32::from));
        units.extend(chunk.invalid().iter().map(|&b| STRAY_BYTE_BASE + Unit::from(b)));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &[u8], expected: bool) {
        assert_eq!(Glob::parse(pattern.as_bytes()).matches(name), expected, "{pattern} against {name:?}");
    }

    #[test]
    fn stars_take_any_run_of_characters() {
        check("*", b"", true);
        check("*.so*", b"libc.so.6", true);
        check("*.so", b"libc.so.6", false);
        check("a*b*c", b"axxbyybzc", true);
        check("a**c", b"ac", true);
        check("*a", b"aab", false);
    }

    #[test]
    fn question_marks_take_one_character_whether_it_is_utf8_or_not() {
        check("k?se", "käse".as_bytes(), true);
        check("k?se", b"k\xe4se", true);
        check("k?se", b"kse", false);
        check("???", b"\xff\xfe\xfd", true);
    }

    #[test]
    fn classes_hold_ranges_single_characters_and_their_opposite() {
        check("[a-c]x", b"bx", true);
        check("[a-c]x", b"dx", false);
        check("[!a-c]x", b"dx", true);
        check("[^a-c]x", b"ax", false);
        check("[]]", b"]", true);
        check("[a-]", b"-", true);
        check("[ä-ö]", "ö".as_bytes(), true);
    }

    #[test]
    fn a_class_that_nothing_closes_means_itself() {
        check("[", b"[", true);
        check("[ab", b"[ab", true);
        check("[ab", b"a", false);
    }

    #[test]
    fn a_backslash_makes_the_next_character_plain() {
        check("\\*", b"*", true);
        check("\\*", b"x", false);
        check("a\\", b"a\\", true);
        check("[\\]]", b"]", true);
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = "*a".repeat(100) + "b";
        check(&pattern, &[b'a'; 255], false);
    }
}
