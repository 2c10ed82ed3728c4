//! Layers with a chunk index (erofs-image-spec, section 3.4): chunks are fetched when they are
//! read, verified, and decoded, so that a compressed layer is read where it is.

use packfs_codec::{Algorithm, decoder};
use packfs_core::{Error, Image, Result, usize_of};
use packfs_integrity::to_hex;
use packfs_remote::oci::{ChunkIndexBytes, Digest, LayerKind, OciLayer};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

const MAGIC: [u8; 4] = [0xcd, 0xe4, 0xec, 0x67];
const HEADER_LEN: usize = 32;
/// Longest chunk that is read by itself, stored and decoded.
const CHUNK_LEN_MAX: u64 = 64 << 20;
/// Bytes of decoded chunks that are held.
const HELD_LEN: usize = 32 << 20;

/// Opens a layer where it is: by its chunks if an index lists them.
///
/// Errors: `Corrupt` for an index that is wrong, and those of opening the blob.
pub(super) fn open(layer: &OciLayer) -> Result<Arc<dyn Image>> {
    let blob = layer.open()?;
    let Some(bytes) = layer.chunk_index(&*blob)? else { return Ok(blob) };
    let index = Index::parse(&bytes, layer.kind == LayerKind::ErofsZstd)?;
    match index {
        Some(index) => Ok(Arc::new(ChunkedImage { blob, index, held: Mutex::default() })),
        None => Ok(blob),
    }
}

/// Chunks of a layer.
#[derive(Debug)]
struct Index {
    /// Length of the decoded layer.
    len: u64,
    is_zstd: bool,
    /// In the order of decoded bytes.
    chunks: Vec<Chunk>,
}

#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    stored: Range<u64>,
    decoded: Range<u64>,
    /// Digest of the stored bytes.
    checksum: Option<Digest>,
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
    fn parse(found: &ChunkIndexBytes, is_zstd: bool) -> Result<Option<Self>> {
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
        if !matches!((hash, hash_len), (0, 0) | (1, 32 | 64)) || header[22..] != [0; 10] {
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
            let checksum = match row.get(16..).unwrap_or_default() {
                [] => None,
                digest if digest.len() == 32 => Some(format!("sha256:{}", to_hex(digest)).parse()?),
                digest => Some(format!("sha512:{}", to_hex(digest)).parse()?),
            };
            chunks.push(Chunk { stored: start..end, decoded, checksum });
        }
        Ok(Some(Index { len, is_zstd, chunks }))
    }

    /// Returns the numbers of the chunks that a range of decoded bytes lies in.
    fn covering(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.chunks.partition_point(|chunk| chunk.decoded.end <= range.start);
        let end = self.chunks.partition_point(|chunk| chunk.decoded.start < range.end);
        first..end.max(first)
    }
}

/// A layer as its chunks decode.
struct ChunkedImage {
    blob: Arc<dyn Image>,
    index: Index,
    /// Decoded chunks, the one decoded last at the end.
    held: Mutex<VecDeque<(usize, Arc<Vec<u8>>)>>,
}

impl ChunkedImage {
    fn chunk(&self, index: usize) -> Result<Arc<Vec<u8>>> {
        let lock = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().iter().find(|(held, _)| *held == index) {
            return Ok(Arc::clone(&found.1));
        }
        let decoded = Arc::new(self.decoded(index)?);
        let mut held = lock();
        held.push_back((index, Arc::clone(&decoded)));
        let mut len: usize = held.iter().map(|(_, bytes)| bytes.len()).sum();
        while len > HELD_LEN && held.len() > 1 {
            len -= held.pop_front().map_or(0, |(_, bytes)| bytes.len());
        }
        Ok(decoded)
    }

    fn decoded(&self, index: usize) -> Result<Vec<u8>> {
        let Some(chunk) = self.index.chunks.get(index) else { return Ok(Vec::new()) };
        let corrupt = |fault: String| Error::corrupt(format!("chunk {index} of {}", self.name()), fault);
        let mut stored = vec![0; usize_of(chunk.stored.end - chunk.stored.start)];
        self.blob.read_exact_at(chunk.stored.start, &mut stored)?;
        if chunk.checksum.as_ref().is_some_and(|checksum| checksum.found_in(&stored) != *checksum) {
            let fault = "its checksum is not that of the chunk index".to_owned();
            return Err(corrupt(fault).hint("fetch or build the image again"));
        }
        if !self.index.is_zstd {
            return Ok(stored);
        }
        let mut decoded = vec![0; usize_of(chunk.decoded.end - chunk.decoded.start)];
        let found = decoder(Algorithm::Zstd).decompress(&stored, &mut decoded);
        match found {
            Ok(len) if len == decoded.len() => Ok(decoded),
            Ok(len) => Err(corrupt(format!("it decodes to {len} bytes, {} are expected", decoded.len()))),
            Err(error) => Err(corrupt(error.to_string())),
        }
    }
}

