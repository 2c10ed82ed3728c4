//! The document itself: written, and read again with its schema checked.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use packfs::{Error, Result, ResultExt as _};
use serde::Deserialize;

use crate::results::{Results, SCHEMA};

/// The longest document that is read. A session of 100,000 runs has some 30 MB.
const MAX_LEN: u64 = 512 << 20;

/// Object of errors.
const SUBJECT: &str = "results of the lab";

/// The document, indented, with a line feed at its end.
///
/// A figure that is no number, or infinite, is written as `null`, which [`parse`] refuses where a
/// figure has to be.
///
/// Errors: none that results can cause.
pub fn json(results: &Results) -> Result<String> {
    serde_json::to_string_pretty(results)
        .map(|text| text + "\n")
        .map_err(|error| Error::failed(format!("{SUBJECT} cannot be written as JSON: {error}")))
}

/// All that is looked at before the schema is known.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// Reads what [`json`] wrote.
///
/// Errors: `Unsupported` for another schema, `Corrupt` for what is no such document.
pub fn parse(text: &[u8]) -> Result<Results> {
    let corrupt = |error: serde_json::Error| Error::corrupt(SUBJECT, error);
    let head: Head = serde_json::from_slice(text)
        .map_err(|error| corrupt(error).hint("`packfs lab` writes such a document as results.json"))?;
    if head.schema != SCHEMA {
        let found = format!("schema {:?}, this program knows {SCHEMA:?}", head.schema);
        return Err(Error::unsupported(SUBJECT, found)
            .hint("show it with the version of packfs that measured it, or measure again"));
    }
    serde_json::from_slice(text).map_err(corrupt)
}

/// Reads a file that [`super::write_all`] wrote.
///
/// Errors: as [`parse`], with the file's name; `Io` if it cannot be read, `Failed` if it is longer
/// than any session's.
pub fn read(path: &Path) -> Result<Results> {
    let cannot = || format!("cannot read {path:?}");
    let mut text = Vec::new();
    File::open(path).or_io(cannot)?.take(MAX_LEN + 1).read_to_end(&mut text).or_io(cannot)?;
    if text.len() as u64 > MAX_LEN {
        return Err(Error::failed(format!(
            "{path:?} is longer than {MAX_LEN} bytes, which no session leaves"
        )));
    }
    parse(&text).map_err(|error| error.at(format_args!("{path:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::ErrorKind;

    #[test]
    fn another_schema_is_refused_before_its_fields_are_looked_at() {
        let error = parse(br#"{"schema": "packfs-lab/2", "unheard_of": []}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error.to_string().contains(r#"schema "packfs-lab/2", this program knows "packfs-lab/1""#),
            "{error}"
        );
        assert!(!error.hints().is_empty());
    }

    #[test]
    fn what_is_no_such_document_is_corrupt() {
        for text in
            ["", "[]", "{}", r#"{"schema": "packfs-lab/1"}"#, r#"{"schema": "packfs-lab/1", "titel": ""}"#]
        {
            assert_eq!(parse(text.as_bytes()).unwrap_err().kind(), ErrorKind::Corrupt, "{text}");
        }
    }

    #[test]
    fn the_file_that_is_wrong_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = read(file.path()).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("{:?}: corrupt results of the lab", file.path())),
            "{error}"
        );
    }
}
