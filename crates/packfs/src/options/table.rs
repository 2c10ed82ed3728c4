//! Rows of options, and what every table of them can do.

use super::values::{Takes, Values};
use packfs_core::{Error, Result};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Property of an option that callers act by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// Short help shows it.
    Common,
    /// It says how the work is done, and never changes the image.
    Run,
    /// It describes a whole image, and cannot be an option of its shards.
    Whole,
    /// It is for a source that is no image.
    Anew,
    /// It holds for several sources at once.
    Shared,
    /// It is about images in registries.
    Registry,
    /// It says what is trusted.
    Trust,
    /// A value of `-` is standard input.
    Stdin,
}

/// Everything about an option but its effect.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Name, as typed behind `--`.
    pub name: &'static str,
    /// Other names, which help lists.
    pub aliases: &'static [&'static str],
    /// Other names, which help does not list.
    pub also: &'static [&'static str],
    /// Letter, as typed behind `-`.
    pub short: Option<char>,
    /// Name of a value in help.
    pub value: &'static str,
    /// Number of values.
    pub takes: Takes,
    /// Values that a shell completes; there may be others.
    pub words: fn() -> Vec<&'static str>,
    /// Returns the file that a value names; `-` may be standard input.
    pub names: fn(&OsStr) -> Option<PathBuf>,
    /// Set for values that may begin with a dash.
    pub takes_dashes: bool,
    /// Value if none is given, unless help says it otherwise.
    pub default: &'static str,
    /// Heading in help.
    pub group: &'static str,
    /// Help: a line, and after an empty one details.
    pub docs: &'static str,
    /// Option that has to be given, too.
    pub needs: Option<&'static str>,
    /// Options that contradict it.
    pub conflicts: &'static [&'static str],
    /// Variable of the environment with its value.
    pub env: Option<&'static str>,
    /// Properties.
    pub marks: &'static [Mark],
    /// Tells what is wrong with a value; files that it names are not read.
    pub check: fn(&OsStr) -> Result<(), String>,
}

impl Info {
    /// Returns true for an option with a property.
    pub fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// Returns true for an option that has this name, with `-` or `_` between words.
    pub fn has_name(&self, name: &str) -> bool {
        let names = self.aliases.iter().chain(self.also);
        names.chain([&self.name]).any(|own| *own == name || own.replace('-', "_") == name)
    }

    /// Returns the first line of the help.
    pub fn line(&self) -> &'static str {
        self.docs.trim().lines().next().unwrap_or(self.name)
    }

    /// Returns the details of the help, a paragraph each; indented lines stay lines.
    pub fn details(&self) -> Vec<String> {
        let mut paragraphs = Vec::new();
        for paragraph in self.docs.trim().split("\n\n").skip(1) {
            let mut text = String::new();
            for line in paragraph.split('\n') {
                let line = line.strip_prefix(' ').unwrap_or(line);
                let joint = if line.starts_with(' ') { "\n" } else { " " };
                text += if text.is_empty() { "" } else { joint };
                text += line;
            }
            paragraphs.push(text);
        }
        paragraphs
    }
}

/// Fault of a value, or of what it names.
pub enum Fault {
    /// It is none of the values.
    Value(String),
    /// It cannot be followed, such as a file that is missing.
    Other(Error),
}

impl From<String> for Fault {
    fn from(fault: String) -> Self {
        Fault::Value(fault)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Other(error)
    }
}

/// An option of a table.
pub struct Row<T> {
    /// Everything about it but its effect.
    pub info: Info,
    pub(crate) set: fn(&mut T, &OsStr) -> Result<(), Fault>,
}

/// Options that can be set by texts.
pub trait Options: Sealed + Clone + Default + 'static {
    /// Returns what there is to set.
    fn infos() -> Vec<&'static Info>;

    /// Sets an option that these have: `None` if there is none of this name.
    fn try_set(&mut self, name: &str, text: &OsStr) -> Option<Result<()>>;

    /// Sets an option by its name and a text, as on the command line. Switches take `on` and `off`.
    /// Options that take several values are set once for each.
    ///
    /// Errors: `Usage`, which names what was found and what is allowed; those of files that the
    /// option names.
    fn set(&mut self, name: &str, text: impl AsRef<OsStr>) -> Result<()> {
        self.try_set(name, text.as_ref()).unwrap_or_else(|| {
            let names: Vec<&str> = Self::infos().iter().map(|info| info.name).collect();
            Err(Error::usage(format!("unknown option {name:?}; use one of {}", names.join(", "))))
        })
    }

    /// Sets options of names and texts, each as [`Options::set`] takes it, in their order.
    ///
    /// Errors: as [`Options::set`]; `Usage` for options that contradict each other.
    fn with_texts<T: AsRef<OsStr>>(
        mut self,
        texts: impl IntoIterator<Item = (impl AsRef<str>, T)>,
    ) -> Result<Self> {
        let infos = Self::infos();
        let mut given = Vec::new();
        for (name, text) in texts {
            let (name, text) = (name.as_ref(), text.as_ref());
            self.set(name, text)?;
            let is_off =
                |info: &Info| matches!(info.takes, Takes::Nothing | Takes::NothingOrNo(_)) && text == "off";
            given.extend(infos.iter().find(|info| info.has_name(name)).filter(|info| !is_off(info)));
        }
        check_conflicts(&given)?;
        Ok(self)
    }
}

