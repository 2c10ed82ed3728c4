//! An image whose blocks are verified against its hash tree when they are read, as dm-verity does.
//!
//! Blocks of hashes are read when needed, verified by the one above them up to the root hash, and
//! cached, up to a limit. Superblock and tree are untrusted: a wrong block length, salt, or number
//! of blocks gives another root hash, or bytes of the tree itself, which are no image.

use super::find::find_appended;
use super::superblock::VerityParams;
use crate::algorithm::Salted;
use crate::hash_tree::Shape;
use packfs_core::{Error, Fetched, Image, Result, usize_of};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of data that are read and verified at a time.
const SPAN_LEN: u64 = 1 << 20;
/// Bytes of an announced range whose hashes are requested, too.
const AHEAD_LEN: u64 = 64 << 20;
/// Bytes of hashes in each of two generations that are kept.
const KEPT_LEN: usize = 4 << 20;

/// An image that returns only bytes that belong to a root hash.
///
/// Its length is that of the data that the tree covers. A read fails with `Corrupt` if a block does
/// not match its hash.
pub struct VerifiedImage {
    image: Arc<dyn Image>,
    params: VerityParams,
    /// Offset of the tree in the image.
    tree_at: u64,
    shape: Shape,
    salted: Salted,
    root_hash: Vec<u8>,
    kept: Mutex<Kept>,
}

/// Level, 0 with the hashes of data, and number in that level.
type Place = (usize, u64);

/// The older generation is dropped when the newer one is full.
#[derive(Default)]
struct Kept {
    newer: HashMap<Place, Arc<[u8]>>,
    older: HashMap<Place, Arc<[u8]>>,
}

impl Kept {
    fn find(&mut self, place: Place, count_max: usize) -> Option<Arc<[u8]>> {
        if let Some(found) = self.newer.get(&place) {
            return Some(Arc::clone(found));
        }
        let found = self.older.remove(&place)?;
        self.add(place, Arc::clone(&found), count_max);
        Some(found)
    }

    fn add(&mut self, place: Place, block: Arc<[u8]>, count_max: usize) {
        if self.newer.len() >= count_max {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(place, block);
    }

    fn holds(&self, place: Place) -> bool {
        self.newer.contains_key(&place) || self.older.contains_key(&place)
    }
}

impl VerifiedImage {
    /// Wraps an image with a hash tree at its end; `root_hash` is the expected one.
    ///
    /// Errors: `Failed` without a tree, `Usage` if the root hash has the length of another hash
    /// function, `Io`.
    pub fn new(image: Arc<dyn Image>, root_hash: &[u8]) -> Result<Self> {
        let Some((at, params)) = find_appended(&*image)? else {
            let error = Error::failed(format!("cannot check {}: no hash tree at its end", image.name()));
            return Err(error.hint("packfs verity IMAGE appends one and prints its root hash"));
        };
        let (found, needed) = (root_hash.len(), params.algorithm.digest_len());
        if found != needed {
            let name = params.algorithm.name();
            let message = format!(
                "cannot check {}: a root hash of {found} bytes, {needed} needed by its {name}",
                image.name()
            );
            return Err(Error::usage(message));
        }
        Ok(VerifiedImage {
            tree_at: at.saturating_add(params.head_len()),
            shape: params.shape(),
            salted: Salted::new(params.algorithm, &params.salt),
            root_hash: root_hash.to_vec(),
            kept: Mutex::default(),
            image,
            params,
        })
    }

    fn hashes_a_block(&self) -> u64 {
        u64::from(self.params.hash_block_len) / self.params.algorithm.digest_len() as u64
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // A panic of another thread leaves whole blocks only.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash_range(&self, (level, index): Place) -> Range<u64> {
        let len = u64::from(self.params.hash_block_len);
        let start = self.shape.position(level, index).saturating_mul(len).saturating_add(self.tree_at);
        start..start.saturating_add(len)
    }

    /// Starts at the lowest level; omits blocks of hashes that are cached.
    fn missing(&self, blocks: Range<u64>) -> Vec<Place> {
        let kept = self.kept();
        let mut missing = Vec::new();
        let (mut first, mut last) = (blocks.start, blocks.end.saturating_sub(1));
        for level in 0..self.shape.level_count() {
            (first, last) = (first / self.hashes_a_block(), last / self.hashes_a_block());
            let there = missing.len();
            missing.extend((first..=last).map(|index| (level, index)).filter(|&place| !kept.holds(place)));
            if missing.len() == there {
                break;
            }
        }
        missing
    }

