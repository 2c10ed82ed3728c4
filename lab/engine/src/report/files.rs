//! A session as files in a folder; each is whole or not there.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use packfs::{Error, Result, ResultExt as _};

use super::{Format, Terminal, report};
use crate::results::Results;

/// Names of the files. `results.json` comes first: the others can be made of it.
const FILES: [(&str, Format); 4] = [
    ("results.json", Format::Json),
    ("report.md", Format::Markdown),
    ("report.csv", Format::Csv),
    ("report.html", Format::Html),
];

/// Writes every report to a folder, which is made if need be; files of an earlier session are
/// replaced. Returns them in the order in which they were written.
///
/// Errors: `Io`, naming the file; those written before stay.
pub fn write_all(results: &Results, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).or_io(|| format!("cannot make the folder {folder:?}"))?;
    let write = |&(name, format): &(&str, Format)| {
        let path = folder.join(name);
        write_whole(&path, report(results, format, Terminal::default())?.as_bytes())?;
        Ok(path)
    };
    FILES.iter().map(write).collect()
}

/// Writes a file beside its name and gives it the name once it is whole. A file of that name is
/// replaced at that moment.
///
/// Errors: `Io`; nothing of the new file is left then.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    let Some(folder) = path.parent() else {
        return Err(Error::usage(format!("{path:?} names no file")));
    };
    let whole = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        let mut file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
        file.write_all(contents)?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    whole().or_io(|| format!("cannot write {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_at_once_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.md");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_get_its_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir_all(path.join("by a folder")).unwrap();
        let error = write_whole(&path, b"new").unwrap_err();
        assert!(error.to_string().starts_with(&format!("cannot write {path:?}: ")), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(write_whole(Path::new("/"), b"").unwrap_err().kind(), packfs::ErrorKind::Usage);
    }
}
