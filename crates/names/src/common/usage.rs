//! Help of the tools, from their tables.

use super::parse::{Effect, Row};

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
    use super::*;
    use crate::common::parse::{Takes, acts, refused};

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
