//! The rules of deny.toml that this tool checks, read without a TOML parser.
//!
//! Missing lists are an error, because an empty list would allow everything or nothing.

use std::path::Path;

use crate::failure::{Failure, Result};

/// Rules for linked crates.
#[derive(Debug, PartialEq)]
pub struct Rules {
    /// `licenses.allow`: names of licenses, with their exception.
    pub allowed: Vec<String>,
    /// `bans.deny`: names of crates.
    pub denied: Vec<String>,
    /// `bans.skip`: `name@version` of crates that may have further versions; a prefix of the
    /// version suffices.
    pub skipped: Vec<String>,
}

impl Rules {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
        Self::parse(&text).ok_or_else(|| {
            Failure::new(format!("{}: licenses.allow or bans.deny is missing or empty", path.display()))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let lines = || text.lines().map(|line| line.split('#').next().unwrap_or(line).trim());
        let allowed = quoted(&list(lines(), "[licenses]", "allow")?);
        let denied = list(lines(), "[bans]", "deny")?;
        let crates = |list: String| -> Vec<String> {
            list.split("crate =").skip(1).filter_map(|rest| quoted(rest).into_iter().next()).collect()
        };
        let denied = crates(denied);
        let skipped = list(lines(), "[bans]", "skip").map(crates).unwrap_or_default();
        let rules = Self { allowed, denied, skipped };
        (!rules.allowed.is_empty() && !rules.denied.is_empty()).then_some(rules)
    }
}

/// Returns the text between the brackets of `key = [...]` in a section.
fn list<'a>(lines: impl Iterator<Item = &'a str>, section: &str, key: &str) -> Option<String> {
    let inside = lines.skip_while(|line| *line != section).skip(1);
    let inside: Vec<_> = inside.take_while(|line| !(line.starts_with('[') && line.ends_with(']'))).collect();
    let is_key = |line: &&str| line.split('=').next().is_some_and(|name| name.trim() == key);
    let start = inside.iter().position(is_key)?;
    let rest = inside[start..].join("\n");
    let (_, rest) = rest.split_once('[')?;
    rest.split_once(']').map(|(inner, _)| inner.to_owned())
}

/// Returns the texts in double quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[licenses]\nversion = 2\nallow = [\n  \"MIT\", # a note on \"quotes\"\n  \"ISC\",\n]\n\n\
        [bans]\nmultiple-versions = \"deny\"\n\
        skip = [{ crate = \"syn@2\", reason = \"a crate\" }]\ndeny = [\n  { crate = \"minilzo\", reason = \"GPL\" },\n  { crate = \"lzo-sys\" },\n]\n";

    #[test]
    fn reads_both_lists() {
        let rules = Rules::parse(GOOD).unwrap();
        assert_eq!(rules.allowed, ["MIT", "ISC"]);
        assert_eq!(rules.denied, ["minilzo", "lzo-sys"]);
        assert_eq!(rules.skipped, ["syn@2"]);
    }

    #[test]
    fn refuses_a_file_without_one_of_the_lists() {
        assert_eq!(Rules::parse(&GOOD.replace("allow = [", "allowed = [")), None);
        assert_eq!(Rules::parse(&GOOD.replace("[bans]", "[ban]")), None);
        assert_eq!(Rules::parse(""), None);
    }
}
