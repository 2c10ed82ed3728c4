//! Disks that are compressed as a whole, such as `disk.img.xz`: decoded into a temporary file, then
//! opened like any image. The kind of a compressed file is told by its decoded beginning.

use crate::Layer;
use packfs_core::{ErrorKind, FileImage, Image, ImageReader, Limits, Progress, Result, usize_of};
use packfs_source::Compression;
use std::path::Path;
use std::sync::Arc;

/// Decoded bytes that tell the kind: magics of all formats are within them.
const BEGINNING_LEN: usize = 256 << 10;
/// First bytes that tell a compression.
const MAGIC_LEN: usize = 16;

/// Name of the decoded file, as layers have it.
const FILE_NAME: &str = "disk.img";

/// Contents of a compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// An image of a known format, or a disk.
    Image,
    /// An archive, or anything else.
    Other,
}

pub(crate) fn magic(image: &dyn Image) -> Option<Compression> {
    let mut magic = [0; MAGIC_LEN];
    let len = image.read_at(0, &mut magic).unwrap_or(0);
    packfs_source::compression_of(&magic[..len])
}

/// Returns true if a file holds a compressed image, and no archive. What cannot be decoded is none.
///
/// Errors: `Cancelled`, `Io`.
pub(crate) fn holds_image(image: &Arc<dyn Image>, limits: Limits, progress: &dyn Progress) -> Result<bool> {
    Ok(magic(&**image).is_some() && contents(image, limits, progress)? == Contents::Image)
}

fn contents(image: &Arc<dyn Image>, limits: Limits, progress: &dyn Progress) -> Result<Contents> {
    let reader = Box::new(ImageReader::new(Arc::clone(image)));
    let decoded = packfs_source::decoded_beginning(reader, &image.name(), limits, BEGINNING_LEN, progress);
    let beginning = match decoded {
        Ok(beginning) => beginning,
        Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Io) => return Err(error),
        Err(_) => return Ok(Contents::Other),
    };
    if packfs_source::looks_like_archive(&beginning) {
        return Ok(Contents::Other);
    }
    let is_known = packfs_formats::probe(&Beginning(beginning))?.is_some();
    Ok(if is_known { Contents::Image } else { Contents::Other })
}

/// The image itself, or the one that it holds compressed. What is no image stays as it is, for
/// opening it to refuse.
///
/// Errors: `Corrupt` if it cannot be decoded, `Limit` if it decodes to more than is allowed,
/// `Cancelled`, `Io`.
pub(crate) fn decompressed(
    image: Arc<dyn Image>,
    limits: Limits,
    progress: &dyn Progress,
) -> Result<(Arc<dyn Image>, Vec<Layer>)> {
    let Some(compression) = magic(&*image) else { return Ok((image, Vec::new())) };
    let is_known = packfs_formats::probe(&*image)?.is_some();
    if is_known || contents(&image, limits, progress)? == Contents::Other {
        return Ok((image, Vec::new()));
    }
    let layers = vec![Layer { format: compression.name(), file: FILE_NAME.into() }];
    let (name, folder) = (image.name(), packfs_pack::temporary_folder());
    let reader = Box::new(ImageReader::new(image));
    let file = packfs_source::decoded_file(reader, &name, limits, &folder, progress)?;
    let shown = format!("{} (decompressed)", name.trim_matches('"'));
    Ok((Arc::new(FileImage::of(file, Path::new(&shown))?), layers))
}

/// The beginning of a disk of unknown length.
struct Beginning(Vec<u8>);

impl Image for Beginning {
    fn len(&self) -> u64 {
        1 << 50
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let stored = self.0.get(usize_of(offset)..).unwrap_or_default();
        let len = stored.len().min(buf.len());
        buf[..len].copy_from_slice(&stored[..len]);
        buf[len..].fill(0);
        Ok(buf.len())
    }

    fn name(&self) -> String {
        "beginning".into()
    }
}