impl Image for ChunkedImage {
    fn len(&self) -> u64 {
        self.index.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = self.index.len.saturating_sub(offset).min(buf.len() as u64);
        let range = offset..offset.saturating_add(len);
        let chunks = self.index.covering(&range);
        if chunks.len() > 1 {
            self.will_read(std::slice::from_ref(&range));
        }
        let mut filled = 0;
        for index in chunks {
            let chunk = self.chunk(index)?;
            let from = usize_of((offset + filled as u64) - self.index.chunks[index].decoded.start);
            let part = &chunk[from..];
            let part = &part[..part.len().min(usize_of(len) - filled)];
            buf[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        Ok(filled)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let chunks = ranges.iter().flat_map(|range| self.index.covering(range));
        let stored: Vec<_> = chunks.map(|index| self.index.chunks[index].stored.clone()).collect();
        self.blob.will_read(&stored);
    }

    fn fetched(&self) -> Option<packfs_core::Fetched> {
        self.blob.fetched()
    }

    fn name(&self) -> String {
        self.blob.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{ErrorKind, MemoryImage};
    use packfs_testkit::Random;

    /// Returns an index of chunks: stored and decoded offsets, and checksums.
    fn index(compression: u8, len: u64, hash_len: u8, rows: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, compression, 0, 0]);
        bytes.extend(len.to_le_bytes());
        bytes.extend((rows.len() as u32).to_le_bytes());
        bytes.extend([u8::from(hash_len > 0), hash_len]);
        bytes.extend([0; 10]);
        for (stored, decoded, checksum) in rows {
            bytes.extend(stored.to_le_bytes());
            bytes.extend(decoded.to_le_bytes());
            bytes.extend(checksum);
        }
        bytes
    }

    fn parse(bytes: Vec<u8>, blob_end: u64, is_zstd: bool) -> Result<Option<Index>> {
        Index::parse(&ChunkIndexBytes { bytes, blob_end }, is_zstd)
    }

    /// Returns compressed chunks and their index.
    fn compressed(parts: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (mut blob, mut rows, mut at) = (Vec::new(), Vec::new(), 0);
        for part in parts {
            let frame = zstd::encode_all(*part, 3).unwrap();
            let checksum = packfs_integrity::from_hex(Digest::of(&frame).parts().1).unwrap();
            rows.push((blob.len() as u64, at, checksum));
            blob.extend(frame);
            at += part.len() as u64;
        }
        let index = index(1, at, 32, &rows);
        (blob, index)
    }

    #[test]
    fn ranges_come_from_chunks_that_are_verified() {
        let bytes = Random::new(1).text(300_000);
        let (blob, index) = compressed(&[&bytes[..100_000], &bytes[100_000..100_001], &bytes[100_001..]]);
        let open = |blob: &[u8]| ChunkedImage {
            index: parse(index.clone(), blob.len() as u64, true).unwrap().unwrap(),
            blob: Arc::new(MemoryImage::new("blob", blob.to_vec())),
            held: Mutex::default(),
        };
        let image = open(&blob);
        assert_eq!(image.len(), 300_000);
        for range in [0..1, 99_999..100_002, 0..300_000, 250_000..300_000, 100_000..100_001] {
            let mut found = vec![0; range.len()];
            image.read_exact_at(range.start as u64, &mut found).unwrap();
            assert!(found == bytes[range.clone()], "{range:?}");
        }
        assert_eq!(image.read_at(299_999, &mut [0; 9]).unwrap(), 1);
        assert_eq!(image.read_at(u64::MAX, &mut [0; 9]).unwrap(), 0);
        let mut damaged = blob.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let image = open(&damaged);
        image.read_exact_at(0, &mut [0; 1000]).unwrap();
        let error = image.read_exact_at(299_999, &mut [0]).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("chunk 2"), "{error}");
    }

    #[test]
    fn wrong_indexes_are_refused() {
        let rows = |rows: &[(u64, u64)]| rows.iter().map(|row| (row.0, row.1, vec![])).collect::<Vec<_>>();
        let good = index(1, 100, 0, &rows(&[(0, 0), (40, 60)]));
        assert_eq!(parse(good.clone(), 90, true).unwrap().unwrap().chunks.len(), 2);
        assert_eq!(parse(index(1, 0, 0, &[]), 0, true).unwrap().unwrap().len, 0);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for bytes in [
            Vec::new(),
            with(0, 0),
            with(20, 1),
            with(21, 32),
            with(31, 1),
            with(16, 3),
            good[..good.len() - 1].to_vec(),
            index(0, 100, 0, &rows(&[(0, 0)])),
            index(1, 100, 0, &[]),
            index(1, 0, 0, &rows(&[(0, 0)])),
            index(1, 100, 0, &rows(&[(0, 1)])),
            index(1, 100, 0, &rows(&[(0, 0), (40, 0)])),
            index(1, 100, 0, &rows(&[(0, 0), (40, 101)])),
            index(1, 100, 0, &rows(&[(40, 0), (40, 60)])),
            index(1, 100, 0, &rows(&[(0, 0), (91, 60)])),
            index(1, u64::MAX, 0, &rows(&[(0, 0), (u64::MAX, u64::MAX)])),
        ] {
            let error = parse(bytes.clone(), 90, true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}: {error}");
        }
        // Other versions and long chunks are read as if there was no index.
        for bytes in [with(4, 2), with(5, 2), with(6, 1), index(1, 1 << 40, 0, &rows(&[(0, 0)]))] {
            assert!(parse(bytes, 90, true).unwrap().is_none());
        }
        assert!(parse(index(0, 90, 0, &rows(&[(0, 0)])), 90, false).unwrap().is_none());
    }
}
