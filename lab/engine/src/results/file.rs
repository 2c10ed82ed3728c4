//! The file of results: one JSON document, which a session keeps up to date as it goes, resumes
//! from, and all reports are made of.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use packfs::{Error, Result, ResultExt as _};
use serde::Deserialize;

use super::Results;
use crate::undo::Undo;

/// Its name in the output folder.
pub const NAME: &str = "results.json";
/// The schema that this code reads and writes.
const SCHEMA: &str = "packfs-lab/1";
/// The longest document that is read. A session of 100,000 runs has some 30 MB.
const MAX_LEN: u64 = 512 << 20;
/// Object of errors.
const SUBJECT: &str = "results of the lab";

/// Part of a document that is read before its schema is known.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

impl Results {
    /// Returns results of nothing, of the present schema.
    pub fn new() -> Self {
        Self { schema: SCHEMA.into(), ..Self::default() }
    }

    /// Returns the document, indented. A figure that is no number is `null`, which [`Self::parse`]
    /// refuses.
    ///
    /// Errors: none that results can cause.
    pub fn json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map(|text| text + "\n");
        text.map_err(|error| Error::failed(format!("{SUBJECT} cannot be written as JSON: {error}")))
    }

    /// Reads a document.
    ///
    /// Errors: `Unsupported` for another schema, `Corrupt` for anything else.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let corrupt = |error: serde_json::Error| Error::corrupt(SUBJECT, error);
        let head: Head = serde_json::from_slice(text)
            .map_err(|error| corrupt(error).hint(format!("`packfs lab` writes such a document as {NAME}")))?;
        if head.schema != SCHEMA {
            let found = format!("schema {:?}, this program knows {SCHEMA:?}", head.schema);
            return Err(Error::unsupported(SUBJECT, found)
                .hint("show it with the version of packfs that measured it, or measure again"));
        }
        serde_json::from_slice(text).map_err(corrupt)
    }

    /// Reads the file of a session.
    ///
    /// Errors: as [`Self::parse`], with the file's name; `Io` if it cannot be read, `Failed` if it
    /// is longer than any session's.
    pub fn read(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot read {path:?}");
        let mut text = Vec::new();
        File::open(path).or_io(cannot)?.take(MAX_LEN + 1).read_to_end(&mut text).or_io(cannot)?;
        if text.len() as u64 > MAX_LEN {
            let error = format!("{path:?} is longer than {MAX_LEN} bytes, which no session leaves");
            return Err(Error::failed(error));
        }
        Self::parse(&text).map_err(|error| error.at(format_args!("{path:?}")))
    }
}

/// Writes a file beside its name and gives it the name once it is whole. A file of that name is
/// replaced at that moment.
///
/// Errors: `Io`; nothing of the new file is left then.
pub(crate) fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    let Some(folder) = path.parent() else {
        return Err(Error::usage(format!("{path:?} names no file")));
    };
    let whole = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        let mut file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
        let own = file.path().to_owned();
        // A signal ends the program without dropping anything.
        let undo = Undo::new(format!("remove {own:?}"), move || {
            let _ = std::fs::remove_file(own);
            Ok(())
        });
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        undo.forget();
        Ok(())
    };
    whole().or_io(|| format!("cannot write {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::ErrorKind;

    #[test]
    fn another_schema_is_refused_before_its_fields_are_looked_at() {
        let error = Results::parse(br#"{"schema": "packfs-lab/7", "unheard_of": []}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(r#"schema "packfs-lab/7", this program knows"#), "{error}");
        assert!(!error.hints().is_empty());
    }

    #[test]
    fn what_is_no_such_document_is_corrupt_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        for text in ["", "[]", "{}", r#"{"schema": "packfs-lab/1"}"#] {
            write_whole(&path, text.as_bytes()).unwrap();
            let error = Results::read(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
            assert!(
                error.to_string().starts_with(&format!("{path:?}: corrupt results of the lab")),
                "{error}"
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a file is replaced");
    }

    #[test]
    fn what_cannot_get_its_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        std::fs::create_dir_all(path.join("by a folder")).unwrap();
        let error = write_whole(&path, b"new").unwrap_err();
        assert!(error.to_string().starts_with(&format!("cannot write {path:?}: ")), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(write_whole(Path::new("/"), b"").unwrap_err().kind(), ErrorKind::Usage);
    }
}
