//! Detection of an image's codec. Before 4.0 no superblock records it: zlib was the only one, until
//! vendors replaced it by LZMA in various framings.
//!
//! Owns the decision, made once for an image, on its first compressed metadata block. Blocks are
//! never detected one by one: that would turn damage into wrong data.

use crate::legacy::disk::Writer;
use crate::{HeaderForm, Region, SQUASHFS_METADATA_SIZE, first_compressed};
use packfs_codec::Algorithm;
use packfs_codec::Decoders;
use packfs_core::{Error, Image, Result};

/// Returns the possible codecs of a magic, the likely ones first.
fn candidates(writer: Writer) -> [Algorithm; 6] {
    use Algorithm::{LzmaBare, LzmaLenProps, LzmaPbLcLp, LzmaProps, Sqlzma, Zlib};
    match writer {
        Writer::Plain => [Zlib, LzmaProps, LzmaLenProps, LzmaBare, LzmaPbLcLp, Sqlzma],
        // Even if the first block is zlib, others may be LZMA.
        Writer::Sqlzma => [Sqlzma, LzmaProps, LzmaPbLcLp, LzmaBare, LzmaLenProps, Zlib],
        Writer::DdWrt => [LzmaPbLcLp, LzmaProps, LzmaBare, LzmaLenProps, Sqlzma, Zlib],
    }
}

/// Detects the codec of an image by its inode and directory tables.
///
/// Errors: `Unsupported` if the first compressed block has an unknown codec, `Io`.
pub(crate) fn recognise(
    image: &dyn Image,
    form: HeaderForm,
    writer: Writer,
    tables: [Region; 2],
) -> Result<Algorithm> {
    let candidates = candidates(writer);
    for table in tables {
        let Some(block) = first_compressed(image, form, &table)? else { continue };
        let mut decoders = Decoders::new();
        let mut room = vec![0; SQUASHFS_METADATA_SIZE];
        let mut decodes =
            |algorithm: Algorithm| decoders.decompress(algorithm, &block, &mut room).is_ok_and(|len| len > 0);
        if let Some(found) = candidates.into_iter().find(|&algorithm| decodes(algorithm)) {
            return Ok(found);
        }
        // A damaged block of a known codec is reported where it is read.
        let looks_like = |algorithm: &Algorithm| begins_like(*algorithm, &block);
        return candidates.into_iter().find(looks_like).ok_or_else(|| {
            Error::unsupported(
                "squashfs image",
                "its first block is neither zlib nor LZMA in a known framing",
            )
        });
    }
    Ok(candidates[0])
}

/// True if an undecodable block has the header of this codec.
fn begins_like(algorithm: Algorithm, block: &[u8]) -> bool {
    let Some(&[a, b, c, d]) = block.first_chunk() else { return false };
    let is_zlib = a & 0xf == 8 && (u16::from(a) << 8 | u16::from(b)).is_multiple_of(31);
    match algorithm {
        Algorithm::Zlib => is_zlib,
        Algorithm::Sqlzma => is_zlib || a == 0x5d && block.get(13) == Some(&0),
        Algorithm::LzmaPbLcLp => d == 0xff && a <= 4 && b <= 8 && c <= 4,
        Algorithm::LzmaProps => a == 0x5d && block.get(5) == Some(&0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_the_likely_codec_of_a_magic_first() {
        for (writer, first) in [
            (Writer::Plain, Algorithm::Zlib),
            (Writer::Sqlzma, Algorithm::Sqlzma),
            (Writer::DdWrt, Algorithm::LzmaPbLcLp),
        ] {
            let all = candidates(writer);
            assert_eq!(all[0], first);
            assert!(all.iter().all(|one| all.iter().filter(|other| *other == one).count() == 1));
        }
    }

    #[test]
    fn damaged_blocks_are_taken_for_what_they_begin_like() {
        assert!(begins_like(Algorithm::Zlib, &[0x78, 0xda, 9, 9]));
        assert!(!begins_like(Algorithm::Zlib, &[0x78, 0xdb, 9, 9]));
        assert!(begins_like(Algorithm::LzmaProps, &[0x5d, 0, 0, 1, 0, 0, 1]));
        assert!(begins_like(Algorithm::LzmaPbLcLp, &[2, 0, 0, 0xff]));
        assert!(!begins_like(Algorithm::LzmaPbLcLp, &[2, 9, 0, 0xff]));
        assert!(!begins_like(Algorithm::LzmaBare, &[0, 1, 2, 3]));
        assert!(!begins_like(Algorithm::Zlib, &[0x78]));
    }
}
