//! Layers with a chunk index (erofs-image-spec, section 3.4): chunks are fetched when they are
//! read, verified, and decoded, so that a compressed layer is read where it is.

use crate::chunk_index::Index;
use packfs_codec::{Algorithm, decoder};
use packfs_core::{Error, Image, Result, usize_of};
use packfs_remote::oci::{LayerKind, OciLayer};
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of decoded chunks that are held.
const HELD_LEN: usize = 32 << 20;

/// Opens a layer where it is: by its chunks if an index lists them.
///
/// Errors: `Corrupt` for an index that is wrong, and those of opening the blob.
pub fn open_layer(layer: &OciLayer) -> Result<Arc<dyn Image>> {
    let blob = layer.open()?;
    let Some(bytes) = layer.chunk_index(&*blob)? else { return Ok(blob) };
    let index = Index::parse(&bytes, layer.kind == LayerKind::ErofsZstd)?;
    match index {
        Some(index) => Ok(Arc::new(ChunkedImage::new(blob, index))),
        None => Ok(blob),
    }
}

/// A layer as its chunks decode.
pub(crate) struct ChunkedImage {
    blob: Arc<dyn Image>,
    index: Index,
    state: Mutex<State>,
    /// Signals the end of a claim.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Decoded chunks, the one decoded last at the end.
    held: VecDeque<(usize, Arc<Vec<u8>>)>,
    /// Chunks that a thread is decoding.
    claimed: HashSet<usize>,
}

/// Right to decode a chunk; others wait until it ends, by success, an error, or a panic.
struct Claim<'a> {
    image: &'a ChunkedImage,
    chunk: usize,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.image.state().claimed.remove(&self.chunk);
        self.image.done.notify_all();
    }
}

