//! Command-line arguments, taken one option at a time.
//!
//! A command takes the options that it knows, and `finish` refuses the rest, so a misspelled option
//! is never ignored.

use crate::failure::{Failure, Result};

/// Arguments not yet taken.
pub struct Args {
    words: Vec<String>,
}

impl Args {
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        Self { words: words.collect() }
    }

    /// Takes `word` if it is the first argument; returns true if it was present.
    pub fn first_word(&mut self, word: &str) -> bool {
        let is_there = self.words.first().is_some_and(|first| first == word);
        if is_there {
            self.words.remove(0);
        }
        is_there
    }

    /// Takes `--name`; returns true if it was present.
    pub fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() != before
    }

    /// Takes `--name VALUE` or `--name=VALUE`; the last one wins.
    pub fn option(&mut self, name: &str) -> Result<Option<String>> {
        let mut found = None;
        while let Some(at) = self.words.iter().position(|word| is_option(word, name)) {
            let word = self.words.remove(at);
            found = Some(match word.split_once('=') {
                Some((_, value)) => value.to_owned(),
                None if at < self.words.len() => self.words.remove(at),
                None => return Err(Failure::usage(format!("{name} needs a value"))),
            });
        }
        Ok(found)
    }

    /// Takes the first `--name VALUE` or `--name=VALUE`, for options that are given several times.
    pub fn first_option(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.words.iter().position(|word| is_option(word, name)) else { return Ok(None) };
        let word = self.words.remove(at);
        match word.split_once('=').filter(|(start, _)| *start == name) {
            Some((_, value)) => Ok(Some(value.to_owned())),
            None if at < self.words.len() => Ok(Some(self.words.remove(at))),
            None => Err(Failure::usage(format!("{name} needs a value"))),
        }
    }

    /// Takes an option as a number from 1 on; returns `fallback` if it is absent.
    pub fn number(&mut self, name: &str, fallback: usize) -> Result<usize> {
        match self.option(name)? {
            None => Ok(fallback),
            Some(text) => match text.parse() {
                Ok(0) | Err(_) => Err(Failure::usage(format!("{name}: {text:?} is not a number from 1 on"))),
                Ok(number) => Ok(number),
            },
        }
    }

    /// Returns the positional arguments in order; refuses options that were not taken.
    pub fn finish(self) -> Result<Vec<String>> {
        match self.words.iter().find(|word| word.starts_with('-')) {
            Some(word) => Err(Failure::usage(format!("unknown option {word}"))),
            None => Ok(self.words),
        }
    }

    /// Refuses positional arguments and options that were not taken.
    pub fn finish_empty(self) -> Result<()> {
        match self.finish()?.first() {
            Some(word) => Err(Failure::usage(format!("unexpected argument {word:?}"))),
            None => Ok(()),
        }
    }
}

fn is_option(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args {
        Args::new(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn takes_an_option_in_both_spellings() {
        let mut args = args("pack --runs 7 --codecs=gzip --quick");
        assert_eq!(args.number("--runs", 5).unwrap(), 7);
        assert_eq!(args.option("--codecs").unwrap().as_deref(), Some("gzip"));
        assert!(args.switch("--quick"));
        assert_eq!(args.finish().unwrap(), ["pack"]);
    }

    #[test]
    fn takes_an_option_as_often_as_it_is_given() {
        let mut args = args("--from a=b x --from=c=d");
        let mut found = Vec::new();
        while let Some(value) = args.first_option("--from").unwrap() {
            found.push(value);
        }
        assert_eq!((found, args.finish().unwrap()), (vec!["a=b".into(), "c=d".into()], vec!["x".into()]));
    }

    #[test]
    fn takes_a_word_only_where_it_stands_first() {
        let mut args = args("read unpack read");
        assert!(args.first_word("read") && !args.first_word("read"));
        assert_eq!(args.finish().unwrap(), ["unpack", "read"]);
    }

    #[test]
    fn refuses_an_unknown_option() {
        assert!(args("--rnus 7").finish().is_err());
    }

    #[test]
    fn refuses_an_option_without_its_value() {
        assert!(args("--runs").option("--runs").is_err());
    }

    #[test]
    fn refuses_zero_and_words_as_numbers() {
        assert!(args("--runs 0").number("--runs", 5).is_err());
        assert!(args("--runs many").number("--runs", 5).is_err());
    }

    #[test]
    fn does_not_take_a_longer_option_for_a_shorter_one() {
        assert_eq!(args("--codecs-all x").option("--codecs").unwrap(), None);
    }
}
