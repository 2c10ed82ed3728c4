//! Images in registries, layouts, and archives, found by their places.

use packfs_core::{Error, Limits, Place, Progress, Result};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{ArchivePlace, BlobFiles, LayerKind, OciImage, OciImages, OciLayer, OciPlace};
use packfs_source::{Shape, TarInput};
use std::sync::Arc;

/// Returns the place that a path names: one with a scheme, a folder with an image layout, or an
/// archive with images; `None` for any other path.
///
/// Errors: `Usage` for a reference that is none; `Io`.
pub fn place_of<'a>(place: impl Into<Place<'a>>, limits: Limits) -> Result<Option<OciPlace>> {
    let place = place.into();
    let (path, named) = (place.path(), OciPlace::of(place)?);
    if named.is_some() || !path.is_file() || !packfs_source::holds_container_image(path, limits)? {
        return Ok(named);
    }
    Ok(Some(OciPlace::Archive(ArchivePlace { path: path.into(), pin: None })))
}

/// Returns true for a layer that can be read where it is.
pub fn is_readable(layer: &OciLayer) -> bool {
    layer.kind.is_mountable() || layer.kind == LayerKind::ErofsZstd
}

/// Returns the error for layers that are not the bytes of one image.
pub fn not_mountable(path: Place<'_>, layers: &[OciLayer]) -> Error {
    let (count, has_tar) = (layers.len(), layers.iter().any(|it| it.kind == LayerKind::Tar));
    let what = match (has_tar, count) {
        (true, 1) => "its layer is a tar archive".to_owned(),
        (true, _) => format!("its {count} layers are tar archives, or some of them"),
        (false, _) => format!("its {count} layers are not the bytes of one image"),
    };
    let shown = path.shown();
    let error = Error::unsupported(format!("OCI image {shown}"), what);
    error.hint(format!("packfs pack {} IMAGE makes one image of all layers", shown.trim_matches('"')))
}

/// Opens the image of the platform.
///
/// Errors: those of the place.
pub fn image(
    place: &OciPlace,
    remote: &RemoteOptions,
    limits: Limits,
    prefers_erofs: bool,
    progress: &dyn Progress,
) -> Result<OciImage> {
    images(place, remote, limits, progress)?.open(&remote.oci, prefers_erofs)
}

/// Finds the images of a place, with the names of an archive looked through.
///
/// Errors: those of the place.
pub fn images(
    place: &OciPlace,
    remote: &RemoteOptions,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<OciImages> {
    let OciPlace::Archive(archive) = place else { return OciImages::find(place, remote) };
    OciImages::in_files(archive_files(archive, limits, progress)?, archive.pin.as_ref())
}

/// Looks through an archive.
///
/// Errors: those of tar archives.
pub fn archive_files(
    archive: &ArchivePlace,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Arc<dyn BlobFiles>> {
    let input = TarInput::File(archive.path.clone());
    let loaded = packfs_source::load_tar_within(input, &Shape::default(), limits, progress)?;
    Ok(packfs_remote::oci::archive_files(&archive.path, loaded.tree, loaded.contents))
}