impl ChunkedImage {
    pub(crate) fn new(blob: Arc<dyn Image>, index: Index) -> Self {
        ChunkedImage { blob, index, state: Mutex::default(), done: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a decoded chunk. If another thread is decoding it, waits for that one; if that one
    /// fails, tries again.
    fn chunk(&self, index: usize) -> Result<Arc<Vec<u8>>> {
        let mut state = self.state();
        loop {
            if let Some((_, found)) = state.held.iter().find(|(held, _)| *held == index) {
                return Ok(Arc::clone(found));
            }
            if state.claimed.insert(index) {
                break;
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let claim = Claim { image: self, chunk: index };
        let decoded = Arc::new(self.decoded(index)?);
        let mut state = self.state();
        let held = &mut state.held;
        held.push_back((index, Arc::clone(&decoded)));
        let mut len: usize = held.iter().map(|(_, bytes)| bytes.len()).sum();
        while len > HELD_LEN && held.len() > 1 {
            len -= held.pop_front().map_or(0, |(_, bytes)| bytes.len());
        }
        drop(state);
        drop(claim);
        Ok(decoded)
    }

    fn decoded(&self, index: usize) -> Result<Vec<u8>> {
        let Some(chunk) = self.index.chunks.get(index) else { return Ok(Vec::new()) };
        let corrupt = |fault: String| Error::corrupt(format!("chunk {index} of {}", self.name()), fault);
        let mut stored = vec![0; usize_of(chunk.stored.end - chunk.stored.start)];
        self.blob.read_exact_at(chunk.stored.start, &mut stored)?;
        if !chunk.is_of(&stored) {
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
    use crate::encode::encode;
    use packfs_core::{ErrorKind, MemoryImage, Silent};
    use packfs_remote::oci::ChunkIndexBytes;
    use packfs_testkit::Random;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Image and its layer: chunks, and the index.
    fn layer(level: Option<i32>) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let mut random = Random::new(1);
        let bytes = [random.text(600_000), random.noise(500_000)].concat();
        let encoded = encode(&MemoryImage::new("image", bytes.clone()), level, 2, &Silent).unwrap();
        let mut blob = vec![0; usize_of(encoded.file.len())];
        encoded.file.read_exact_at(0, &mut blob).unwrap();
        let index = blob.split_off(usize_of(encoded.index.start));
        let skipped = if level.is_some() { 8 } else { 0 };
        (bytes, blob, index[skipped..].to_vec())
    }

    /// Opens chunks; `None` for an index that is not used.
    fn open(blob: Arc<dyn Image>, index: &[u8], is_zstd: bool) -> Result<Option<ChunkedImage>> {
        let bytes = ChunkIndexBytes { bytes: index.to_vec(), blob_end: blob.len() };
        Ok(Index::parse(&bytes, is_zstd)?.map(|index| ChunkedImage::new(blob, index)))
    }

    fn memory(blob: &[u8]) -> Arc<dyn Image> {
        Arc::new(MemoryImage::new("blob", blob.to_vec()))
    }

    #[test]
    fn ranges_come_from_chunks_that_are_verified() {
        for level in [None, Some(3)] {
            let (bytes, blob, index) = layer(level);
            let image = open(memory(&blob), &index, level.is_some()).unwrap().unwrap();
            let len = bytes.len();
            assert_eq!((image.len(), image.index.chunks.len()), (len as u64, 5));
            for range in [0..1, 262_143..262_146, 0..len, 900_000..len, 262_144..262_145] {
                let mut found = vec![0; range.len()];
                image.read_exact_at(range.start as u64, &mut found).unwrap();
                assert!(found == bytes[range.clone()], "{range:?}");
            }
            assert_eq!(image.read_at(len as u64 - 1, &mut [0; 9]).unwrap(), 1);
            assert_eq!(image.read_at(u64::MAX, &mut [0; 9]).unwrap(), 0);
            let mut damaged = blob.clone();
            *damaged.last_mut().unwrap() ^= 1;
            let image = open(memory(&damaged), &index, level.is_some()).unwrap().unwrap();
            image.read_exact_at(0, &mut [0; 1000]).unwrap();
            let error = image.read_exact_at(len as u64 - 1, &mut [0]).unwrap_err();
            assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("chunk 4"), "{error}");
        }
    }

    #[test]
    fn no_changed_byte_of_an_index_gives_other_bytes() {
        for level in [None, Some(1)] {
            let (bytes, blob, index) = layer(level);
            let blob = memory(&blob);
            let mut random = Random::new(2);
            for at in 0..index.len() {
                let mut changed = index.clone();
                changed[at] ^= 1 << random.below(8);
                let Ok(Some(image)) = open(Arc::clone(&blob), &changed, level.is_some()) else { continue };
                let mut found = vec![0; usize_of(image.len()).min(2 * bytes.len())];
                let read = image.read_exact_at(0, &mut found);
                assert!(read.is_err() || found == bytes, "byte {at}");
            }
        }
    }

    /// Image that counts its reads, each of which takes a while and may fail.
    struct Slow(MemoryImage, AtomicUsize, bool);

    impl Image for Slow {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            self.1.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(50));
            if self.2 { Err(Error::failed("no line")) } else { self.0.read_at(offset, buf) }
        }

        fn name(&self) -> String {
            self.0.name()
        }
    }

    #[test]
    fn threads_wait_for_the_one_that_decodes_their_chunk() {
        let (bytes, blob, index) = layer(Some(1));
        for fails in [false, true] {
            let slow = Arc::new(Slow(MemoryImage::new("blob", blob.clone()), AtomicUsize::new(0), fails));
            let image = open(Arc::clone(&slow) as _, &index, true).unwrap().unwrap();
            std::thread::scope(|scope| {
                for at in 0..4 {
                    let (image, bytes) = (&image, &bytes);
                    scope.spawn(move || {
                        let mut found = [0; 100];
                        let read = image.read_exact_at(at as u64 * 1000, &mut found);
                        assert_eq!(read.is_err(), fails);
                        assert!(fails || found[..] == bytes[at * 1000..][..100]);
                    });
                }
            });
            // Each tries by itself if the one before fails.
            assert_eq!(slow.1.load(Ordering::Relaxed), if fails { 4 } else { 1 });
        }
    }
}
