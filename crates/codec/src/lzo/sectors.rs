//! LZO1X as stored by btrfs (layout in `fs/btrfs/lzo.c` of Linux).
//!
//! A 32-bit little-endian length of all stored bytes, including itself, then segments: a 32-bit
//! length and a stream, which decodes to one sector, the last one to at most that. The length of a
//! segment does not cross a sector of the stored bytes: if fewer than four bytes of a sector are
//! left, the segment begins in the next.

use super::coders::decode_error;
use super::decode;
use crate::coders::completed;
use crate::{DecodeError, Decoder};

const LEN_LEN: usize = 4;
/// Shortest and longest sectors of btrfs, in bytes.
const SECTOR_LENS: std::ops::RangeInclusive<usize> = 2 << 10..=64 << 10;

/// Decodes the segments of an extent; the first one determines the length of a sector.
pub(super) struct Sectors;

impl Decoder for Sectors {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let len = segments(src, dst)?;
        Ok(completed(dst, len))
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.decompress(src, dst)
    }
}

fn word(src: &[u8], at: usize) -> Result<usize, DecodeError> {
    let word = src.get(at..).and_then(|rest| rest.first_chunk());
    let len = word.ok_or(DecodeError::Corrupt("LZO segment begins after the end"))?;
    Ok(u32::from_le_bytes(*len) as usize)
}

/// Decodes segments until `dst` is full or they end; returns the decoded length.
fn segments(src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
    let end = word(src, 0)?;
    if end > src.len() || end < LEN_LEN {
        return Err(DecodeError::Corrupt("length of the LZO segments beyond the stored bytes"));
    }
    let mut read = LEN_LEN;
    let mut written = 0;
    let mut sector_len = None;
    while read < end && written < dst.len() {
        if let Some(sector_len) = sector_len {
            let left = sector_len - read % sector_len;
            read += if left < LEN_LEN { left } else { 0 };
            if read >= end {
                break;
            }
        }
        let start = read + LEN_LEN;
        let len = word(&src[..end], read)?;
        let segment = start.checked_add(len).and_then(|next| src.get(start..next));
        let segment = segment.ok_or(DecodeError::Corrupt("LZO segment ends after the stored bytes"))?;
        let room = (dst.len() - written).min(sector_len.unwrap_or(*SECTOR_LENS.end()));
        let decoded =
            decode::decompress_prefix(segment, &mut dst[written..][..room]).map_err(decode_error)?;
        read = start + len;
        written += decoded;
        if read >= end {
            break;
        }
        let known = *sector_len.get_or_insert(decoded);
        if decoded != known && written < dst.len() {
            return Err(DecodeError::Corrupt("LZO segment shorter than a sector before the last"));
        }
        if !known.is_power_of_two() || !SECTOR_LENS.contains(&known) {
            return Err(DecodeError::Corrupt("LZO segment of another length than a sector"));
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lzo::{Compressor, LzoVariant};

    /// Segments of `plain` as the kernel writes them.
    fn stored(plain: &[u8], sector_len: usize) -> Vec<u8> {
        let mut encoder = Compressor::new(LzoVariant::X1, 1);
        let mut out = vec![0; LEN_LEN];
        for sector in plain.chunks(sector_len) {
            let mut room = vec![0; 2 * sector_len];
            let len = encoder.compress(sector, &mut room).unwrap();
            let left = sector_len - out.len() % sector_len;
            if left < LEN_LEN {
                out.resize(out.len() + left, 0);
            }
            out.extend((len as u32).to_le_bytes());
            out.extend_from_slice(&room[..len]);
        }
        let len = out.len() as u32;
        out[..LEN_LEN].copy_from_slice(&len.to_le_bytes());
        out.resize(out.len().next_multiple_of(sector_len), 0);
        out
    }

    fn plain(len: usize) -> Vec<u8> {
        (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24 & 0x3f) as u8).collect()
    }

    #[test]
    fn decodes_sectors_of_any_length_and_completes_with_zeros() {
        for sector_len in [2 << 10, 4 << 10, 64 << 10] {
            for len in [1, 100, sector_len, 5 * sector_len + 17, 128 << 10] {
                let plain = plain(len);
                let stored = stored(&plain, sector_len);
                let mut out = vec![7; len.next_multiple_of(4096)];
                assert_eq!(Sectors.decompress(&stored, &mut out), Ok(out.len()), "{sector_len} {len}");
                assert!(out.starts_with(&plain) && out[len..].iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn lengths_never_cross_a_sector() {
        let mut noise = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        })
        .take(4096)
        .collect();
        let mut crossing = 0;
        for len in 0..200 {
            let first = [&vec![0; len], &noise[len..]].concat();
            let mut room = vec![0; 16 << 10];
            let end = Compressor::new(LzoVariant::X1, 1).compress(&first, &mut room).unwrap() + 2 * LEN_LEN;
            crossing += usize::from((4093..4096).contains(&end));
            let plain = [first, plain(5000)].concat();
            let mut out = vec![0; plain.len()];
            Sectors.decompress(&stored(&plain, 4096), &mut out).unwrap();
            assert!(out == plain, "{len}");
        }
        assert!(crossing > 0);
    }

    #[test]
    fn refuses_lengths_beyond_the_stored_bytes() {
        let sound = stored(&plain(9000), 4096);
        let mut out = vec![0; 12 << 10];
        assert!(Sectors.decompress(&sound, &mut out).is_ok());
        for (at, value) in [(0, 0), (0, 1 << 20), (4, 1 << 20), (4, u32::MAX), (4, 3)] {
            let mut damaged = sound.clone();
            damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(Sectors.decompress(&damaged, &mut out).is_err(), "{value} at {at}");
        }
        assert!(Sectors.decompress(&[], &mut out).is_err());
    }
}
