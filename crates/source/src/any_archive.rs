//! Archives of every kind, detected by their first bytes.

use crate::archive::{TarInput, open};
use crate::archive_kind::ArchiveKind;
use crate::shape::Shape;
use crate::{Loaded, cpio, tar, zip};
use packfs_core::{Error, Limits, Progress, Result};

/// Returns the kind of an archive that starts with these bytes.
pub fn archive_kind(beginning: &[u8]) -> Option<ArchiveKind> {
    if tar::looks_like_tar(beginning) {
        Some(ArchiveKind::Tar)
    } else if cpio::looks_like_cpio(beginning) {
        Some(ArchiveKind::Cpio)
    } else if zip::looks_like_zip(beginning) {
        Some(ArchiveKind::Zip)
    } else {
        None
    }
}

/// Returns true if these bytes start like a tar, cpio, or zip archive.
pub fn looks_like_archive(beginning: &[u8]) -> bool {
    archive_kind(beginning).is_some()
}

/// Loads a tar, cpio, or zip archive. Other files are read as tar archives.
///
/// Errors: `Corrupt` for damage, `Unsupported` for encryption, parts of archives, and kinds that
/// the shape refuses, `Io`, `Usage` for bad globs, `Limit`, `Cancelled`.
pub fn load_archive(
    input: TarInput,
    shape: &Shape,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Loaded> {
    let mut opening = open(input, limits, progress)?;
    let kind = archive_kind(&opening.head()?).unwrap_or(ArchiveKind::Tar);
    if let Some(only) = shape.archives.filter(|only| *only != kind) {
        let fault = format!("found {}, only {} is allowed", kind.words(), only.words());
        return Err(
            Error::unsupported(&opening.name, fault).hint("packfs pack reads tar, cpio, and zip archives")
        );
    }
    match kind {
        ArchiveKind::Zip => zip::load(opening, shape),
        ArchiveKind::Cpio => cpio::load(opening, shape),
        ArchiveKind::Tar => tar::load(opening, shape),
    }
}
