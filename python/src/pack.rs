//! Packing: the options of the library as keyword arguments.

use crate::errors::{exception, json, named_in_message};
use crate::given::{Given, wrong};
use crate::many::image_path;
use crate::watch::watched;
use packfs::options::shape_of_texts;
use packfs::source::Shape;
use packfs::{ImagePath, Pack, PackOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;

/// Packs `source` into the image `output`; returns the report as a JSON object.
///
/// A source is a path, a list of paths that become entries of the root, or a dictionary of paths in
/// the image and contents.
#[pyfunction]
pub fn pack(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    output: PathBuf,
    given: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = options(&Given(given))?;
    let pack = sourced(source, &output)?.options(options);
    let report = watched(py, progress, |watcher| pack.run_with(watcher));
    let named = source.extract::<PathBuf>().ok();
    let paths = named.iter().chain([&output]).map(PathBuf::as_path);
    json(&report.map_err(|error| named_in_message(py, error, paths))?)
}

fn sourced(source: &Bound<'_, PyAny>, output: &PathBuf) -> PyResult<Pack> {
    if let Ok(files) = source.cast::<PyDict>() {
        let mut held: Vec<(ImagePath, Vec<u8>)> = Vec::new();
        for (path, contents) in files.iter() {
            let contents = match contents.extract::<String>() {
                Ok(text) => text.into_bytes(),
                Err(_) => contents.extract()?,
            };
            held.push((image_path(&path.extract::<PathBuf>()?)?, contents));
        }
        return packfs::pack_files(held, output).map_err(|error| exception(&error));
    }
    if source.is_instance_of::<PyList>() {
        return Ok(packfs::pack_entries(source.extract::<Vec<PathBuf>>()?, output));
    }
    let path = source.extract::<PathBuf>().map_err(|_| {
        let found = source.get_type();
        PyTypeError::new_err(format!("source: a path, a list of paths, or a dict is allowed, not {found}"))
    })?;
    Ok(packfs::pack(path, output))
}

fn options(given: &Given<'_, '_>) -> PyResult<PackOptions> {
    given.refuse_unknown::<PackOptions>(&["jobs", "limits", "order_file", "source_options"])?;
    let options = PackOptions::of_texts(given.texts::<PackOptions>()?).map_err(|error| exception(&error))?;
    // `order_file` is the argument for files, so a wrong word is not taken for one.
    if let Some(file) = &options.order_file {
        return Err(PyValueError::new_err(format!(
            "order: {} is not an order; similarity, kind and path are allowed, and order_file names a file",
            file.display()
        )));
    }
    Ok(PackOptions {
        source: given.source_options()?,
        limits: given.limits(options.limits)?,
        order_file: given.get("order_file")?,
        jobs: given.or_default("jobs")?,
        ..options
    })
}

/// Returns the value of one of several words.
pub fn word<T: Clone>(given: &Given<'_, '_>, name: &str, words: &[(&str, T)]) -> PyResult<Option<T>> {
    let Some(text) = given.get::<String>(name)? else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == text);
    let allowed = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, value)| Some(value.clone()))
        .ok_or_else(|| wrong(name, &format!("unknown {text:?}; {} are allowed", allowed())))
}

/// Returns changes of a source.
pub fn shape(given: &Given<'_, '_>) -> PyResult<Shape> {
    shape_of_texts(given.texts::<Shape>()?).map_err(|error| exception(&error))
}
