//! Merging, checking, and digests.

use crate::errors::{exception, json, named, named_in_message};
use crate::given::{Given, wrong};
use crate::many::image_path;
use crate::pack::word;
use crate::watch::watched;
use packfs::check::Findings;
use packfs::integrity::{DigestFacts, digest_tree};
use packfs::source::Shape;
use packfs::{DataPlace, Source};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Merges images into `output`; returns the report as a JSON object.
#[pyfunction]
pub fn merge(
    py: Python<'_>,
    images: Vec<PathBuf>,
    output: PathBuf,
    given: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let given = Given(given);
    let paths: Vec<PathBuf> = images.iter().chain([&output]).cloned().collect();
    let mut merge = packfs::merge(images, output).limits(given.limits(Default::default())?);
    if let Some(at) = given.dict("at")? {
        for (prefix, image) in at.iter() {
            let prefix = image_path(&prefix.extract::<PathBuf>()?)?;
            merge = merge.at(prefix, image.extract::<PathBuf>()?).map_err(|error| exception(&error))?;
        }
    }
    if let Some(on_conflict) = given.parsed("on_conflict")? {
        merge = merge.on_conflict(on_conflict);
    }
    let places = [("image", DataPlace::Image), ("flat", DataPlace::Flat), ("devices", DataPlace::Inputs)];
    if let Some(place) = word(&given, "data", &places)? {
        merge = merge.data(place);
    }
    if given.or_default("apply_whiteouts")? {
        merge = merge.apply_whiteouts();
    }
    if let Some(seconds) = given.get("made_at")? {
        merge = merge.made_at(seconds);
    }
    if let Some(kernel) = given.get::<String>("kernel")? {
        merge = merge.kernel(kernel);
    }
    if given.or_default("sync")? {
        merge = merge.sync();
    }
    let merged = watched(py, progress, |watcher| merge.run_with(watcher));
    json(&merged.map_err(|error| named_in_message(py, error, paths.iter().map(PathBuf::as_path)))?)
}

/// Checks an image, with `data` all of its contents; returns the report as a JSON object.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    image: PathBuf,
    data: bool,
    given: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    // Wrong checksums are among the findings.
    let options = Given(given).open_options()?.ignore_checksum();
    let outcome = watched(py, progress, |watcher| {
        let opened = options.open(&image)?;
        let mut found = Findings::default();
        let content = opened.check(data, watcher, &mut found)?;
        Ok((found, content))
    });
    let (found, content) = outcome.map_err(|error| named(py, error, Some(&image)))?;
    json(&found.report(content))
}

/// Returns the digest of a tree. `facts` are the names of the attributes that it covers.
#[pyfunction]
pub fn digest(
    py: Python<'_>,
    source: PathBuf,
    facts: Option<Vec<String>>,
    given: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = Given(given).open_options()?;
    let jobs = Given(given).or_default("jobs")?;
    let facts = facts.map_or(Ok(DigestFacts::default()), |names| covered(&names))?;
    let digest = watched(py, progress, |watcher| {
        let source = Source::detect_for(&source, &options)?;
        let loaded = source.load_with(&options, &Shape::default(), watcher)?;
        let digests = digest_tree(&loaded.tree, &*loaded.contents, facts, jobs, watcher)?;
        Ok(digests.root().to_string())
    });
    digest.map_err(|error| named(py, error, Some(&source)))
}

fn covered(names: &[String]) -> PyResult<DigestFacts> {
    let mut facts = DigestFacts::NONE;
    for name in names {
        let known = || format!("unknown {name:?}; {} are allowed", DigestFacts::names().join(", "));
        *facts.by_name(name).ok_or_else(|| wrong("facts", &known()))? = true;
    }
    Ok(facts)
}
