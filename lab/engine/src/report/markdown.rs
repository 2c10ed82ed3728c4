//! Markdown, as documents hold it: title, method, machine and versions, tables with units, missing
//! cells. `report.md` has the words.

use packfs::Result;

use crate::report::shown;
use crate::results::Results;

/// The whole session. Figures of others, quoted for comparison, are set in italics; what is missing
/// names its reason below its table.
///
/// Errors: none that results can cause.
pub fn markdown(results: &Results) -> Result<String> {
    let mut words = shown::environment();
    words.add_filter("md", |words: &str| text(words));
    words.add_filter("start", |words: &str| paragraph_start(&text(words)));
    words.add_filter("code", |command: &str| code(command));
    words.add_filter("bars", |command: &str| cell_code(command));
    shown::render(&words, include_str!("report.md"), results)
}

/// Words that may mean something in Markdown, or in HTML, as words.
fn text(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    let mut before = None;
    let mut rest = words.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        let within_word = |c: Option<char>| c.is_some_and(|c: char| c.is_alphanumeric() || c == '_');
        let means_something = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' => true,
            '_' => !(within_word(before) && within_word(after)),
            '&' => after.is_some_and(|c| c.is_alphanumeric() || c == '#'),
            _ => false,
        };
        match c {
            '\n' | '\r' => escaped.push(' '),
            c => {
                if means_something {
                    escaped.push('\\');
                }
                escaped.push(c);
            }
        }
        before = Some(c);
    }
    escaped
}

/// Like [`text`], where what comes first in a line could begin a heading or a list.
fn paragraph_start(escaped: &str) -> String {
    match escaped.chars().next() {
        Some('#' | '-' | '+' | '=') => format!("\\{escaped}"),
        _ => escaped.to_owned(),
    }
}

/// A command, letter by letter, where bars mean nothing.
fn code(command: &str) -> String {
    if command.trim().is_empty() {
        return String::new();
    }
    let longest = command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if command.starts_with('`') || command.ends_with('`') { " " } else { "" };
    let command = command.replace(['\n', '\r'], " ");
    format!("{fence}{space}{command}{space}{fence}")
}

/// Like [`code`] in a row of a table, which ends a cell at a bar even within code.
fn cell_code(command: &str) -> String {
    code(command).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(text("</script><b>&\"'"), "\\</script\\>\\<b\\>&\"'");
        assert_eq!(text("squashfuse_ll _a_ a|b\nc&amp; *x*"), "squashfuse_ll \\_a\\_ a\\|b c\\&amp; \\*x\\*");
        assert_eq!(paragraph_start("# x"), "\\# x");
    }

    #[test]
    fn commands_keep_their_letters() {
        assert_eq!(code("tar cf - . | cat"), "`tar cf - . | cat`");
        assert_eq!(cell_code("tar cf - . | cat"), "`tar cf - . \\| cat`");
        assert_eq!(code("echo `date` ``"), "``` echo `date` `` ```");
        assert_eq!(code(" "), "");
    }
}
