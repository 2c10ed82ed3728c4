//! Options of formats: a row of [`options!`](crate::options!) is name, values, default, help and
//! field.

use packfs_core::{Error, Result};
use std::fmt;

/// An option of one format, as named in `--help` and error messages.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Its name, such as `fragments`.
    pub name: &'static str,
    /// Permitted values, such as `on|off|always`.
    pub values: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Its effect, in one line.
    pub help: &'static str,
}

/// Values of an option: their syntax in help, and their parser.
#[derive(Clone, Copy, Debug)]
pub struct Values<V> {
    /// Syntax in help and errors, such as `on|off`.
    pub words: &'static str,
    read: Read<V>,
}

#[derive(Clone, Copy, Debug)]
enum Read<V> {
    /// `None` for an invalid value.
    Known(fn(&str) -> Option<V>),
    /// With a specific error.
    Tried(fn(&str) -> Result<V>),
}

impl<V> Values<V> {
    /// Returns values with a parser that returns `None` for invalid ones.
    pub const fn new(words: &'static str, read: fn(&str) -> Option<V>) -> Self {
        Values { words, read: Read::Known(read) }
    }

    /// Returns values with a parser that returns an error for invalid ones.
    pub const fn tried(words: &'static str, read: fn(&str) -> Result<V>) -> Self {
        Values { words, read: Read::Tried(read) }
    }

    /// Parses the value of an option.
    ///
    /// # Errors
    ///
    /// `Usage` with the permitted values.
    pub fn read(self, format: &str, option: &str, value: &str) -> Result<V> {
        match self.read {
            Read::Tried(read) => read(value),
            Read::Known(read) => read(value).ok_or_else(|| {
                Error::usage(format!("{format} option {option}={value}: {} is allowed", self.words))
            }),
        }
    }
}

/// Values of a switch.
pub const SWITCH: Values<bool> = crate::one_of!["on" => true, "off" => false];

/// A field for the values of an option: a `V` has the default until a value is given, an `Option`
/// is `None` until then, and a `Vec` collects all values.
pub trait OptionField<V>: Sized {
    /// Returns the field before any value is given.
    ///
    /// # Errors
    ///
    /// Those of the default.
    fn start(default: impl FnOnce() -> Result<V>) -> Result<Self>;

    /// Stores a given value.
    fn put(&mut self, value: V);
}

impl<V> OptionField<V> for V {
    fn start(default: impl FnOnce() -> Result<V>) -> Result<Self> {
        default()
    }

    fn put(&mut self, value: V) {
        *self = value;
    }
}

impl<V> OptionField<V> for Option<V> {
    fn start(_default: impl FnOnce() -> Result<V>) -> Result<Self> {
        Ok(None)
    }

    fn put(&mut self, value: V) {
        *self = Some(value);
    }
}

impl<V> OptionField<V> for Vec<V> {
    fn start(_default: impl FnOnce() -> Result<V>) -> Result<Self> {
        Ok(Vec::new())
    }

    fn put(&mut self, value: V) {
        self.push(value);
    }
}

/// Returns the error of an option that a format does not have.
pub fn unknown_option(format: &str, rows: &[OptionRow], name: &str) -> Error {
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    Error::usage(format!("{format} has no option {name:?}; it has {}", names.join(", ")))
}

/// Returns the error of a feature that the target kernel lacks.
pub fn lacks_in_kernel(what: &str, since: &dyn fmt::Display, named: &dyn fmt::Display) -> Error {
    Error::usage(format!("{what} needs Linux {since} or newer, this image is for Linux {named}"))
}

/// Returns [`Values`] of names: `one_of!["on" => true, "off" => false]`. Of synonyms, help shows
/// the first.
#[macro_export]
macro_rules! one_of {
    ($first:literal $(| $first_too:literal)* => $first_value:expr $(, $name:literal $(| $too:literal)* => $value:expr)+) => {
        $crate::Values::new(concat!($first $(, "|", $name)+), |text| match text {
            $first $(| $first_too)* => Some($first_value),
            $($name $(| $too)* => Some($value),)+
            _ => None,
        })
    };
}

