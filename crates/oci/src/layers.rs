//! Layers as trees: verified, decoded, and put over each other.

use crate::images::image;
use packfs_core::{Error, FileImage, Image, ImageReader, Limits, Progress, Result, ResultExt};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Digest, LayerKind, OciLayer, OciPlace, Verified, inner};
use packfs_source::{Loaded, OF_LOWER_LAYER, Shape, TarInput, Whiteouts, stack};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Way from a layer to its tree.
pub struct Loading<'a> {
    /// Limits of archives.
    pub limits: Limits,
    /// Opens a layer that is an image, and loads its tree.
    pub image: &'a dyn Fn(Arc<dyn Image>) -> Result<Loaded>,
}

/// Loads all layers of an image as one tree, with whiteouts applied.
///
/// Errors: those of opening the image; `Corrupt` for a layer that is not that of its digest;
/// `Unsupported` for a layer of an unknown kind; those of tar archives.
pub fn load(
    place: &OciPlace,
    remote: &RemoteOptions,
    loading: &Loading<'_>,
    shape: &Shape,
    progress: &dyn Progress,
) -> Result<Loaded> {
    let image = image(place, &once(remote), loading.limits, false, progress)?;
    image.choice.iter().for_each(|choice| progress.warn(choice));
    let mut trees = Vec::with_capacity(image.layers.len());
    for layer in &image.layers {
        trees.push(tree_of(layer, loading, progress)?);
    }
    let stacked = stack(trees, shape.implied.meta(shape.mtime_max), loading.limits)?;
    let mut loaded = packfs_source::shape_tree(&stacked.tree, stacked.contents, shape)?;
    loaded.notes.implied = stacked.notes.implied;
    loaded.notes.replaced_links = stacked.notes.replaced_links;
    Ok(loaded)
}

/// Returns options for blobs that are read once, from start to end: they would only evict others
/// from the disk cache, which offline reading needs.
pub fn once(remote: &RemoteOptions) -> RemoteOptions {
    let cache_len = if remote.is_offline { remote.cache_len } else { 0 };
    RemoteOptions { cache_len, ..remote.clone() }
}

/// Loads a layer, with whiteouts as overlayfs has them. Directories that a tar archive does not
/// describe have the metadata [`OF_LOWER_LAYER`].
///
/// Errors: as [`load`].
pub fn tree_of(layer: &OciLayer, loading: &Loading<'_>, progress: &dyn Progress) -> Result<Loaded> {
    let loaded = match layer.kind {
        LayerKind::Tar => of_tar(layer, loading, progress),
        LayerKind::Erofs | LayerKind::ErofsZstd | LayerKind::Other => layer
            .check_role()
            .and_then(|()| verified_image(layer, progress))
            .and_then(|image| of_image(layer, image, loading, progress)),
        LayerKind::Foreign => Err(Error::unsupported(
            format!("layer {}", layer.name()),
            "registries do not distribute it (nondistributable)",
        )),
        LayerKind::ChunkIndex => Err(Error::failed("internal: an index of chunks has no files")),
    };
    loaded.map_err(|error| error.at(format!("layer {}", layer.name())))
}

fn of_tar(layer: &OciLayer, loading: &Loading<'_>, progress: &dyn Progress) -> Result<Loaded> {
    let name = format!("layer {}", layer.name());
    let limits = loading.limits;
    let blob = Shared::new(layer.reader()?);
    let (whiteouts, implied) = (Some(Whiteouts::Overlayfs), OF_LOWER_LAYER.into());
    let shape = Shape { whiteouts, implied, links_below: true, ..Shape::default() };
    let loaded = packfs_source::decoded_stream(Box::new(blob.clone()), &name, limits).and_then(|decoded| {
        let decoded: Box<dyn Read + Send> = match &layer.diff_id {
            Some(id) => Box::new(Verified::new(decoded, id.clone(), None, format!("decoded {name}"))),
            None => decoded,
        };
        let decoded = Shared::new(decoded);
        let spool_dir = packfs_pack::temporary_folder();
        let input = TarInput::Stream { reader: Box::new(decoded.clone()), name: name.clone(), spool_dir };
        let loaded = packfs_source::load_tar_within(input, &shape, limits, progress)?;
        decoded.drain(&name, progress)?;
        Ok(loaded)
    });
    // A blob that is not that of its digest explains whatever else is wrong with it.
    blob.drain(&name, progress)?;
    loaded
}

/// Loads a layer that is an image, verified as a whole.
pub fn of_image(
    layer: &OciLayer,
    image: Arc<dyn Image>,
    loading: &Loading<'_>,
    progress: &dyn Progress,
) -> Result<Loaded> {
    if let (LayerKind::ErofsZstd, Some(id)) = (layer.kind, &layer.diff_id) {
        let name = format!("layer {}", layer.name());
        let blob = Box::new(ImageReader::new(Arc::clone(&image)));
        let decoded = packfs_source::decoded_stream(blob, &name, loading.limits)?;
        let decoded = Verified::new(decoded, id.clone(), None, format!("decoded {name}"));
        Shared::new(Box::new(decoded)).drain(&name, progress)?;
    }
    (loading.image)(image)
}

/// Copies a blob to an unnamed file, verified.
///
/// Errors: `Corrupt` for another digest, `Io`, `Cancelled`.
pub fn verified_image(layer: &OciLayer, progress: &dyn Progress) -> Result<Arc<dyn Image>> {
    let name = format!("layer {}", layer.name());
    let folder = packfs_pack::temporary_folder();
    let cannot = || format!("cannot copy {name} to {folder:?}");
    let mut file = tempfile::tempfile_in(&folder).or_io(cannot)?;
    let (blob, mut part) = (layer.reader()?, vec![0; PART_LEN]);
    let mut blob: Box<dyn Read + Send> = match (&layer.diff_id, layer.is_plain()) {
        (Some(id), true) => Box::new(Verified::new(blob, Digest::clone(id), None, name.clone())),
        _ => blob,
    };
    loop {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        match blob.read(&mut part) {
            Ok(0) => break,
            Ok(len) => file.write_all(&part[..len]).or_io(cannot)?,
            Err(error) => return Err(inner(error, &name)),
        }
    }
    Ok(Arc::new(FileImage::of(file, Path::new(&layer.name()))?))
}

/// Bytes read at a time.
const PART_LEN: usize = 256 << 10;

/// Reader whose rest can be read after its user is gone.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Read + Send>>>);

impl Shared {
    fn new(reader: Box<dyn Read + Send>) -> Self {
        Shared(Arc::new(Mutex::new(reader)))
    }

    /// Reads to the end, where digests are compared.
    fn drain(mut self, name: &str, progress: &dyn Progress) -> Result<()> {
        let mut part = vec![0; PART_LEN];
        loop {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            match self.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(inner(error, name)),
            }
        }
    }
}

impl Read for Shared {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(buf)
    }
}
