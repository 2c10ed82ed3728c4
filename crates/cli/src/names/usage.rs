//! Help and versions of the tools, from their tables.

use super::parse::{Effect, Given, Row};
use super::squash::CODECS;
use crate::out::{Outcome, report};
use std::process::ExitCode;

const SQUASHFS_TOOLS: &str = "4.7.5";

pub fn squash(name: &str, given: &Given, rows: &[&[Row]]) -> Option<Outcome> {
    let answer = if given.has("-version") {
        format!("{name} version {SQUASHFS_TOOLS} (packfs {})\n", env!("CARGO_PKG_VERSION"))
    } else if given.has("-mem-default") {
        "512\n".to_owned()
    } else {
        help(name, given, rows)?
    };
    Some(report::print(answer).map(|()| ExitCode::SUCCESS))
}

fn help(name: &str, given: &Given, rows: &[&[Row]]) -> Option<String> {
    let helps = ["-help", "-help-all", "-help-option", "-help-section", "-help-comp", "-Xhelp"];
    if !helps.iter().any(|help| given.has(help)) {
        return None;
    }
    let reads = name == "unsquashfs" || name == "sqfscat";
    let operands = match name {
        "mksquashfs" => "source1 source2 ...  FILESYSTEM [OPTIONS] [-e list of exclude dirs/files]",
        "sqfstar" => "[OPTIONS] FILESYSTEM [list of exclude dirs/files]",
        _ => "[OPTIONS] FILESYSTEM [files]",
    };
    let codecs = CODECS.map(|codec| match codec {
        "gzip" if !reads => "\tgzip (default)\n".to_owned(),
        _ => format!("\t{codec}\n"),
    });
    let heading = if reads { "Decompressors" } else { "Compressors" };
    let (options, codecs) = (table(rows), codecs.concat());
    Some(format!("SYNTAX: {name} {operands}\n\n{options}\n{heading} available:\n{codecs}"))
}

const COLUMNS: usize = 80;

pub fn table(rows: &[&[Row]]) -> String {
    let mut text = String::new();
    for row in rows.iter().copied().flatten() {
        let note = match row.effect() {
            Effect::Acts => String::new(),
            Effect::Ignored => " (accepted, without effect)".to_owned(),
            Effect::Refused(instead) => format!(" (not supported: {instead})"),
        };
        let line = format!("{}{}{note}", row.names().replace(' ', ", "), row.value());
        let mut width = COLUMNS;
        for word in line.split(' ') {
            match width + 1 + word.len() {
                wider if wider > COLUMNS => {
                    let is_first = text.is_empty() || text.ends_with('\n');
                    text += if is_first { "  " } else { "\n      " };
                    width = if is_first { 2 } else { 6 } + word.len();
                }
                wider => {
                    text.push(' ');
                    width = wider;
                }
            }
            text += word;
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Takes, acts, refused};
    use super::*;

    #[test]
    fn lines_of_help_have_80_columns_at_most() {
        let rows = [
            acts("-a --all", Takes::One),
            refused(
                "--some --more --others",
                Takes::Attached,
                "packfs pack does the same for all of them, and more",
            ),
        ];
        let text = table(&[&rows]);
        assert!(text.starts_with("  -a, --all VALUE\n  --some, --more, --others[=VALUE] (not"), "{text}");
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
