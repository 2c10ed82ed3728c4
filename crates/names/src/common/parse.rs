//! Table-driven parser of other tools' command lines: each row is an option, its values, and its
//! effect.

use super::numbers::{as_text, decimal, sized};
use super::sets::{Sets, Text, Translate};
use packfs::{Error, PackOptions, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    One,
    /// Next argument, a number as C reads it, with or without a suffix.
    Number,
    /// Attached or none (getopt only).
    Attached,
    /// All further arguments, including options.
    Rest,
    /// All arguments up to a semicolon.
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Acts,
    /// Accepted without effect.
    Ignored,
    /// Refused; the text names the alternative in packfs.
    Refused(&'static str),
}

/// Names are separated by spaces; code refers to the first.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    names: &'static str,
    takes: Takes,
    effect: Effect,
    sets: Option<Sets>,
}

pub const fn acts(names: &'static str, takes: Takes) -> Row {
    Row { names, takes, effect: Effect::Acts, sets: None }
}

pub const fn ignored(names: &'static str, takes: Takes) -> Row {
    Row { names, takes, effect: Effect::Ignored, sets: None }
}

pub const fn refused(names: &'static str, takes: Takes, instead: &'static str) -> Row {
    Row { names, takes, effect: Effect::Refused(instead), sets: None }
}

/// Sets an option of packfs to the value: `NAME` of `packfs pack --NAME`, or `-O NAME`.
pub const fn sets(names: &'static str, option: &'static str) -> Row {
    Row { sets: Some(Sets { option, text: Text::Value }), ..acts(names, Takes::One) }
}

/// Sets an option of packfs to a translation of the value.
pub const fn sets_as(names: &'static str, option: &'static str, translate: Translate) -> Row {
    Row { sets: Some(Sets { option, text: Text::Translated(translate) }), ..acts(names, Takes::One) }
}

/// Sets an option of packfs without a value: `NAME=TEXT`, or `NAME`, which is then `on`.
pub const fn switches(names: &'static str, option: &'static str) -> Row {
    Row { sets: Some(Sets { option, text: Text::Fixed }), ..acts(names, Takes::Nothing) }
}

impl Row {
    pub const fn taking(self, takes: Takes) -> Row {
        Row { takes, ..self }
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.split(' ').any(|own| own == name)
    }

    pub fn names(&self) -> &'static str {
        self.names
    }

    pub fn effect(&self) -> Effect {
        self.effect
    }

    pub fn value(&self) -> &'static str {
        match self.takes {
            Takes::Nothing => "",
            Takes::One | Takes::Number if self.names.starts_with("--") => "=VALUE",
            Takes::One | Takes::Number => " VALUE",
            Takes::Attached => "[=VALUE]",
            Takes::Rest | Takes::List => " ...",
        }
    }

    /// True if getopt programs print a text and exit when they reach the option.
    fn is_last(&self) -> bool {
        self.has("--help") || self.has("--version")
    }

    fn first(&self) -> &'static str {
        self.names.split(' ').next().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// mksquashfs: options are words after one dash, all after the operands.
    OperandsFirst,
    /// unsquashfs: options are words after one dash, all before the operands.
    OptionsFirst,
    /// `getopt_long`: options anywhere, clusters, attached values, `--`.
    Getopt,
}

#[derive(Debug, Default)]
pub struct Given {
    /// Options in the order typed, by their first names.
    pub options: Vec<(&'static str, OsString)>,
    pub operands: Vec<OsString>,
    /// Options of packfs that rows set, with the names and values that set them.
    sets: Vec<(&'static str, Sets, OsString)>,
}

impl Given {
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(own, _)| *own == name)
    }

    pub fn last(&self, name: &str) -> Option<&OsStr> {
        self.options.iter().rev().find(|(own, _)| *own == name).map(|(_, value)| value.as_os_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a OsStr> {
        self.options.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value.as_os_str())
    }

    /// Errors: `Usage` if the value is not UTF-8.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        self.last(name).map(|value| as_text(name, value)).transpose()
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        self.text(name)?.map(|text| decimal(name, text)).transpose()
    }

