//! Options of packfs that options of tools set, as their rows say.

use super::numbers::{as_text, decimal};
use packfs::options::Options;
use packfs::{PackOptions, Result};
use std::ffi::OsStr;

/// Translates a value of the tool's option, whose name comes first, to that of packfs.
pub type Translate = fn(&str, &str) -> Result<String>;

/// An option of packfs, `NAME` or `-O NAME` as on the command line of `packfs pack`, and its text.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    pub option: &'static str,
    pub text: Text,
}

#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// That of `NAME=TEXT`, or else `on`.
    Fixed,
    Value,
    Translated(Translate),
}

impl Sets {
    /// Errors: `Usage`; those of files that the option names.
    pub fn apply(self, name: &str, value: &OsStr, options: &mut PackOptions) -> Result<()> {
        let (option, fixed) = self.option.split_once('=').unwrap_or((self.option, "on"));
        let translated;
        let text = match self.text {
            Text::Fixed => OsStr::new(fixed),
            Text::Value => value,
            Text::Translated(translate) => {
                translated = translate(name, as_text(name, value)?)?;
                OsStr::new(&translated)
            }
        };
        if let Some(option) = option.strip_prefix("-O ") {
            options.options.push((option.to_owned(), as_text(name, text)?.to_owned()));
        } else if option == "jobs" {
            options.jobs = decimal::<u16>(name, as_text(name, text)?)?.into();
        } else {
            options.set(option, text).map_err(|error| error.at(name))?;
        }
        Ok(())
    }
}
