//! Reads of metadata through a small cache: directory records and their continuation areas are
//! adjacent, and read one by one.

use crate::corruption::{Corruption, Place};
use packfs_core::{Image, Result, usize_of};
use packfs_format::units::*;
use std::sync::{Arc, Mutex, PoisonError};

const CHUNK_LEN: u64 = 16 << 10;
const CHUNKS: u64 = 64;

/// Reader of an image's metadata.
pub(crate) struct Sectors {
    image: Arc<dyn Image>,
    /// A chunk is cached in the slot of its number, modulo the number of slots.
    slots: Vec<Mutex<Chunk>>,
}

struct Chunk {
    number: u64,
    bytes: Vec<u8>,
}

impl Sectors {
    pub(crate) fn new(image: Arc<dyn Image>) -> Self {
        let empty = || Mutex::new(Chunk { number: u64::MAX, bytes: Vec::new() });
        Sectors { image, slots: (0..CHUNKS).map(|_| empty()).collect() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.image.len()
    }

    /// Errors: a range of a structure or of data that exceeds the image.
    pub(crate) fn check_range(&self, place: Place, len: u64) -> Result<()> {
        let end = self.image.len();
        match place.at.checked_add(len) {
            Some(found) if found <= end => Ok(()),
            _ => Err(Corruption::Range { place, len, end }.into()),
        }
    }

    pub(crate) fn read(&self, place: Place, buf: &mut [u8]) -> Result<()> {
        self.check_range(place, buf.len() as u64)?;
        let (mut at, mut rest) = (place.at, buf);
        while !rest.is_empty() {
            let len = self.copy(at, rest)?;
            at = at.plus(len as u64);
            rest = rest.within_mut(len..);
        }
        Ok(())
    }

    /// Copies from the chunk that contains `at`, which is within the image. Returns the number of
    /// bytes, at least one.
    fn copy(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        let (number, within) = (at / CHUNK_LEN, (at % CHUNK_LEN) as usize);
        let Some(slot) = self.slots.get((number % CHUNKS) as usize) else { return Ok(0) };
        let mut chunk = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if chunk.number != number {
            chunk.number = u64::MAX;
            let start = at.minus(at % CHUNK_LEN);
            chunk.bytes.resize(usize_of(CHUNK_LEN.min(left(self.image.len(), start))), 0);
            self.image.read_exact_at(start, &mut chunk.bytes)?;
            chunk.number = number;
        }
        let from = chunk.bytes.within(within..);
        let len = from.len().min(buf.len());
        let (Some(to), Some(from)) = (buf.get_mut(..len), from.get(..len)) else { return Ok(0) };
        to.copy_from_slice(from);
        Ok(len.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::BytesImage;

    #[test]
    fn reads_over_chunks_and_to_the_end_and_no_further() {
        let bytes: Vec<u8> = (0..3 * CHUNK_LEN + 100).map(|at| (at / 64) as u8).collect();
        let sectors = Sectors::new(Arc::new(BytesImage(bytes.clone())));
        for (at, len) in [(0, 10), (CHUNK_LEN - 3, 2 * CHUNK_LEN + 7), (3 * CHUNK_LEN + 90, 10), (5, 0)] {
            let mut buf = vec![0; len as usize];
            sectors.read(Place::at("test", at), &mut buf).unwrap();
            assert_eq!(buf, bytes[at as usize..(at + len) as usize]);
        }
        let error = sectors.read(Place::at("test", 3 * CHUNK_LEN + 91), &mut [0; 10]).unwrap_err();
        assert!(error.to_string().contains("image ends at"), "{error}");
        assert!(sectors.read(Place::at("test", u64::MAX), &mut [0; 10]).is_err());
    }
}
