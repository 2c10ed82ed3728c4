//! What commands with rows and targets have in common: which rows are wanted, the page that is written, and how it ends.

use std::fmt::Display;

use crate::failure::{Failure, Result};

/// The rows in whose labels all of the words are.
pub fn chosen<R>(
    rows: &'static [R],
    words: &[String],
    label: impl Fn(&R) -> String,
) -> Result<Vec<&'static R>> {
    let is_wanted = |row: &&R| words.iter().all(|word| label(row).contains(word));
    let wanted: Vec<_> = rows.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Err(Failure::usage("no row has all of these words in its name"));
    }
    Ok(wanted)
}

/// A page of tables in Markdown, with the commands that were measured below.
pub fn page<C: AsRef<str>>(tables: &str, commands: &[C]) -> String {
    let commands: Vec<&str> = commands.iter().map(AsRef::as_ref).collect();
    format!("{tables}\n```\n{}\n```\n", commands.join("\n"))
}

/// A failure that lists what went wrong, under what that is; none if nothing did.
pub fn verdict(what: impl Display, wrong: &[String]) -> Result<()> {
    match wrong {
        [] => Ok(()),
        _ => Err(Failure::new(format!("{what}:\n  {}", wrong.join("\n  ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_all_words_at_once() {
        static ROWS: [&str; 3] = ["pack cramfs", "unpack cramfs", "unpack cloop"];
        let of = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            chosen(&ROWS, &words, |row| (*row).to_owned())
                .map(|rows| rows.into_iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(of(&["unpack", "cramfs"]).unwrap(), ["unpack cramfs"]);
        assert_eq!(of(&[]).unwrap(), ROWS);
        assert!(of(&["unpack", "erofs"]).is_err());
    }

    #[test]
    fn nothing_missed_is_no_failure() {
        assert!(verdict("missed", &[]).is_ok());
        assert!(verdict("missed", &["a row".to_owned()]).is_err());
    }
}
