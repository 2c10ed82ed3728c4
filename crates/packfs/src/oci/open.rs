//! Images in registries, layouts, and archives, opened where they are.

use super::chunks;
use super::merged::{LayerVolume, MergedVolume};
use crate::place::BytesWithWarnings;
use crate::{OpenOptions, Opened};
use packfs_core::{Error, Image, Limits, Progress, Result, Silent, shown_place};
use packfs_format::{Opening, Volume};
use packfs_read::CountedImage;
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{
    ArchivePlace, BlobFiles, EROFS, LayerKind, OciImage, OciImages, OciLayer, OciPlace,
};
use packfs_source::{Shape, TarInput};
use std::path::Path;
use std::sync::Arc;

/// Returns the place that a path names: one with a scheme, a folder with an image layout, or an
/// archive with images; `None` for any other path.
///
/// Errors: `Usage` for a reference that is none; `Io`.
pub fn place_of(path: &Path, limits: Limits) -> Result<Option<OciPlace>> {
    let named = OciPlace::of(path)?;
    if named.is_some() || !path.is_file() || !packfs_source::holds_container_image(path, limits)? {
        return Ok(named);
    }
    Ok(Some(OciPlace::Archive(ArchivePlace { path: path.into(), pin: None })))
}

impl OpenOptions {
    /// Opens the only layer of an OCI image where it is; `None` for a path that names none.
    ///
    /// Errors: `Unsupported` for layers that are no image together; those of opening the image.
    pub(crate) fn oci_bytes(&self, path: &Path) -> Result<Option<BytesWithWarnings>> {
        let Some(place) = place_of(path, self.own_limits())? else { return Ok(None) };
        let image = image(&place, &self.remote, self.own_limits(), true, &Silent)?;
        match &image.layers[..] {
            [layer] if is_readable(layer) => Ok(Some((chunks::open(layer)?, self.told(image.choice)))),
            layers => Err(not_mountable(path, layers)),
        }
    }

    /// Opens the layers of an OCI image where they are, EROFS layers over each other; `None` for a
    /// path that names none.
    ///
    /// Errors: as [`OpenOptions::oci_bytes`]; `Usage` for options of a single image.
    pub(crate) fn open_oci(&self, path: &Path) -> Result<Option<Opened>> {
        let Some(place) = place_of(path, self.own_limits())? else { return Ok(None) };
        let image = image(&place, &self.remote, self.own_limits(), true, &Silent)?;
        let opened = match &image.layers[..] {
            [layer] if is_readable(layer) => self.open_image(chunks::open(layer)?)?,
            layers @ [_, _, ..] if layers.iter().all(is_readable) => {
                if self.wants_one_image() {
                    let error = Error::usage(format!(
                        "cannot open {} with an offset or root hash: it has {} layers",
                        shown_place(path),
                        layers.len()
                    ));
                    return Err(error.hint("packfs pack makes one image of them"));
                }
                self.open_merged(layers)?
            }
            layers => return Err(not_mountable(path, layers)),
        };
        Ok(Some(opened.within(self.told(image.choice))))
    }

    /// Returns warnings: the choice of an image, and a cache that is not used.
    fn told(&self, choice: Option<String>) -> Vec<String> {
        choice.into_iter().chain(self.remote.cache_warning()).collect()
    }

    /// Opens EROFS layers over each other.
    fn open_merged(&self, layers: &[OciLayer]) -> Result<Opened> {
        let images = each(layers, |_, layer| {
            layer.check_role()?;
            Ok(self.decompressed(chunks::open(layer)?)?.0)
        })?;
        let Some(first) = images.first() else { return Err(Error::failed("internal: no layers")) };
        // Layers of a registry share counters of transfers, so the first has those of all.
        let first = CountedImage::new(Arc::clone(first));
        let volumes = each(layers, |index, layer| {
            let image: Arc<dyn Image> = match index {
                0 => Arc::clone(&first) as _,
                _ => first.beside(Arc::clone(&images[index])) as _,
            };
            let Some(format) = packfs_formats::probe(&*image)?.filter(|it| it.name() == EROFS) else {
                return Err(Error::unsupported(
                    "image",
                    "it is no EROFS image, as layers over each other are",
                ));
            };
            let volume = format.open_with(Arc::clone(&image), Opening::default())?;
            let image = volume.data_image().unwrap_or(image);
            Ok((format, LayerVolume { name: layer.name(), volume, image, start: 0 }))
        })?;
        let Some(&(format, _)) = volumes.first() else { return Err(Error::failed("internal: no layers")) };
        let volumes = volumes.into_iter().map(|(_, volume)| volume).collect();
        let volume = Arc::new(MergedVolume::new(volumes, self.own_limits())?);
        let warnings = volume.warnings();
        let opened = self.opened(volume.image(), first, format, volume)?.within(warnings);
        self.with.check_taken(&opened)?;
        Ok(opened)
    }
}

/// Layers that are opened at once.
const PARALLEL: usize = 8;

/// Opens layers, several at once: each waits for its own requests.
///
/// Errors: that of the lowest layer that cannot be opened.
fn each<R: Send>(layers: &[OciLayer], open: impl Fn(usize, &OciLayer) -> Result<R> + Sync) -> Result<Vec<R>> {
    let mut done = Vec::with_capacity(layers.len());
    for some in layers.chunks(PARALLEL) {
        let first = done.len();
        let open = &open;
        let opened: Vec<Result<R>> = std::thread::scope(|scope| {
            let threads = (first..).zip(some).map(|(index, layer)| scope.spawn(move || open(index, layer)));
            let threads: Vec<_> = threads.collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        for (layer, opened) in some.iter().zip(opened) {
            done.push(opened.map_err(|error| error.at(format!("layer {}", layer.name())))?);
        }
    }
    Ok(done)
}

/// True for a layer that can be read where it is.
fn is_readable(layer: &OciLayer) -> bool {
    layer.kind.is_mountable() || layer.kind == LayerKind::ErofsZstd
}

fn not_mountable(path: &Path, layers: &[OciLayer]) -> Error {
    let (count, has_tar) = (layers.len(), layers.iter().any(|it| it.kind == LayerKind::Tar));
    let what = match (has_tar, count) {
        (true, 1) => "its layer is a tar archive".to_owned(),
        (true, _) => format!("its {count} layers are tar archives, or some of them"),
        (false, _) => format!("its {count} layers are not the bytes of one image"),
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
    OciImages::in_files(archive_files(archive, limits, progress)?, archive.pin.as_ref())
}

/// Looks through an archive.
///
/// Errors: those of tar archives.
pub(super) fn archive_files(
    archive: &ArchivePlace,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<Arc<dyn BlobFiles>> {
    let input = TarInput::File(archive.path.clone());
    let loaded = packfs_source::load_tar_within(input, &Shape::default(), limits, progress)?;
    Ok(packfs_remote::oci::archive_files(&archive.path, loaded.tree, loaded.contents))
}
