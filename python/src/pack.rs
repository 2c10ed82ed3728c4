//! Packing: the options of the library as keyword arguments.

use crate::errors::{json, named_in_message};
use crate::given::{Given, wrong};
use crate::many::image_path;
use crate::watch::watched;
use packfs::source::{Additions, FileContexts, Shape};
use packfs::{BaseCheck, Effort, Gain, Goal, ImagePath, MadeAt, Order, Pack, PackOptions, Timestamp};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::Arc;

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
        return packfs::pack_files(held, output).map_err(|error| crate::errors::exception(&error));
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
    let defaults = PackOptions::default();
    let min_gain = given.get::<u8>("min_gain")?.map(|percent| {
        Gain::percent(percent).ok_or_else(|| wrong("min_gain", &format!("{percent}; 0 to 49 are allowed")))
    });
    Ok(PackOptions {
        format: given.get("format")?,
        codec: given.get("codec")?,
        block_size: given.get("block_size")?,
        optimize: given.get("optimize")?.map_or(Ok(Goal::default()), |name: String| goal(&name))?,
        options: format_options(given)?,
        made_at: made_at(given)?,
        shape: shape(given)?,
        source: given.source_options()?,
        limits: given.limits()?,
        order: given.get("order")?.map(|order: String| self::order(&order)).transpose()?,
        order_file: given.get("order_file")?,
        trace: given.get("trace")?,
        min_gain: min_gain.transpose()?.unwrap_or(defaults.min_gain),
        effort: word(given, "effort", &[("level", Effort::Level), ("max", Effort::Max)])?.unwrap_or_default(),
        for_merging: given.or_default("for_merging")?,
        base: given.get("base")?,
        base_check: word(
            given,
            "base_check",
            &[("contents", BaseCheck::Contents), ("times", BaseCheck::Times)],
        )?
        .unwrap_or_default(),
        jobs: given.or_default("jobs")?,
        memory: given.get("memory")?,
        offset: given.or_default("offset")?,
        max_size: given.get("max_size")?,
        fit: given.or_default("fit")?,
        keep_going: given.or_default("keep_going")?,
        lossy: given.or_default("lossy")?,
        verify: given.get("verify")?,
        sync: given.get("sync")?.unwrap_or(true),
    })
}

/// Returns the options of the format, with the kernel among them.
fn format_options(given: &Given<'_, '_>) -> PyResult<Vec<(String, String)>> {
    let mut options = Vec::new();
    if let Some(kernel) = given.get::<String>("kernel")? {
        options.push(("kernel".to_owned(), kernel));
    }
    if let Some(dict) = given.dict("format_options")? {
        for (name, value) in dict.iter() {
            options.push((name.extract()?, value.str()?.extract()?));
        }
    }
    Ok(options)
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

fn goal(name: &str) -> PyResult<Goal> {
    let known = || Goal::ALL.map(Goal::name).join(", ");
    Goal::named(name).ok_or_else(|| wrong("optimize", &format!("unknown {name:?}; {} are allowed", known())))
}

fn order(text: &str) -> PyResult<Order> {
    Ok(match (text, text.strip_prefix("similarity:")) {
        ("path", _) => Order::Path,
        ("kind", _) => Order::Kind,
        ("similarity", _) => Order::Similarity { within: None },
        (_, Some("all")) => Order::Similarity { within: Some(u64::MAX) },
        (_, Some(bytes)) if bytes.parse::<u64>().is_ok() => Order::Similarity { within: bytes.parse().ok() },
        _ => {
            let allowed = "path, kind, similarity, similarity:all, and similarity:BYTES are allowed";
            return Err(wrong("order", &format!("unknown {text:?}; {allowed}")));
        }
    })
}

fn made_at(given: &Given<'_, '_>) -> PyResult<MadeAt> {
    if let Ok(Some(seconds)) = given.get("made_at") {
        return Ok(MadeAt::Seconds(seconds));
    }
    Ok(word(given, "made_at", &[("newest", MadeAt::Newest), ("now", MadeAt::Now)])?.unwrap_or_default())
}

/// Returns a time in seconds since 1970.
fn time(given: &Given<'_, '_>, name: &str) -> PyResult<Option<Timestamp>> {
    if let Ok(seconds) = given.get::<i64>(name) {
        return Ok(seconds.map(Timestamp::from_seconds));
    }
    let Some(time) = given.get::<f64>(name)? else { return Ok(None) };
    let seconds = time.floor();
    // Saturates, as conversions of numbers do.
    Ok(Some(Timestamp { seconds: seconds as i64, nanos: (((time - seconds) * 1e9) as u32).min(999_999_999) }))
}

pub fn shape(given: &Given<'_, '_>) -> PyResult<Shape> {
    let path = |name| -> PyResult<ImagePath> {
        given.get::<PathBuf>(name)?.map_or(Ok(ImagePath::root()), |path| image_path(&path))
    };
    let mode = given.parsed("mode")?;
    let mut xattr_exclude: Vec<String> = given.or_default("xattr_exclude")?;
    if given.get("xattrs")? == Some(false) {
        xattr_exclude.push("*".into());
    }
    Ok(Shape {
        exclude: given.or_default("exclude")?,
        include: given.or_default("include")?,
        ignore_files: given.or_default("ignore_files")?,
        strip_components: given.or_default("strip_components")?,
        strip_prefix: path("strip_prefix")?,
        prefix: path("prefix")?,
        uid: given.get("uid")?,
        gid: given.get("gid")?,
        uid_map: given.all_parsed("uid_map")?,
        gid_map: given.all_parsed("gid_map")?,
        file_mode: given.parsed("file_mode")?.or_else(|| mode.clone()),
        dir_mode: given.parsed("dir_mode")?.or(mode),
        mtime: time(given, "mtime")?,
        mtime_max: time(given, "clamp_mtime")?,
        xattr_exclude,
        xattr_include: given.or_default("xattr_include")?,
        whiteouts: given.parsed("whiteouts")?,
        additions: additions(given)?,
        file_contexts: file_contexts(given, path("file_contexts_at")?)?,
        one_file_system: given.or_default("one_file_system")?,
        follow_symlinks: given.or_default("follow_symlinks")?,
        ..Shape::default()
    })
}

fn additions(given: &Given<'_, '_>) -> PyResult<Additions> {
    let mut additions = Additions::default();
    for path in given.or_default::<Vec<PathBuf>>("add_manifest")? {
        additions.add_file(&path).map_err(|error| crate::errors::exception(&error))?;
    }
    let entries = given.or_default::<Vec<String>>("add")?;
    additions.add(&entries, "add").map_err(|error| crate::errors::exception(&error))?;
    Ok(additions)
}

fn file_contexts(given: &Given<'_, '_>, at: ImagePath) -> PyResult<Option<Arc<FileContexts>>> {
    let Some(path) = given.get::<PathBuf>("file_contexts")? else { return Ok(None) };
    let contexts = FileContexts::read(&path).map_err(|error| crate::errors::exception(&error))?;
    Ok(Some(Arc::new(contexts.mounted_at(at))))
}
