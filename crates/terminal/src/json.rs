//! JSON documents: one schema a verb, described in `docs/guide/cli.md`.
//! Names are kept without loss.
//!
//! A name that is UTF-8 is a string. Any other name has, besides a readable string with escapes,
//! its bytes in hexadecimal under the same key with the suffix `_bytes`. Characters that act on
//! terminals are written as `\u` and four digits.

use crate::report::{Out, cannot_write};
use packfs::{Error, ResultExt, acts_on_terminals};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
pub use serde_json::{Value, json};
use std::io::{self, Write};

/// JSON object with keys in the order of insertion.
pub type Object = serde_json::Map<String, Value>;

/// Prints one document.
pub fn print(value: &impl Serialize) -> packfs::Result<()> {
    let mut out = Out::stdout();
    write_with(PrettyFormatter::new(), value, out.writer())?;
    out.line("")?;
    out.finish()
}

/// Returns a value as text on one line.
///
/// Errors: keys of maps that are not strings.
pub fn line(value: &impl Serialize) -> packfs::Result<String> {
    let mut line = Vec::new();
    write_with(CompactFormatter, value, &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Returns an object as text, with a line for each key: lists joined by commas, without keys that
/// are null.
///
/// Errors: as [`line()`].
pub fn text(object: &impl Serialize) -> packfs::Result<String> {
    let value = serde_json::to_value(object).map_err(|error| Error::failed(format!("JSON: {error}")))?;
    let mut text = String::new();
    for (key, value) in value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let list = value.as_array().map(|list| list.iter().map(plain).collect::<Vec<_>>().join(", "));
        text += &format!("{}: {}\n", key.replace('_', " "), list.unwrap_or_else(|| plain(value)));
    }
    Ok(text)
}

fn write_with(formatter: impl Formatter, value: &impl Serialize, out: &mut dyn Write) -> packfs::Result<()> {
    let mut serializer = Serializer::with_formatter(out, Quiet(formatter));
    value.serialize(&mut serializer).map_err(io::Error::from).or_io(cannot_write)
}

/// Escapes characters that act on terminals as `\u` and four digits: the same string to a program.
struct Quiet<F>(F);

/// Delegates calls unchanged.
macro_rules! as_before {
    ($($name:ident($($arg:ident: $type:ty),*)),* $(,)?) => {
        $(fn $name<W: ?Sized + io::Write>(&mut self, out: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        })*
    };
}

impl<F: Formatter> Formatter for Quiet<F> {
    as_before! {
        begin_array(), end_array(), begin_array_value(first: bool), end_array_value(),
        begin_object(), end_object(), begin_object_key(first: bool), end_object_key(),
        begin_object_value(), end_object_value(),
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(acts_on_terminals) {
            let (plain, from) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            let mut chars = from.chars();
            for unit in chars.next().unwrap_or_default().encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}

/// Prints a JSON array element by element, so that it is never in memory as a whole.
pub struct Array {
    out: Out,
    opening: String,
    is_empty: bool,
}

impl Array {
    /// Begins an array that is the whole document.
    pub fn document() -> Self {
        Array { out: Out::stdout(), opening: "[".into(), is_empty: true }
    }

    /// Begins an array that is the first value of an object, under `key`.
    pub fn within(key: &str) -> Self {
        Array { opening: format!("{{\"{key}\":["), ..Array::document() }
    }

    /// Prints one element on a separate line.
    pub fn push(&mut self, object: &impl Serialize) -> packfs::Result<()> {
        self.separate()?;
        write_with(CompactFormatter, object, self.out.writer())
    }

    fn separate(&mut self) -> packfs::Result<()> {
        let start = if std::mem::take(&mut self.is_empty) { &self.opening } else { "," };
        writeln!(self.out.writer(), "{start}").or_io(cannot_write)
    }

    /// Closes the array.
    pub fn finish(mut self) -> packfs::Result<()> {
        self.close()?;
        self.out.line("")?;
        self.out.finish()
    }

    /// Closes the array, and adds the rest of the object around it.
    pub fn finish_with(mut self, rest: &impl Serialize) -> packfs::Result<()> {
        self.close()?;
        let rest = serde_json::to_value(rest).map_err(|error| Error::failed(format!("JSON: {error}")))?;
        let Value::Object(rest) = &rest else { return Err(Error::failed("JSON: not an object")) };
        for (key, value) in rest {
            write!(self.out.writer(), ",\n{}:", Value::from(key.as_str())).or_io(cannot_write)?;
            write_with(CompactFormatter, value, self.out.writer())?;
        }
        self.out.line("}")?;
        self.out.finish()
    }

    fn close(&mut self) -> packfs::Result<()> {
        if self.is_empty {
            write!(self.out.writer(), "{}", self.opening).or_io(cannot_write)?;
        }
        write!(self.out.writer(), "\n]").or_io(cannot_write)
    }
}
