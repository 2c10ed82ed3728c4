//! Lists of images.

use crate::images::archive_files;
use packfs_core::{Limits, Progress, Result};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Listed, OciPlace, folder_files, list_files, list_registry};

/// Lists the images of a layout or archive, the tags of a repository, or the images of all
/// platforms of one that is named.
///
/// Errors: those of the place.
pub fn list_images(
    place: &OciPlace,
    remote: &RemoteOptions,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Vec<Listed>> {
    match place {
        OciPlace::Registry(place) => list_registry(place, remote),
        OciPlace::Layout { dir, pin } => list_files(folder_files(dir)?, pin.as_ref()),
        OciPlace::Archive(archive) => {
            list_files(archive_files(archive, limits, progress)?, archive.pin.as_ref())
        }
    }
}
