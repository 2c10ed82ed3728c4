//! Names in the root for several paths of the host.

use packfs_core::{Error, Result, ResultExt};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the path to read, too.
///
/// Errors: `Usage` for duplicate names, and for a path without one.
pub(crate) fn named(paths: &[PathBuf]) -> Result<Vec<(Vec<u8>, PathBuf)>> {
    if let [only] = paths {
        let cannot_read = || format!("cannot read {only:?}");
        return Ok(vec![(name_of(only)?, std::fs::canonicalize(only).or_io(cannot_read)?)]);
    }
    let mut names: HashMap<Vec<u8>, &Path> = HashMap::new();
    let mut tops = Vec::new();
    for path in paths {
        let name = name_of(path)?;
        if let Some(before) = names.insert(name.clone(), path) {
            let name = packfs_core::escaped(&name);
            let fault =
                format!("cannot pack {before:?} and {path:?} side by side: both are called \"{name}\"");
            return Err(Error::usage(fault)
                .hint("rename one of them, or pack a directory that holds both")
                .hint("--merge merges the contents of directories"));
        }
        tops.push((name, path.clone()));
    }
    Ok(tops)
}

/// Resolves a path that ends with a dot to the name of that directory.
///
/// Errors: `Usage` for the root of the filesystem.
pub(crate) fn name_of(path: &Path) -> Result<Vec<u8>> {
    if let Some(name) = path.file_name() {
        return Ok(name.as_bytes().to_vec());
    }
    let meant = std::fs::canonicalize(path).or_io(|| format!("cannot read {path:?}"))?;
    let name = meant.file_name().map(|name| name.as_bytes().to_vec());
    name.ok_or_else(|| {
        Error::usage(format!("{path:?} has no name to be called by in the image"))
            .hint("as the only source, its contents become the root")
    })
}

/// The name is `.` for a path that ends like a directory.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        _ if path == b"." || path == b".." => (path, b"."),
        Some(slash) if matches!(&path[slash + 1..], b"" | b"." | b"..") => (path, b"."),
        Some(0) => (b"/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}
