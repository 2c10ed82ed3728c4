//! Archives of every kind, told by their first bytes.

use crate::archive::{TarInput, open};
use crate::shape::Shape;
use crate::{Loaded, cpio, tar, zip};
use packfs_core::{Limits, Progress, Result};

/// Returns the kind of an archive that starts with these bytes, with its article.
pub fn archive_kind(beginning: &[u8]) -> Option<&'static str> {
    match () {
        () if tar::looks_like_tar(beginning) => Some("a tar archive"),
        () if cpio::looks_like_cpio(beginning) => Some("a cpio archive"),
        () if zip::looks_like_zip(beginning) => Some("a zip archive"),
        () => None,
    }
}

/// Returns true if these bytes start like a tar, cpio, or zip archive.
pub fn looks_like_archive(beginning: &[u8]) -> bool {
    archive_kind(beginning).is_some()
}

/// Loads a tar, cpio, or zip archive; what is none of them by its first bytes is read as a tar
/// archive.
///
/// Errors: `Corrupt` for damage, `Unsupported` for encryption and parts of archives, `Io`, `Usage`
/// for bad globs, `Limit`, `Cancelled`.
pub fn load_archive(
    input: TarInput,
    shape: &Shape,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Loaded> {
    let mut opening = open(input, limits, progress)?;
    let head = opening.head()?;
    match () {
        () if zip::looks_like_zip(&head) => zip::load(opening, shape),
        () if cpio::looks_like_cpio(&head) => cpio::load(opening, shape),
        () => tar::load(opening, shape),
    }
}
