//! Small JSON files, whose text is always the same for the same values.

use packfs_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the text of a document, with a line end.
///
/// Errors: `Failed` for values that JSON cannot hold.
pub(crate) fn text(document: &impl Serialize) -> Result<Vec<u8>> {
    let cannot = |error| Error::failed(format!("cannot write JSON: {error}"));
    let mut text = serde_json::to_vec_pretty(document).map_err(cannot)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a document.
///
/// Errors: `Corrupt`, with the line and the column.
pub(crate) fn parse<T: DeserializeOwned>(subject: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|fault| Error::corrupt(subject, fault))
}
