//! Words that stay words in Markdown, and in the HTML that may stand in it.

/// Words that may mean something, as words.
pub fn plain(words: &str) -> String {
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
            // What comes first in a line could begin a heading or a list.
            '#' | '-' | '+' | '=' => before.is_none(),
            _ => false,
        };
        if means_something {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' || c == '\r' { ' ' } else { c });
        before = Some(c);
    }
    escaped
}

/// A command, letter by letter, in a cell of a table, which ends at a bar even within code.
pub fn code(command: &str) -> String {
    if command.trim().is_empty() {
        return String::new();
    }
    let longest = command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if command.starts_with('`') || command.ends_with('`') { " " } else { "" };
    let command = command.replace(['\n', '\r'], " ").replace('|', "\\|");
    format!("{fence}{space}{command}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words_and_commands_keep_their_letters() {
        assert_eq!(plain("</script><b>&\"'"), "\\</script\\>\\<b\\>&\"'");
        assert_eq!(
            plain("squashfuse_ll _a_ a|b\nc&amp; *x*"),
            "squashfuse_ll \\_a\\_ a\\|b c\\&amp; \\*x\\*"
        );
        assert_eq!(plain("# x"), "\\# x");
        assert_eq!(code("tar cf - . | cat"), "`tar cf - . \\| cat`");
        assert_eq!(code("echo `date` ``"), "``` echo `date` `` ```");
        assert_eq!(code(" "), "");
    }
}