    /// Sets `defaults`, written as in rows, then what rows set, in the order typed.
    ///
    /// Errors: `Usage`; those of files that options name.
    pub fn pack_options(&self, defaults: &[&'static str]) -> Result<PackOptions> {
        let mut options = PackOptions::default();
        for option in defaults {
            Sets { option, text: Text::Fixed }.apply("default", OsStr::new(""), &mut options)?;
        }
        for (name, sets, value) in &self.sets {
            sets.apply(name, value, &mut options)?;
        }
        Ok(options)
    }

    /// The last one counts.
    pub fn switched(&self, yes: &str, no: &str, default: bool) -> bool {
        let last = self.options.iter().rev().find(|(own, _)| *own == yes || *own == no);
        last.map_or(default, |(own, _)| *own == yes)
    }
}

/// Errors: `Usage` for unknown and refused options, and for missing values.
pub fn parse(rows: &[&[Row]], style: Style, args: &[OsString]) -> Result<Given> {
    let mut reader = Reader { rows, given: Given::default(), args: args.iter().cloned() };
    match style {
        Style::OperandsFirst => reader.words(false)?,
        Style::OptionsFirst => reader.words(true)?,
        Style::Getopt => reader.getopt()?,
    }
    Ok(reader.given)
}

struct Reader<'a> {
    rows: &'a [&'a [Row]],
    given: Given,
    args: std::iter::Cloned<std::slice::Iter<'a, OsString>>,
}

/// False for `-` and for operands.
fn is_option(arg: &OsStr) -> bool {
    arg.len() > 1 && arg.as_bytes().starts_with(b"-")
}

impl Reader<'_> {
    fn row(&self, name: &str) -> Option<Row> {
        self.rows.iter().copied().flatten().find(|row| row.has(name)).copied()
    }

    fn words(&mut self, options_first: bool) -> Result<()> {
        while let Some(arg) = self.args.next() {
            if is_option(&arg) {
                let name = as_text("option", &arg)?.to_owned();
                let row = self.row(&name).ok_or_else(|| unknown(&name))?;
                self.take(row, &name, None)?;
                continue;
            }
            if !options_first && !self.given.options.is_empty() {
                return Err(Error::usage(format!(
                    "{arg:?} stands behind options: sources and the image come first"
                )));
            }
            self.given.operands.push(arg);
            if options_first {
                self.given.operands.extend(self.args.by_ref());
            }
        }
        Ok(())
    }

    fn getopt(&mut self) -> Result<()> {
        while let Some(arg) = self.args.next() {
            let bytes = arg.as_bytes();
            if bytes == b"--" {
                self.given.operands.extend(self.args.by_ref());
            } else if let Some(long) = bytes.strip_prefix(b"--") {
                self.long(long)?;
            } else if is_option(&arg) {
                self.cluster(&bytes[1..])?;
            } else {
                self.given.operands.push(arg);
            }
        }
        Ok(())
    }

    fn long(&mut self, typed: &[u8]) -> Result<()> {
        let equals = typed.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&typed[..at], Some(OsStr::from_bytes(&typed[at + 1..]).to_owned())),
            None => (typed, None),
        };
        let name = format!("--{}", String::from_utf8_lossy(name));
        let row = self.row(&name).or_else(|| self.abbreviated(&name)).ok_or_else(|| unknown(&name))?;
        if row.is_last() {
            return self.end_with(row);
        }
        if value.is_some() && row.takes == Takes::Nothing {
            return Err(Error::usage(format!("{name} takes no value")));
        }
        self.take(row, &name, value)
    }

    /// `None` if ambiguous.
    fn abbreviated(&self, name: &str) -> Option<Row> {
        let begins = |row: &&Row| row.names.split(' ').any(|own| own.starts_with(name));
        let mut found = self.rows.iter().copied().flatten().filter(begins);
        let row = found.next().copied()?;
        found.next().is_none().then_some(row)
    }

    fn cluster(&mut self, mut letters: &[u8]) -> Result<()> {
        while let Some((letter, rest)) = letters.split_first() {
            let name = format!("-{}", char::from(*letter));
            let row = self.row(&name).ok_or_else(|| unknown(&name))?;
            if row.is_last() {
                return self.end_with(row);
            }
            if row.takes == Takes::Nothing {
                self.take(row, &name, None)?;
                letters = rest;
                continue;
            }
            let value = (!rest.is_empty()).then(|| OsStr::from_bytes(rest).to_owned());
            return self.take(row, &name, value);
        }
        Ok(())
    }

    /// Drops all further arguments, which the tool would not read.
    fn end_with(&mut self, row: Row) -> Result<()> {
        self.args.by_ref().for_each(drop);
        self.take(row, row.first(), None)
    }

    fn take(&mut self, row: Row, name: &str, attached: Option<OsString>) -> Result<()> {
        if let Effect::Refused(instead) = row.effect {
            return Err(Error::usage(format!("{name} is not supported: {instead}")));
        }
        let mut values = Vec::new();
        match (row.takes, attached) {
            (_, Some(value)) => values.push(value),
            (Takes::Nothing | Takes::Attached, None) => values.push(OsString::new()),
            (Takes::One | Takes::Number, None) => {
                let missing = || Error::usage(format!("{name} needs a value"));
                values.push(self.args.next().ok_or_else(missing)?);
            }
            (Takes::Rest, None) => values.extend(self.args.by_ref()),
            (Takes::List, None) => values.extend(self.args.by_ref().take_while(|arg| arg != ";")),
        }
        if values.is_empty() {
            return Err(Error::usage(format!("{name} needs a value")));
        }
        if row.takes == Takes::Number {
            values.iter().try_for_each(|value| sized(name, as_text(name, value)?).map(drop))?;
        }
        if row.effect == Effect::Acts {
            let name = row.first();
            if let Some(sets) = row.sets {
                self.given.sets.extend(values.iter().map(|value| (name, sets, value.clone())));
            }
            self.given.options.extend(values.into_iter().map(|value| (name, value)));
        } else if self.given.options.is_empty() {
            // Operands must not follow it either.
            self.given.options.push(("", OsString::new()));
        }
        Ok(())
    }
}

