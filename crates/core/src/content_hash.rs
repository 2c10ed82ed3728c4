//! A hash of a file's contents that can be computed in any order, from any parts.
//!
//! Contents are cut into units of [`ContentHash::UNIT`] bytes, counted from their start. Each unit
//! that is not all zeros has a hash of 128 bits (XXH3), multiplied by an odd number that depends on
//! its position; the sum of these is the hash of the whole. So holes cost nothing, parts are added
//! in any order, the writer of blocks and the decoder of clusters get the same sum, and misplaced
//! data changes it. XXH3 is as fast as memory; the hash detects faults, not forgery.

use std::ops::AddAssign;
use xxhash_rust::xxh3::xxh3_128;

/// Hash of contents, or of some of their units. The default is the hash of nothing and of zeros.
/// Packed, so that an array of millions has no gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(Rust, packed(8))]
pub struct ContentHash(u128);

impl ContentHash {
    /// Bytes in each unit but the last.
    pub const UNIT: u64 = 1024;

    /// Returns the hash of the unit with this number.
    pub fn of_unit(number: u64, bytes: &[u8]) -> Self {
        if is_zero(bytes) {
            ContentHash::default()
        } else {
            ContentHash(xxh3_128(bytes).wrapping_mul(2 * u128::from(number) + 1))
        }
    }

    /// Returns the hash of units from number `first` on; only the last may be short.
    pub fn of_units(first: u64, bytes: &[u8]) -> Self {
        let mut sum = ContentHash::default();
        for (number, unit) in (first..).zip(bytes.chunks(ContentHash::UNIT as usize)) {
            sum += ContentHash::of_unit(number, unit);
        }
        sum
    }
}

impl AddAssign for ContentHash {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// Tests the first few bytes before the rest, which is enough for most blocks.
fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&byte| byte == 0) && rest.iter().fold(0, |all, &byte| all | byte) == 0
}

/// Computes the hash of contents, or of a part that starts with a unit, from bytes in order.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher {
    sum: ContentHash,
    number: u64,
    begun: Vec<u8>,
}

impl ContentHasher {
    /// Creates a hasher at offset `start`, a multiple of [`ContentHash::UNIT`].
    pub fn new(start: u64) -> Self {
        ContentHasher { number: start / ContentHash::UNIT, ..ContentHasher::default() }
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let unit = ContentHash::UNIT as usize;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(unit - self.begun.len()));
            self.begun.extend_from_slice(now);
            self.end_full_unit();
            rest = later;
        }
        let (whole, begun) = rest.split_at(rest.len() / unit * unit);
        self.sum += ContentHash::of_units(self.number, whole);
        self.number += (whole.len() / unit) as u64;
        self.begun.extend_from_slice(begun);
    }

    /// Adds `len` zeros.
    pub fn zeros(&mut self, len: u64) {
        let mut rest = len;
        if !self.begun.is_empty() {
            let now = rest.min(ContentHash::UNIT - self.begun.len() as u64);
            self.begun.resize(self.begun.len() + now as usize, 0);
            self.end_full_unit();
            rest -= now;
        }
        self.number += rest / ContentHash::UNIT;
        self.begun.resize(self.begun.len() + (rest % ContentHash::UNIT) as usize, 0);
    }

    fn end_full_unit(&mut self) {
        if self.begun.len() as u64 == ContentHash::UNIT {
            self.sum += ContentHash::of_unit(self.number, &self.begun);
            self.number += 1;
            self.begun.clear();
        }
    }

    /// Returns the hash of all bytes; an incomplete unit ends here.
    pub fn finish(mut self) -> ContentHash {
        self.sum += ContentHash::of_unit(self.number, &self.begun);
        self.sum
    }
}

/// Knowledge of a file's contents for the verification of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentDigest {
    /// Hash of the bytes that were read.
    Hash(ContentHash),
    /// The data decodes: a part was copied from an image without being read.
    Decodable,
    /// Nothing: a part was copied from an image unchecked, as requested.
    Nothing,
}

impl ContentDigest {
    /// Combines the knowledge of two parts.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (ContentDigest::Hash(mut sum), ContentDigest::Hash(more)) => {
                sum += more;
                ContentDigest::Hash(sum)
            }
            (ContentDigest::Nothing, _) | (_, ContentDigest::Nothing) => ContentDigest::Nothing,
            _ => ContentDigest::Decodable,
        }
    }
}

impl Default for ContentDigest {
    fn default() -> Self {
        ContentDigest::Hash(ContentHash::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(len: usize) -> Vec<u8> {
        (0..len)
            .map(|index| if index / 3000 % 2 == 0 { (index * 7 + index / 251) as u8 } else { 0 })
            .collect()
    }

    fn hash(bytes: &[u8]) -> ContentHash {
        ContentHash::of_units(0, bytes)
    }

    #[test]
    fn parts_of_any_length_give_the_same_hash_as_the_whole() {
        let bytes = contents(20_000);
        for part_len in [1, 7, 1023, 1024, 1025, 5000, 20_000] {
            let mut hasher = ContentHasher::new(0);
            bytes.chunks(part_len).for_each(|part| hasher.bytes(part));
            assert_eq!(hasher.finish(), hash(&bytes), "{part_len}");
        }
    }

    #[test]
    fn parts_add_up_in_any_order() {
        let bytes = contents(20_000);
        let mut sum = ContentHash::default();
        for start in [12_288, 0, 4096] {
            let end = [4096, 12_288, 20_000].into_iter().find(|end| *end > start).unwrap();
            let mut hasher = ContentHasher::new(start as u64);
            hasher.bytes(&bytes[start..end]);
            sum += hasher.finish();
        }
        assert_eq!(sum, hash(&bytes));
    }

    #[test]
    fn holes_are_zeros_however_long() {
        let bytes = [contents(1500), vec![0; 10_000], contents(777)].concat();
        let mut hasher = ContentHasher::new(0);
        hasher.bytes(&bytes[..1500]);
        hasher.zeros(10_000);
        hasher.bytes(&bytes[11_500..]);
        assert_eq!(hasher.finish(), hash(&bytes));
        let mut endless = ContentHasher::new(0);
        endless.zeros(u64::MAX / 2);
        assert_eq!(endless.finish(), ContentHash::default());
    }

    #[test]
    fn every_bit_and_every_place_counts() {
        let bytes = contents(9000);
        for at in [0, 1, 1023, 1024, 8999] {
            let mut other = bytes.clone();
            other[at] ^= 0x10;
            assert_ne!(hash(&other), hash(&bytes), "{at}");
        }
        let swapped = [&bytes[1024..2048], &bytes[..1024], &bytes[2048..]].concat();
        assert_ne!(hash(&swapped), hash(&bytes));
        assert_ne!(hash(&bytes[1..]), hash(&bytes));
    }
}
