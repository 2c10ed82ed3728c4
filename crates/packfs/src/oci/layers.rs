//! Layers as trees: verified, decoded, and put over each other.

use super::open::{image, place_of};
use crate::OpenOptions;
use packfs_core::{Contents, Error, FileImage, Image, ImageReader, Progress, Result, ResultExt};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Digest, LayerKind, OciLayer, Verified};
use packfs_source::{Loaded, Notes, OF_LOWER_LAYER, Shape, TarInput, Whiteouts, stack};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Loads all layers of an image as one tree, with whiteouts applied.
///
/// Errors: those of opening the image; `Corrupt` for a layer that is not that of its digest;
/// `Unsupported` for a layer of an unknown kind; those of tar archives.
pub(crate) fn load(
    path: &Path,
    opening: &OpenOptions,
    shape: &Shape,
    progress: &dyn Progress,
) -> Result<Loaded> {
    let place = place_of(path, opening.own_limits())?;
    let place = place.ok_or_else(|| Error::failed(format!("cannot open {path:?}: it is no OCI image")))?;
    let remote = once(&opening.remote);
    let image = image(&place, &remote, opening.own_limits(), false, progress)?;
    image.choice.iter().for_each(|choice| progress.warn(choice));
    let mut trees = Vec::with_capacity(image.layers.len());
    for layer in &image.layers {
        trees.push(tree_of(layer, opening, progress)?);
    }
    let stacked = stack(trees, shape.implied.meta(shape.mtime_max), opening.own_limits())?;
    let mut loaded = packfs_source::shape_tree(&stacked.tree, stacked.contents, shape)?;
    loaded.notes.implied = stacked.notes.implied;
    loaded.notes.replaced_links = stacked.notes.replaced_links;
    Ok(loaded)
}

/// Returns options for blobs that are read once, from start to end: they would only evict others
/// from the disk cache, which offline reading needs.
pub(super) fn once(remote: &RemoteOptions) -> RemoteOptions {
    let cache_len = if remote.is_offline { remote.cache_len } else { 0 };
    RemoteOptions { cache_len, ..remote.clone() }
}

/// Loads a layer, with whiteouts as overlayfs has them. Directories that a tar archive does not
/// describe have the metadata [`OF_LOWER_LAYER`].
///
/// Errors: as [`load`].
pub(super) fn tree_of(layer: &OciLayer, opening: &OpenOptions, progress: &dyn Progress) -> Result<Loaded> {
    let loaded = match layer.kind {
        LayerKind::Tar => of_tar(layer, opening, progress),
        LayerKind::Erofs | LayerKind::ErofsZstd | LayerKind::Other => layer
            .check_role()
            .and_then(|()| verified_image(layer, progress))
            .and_then(|image| of_image(layer, image, opening, progress)),
        LayerKind::Foreign => Err(Error::unsupported(
            format!("layer {}", layer.name()),
            "registries do not distribute it (nondistributable)",
        )),
        LayerKind::ChunkIndex => Err(Error::failed("internal: an index of chunks has no files")),
    };
    loaded.map_err(|error| error.at(format!("layer {}", layer.name())))
}

fn of_tar(layer: &OciLayer, opening: &OpenOptions, progress: &dyn Progress) -> Result<Loaded> {
    let name = format!("layer {}", layer.name());
    let limits = opening.own_limits();
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
pub(super) fn of_image(
    layer: &OciLayer,
    image: Arc<dyn Image>,
    opening: &OpenOptions,
    progress: &dyn Progress,
) -> Result<Loaded> {
    if let (LayerKind::ErofsZstd, Some(id)) = (layer.kind, &layer.diff_id) {
        let name = format!("layer {}", layer.name());
        let blob = Box::new(ImageReader::new(Arc::clone(&image)));
        let decoded = packfs_source::decoded_stream(blob, &name, opening.own_limits())?;
        let decoded = Verified::new(decoded, id.clone(), None, format!("decoded {name}"));
        Shared::new(Box::new(decoded)).drain(&name, progress)?;
    }
    let options = OpenOptions::new().jobs(opening.read.jobs).limits(opening.own_limits());
    let opened = options.open_image(image)?;
    opened.warnings().iter().for_each(|warning| progress.warn(warning));
    let loaded = opened.load(progress)?;
    let contents: Arc<dyn Contents> = Arc::clone(opened.engine()) as _;
    Ok(Loaded { tree: loaded.tree, contents, notes: Notes::default() })
}

/// Copies a blob to an unnamed file, verified.
///
/// Errors: `Corrupt` for another digest, `Io`, `Cancelled`.
pub(super) fn verified_image(layer: &OciLayer, progress: &dyn Progress) -> Result<Arc<dyn Image>> {
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

/// Returns the error of this program inside that of a reader.
fn inner(error: io::Error, name: &str) -> Error {
    match error.get_ref().and_then(|source| source.downcast_ref::<Error>()) {
        Some(error) => error.clone(),
        None => Error::io(format!("cannot read {name}"), error),
    }
}
