//! LZMA as makers of devices had it in 4.0 before squashfs-tools did: under the same codec number, without the length.
//!
//! Owns the decision between the two framings, made once for an image, on its first compressed block of inodes.

use crate::disk::{METADATA_HEADER_LEN, SQUASHFS_METADATA_SIZE, metadata_header_parts};
use crate::metadata::Region;
use packfs_codec::Decoders;
use packfs_core::codec::Algorithm;
use packfs_core::{Image, Result};

/// Blocks that are looked at for a compressed one.
const BLOCKS_MAX: u32 = 32;

/// The framing that an image with this codec has; only LZMA has two.
pub(crate) fn framing(image: &dyn Image, algorithm: Algorithm, inodes: &Region) -> Result<Algorithm> {
    if algorithm != Algorithm::LzmaAlone {
        return Ok(algorithm);
    }
    let mut at = inodes.start;
    for _ in 0..BLOCKS_MAX {
        let mut stored = [0; METADATA_HEADER_LEN + SQUASHFS_METADATA_SIZE];
        let readable = inodes.end.saturating_sub(at).min(stored.len() as u64) as usize;
        image.read_exact_at(at, &mut stored[..readable])?;
        let (len, compressed) = metadata_header_parts(u16::from_le_bytes([stored[0], stored[1]]));
        let end = METADATA_HEADER_LEN + usize::from(len);
        let Some(block) = stored[..readable].get(METADATA_HEADER_LEN..end) else { break };
        if compressed {
            let mut room = [0; SQUASHFS_METADATA_SIZE];
            let mut decoders = Decoders::new();
            let mut decodes = |algorithm| decoders.decompress(algorithm, block, &mut room).is_ok();
            // A damaged block is told where it is read.
            let is_vendors = !decodes(algorithm) && decodes(Algorithm::LzmaProps);
            return Ok(if is_vendors { Algorithm::LzmaProps } else { algorithm });
        }
        at += end as u64;
    }
    Ok(algorithm)
}
