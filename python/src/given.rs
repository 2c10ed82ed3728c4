//! Keyword arguments, which the Python part collects into a dictionary, as options of the library.

use packfs::oci::OciOptions;
use packfs::remote::RemoteOptions;
use packfs::{LIMITS, Limits, OpenOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
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

    /// Returns the values of a sequence of texts that the library parses.
    pub fn all_parsed<T: FromStr<Err: std::fmt::Display>>(&self, name: &str) -> PyResult<Vec<T>> {
        let texts = self.or_default::<Vec<String>>(name)?;
        texts.iter().map(|text| parse(name, text)).collect()
    }

    /// Returns the limits: those of `limits`, by the names of the command line's options with `_`
    /// for `-`, `None` for no limit; the text `none` lifts all.
    pub fn limits(&self) -> PyResult<Limits> {
        let Some(value) = self.0.get_item("limits")?.filter(|value| !value.is_none()) else {
            return Ok(Limits::default());
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

    /// Returns the options of opening an image.
    pub fn open_options(&self) -> PyResult<OpenOptions> {
        let mut options = OpenOptions::new()
            .offset(self.or_default("offset")?)
            .jobs(self.or_default("jobs")?)
            .limits(self.limits()?)
            .remote(self.remote()?);
        macro_rules! set {
            ($($method:ident: $type:ty),*) => {
                $(if let Some(value) = self.get::<$type>(stringify!($method))? {
                    options = options.$method(value);
                })*
            };
        }
        set!(part: String, magic: Vec<u8>, subvolume: String, snapshot: String);
        set!(cache_bytes: u64, readahead_bytes: u64);
        if let Some(bytes) = self.get("length")? {
            options = options.len(bytes);
        }
        for path in self.or_default::<Vec<PathBuf>>("devices")? {
            options = options.device(path);
        }
        for path in self.or_default::<Vec<PathBuf>>("backing")? {
            options = options.allow_backing(path);
        }
        if let Some(kind) = self.get::<String>("partition_table")? {
            options = options.partition_table(parse("partition_table", &kind)?);
        }
        for path in self.or_default::<Vec<PathBuf>>("objects")? {
            options = options.objects(path);
        }
        if self.or_default("no_journal")? || self.or_default("ignore_log")? {
            options = options.no_journal();
        }
        if self.or_default("ignore_checksum")? {
            options = options.ignore_checksum();
        }
        Ok(options)
    }

    /// Returns the options of opening a source that is an image.
    pub fn source_options(&self) -> PyResult<OpenOptions> {
        self.dict("source_options")?
            .map_or_else(|| Ok(OpenOptions::new()), |options| Given(&options).open_options())
    }

    fn remote(&self) -> PyResult<RemoteOptions> {
        let defaults = RemoteOptions::default();
        let cache_len = self.get("disk_cache")?.unwrap_or(defaults.cache_len);
        let oci =
            OciOptions { platform: self.parsed("platform")?, plain_http: self.or_default("plain_http")? };
        Ok(RemoteOptions { cache_len, is_offline: self.or_default("offline")?, oci, ..defaults })
    }
}

fn parse<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error: T::Err| wrong(name, &error.to_string()))
}

/// The exception for the value of an argument.
pub fn wrong(name: &str, fault: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: {fault}"))
}
