//! Images in registries, layouts, and archives as bytes.

use crate::OpenOptions;
use crate::place::BytesWithWarnings;
use packfs_core::{Error, Limits, Progress, Result, Silent, shown_place};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{LayerKind, OciImage, OciImages, OciPlace};
use packfs_source::{Shape, TarInput};
use std::path::Path;

impl OpenOptions {
    /// Opens the only layer of an OCI image where it is; `None` for a path that names none.
    ///
    /// Errors: `Unsupported` for layers that have to be packed first; those of opening the image.
    pub(crate) fn oci_bytes(&self, path: &Path) -> Result<Option<BytesWithWarnings>> {
        let Some(place) = OciPlace::of(path)? else { return Ok(None) };
        let image = image(&place, &self.remote, self.own_limits(), true, &Silent)?;
        match &image.layers[..] {
            [layer] if layer.kind.is_mountable() || layer.kind == LayerKind::ErofsZstd => {
                Ok(Some((layer.open()?, image.choice.into_iter().collect())))
            }
            layers => {
                Err(not_mountable(path, layers.len(), layers.iter().any(|it| it.kind == LayerKind::Tar)))
            }
        }
    }
}

fn not_mountable(path: &Path, count: usize, has_tar: bool) -> Error {
    let what = match (has_tar, count) {
        (true, 1) => "its layer is a tar archive".to_owned(),
        (true, _) => format!("its {count} layers are tar archives"),
        (false, _) => format!("it has {count} layers, of which only one can be read"),
    };
    let shown = shown_place(path);
    let error = Error::unsupported(format!("OCI image {shown}"), what);
    error.hint(format!("packfs pack {} IMAGE makes one image of all layers", shown.trim_matches('"')))
}

/// Opens the image of the platform.
///
/// Errors: those of the place.
pub(super) fn image(
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
pub(super) fn images(
    place: &OciPlace,
    remote: &RemoteOptions,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<OciImages> {
    let OciPlace::Archive(archive) = place else { return OciImages::find(place, remote) };
    let input = TarInput::File(archive.path.clone());
    let loaded = packfs_source::load_tar_within(input, &Shape::default(), limits, progress)?;
    OciImages::in_archive(archive, loaded.tree, loaded.contents)
}
