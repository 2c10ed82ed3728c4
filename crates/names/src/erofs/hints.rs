//! Hints of mkfs.erofs: cluster size and codec of files by path expressions.

use crate::common::globs::regex;
use packfs::{Error, NodeKind, Result, ResultExt, Tree};
use packfs_terminal::report;
use regex::bytes::Regex;
use std::path::Path;

/// Each file becomes a rule.
const FILES_MAX: usize = 1 << 12;

pub struct Hint {
    path: Regex,
    value: String,
}

/// Lines are `SIZE [NUMBER OF THE CODEC] EXPRESSION`.
pub fn read(file: &Path, block: u64, codecs: &[String]) -> Result<Vec<Hint>> {
    let text = std::fs::read_to_string(file).or_io(|| format!("cannot open {file:?}"))?;
    let mut hints = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let wrong =
            || Error::usage(format!("{file:?}: \"{line}\" is not SIZE [NUMBER OF THE CODEC] EXPRESSION"));
        let (size, rest) = line.split_once([' ', '\t']).ok_or_else(wrong)?;
        let size: u64 = size.parse().map_err(|_| wrong())?;
        let (number, expression) =
            rest.trim_start().split_once([' ', '\t']).unwrap_or(("0", rest.trim_start()));
        let codec = number.parse().ok().and_then(|number: usize| codecs.get(number)).ok_or_else(wrong)?;
        if expression.is_empty() {
            return Err(wrong());
        }
        if !size.is_multiple_of(block) {
            let why = "the line is ignored";
            report::note(format_args!("mkfs.erofs: invalid cluster size {size} in {file:?}: {why}"));
            continue;
        }
        let value = if size == 0 { "none".to_owned() } else { format!("{codec}@{size}") };
        hints.push(Hint { path: regex(expression.as_bytes())?, value });
    }
    Ok(hints)
}

/// The first hint that matches a file decides.
///
/// Errors: `Usage` for too many files.
pub fn rules(hints: &[Hint], tree: &Tree) -> Result<Vec<(String, String)>> {
    let (mut rules, mut walk) = (Vec::new(), tree.walk());
    while let Some((path, id)) = walk.next() {
        let is_file = matches!(tree.node(id).kind, NodeKind::File { .. });
        let found = hints.iter().find(|hint| is_file && hint.path.is_match(path.as_bytes()));
        let Some(hint) = found else { continue };
        if rules.len() == FILES_MAX {
            return Err(Error::usage(format!("--compress-hints match more than {FILES_MAX} files"))
                .hint("packfs pack has rules by glob: -O rule=GLOB=CODEC[:LEVEL][@SIZE]"));
        }
        rules.push(("rule".to_owned(), format!("/{}={}", exactly(path.as_bytes()), hint.value)));
    }
    Ok(rules)
}

fn exactly(path: &[u8]) -> String {
    let escaped = |byte: &u8| match byte {
        b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'!' => format!("[{}]", char::from(*byte)),
        byte if byte.is_ascii_graphic() && !matches!(byte, b'=' | b'\\' | b',') => {
            char::from(*byte).to_string()
        }
        // Special characters of rules, and bytes that are not UTF-8.
        _ => "?".to_owned(),
    };
    path.iter().map(escaped).collect()
}
