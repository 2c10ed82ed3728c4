//! LZMA of vendors that used it in 4.0 before squashfs-tools did: with the same codec number,
//! without the length.
//!
//! Owns the decision between the two framings, made once for an image, on its first compressed
//! block of inodes.

use crate::v4::disk::HEADER_FORM;
use crate::{Region, SQUASHFS_METADATA_SIZE, first_compressed};
use packfs_codec::Algorithm;
use packfs_codec::Decoders;
use packfs_core::{Image, Result};

/// Returns the framing of an image with this codec; only LZMA has two.
pub(crate) fn framing(image: &dyn Image, algorithm: Algorithm, inodes: &Region) -> Result<Algorithm> {
    if algorithm != Algorithm::LzmaAlone {
        return Ok(algorithm);
    }
    let Some(block) = first_compressed(image, HEADER_FORM, inodes)? else { return Ok(algorithm) };
    let mut room = [0; SQUASHFS_METADATA_SIZE];
    let mut decoders = Decoders::new();
    let mut decodes = |algorithm| decoders.decompress(algorithm, &block, &mut room).is_ok();
    // A damaged block is reported where it is read.
    let is_vendors = !decodes(algorithm) && decodes(Algorithm::LzmaProps);
    Ok(if is_vendors { Algorithm::LzmaProps } else { algorithm })
}
