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

/// Finds an image in an archive; `None` if it is no such archive.
///
/// Errors: `Corrupt`; `Failed` if no image or several have the name.
pub(crate) fn find(files: &dyn BlobFiles, pin: Option<&Pin>) -> Result<Option<Saved>> {
    let Some(bytes) = read_small(files, "manifest.json", JSON_LEN_MAX)? else { return Ok(None) };
    let place = files.name();
    let images: Vec<Saved> = serde_json::from_slice(&bytes).map_err(|error| {
        Error::corrupt(
            format!("manifest.json of {place}"),
            format!("line {}: no list of images", error.line()),
        )
    })?;
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