pub trait Sealed {}

fn check_conflicts(given: &[&Info]) -> Result<()> {
    for info in given {
        if let Some(other) = given.iter().find(|other| info.conflicts.contains(&other.name)) {
            let (name, other) = (info.name, other.name);
            return Err(Error::usage(format!("options {name} and {other} contradict each other")));
        }
    }
    Ok(())
}

/// Sets an option by its row.
pub(super) fn set<T>(rows: &[Row<T>], options: &mut T, name: &str, text: &OsStr) -> Option<Result<()>> {
    let row = rows.iter().find(|row| row.info.has_name(name))?;
    Some((row.set)(options, text).map_err(|fault| match fault {
        Fault::Value(fault) => {
            let text = packfs_core::escaped(text.as_encoded_bytes());
            Error::usage(format!("option {}={text}: {fault}", row.info.name))
        }
        Fault::Other(error) => error,
    }))
}

/// Returns the description of a row with such values.
pub(super) const fn bare<V>(values: &Values<V>) -> Info {
    Info {
        name: "",
        aliases: &[],
        also: &[],
        short: None,
        value: values.name,
        takes: values.takes,
        words: values.words,
        names: values.names,
        takes_dashes: values.takes_dashes,
        default: "",
        group: "",
        docs: "",
        needs: None,
        conflicts: &[],
        env: None,
        marks: &[],
        check: |_| Ok(()),
    }
}

/// Defines the rows of a type: its help as a doc comment, then
/// `NAME, VALUES, GROUP {FACTS}, |OPTIONS, VALUE| EFFECT;`. Fields `with` it are options
/// themselves, whose rows it has, too.
macro_rules! rows {
    ($type:ty $(, with $($inner:ident: $inner_type:ty),+)?; $(
        $(#[doc = $doc:literal])+
        $(#[cfg($($cfg:tt)+)])?
        $name:literal, $values:expr, $group:literal {$($fact:ident: $says:expr),*},
        |$options:ident, $value:pat_param| $put:expr;
    )+) => {
        const ROWS: &[$crate::options::Row<$type>] = &[$(
            $(#[cfg($($cfg)+)])?
            $crate::options::Row {
                info: $crate::options::Info {
                    name: $name,
                    group: $group,
                    docs: concat!($($doc, "\n"),+),
                    check: |text| $values.read(text).map(drop),
                    $($fact: $says,)*
                    ..$crate::options::table::bare(&$values)
                },
                set: |$options, text| {
                    let $value = $values.read(text)?;
                    $put;
                    Ok(())
                },
            },
        )+];

        impl $crate::options::table::Sealed for $type {}

        impl $crate::options::Options for $type {
            fn infos() -> Vec<&'static $crate::options::Info> {
                let own = ROWS.iter().map(|row| &row.info);
                own$($(.chain(<$inner_type as $crate::options::Options>::infos()))+)?.collect()
            }

            fn try_set(&mut self, name: &str, text: &std::ffi::OsStr) -> Option<packfs_core::Result<()>> {
                $crate::options::table::set(ROWS, self, name, text)
                    $($(.or_else(|| self.$inner.try_set(name, text)))+)?
            }
        }
    };
}

/// Defines a struct of options and its defaults. Fields without a text come first, rows of others
/// behind `rows`: `FIELD: TYPE = DEFAULT, NAME, VALUES, GROUP {FACTS};`. Rows whose effect is more
/// than a field come last, as for `rows!`.
#[cfg(feature = "pack")]
macro_rules! options {
    (
        $(#[$meta:meta])* pub struct $type:ident, with $($inner:ident: $inner_type:ty),+;
        $($(#[doc = $doc:literal])+ $field:ident: $field_type:ty = $default:expr;)+
        rows:
        $(
            $(#[doc = $row_doc:literal])+
            $row:ident: $row_type:ty = $row_default:expr,
            $name:literal, $values:expr, $group:literal {$($facts:tt)*};
        )+
        effects:
        $($effects:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $type {
            $($(#[doc = $doc])+ pub $field: $field_type,)+
            $($(#[doc = $row_doc])+ pub $row: $row_type,)+
        }

        impl Default for $type {
            fn default() -> Self {
                $type { $($field: $default,)+ $($row: $row_default,)+ }
            }
        }

        rows! { $type, with $($inner: $inner_type),+;
            $($(#[doc = $row_doc])+ $name, $values, $group {$($facts)*}, |options, value| {
                packfs_format::OptionField::put(&mut options.$row, value)
            };)+
            $($effects)*
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::OpenOptions;

    #[test]
    fn options_that_contradict_each_other_are_refused_in_any_order() {
        let refused = |texts: [(&str, &str); 2]| OpenOptions::of_texts(texts).err().map(|it| it.to_string());
        let said = Some("options outer and part contradict each other".to_owned());
        assert_eq!(refused([("outer", "on"), ("part", "p1")]), said);
        assert_eq!(refused([("part", "p1"), ("outer", "on")]), said);
        assert_eq!(refused([("part", "p1"), ("outer", "off")]), None);
        assert!(OpenOptions::new().with_texts([("part", "p1"), ("no-journal", "on")]).is_ok());
    }
}