fn unknown(name: &str) -> Error {
    Error::usage(format!("unknown option {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] = &[
        acts("-e", Takes::Rest),
        acts("-comp", Takes::One),
        acts("-b --block", Takes::One),
        ignored("-mem", Takes::One),
        refused("-recover", Takes::One, "pack again"),
        acts("-z --zip", Takes::Attached),
        acts("-q --quiet", Takes::Nothing),
        acts("-x", Takes::One),
        acts("-h --help", Takes::Nothing),
    ];

    fn parsed(style: Style, args: &[&str]) -> Result<Given> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        parse(&[ROWS], style, &args)
    }

    fn shown(given: &Given) -> String {
        let options = given.options.iter().map(|(name, value)| format!("{name}={}", value.display()));
        let operands = given.operands.iter().map(|operand| operand.display().to_string());
        options.chain(operands).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_exclude_list_swallows_the_options_behind_it() {
        let given =
            parsed(Style::OperandsFirst, &["a", "-", "-mem", "1M", "-e", "x", "-comp", "xz"]).unwrap();
        assert_eq!(shown(&given), "=  -e=x -e=-comp -e=xz a -".replace("=  ", "= "));
    }

    #[test]
    fn words_come_before_or_behind_the_operands() {
        assert!(parsed(Style::OperandsFirst, &["a", "-b", "4K", "c"]).is_err());
        let given = parsed(Style::OptionsFirst, &["-b", "4K", "image", "-comp"]).unwrap();
        assert_eq!(shown(&given), "-b=4K image -comp");
    }

    #[test]
    fn getopt_takes_attached_values_options_behind_operands_and_the_end_of_options() {
        let given = parsed(Style::Getopt, &["a", "-qzlz4", "-x-1", "--blo=5", "--block", "6", "--", "-b"]);
        assert_eq!(shown(&given.unwrap()), "-q= -z=lz4 -x=-1 -b=5 -b=6 a -b");
    }

    #[test]
    fn help_is_the_last_option_of_getopt_that_is_read() {
        for line in [["-help", "--none", "x"], ["-qh!", "-none", "x"], ["--help", "--none", "x"]] {
            let given = parsed(Style::Getopt, &line).unwrap();
            assert!(given.has("-h") && given.operands.is_empty(), "{line:?}: {}", shown(&given));
        }
        assert_eq!(shown(&parsed(Style::Getopt, &["-xh", "a"]).unwrap()), "-x=h a");
        assert!(parsed(Style::Getopt, &["--none", "-h"]).is_err());
    }

    #[test]
    fn rows_set_options_of_packfs_and_the_last_option_counts() {
        const ROWS: &[Row] = &[
            sets("-j", "jobs"),
            sets_as("-b", "block-size", |name, text| Ok(sized(name, text)?.to_string())),
            sets("-n", "-O label"),
            switches("-x", "xattrs=off"),
            switches("-X", "xattrs"),
        ];
        let options = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            parse(&[ROWS], Style::Getopt, &args).unwrap().pack_options(&["lossy", "-O label=none"])
        };
        let set = options(&["-j3", "-b4k", "-n", "a", "-xXx"]).unwrap();
        assert_eq!((set.jobs, set.block_size, set.lossy), (3, Some(4096), true));
        assert_eq!(set.shape.xattr_exclude, ["*"]);
        let of_format: Vec<&str> = set.options.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(of_format, ["none", "a"]);
        assert!(options(&["-xX"]).unwrap().shape.xattr_exclude.is_empty());
        let error = options(&["-b", "99G"]).unwrap_err().to_string();
        assert!(error.starts_with("-b: option block-size="), "{error}");
    }

    #[test]
    fn refused_options_name_the_other_way() {
        let error = parsed(Style::OperandsFirst, &["a", "-recover", "x"]).unwrap_err().to_string();
        assert!(error.contains("-recover is not supported: pack again"), "{error}");
        assert!(parsed(Style::Getopt, &["--none"]).is_err());
    }
}
