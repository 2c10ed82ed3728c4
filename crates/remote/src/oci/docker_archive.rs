//! Archives of `docker save`: a `manifest.json` with names of files in place of digests.

use super::blobs::{BlobFiles, read_small};
use super::manifest::{JSON_LEN_MAX, or_default};
use super::place::{Pin, is_named};
use packfs_core::{Error, Result, printable};
use serde::Deserialize;

/// Image of such an archive.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Saved {
    /// File with the configuration.
    pub(crate) config: String,
    #[serde(default, deserialize_with = "or_default")]
    repo_tags: Vec<String>,
    /// Files with the layers, the lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) layers: Vec<String>,
}

/// Writes the list of `docker save` for an image whose blobs lie in a layout beside it.
///
/// Errors: `Failed`.
pub(crate) fn list_of(config: &str, name: Option<&str>, layers: &[String]) -> Result<Vec<u8>> {
    let tags: Vec<&str> = name.filter(|name| name.contains(':')).into_iter().collect();
    let list = serde_json::json!([{ "Config": config, "RepoTags": tags, "Layers": layers }]);
    super::manifest::to_json(&list)
}

/// Returns the names of all images in an archive.
///
/// Errors: `Corrupt`; `Unsupported` if it is no such archive.
pub(crate) fn names(files: &dyn BlobFiles) -> Result<Vec<Option<String>>> {
    let Some(images) = all(files)? else {
        return Err(Error::unsupported(files.name(), "it holds neither index.json nor manifest.json"));
    };
    let names = images.into_iter().flat_map(|image| {
        if image.repo_tags.is_empty() { vec![None] } else { image.repo_tags.into_iter().map(Some).collect() }
    });
    Ok(names.collect())
}

fn all(files: &dyn BlobFiles) -> Result<Option<Vec<Saved>>> {
    let Some(bytes) = read_small(files, "manifest.json", JSON_LEN_MAX)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::corrupt(
            format!("manifest.json of {}", files.name()),
            format!("line {}: no list of images", error.line()),
        )
    })
}

/// Finds an image in an archive; `None` if it is no such archive.
///
/// Errors: `Corrupt`; `Failed` if no image or several have the name.
pub(crate) fn find(files: &dyn BlobFiles, pin: Option<&Pin>) -> Result<Option<Saved>> {
    let Some(images) = all(files)? else { return Ok(None) };
    let place = files.name();
    let is_named = |image: &&Saved| match pin {
        None => true,
        Some(Pin::Tag(wanted)) => image.repo_tags.iter().any(|tag| is_named(tag, wanted)),
        Some(Pin::Digest(digest)) => image.config.contains(digest.parts().1),
    };
    let found: Vec<&Saved> = images.iter().filter(is_named).collect();
    if let [image] = found[..] {
        return Ok(Some(image.clone()));
    }
    let error = Error::failed(format!("cannot open {place}: {} images have that name", found.len()));
    let names: Vec<&str> =
        images.iter().flat_map(|image| &image.repo_tags).map(String::as_str).take(10).collect();
    Err(error.hint(format!("images: {}", printable(&names.join(", ")))))
}
