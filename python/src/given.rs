//! Keyword arguments, which the Python part collects into a dictionary, as options of the library.

use crate::errors::exception;
use packfs::options::{Info, Options, Takes};
use packfs::{LIMITS, Limits, OpenOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

/// Keyword arguments by name. `None` is the same as a missing one.
pub struct Given<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'py> Given<'_, 'py> {
    /// Returns the value of an argument.
    ///
    /// Errors: `TypeError` that names the argument.
    pub fn get<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: FromPyObjectOwned<'py>,
    {
        let Some(value) = self.0.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(None) };
        let extracted: Result<T, PyErr> = value.extract::<T>().map_err(Into::into);
        extracted.map(Some).map_err(|error| {
            let py = value.py();
            if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(format!("{name}: {}", error.value(py)))
            } else {
                error
            }
        })
    }

    /// Returns the value of an argument, or the default of its type.
    pub fn or_default<T>(&self, name: &str) -> PyResult<T>
    where
        T: Default + FromPyObjectOwned<'py>,
    {
        Ok(self.get(name)?.unwrap_or_default())
    }

    /// Returns the dictionary of an argument.
    pub fn dict(&self, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(value) = self.0.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(None) };
        let wrong = |_| PyTypeError::new_err(format!("{name}: not a dict"));
        value.cast_into::<PyDict>().map(Some).map_err(wrong)
    }

    /// Returns the value of a text that the library parses.
    ///
    /// Errors: `ValueError` that names the argument.
    pub fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, name: &str) -> PyResult<Option<T>> {
        self.get::<String>(name)?.map(|text| parse(name, &text)).transpose()
    }

    /// Returns the limits: those of `limits`, by the names of the command line's options with `_`
    /// for `-`, `None` for no limit; the text `none` lifts all.
    pub fn limits(&self, default: Limits) -> PyResult<Limits> {
        let Some(value) = self.0.get_item("limits")?.filter(|value| !value.is_none()) else {
            return Ok(default);
        };
        if value.cast::<PyString>().is_ok_and(|text| text == "none") {
            return Ok(Limits::none());
        }
        let dict = value.cast::<PyDict>().map_err(|_| {
            PyTypeError::new_err("limits: a dict of names and numbers, or the text \"none\" is allowed")
        })?;
        let mut limits = Limits::default();
        for (name, allowed) in dict.iter() {
            let name: String = name.extract()?;
            let Some(row) = LIMITS.iter().find(|row| row.option.replace('-', "_") == name) else {
                let known: Vec<String> = LIMITS.iter().map(|row| row.option.replace('-', "_")).collect();
                return Err(wrong("limits", &format!("unknown {name:?}; {} are allowed", known.join(", "))));
            };
            limits = match allowed.extract::<Option<u64>>()? {
                Some(allowed) => limits.allow(row.limit, allowed),
                None => limits.lift(row.limit),
            };
        }
        Ok(limits)
    }

    /// Returns what is given of options, as names and texts.
    ///
    /// Errors: `TypeError` that names the argument.
    pub fn texts<T: Options>(&self) -> PyResult<Vec<(&'static str, OsString)>> {
        let mut texts = Vec::new();
        for info in T::infos() {
            for name in [&info.name].into_iter().chain(info.aliases).chain(info.also) {
                let name = name.replace('-', "_");
                let Some(value) = self.0.get_item(&name)?.filter(|value| !value.is_none()) else { continue };
                let of_one = texts_of(info, &value).map_err(|error| {
                    let error = error.value(value.py()).to_string();
                    PyTypeError::new_err(format!("{name}: {error}"))
                })?;
                for text in of_one {
                    (info.check)(&text).map_err(|fault| wrong(&name, &fault))?;
                    texts.push((info.name, text));
                }
            }
        }
        Ok(texts)
    }

    /// Refuses what is neither an option nor one of the `others`.
    ///
    /// Errors: `TypeError` that names the argument.
    pub fn refuse_unknown<T: Options>(&self, others: &[&str]) -> PyResult<()> {
        let infos = T::infos();
        for name in self.0.keys() {
            let name = name.extract::<String>()?;
            if !others.contains(&&*name) && !infos.iter().any(|info| info.has_name(&name)) {
                return Err(PyTypeError::new_err(format!("unexpected keyword argument {name:?}")));
            }
        }
        Ok(())
    }

    /// Returns the options of opening an image.
    pub fn open_options(&self) -> PyResult<OpenOptions> {
        let options =
            OpenOptions::of_texts(self.texts::<OpenOptions>()?).map_err(|error| exception(&error))?;
        let mut options = options.jobs(self.or_default("jobs")?).limits(self.limits(Limits::default())?);
        if let Some(bytes) = self.get("length")? {
            options = options.len(bytes);
        }
        if let Some(bytes) = self.get("cache_bytes")? {
            options = options.cache_bytes(bytes);
        }
        if let Some(bytes) = self.get("readahead_bytes")? {
            options = options.readahead_bytes(bytes);
        }
        Ok(options)
    }

    /// Returns the options of opening a source that is an image.
    pub fn source_options(&self) -> PyResult<OpenOptions> {
        self.dict("source_options")?
            .map_or_else(|| Ok(OpenOptions::new()), |options| Given(&options).open_options())
    }
}

/// Returns the texts of a value: one, or one for each item.
fn texts_of(info: &Info, value: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    if let Takes::Nothing | Takes::NothingOrNo(_) = info.takes {
        let is_on = value.extract::<bool>()?;
        return Ok(vec![if is_on { "on".into() } else { "off".into() }]);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let text = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(format!("{}={}", name.extract::<String>()?, value.str()?.extract::<String>()?).into())
        };
        return dict.iter().map(text).collect();
    }
    if info.takes == Takes::Many {
        if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err("a sequence is needed"));
        }
        return value.try_iter()?.map(|item| text_of(info, &item?)).collect();
    }
    Ok(vec![text_of(info, value)?])
}

fn text_of(info: &Info, value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(OsStr::from_bytes(bytes.as_bytes()).to_owned());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.extract::<String>()?.into());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(format!("{:.9}", number.value()).into());
    }
    if ["N", "PERCENT", "SIZE", "UID", "GID"].contains(&info.value) {
        return Err(PyTypeError::new_err(format!("{} is not a number", value.repr()?)));
    }
    Ok(value.extract::<PathBuf>()?.into_os_string())
}

fn parse<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error: T::Err| wrong(name, &error.to_string()))
}

/// The exception for the value of an argument.
pub fn wrong(name: &str, fault: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: {fault}"))
}