    fn expects(&self, level: usize, index: u64, hash: &[u8]) -> Result<bool> {
        if level == self.shape.level_count() {
            return Ok(*hash == *self.root_hash);
        }
        let block = self.hashes((level, index / self.hashes_a_block()))?;
        let at = usize_of(index % self.hashes_a_block()) * hash.len();
        Ok(block.get(at..at + hash.len()) == Some(hash))
    }

    /// Every level has fewer blocks than the one below, so this goes up at most 21 times.
    fn hashes(&self, place: Place) -> Result<Arc<[u8]>> {
        let count_max = KEPT_LEN / self.params.hash_block_len as usize;
        if let Some(found) = self.kept().find(place, count_max) {
            return Ok(found);
        }
        let range = self.hash_range(place);
        let mut bytes = vec![0; self.params.hash_block_len as usize];
        self.image.read_exact_at(range.start, &mut bytes)?;
        let (level, index) = place;
        if !self.expects(level + 1, index, &self.salted.hash(&bytes))? {
            return Err(self.wrong(format!("block of hashes at {:#x}", range.start), level));
        }
        let block: Arc<[u8]> = bytes.into();
        self.kept().add(place, Arc::clone(&block), count_max);
        Ok(block)
    }

    fn wrong(&self, what: String, level: usize) -> Error {
        let is_top = level + 1 >= self.shape.level_count();
        let error = Error::corrupt(self.image.name(), format!("{what} does not belong to the root hash"));
        if is_top {
            error.hint("the root hash may be that of another image; compare it with its source")
        } else {
            error.hint("the image was changed or damaged; fetch it again from its source")
        }
    }

    fn read_blocks(&self, first: u64, buf: &mut [u8]) -> Result<()> {
        let block_len = u64::from(self.params.data_block_len);
        let (start, count) = (first * block_len, buf.len() as u64 / block_len);
        let missing = self.missing(first..first + count);
        if missing.len() > 1 || (missing.len() == 1 && count > 1) {
            let hashes = missing.into_iter().map(|place| self.hash_range(place));
            let ranges: Vec<_> = hashes.chain(std::iter::once(start..start + buf.len() as u64)).collect();
            self.image.will_read(&ranges);
        }
        self.image.read_exact_at(start, buf)?;
        let mut hash = Vec::new();
        for (index, block) in (first..).zip(buf.chunks(self.params.data_block_len as usize)) {
            hash.clear();
            self.salted.hash_into(block, &mut hash);
            if !self.expects(0, index, &hash)? {
                return Err(self.wrong(format!("block at {:#x}", index * block_len), 0));
            }
        }
        Ok(())
    }
}

impl Image for VerifiedImage {
    fn len(&self) -> u64 {
        self.params.data_len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let block_len = u64::from(self.params.data_block_len);
        let len = usize_of(self.len().saturating_sub(offset).min(buf.len() as u64));
        let mut scratch = Vec::new();
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let first = at / block_len;
            let skipped = usize_of(at % block_len);
            let span = (len - done).min(usize_of(SPAN_LEN) - skipped);
            let whole_len = (skipped + span).next_multiple_of(block_len as usize);
            let to = &mut buf[done..done + span];
            if whole_len == span {
                self.read_blocks(first, to)?;
            } else {
                scratch.resize(whole_len, 0);
                self.read_blocks(first, &mut scratch[..whole_len])?;
                to.copy_from_slice(&scratch[skipped..skipped + span]);
            }
            done += span;
        }
        Ok(len)
    }

    fn will_read(&self, ranges: &[Range<u64>]) {
        let block_len = u64::from(self.params.data_block_len);
        let mut all = Vec::new();
        for range in ranges {
            let blocks = range.start / block_len..range.end.min(self.len()).div_ceil(block_len);
            if !blocks.is_empty() {
                all.push(blocks.start * block_len..blocks.end * block_len);
                let near = blocks.start..blocks.end.min(blocks.start + AHEAD_LEN / block_len);
                all.extend(self.missing(near).into_iter().map(|place| self.hash_range(place)));
            }
        }
        self.image.will_read(&all);
    }

