//! Command lines as templates: a program's spelling is a line of text, not code.

use std::ffi::{OsStr, OsString};

use crate::process::Invocation;
use crate::results::Program;

pub(super) type Value<'a> = (&'a str, Vec<OsString>);

pub(super) fn word(name: &str, word: impl AsRef<OsStr>) -> Value<'_> {
    (name, vec![word.as_ref().to_owned()])
}

/// Returns the call of a program with the words of a template, which stand between blanks or in
/// single quotes. A word that ends in `{NAME}` is repeated for each word of that value; without any
/// it is left out.
pub(super) fn call(program: &Program, template: &str, values: &[Value<'_>]) -> Invocation {
    let words = template
        .split('\'')
        .enumerate()
        .flat_map(|(part, text)| if part % 2 == 1 { vec![text] } else { text.split_whitespace().collect() });
    words.fold(program.invocation(), |command, word| {
        let found = values.iter().find_map(|(name, words)| {
            let before = word.strip_suffix('}')?.strip_suffix(name)?.strip_suffix('{')?;
            Some((before, words))
        });
        let Some((before, words)) = found else { return command.arg(word) };
        words.iter().fold(command, |command, word| {
            let mut whole = OsString::from(before);
            whole.push(word);
            command.arg(whole)
        })
    })
}
