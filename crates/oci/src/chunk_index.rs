//! Chunk index of a layer (erofs-image-spec, section 3.4), as bytes.

use packfs_core::{Error, Result, to_hex};
use packfs_remote::oci::{ChunkIndexBytes, Hashing};
use std::ops::Range;

const MAGIC: [u8; 4] = [0xcd, 0xe4, 0xec, 0x67];
const HEADER_LEN: usize = 32;
/// Lengths of the checksums SHA-256 and SHA-512.
const CHECKSUM_LENS: [usize; 2] = [32, 64];
/// Longest chunk that is read by itself, stored and decoded.
pub(crate) const CHUNK_LEN_MAX: u64 = 64 << 20;

/// Chunks of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Index {
    /// Length of the decoded layer.
    pub len: u64,
    pub is_zstd: bool,
    /// In the order of decoded bytes.
    pub chunks: Vec<Chunk>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub stored: Range<u64>,
    pub decoded: Range<u64>,
    /// SHA-256 or SHA-512 of the stored bytes; empty if there is none.
    pub checksum: Box<[u8]>,
}

impl Chunk {
    /// True if stored bytes have the checksum of the chunk, or if it has none.
    pub(crate) fn is_of(&self, stored: &[u8]) -> bool {
        let mut hashing = match self.checksum.len() {
            0 => return true,
            len if len == CHECKSUM_LENS[0] => Hashing::sha256(),
            _ => Hashing::Sha512(Box::default()),
        };
        hashing.update(stored);
        hashing.finish().parts().1 == to_hex(&self.checksum)
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    // Callers pass whole headers and entries.
    bytes.get(at..at + 8).and_then(|it| it.try_into().ok()).map_or(0, u64::from_le_bytes)
}
impl Index {
    /// Parses an index; `None` for one that is of no use: of another version, with chunks that are
    /// too long, or of bytes that are neither compressed nor verified.
    ///
    /// Errors: `Corrupt`.
    pub(crate) fn parse(found: &ChunkIndexBytes, is_zstd: bool) -> Result<Option<Self>> {
        let corrupt = |fault: String| Error::corrupt("chunk index", fault);
        let Some((header, rows)) = found.bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(corrupt(format!("{} bytes; a header has {HEADER_LEN}", found.bytes.len())));
        };
        if header[..4] != MAGIC {
            return Err(corrupt(format!("magic {:02x?}, {MAGIC:02x?} is expected", &header[..4])));
        }
        let [version, compression, flags @ ..] = [header[4], header[5], header[6], header[7]];
        if version != 1 || compression > 1 || flags != [0, 0] {
            return Ok(None);
        }
        if (compression == 1) != is_zstd {
            return Err(corrupt(format!("compression {compression}, which the layer's media type is not")));
        }
        let (len, hash, hash_len) = (number(header, 8), header[20], usize::from(header[21]));
        let is_known = if hash == 1 { CHECKSUM_LENS.contains(&hash_len) } else { hash == 0 && hash_len == 0 };
        if !is_known || header[22..] != [0; 10] {
            return Err(corrupt(format!("hash {hash} of {hash_len} bytes, or reserved bytes that are set")));
        }
        let count = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
        let row_len = 16 + hash_len;
        if rows.len() as u64 != u64::from(count) * row_len as u64 || (count == 0) != (len == 0) {
            let fault = format!("{} bytes of entries for {count} chunks of {len} bytes", rows.len());
            return Err(corrupt(fault));
        }
        if !is_zstd && hash == 0 {
            return Ok(None);
        }
        let rows: Vec<&[u8]> = rows.chunks_exact(row_len).collect();
        let mut chunks = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let next = rows.get(index + 1);
            let decoded = number(row, 8)..next.map_or(len, |next| number(next, 8));
            let decoded_len = decoded.end.checked_sub(decoded.start).filter(|&len| len > 0);
            let start = number(row, 0);
            let end = match (is_zstd, next) {
                (true, Some(next)) => number(next, 0),
                (true, None) => found.blob_end,
                (false, _) => start.saturating_add(decoded_len.unwrap_or(0)),
            };
            let is_first_right = index > 0 || decoded.start == 0;
            if decoded_len.is_none() || !is_first_right || start >= end || end > found.blob_end {
                let fault = format!(
                    "chunk {index}: stored bytes {start} to {end} of {}, decoded bytes {} to {} of {len}",
                    found.blob_end, decoded.start, decoded.end
                );
                return Err(corrupt(fault));
            }
            if decoded_len.is_some_and(|len| len > CHUNK_LEN_MAX) || end - start > CHUNK_LEN_MAX {
                return Ok(None);
            }
            let checksum = row.get(16..).unwrap_or_default().into();
            chunks.push(Chunk { stored: start..end, decoded, checksum });
        }
        Ok(Some(Index { len, is_zstd, chunks }))
    }

    /// Returns the numbers of the chunks that a range of decoded bytes lies in.
    pub(crate) fn covering(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.chunks.partition_point(|chunk| chunk.decoded.end <= range.start);
        let end = self.chunks.partition_point(|chunk| chunk.decoded.start < range.end);
        first..end.max(first)
    }

    /// Returns the bytes of an index whose chunks have SHA-256 checksums.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, u8::from(self.is_zstd), 0, 0]);
        bytes.extend(self.len.to_le_bytes());
        bytes.extend((self.chunks.len() as u32).to_le_bytes());
        bytes.extend([1, CHECKSUM_LENS[0] as u8]);
        bytes.resize(HEADER_LEN, 0);
        for chunk in &self.chunks {
            bytes.extend(chunk.stored.start.to_le_bytes());
            bytes.extend(chunk.decoded.start.to_le_bytes());
            bytes.extend(&*chunk.checksum);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::ErrorKind;

    /// Returns an index of chunks without checksums: stored and decoded offsets.
    fn index(compression: u8, len: u64, rows: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, compression, 0, 0]);
        bytes.extend(len.to_le_bytes());
        bytes.extend((rows.len() as u32).to_le_bytes());
        bytes.resize(HEADER_LEN, 0);
        for (stored, decoded) in rows {
            bytes.extend(stored.to_le_bytes());
            bytes.extend(decoded.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: Vec<u8>, blob_end: u64, is_zstd: bool) -> Result<Option<Index>> {
        Index::parse(&ChunkIndexBytes { bytes, blob_end }, is_zstd)
    }

    #[test]
    fn written_indexes_are_read() {
        let chunk = |stored, decoded| Chunk { stored, decoded, checksum: Box::new([7; 32]) };
        let chunks = vec![chunk(0..40, 0..60), chunk(40..90, 60..100)];
        let zstd = Index { len: 100, is_zstd: true, chunks };
        assert_eq!(parse(zstd.to_bytes(), 90, true).unwrap().unwrap(), zstd);
        let plain = Index { len: 90, is_zstd: false, chunks: vec![chunk(0..90, 0..90)] };
        assert_eq!(parse(plain.to_bytes(), 90, false).unwrap().unwrap(), plain);
        let empty = Index { len: 0, is_zstd: true, chunks: vec![] };
        assert_eq!(parse(empty.to_bytes(), 0, true).unwrap().unwrap(), empty);
    }

    #[test]
    fn wrong_indexes_are_refused() {
        let good = index(1, 100, &[(0, 0), (40, 60)]);
        assert_eq!(parse(good.clone(), 90, true).unwrap().unwrap().chunks.len(), 2);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for bytes in [
            Vec::new(),
            with(0, 0),
            with(20, 1),
            with(20, 2),
            with(21, 32),
            with(31, 1),
            with(16, 3),
            good[..good.len() - 1].to_vec(),
            index(0, 100, &[(0, 0)]),
            index(1, 100, &[]),
            index(1, 0, &[(0, 0)]),
            index(1, 100, &[(0, 1)]),
            index(1, 100, &[(0, 0), (40, 0)]),
            index(1, 100, &[(0, 0), (40, 101)]),
            index(1, 100, &[(40, 0), (40, 60)]),
            index(1, 100, &[(0, 0), (91, 60)]),
            index(1, u64::MAX, &[(0, 0), (u64::MAX, u64::MAX)]),
        ] {
            let error = parse(bytes.clone(), 90, true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}: {error}");
        }
        // Other versions and long chunks are read as if there was no index.
        for bytes in [with(4, 2), with(5, 2), with(6, 1), index(1, 1 << 40, &[(0, 0)])] {
            assert!(parse(bytes, 90, true).unwrap().is_none());
        }
        assert!(parse(index(0, 90, &[(0, 0)]), 90, false).unwrap().is_none());
    }
}
