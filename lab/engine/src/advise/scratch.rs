//! Room for images that are measured and removed again.

use packfs::{Error, Result, ResultExt};
use std::path::Path;

use crate::scratch::Scratch;

/// Folder of images that a kernel reads from memory.
const MEMORY_FOLDER: &str = "/dev/shm";
/// The way out of a folder that takes no images.
const OTHER_FOLDER: &str = "--scratch DIR names another folder for images that are measured";

/// A folder for images.
///
/// Errors: `Io` if nothing can be written there.
pub(super) fn scratch(chosen: Option<&Path>) -> Result<Scratch> {
    Scratch::new(&chosen.map_or_else(packfs::temporary_folder, Path::to_path_buf))
}

/// Removes an image.
///
/// Errors: `Io` naming it.
pub(super) fn remove(image: &Path) -> Result<()> {
    std::fs::remove_file(image).or_io(|| format!("cannot remove {image:?}"))
}

/// A folder in memory with so much room, where this process may have the kernel mount.
pub(super) fn memory_folder(room: u64) -> Option<Scratch> {
    let folder = Path::new(MEMORY_FOLDER);
    let stat = packfs::mount::is_root().then(|| rustix::fs::statvfs(folder).ok()).flatten()?;
    // A container often has no more than 64 MiB there.
    let has_room = stat.f_bavail.saturating_mul(stat.f_frsize) >= room;
    has_room.then(|| Scratch::new(folder).ok()).flatten()
}

/// Tells of another folder where this one was full.
pub(super) fn explained(error: Error) -> Error {
    let full = error.io_source().is_some_and(|source| {
        matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
    });
    if full { error.hint(OTHER_FOLDER) } else { error }
}