/// Defines a struct of options: its own fields first, then a row for each option.
///
/// A row is `field: Type = NAME, VALUES, DEFAULT, HELP;`. `read` makes the struct of its own
/// fields and of options as typed; `ROWS` is what `--help` prints.
///
/// In a struct that is `for FORMAT needs NEED`, a row may close with `needs PATTERN => NEED`:
/// values that match ask for something, such as a new kernel. `needs` lists all of it, in the order
/// of rows.
#[macro_export]
macro_rules! options {
    (
        $(#[$doc:meta])* $vis:vis struct $type:ident for $format:literal needs $need:ty {}
        $($(#[$field_doc:meta])* $field:ident: $field_type:ty = $name:literal, $values:expr, $default:expr, $help:expr
            $(, needs $pattern:pat => $wanted:expr)?;)+
    ) => {
        $crate::options! {
            $(#[$doc])* $vis struct $type for $format {}
            $($(#[$field_doc])* $field: $field_type = $name, $values, $default, $help;)+
        }

        impl $type {
            /// Lists what the values ask for.
            #[allow(clippy::redundant_pattern_matching)]
            $vis fn needs(&self) -> Vec<$need> {
                let mut needs = Vec::new();
                $($(if matches!(self.$field, $pattern) {
                    needs.push($wanted);
                })?)+
                needs
            }
        }
    };
    (
        $(#[$doc:meta])* $vis:vis struct $type:ident for $format:literal {
            $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)*
        }
        $($(#[$field_doc:meta])* $field:ident: $field_type:ty = $name:literal, $values:expr, $default:expr, $help:expr;)+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        $vis struct $type {
            $($(#[$own_doc])* $vis $own: $own_type,)*
            $($(#[$field_doc])* $vis $field: $field_type,)+
        }

        impl $type {
            /// All options.
            $vis const ROWS: &'static [$crate::OptionRow] = &[
                $($crate::OptionRow { name: $name, values: $values.words, default: $default, help: $help },)+
            ];

            /// Reads options as typed, each a name and a value; a later one has the last word.
            ///
            /// Errors: `Usage`, naming the value found and the allowed ones.
            $vis fn read<'a>(
                $($own: $own_type,)*
                typed: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> ::packfs_core::Result<Self> {
                let mut options = $type {
                    $($own,)*
                    $($field: $crate::OptionField::start(|| $values.read($format, $name, $default))?,)+
                };
                for (name, value) in typed {
                    match name {
                        $($name => $crate::OptionField::put(
                            &mut options.$field,
                            $values.read($format, name, value)?,
                        ),)+
                        _ => return Err($crate::unknown_option($format, Self::ROWS, name)),
                    }
                }
                Ok(options)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::options! {
        /// Options of an invented format.
        struct Options for "nofs" {
            block_len: u32,
        }
        size: u32 = "size", Values::new("NUMBER", |text| text.parse::<u32>().ok()), "7", "a number";
        order: bool = "order", crate::one_of!["up" | "rising" => true, "down" => false], "up", "an order";
        holes: Option<bool> = "holes", SWITCH, "as needed", "holes";
        names: Vec<String> = "name", Values::tried("TEXT", |text| Ok(text.to_owned())), "none", "a name";
    }

    fn read(typed: &[(&str, &str)]) -> Result<Options> {
        Options::read(4096, typed.iter().copied())
    }

    #[test]
    fn a_row_is_name_values_default_and_field() {
        let usual = read(&[]).unwrap();
        assert_eq!((usual.block_len, usual.size, usual.order, usual.holes), (4096, 7, true, None));
        let typed = [
            ("size", "9"),
            ("order", "down"),
            ("order", "rising"),
            ("holes", "on"),
            ("name", "a"),
            ("name", "b"),
        ];
        let set = read(&typed).unwrap();
        assert_eq!((set.size, set.order, set.holes), (9, true, Some(true)));
        assert_eq!(set.names, ["a", "b"]);
        assert_eq!(Options::ROWS[1].values, "up|down");
    }

    #[test]
    fn errors_list_allowed_values() {
        let error = |name, value| read(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(error("size", "x"), "nofs option size=x: NUMBER is allowed");
        assert_eq!(error("holes", "x"), "nofs option holes=x: on|off is allowed");
        assert_eq!(error("hole", "on"), "nofs has no option \"hole\"; it has size, order, holes, name");
    }
}
