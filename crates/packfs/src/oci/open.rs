//! Images in registries, layouts, and archives, opened where they are.

use crate::place::BytesWithWarnings;
use crate::{OpenOptions, Opened};
use packfs_core::{Contents, Error, Image, Place, Progress, Result, Silent};
use packfs_format::{Health, Layer, Layered, Opening};
use packfs_oci::{Loading, image, is_readable, not_mountable, open_layer, place_of};
use packfs_read::CountedImage;
use packfs_remote::oci::{EROFS, OciLayer};
use packfs_source::{Loaded, Notes, Shape};
use std::path::Path;
use std::sync::Arc;

impl OpenOptions {
    /// Opens the only layer of an OCI image where it is; `None` for a path that names none.
    ///
    /// Errors: `Unsupported` for layers that are no image together; those of opening the image.
    pub(crate) fn oci_bytes(&self, path: Place<'_>) -> Result<Option<BytesWithWarnings>> {
        let Some(place) = place_of(path, self.own_limits())? else { return Ok(None) };
        let image = image(&place, &self.remote, self.own_limits(), true, &Silent)?;
        match &image.layers[..] {
            [layer] if is_readable(layer) => Ok(Some((open_layer(layer)?, self.told(image.choice)))),
            layers => Err(not_mountable(path, layers)),
        }
    }

    /// Opens the layers of an OCI image where they are, EROFS layers over each other; `None` for a
    /// path that names none.
    ///
    /// Errors: as [`OpenOptions::oci_bytes`]; `Usage` for options of a single image.
    pub(crate) fn open_oci(&self, path: Place<'_>) -> Result<Option<Opened>> {
        let Some(place) = place_of(path, self.own_limits())? else { return Ok(None) };
        let image = image(&place, &self.remote, self.own_limits(), true, &Silent)?;
        let opened = match &image.layers[..] {
            [layer] if is_readable(layer) => self.open_image(open_layer(layer)?)?,
            layers @ [_, _, ..] if layers.iter().all(is_readable) => {
                if self.wants_one_image() {
                    let error = Error::usage(format!(
                        "cannot open {} with an offset or root hash: it has {} layers",
                        path.shown(),
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

    /// Loads all layers of an OCI image as one tree.
    ///
    /// Errors: as [`packfs_oci::load`].
    pub(crate) fn load_oci(&self, path: &Path, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
        let limits = self.own_limits();
        let place = place_of(path, limits)?;
        let place =
            place.ok_or_else(|| Error::failed(format!("cannot open {path:?}: it is no OCI image")))?;
        let loading = Loading { limits, image: &|image| self.loaded_layer(image, progress) };
        packfs_oci::load(&place, &self.remote, &loading, shape, progress)
    }

    /// Opens a layer that is an image, and loads its tree.
    ///
    /// Errors: those of opening it.
    pub(crate) fn loaded_layer(&self, image: Arc<dyn Image>, progress: &dyn Progress) -> Result<Loaded> {
        let options = OpenOptions::new().jobs(self.read.jobs).limits(self.own_limits());
        let opened = options.open_image(image)?;
        opened.warnings().iter().for_each(|warning| progress.warn(warning));
        let loaded = opened.load(progress)?;
        let contents: Arc<dyn Contents> = Arc::clone(opened.engine()) as _;
        Ok(Loaded { tree: loaded.tree, contents, notes: Notes::default() })
    }

    /// Returns warnings: the choice of an image, and a cache that is not used.
    fn told(&self, choice: Option<String>) -> Vec<String> {
        choice.into_iter().chain(self.remote.cache_warning()).collect()
    }

    /// Opens EROFS layers over each other.
    fn open_merged(&self, layers: &[OciLayer]) -> Result<Opened> {
        let images = each(layers, |_, layer| {
            layer.check_role()?;
            Ok(self.decompressed(open_layer(layer)?)?.0)
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
            Ok((format, Layer::new(layer.name(), volume, image)))
        })?;
        let Some(&(format, _)) = volumes.first() else { return Err(Error::failed("internal: no layers")) };
        let volumes = volumes.into_iter().map(|(_, volume)| volume).collect();
        let volume = Arc::new(Layered::new(volumes, self.own_limits())?);
        let warnings = volume.warnings();
        let opened = self.opened(volume.image(), first, format, volume)?.within(warnings);
        self.check_taken(&opened)?;
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