    fn fetched(&self) -> Option<Fetched> {
        self.image.fetched()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.image.check_unchanged()
    }

    fn name(&self) -> String {
        self.image.name()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{VerityOptions, write_verity};
    use super::*;
    use crate::algorithm::HashAlgorithm;
    use packfs_core::{FileImage, MemoryImage, Silent};
    use std::io::{Read, Seek, Write};

    /// Returns an image of `blocks` blocks with its tree, and the root hash.
    fn with_tree(blocks: usize, options: &VerityOptions) -> (Vec<u8>, Vec<u8>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let len = blocks * options.data_block_len as usize;
        let step = options.hash_block_len.max(options.data_block_len) as usize;
        let data: Vec<u8> = (0..len.next_multiple_of(step)).map(|at| (at / 7 % 251) as u8).collect();
        file.write_all(&data).unwrap();
        let image = FileImage::open(file.path()).unwrap();
        let params = options.params(&image, data.len() as u64).unwrap();
        let root = write_verity(&image, &params, file.as_file(), data.len() as u64, 1, &Silent).unwrap();
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        (bytes, root)
    }

    fn opened(bytes: &[u8], root: &[u8]) -> VerifiedImage {
        VerifiedImage::new(Arc::new(MemoryImage::new("test", bytes.to_vec())), root).unwrap()
    }

    #[test]
    fn reads_what_was_hashed() {
        for (blocks, data_block_len, hash_block_len) in
            [(1, 4096, 4096), (2, 4096, 4096), (300, 4096, 4096), (5000, 512, 512), (40, 1024, 4096)]
        {
            for algorithm in HashAlgorithm::ALL {
                let options =
                    VerityOptions { algorithm, data_block_len, hash_block_len, ..VerityOptions::default() };
                let (bytes, root) = with_tree(blocks, &options);
                let image = opened(&bytes, &root);
                let len = image.len() as usize;
                for range in [0..1, 0..len, len / 3..len / 2, len - 1..len, 511..len - 3] {
                    let mut buf = vec![0; range.len()];
                    image.read_exact_at(range.start as u64, &mut buf).unwrap();
                    assert_eq!(buf, bytes[range]);
                }
                let mut beyond = [0; 10];
                assert_eq!(image.read_at(len as u64 - 4, &mut beyond).unwrap(), 4);
                assert_eq!(image.read_at(len as u64, &mut beyond).unwrap(), 0);
            }
        }
    }

    #[test]
    fn every_changed_byte_is_found() {
        let options = VerityOptions { data_block_len: 512, hash_block_len: 512, ..VerityOptions::default() };
        let (bytes, root) = with_tree(40, &options);
        let intact = opened(&bytes, &root);
        for at in (0..bytes.len()).step_by(97) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            let image: Arc<dyn Image> = Arc::new(MemoryImage::new("test", changed));
            // A changed superblock may be none, or describe another tree.
            let Ok(image) = VerifiedImage::new(image, &root) else { continue };
            let mut buf = vec![0; 512];
            for block in 0..40 {
                let offset = block * 512;
                if image.read_exact_at(offset, &mut buf).is_ok() && intact.len() == image.len() {
                    assert_eq!(buf, bytes[offset as usize..][..512], "byte {at}, block {block}");
                }
            }
            if at < 40 * 512 {
                let error = image.read_exact_at(at as u64 / 512 * 512, &mut buf).unwrap_err();
                assert_eq!(error.kind(), packfs_core::ErrorKind::Corrupt, "{at}");
            }
        }
    }

    #[test]
    fn another_root_hash_gives_no_byte() {
        let (bytes, mut root) = with_tree(3, &VerityOptions::default());
        root[0] ^= 1;
        let error = opened(&bytes, &root).read_exact_at(0, &mut [0]).unwrap_err();
        assert!(error.to_string().contains("does not belong to the root hash"), "{error}");
        let image: Arc<dyn Image> = Arc::new(MemoryImage::new("test", bytes));
        assert!(VerifiedImage::new(Arc::clone(&image), &root[1..]).is_err());
        let bare: Arc<dyn Image> = Arc::new(MemoryImage::new("test", vec![1; 8192]));
        assert!(VerifiedImage::new(bare, &root).is_err());
    }
}
