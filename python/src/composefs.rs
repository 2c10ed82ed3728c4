//! Composefs images, with their objects in a directory.

use crate::errors::{json, named_in_message};
use crate::given::Given;
use crate::pack::shape;
use crate::watch::watched;
use packfs::composefs::ComposefsOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Makes a composefs image of `source`, with its objects in a directory; returns the report as a
/// JSON object.
#[pyfunction]
pub fn composefs(
    py: Python<'_>,
    source: PathBuf,
    output: PathBuf,
    given: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let given = Given(given);
    let options = ComposefsOptions {
        objects: given.get("objects")?,
        requires_fs_verity: given.or_default("require_fs_verity")?,
        splits_links: given.or_default("split_links")?,
        shape: shape(&given)?,
        source: given.source_options()?,
        limits: given.limits(Default::default())?,
        jobs: given.or_default("jobs")?,
        output: Some(output.clone()),
        ..ComposefsOptions::default()
    };
    let report = watched(py, progress, |watcher| {
        let made = packfs::composefs::make(&source, &options, watcher)?;
        made.write(&output)?;
        Ok(made.report)
    });
    let paths = [&*source, &*output];
    json(&report.map_err(|error| named_in_message(py, error, paths))?)
}
