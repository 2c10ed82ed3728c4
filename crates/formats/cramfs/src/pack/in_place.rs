//! Files for execution in place: stored uncompressed as a whole, aligned to the page, with their
//! pointers in the metadata, so that kernels can map them from memory-mapped flash.

use super::bounds::too_large;
use crate::disk::*;
use crate::options::Options;
use packfs_core::{Error, NodeId, NodeKind, Result, Tree};
use packfs_format::{BlockForm, Blocks, Placed};
use std::collections::{BTreeMap, HashMap};

const PAGE: u64 = PAGE_LEN as u64;

/// Returns the files that are stored so, with their lengths. Files of one page are not: Linux loses
/// a whole last page with a pointer to its start.
///
/// Errors: `Usage` for a path without a file.
pub(super) fn files(options: &Options, tree: &Tree) -> Result<BTreeMap<NodeId, u64>> {
    let mut files = BTreeMap::new();
    for path in &options.in_place {
        let id = tree.find(path);
        match id.map(|id| (id, &tree.node(id).kind)) {
            Some((id, NodeKind::File { len, .. })) if *len > PAGE => {
                files.insert(id, *len);
            }
            Some((_, NodeKind::File { .. })) => {}
            _ => return Err(Error::usage(format!("cramfs option in-place={path:?}: no file of the source"))),
        }
    }
    Ok(files)
}

pub(super) struct InPlace {
    start: u64,
    files: BTreeMap<NodeId, u64>,
}

impl InPlace {
    /// Reserves the pointers from `start` on.
    ///
    /// Errors: as [`files`].
    pub(super) fn new(options: &Options, tree: &Tree, start: u64) -> Result<Self> {
        Ok(InPlace { start, files: files(options, tree)? })
    }

    pub(super) fn end(&self) -> u64 {
        self.files.values().fold(self.start, |end, len| end + pointers_len(*len))
    }

    /// Returns the start of the pointers by the position of the data, and all pointers. Equal files
    /// share the first ones; the rest are zeros.
    ///
    /// Errors: `Failed` for data above the range of pointers.
    pub(super) fn written(
        &self,
        order: ByteOrder,
        placed: &Placed<Blocks>,
    ) -> Result<(HashMap<u64, u64>, Vec<u8>)> {
        let (mut places, mut bytes) = (HashMap::new(), Vec::new());
        for (id, &len) in &self.files {
            let at = self.start + bytes.len() as u64;
            let place = &placed.files[id.index()];
            let end = bytes.len() + pointers_len(len) as usize;
            if place.form == BlockForm::Flat && places.insert(place.start, at).is_none() {
                bytes.extend(pointers(order, place.start, len)?);
            }
            bytes.resize(end, 0);
        }
        Ok((places, bytes))
    }

    pub(super) fn page_count(&self) -> u64 {
        self.files.values().map(|len| len.div_ceil(PAGE)).sum()
    }
}

fn pointers_len(len: u64) -> u64 {
    len.div_ceil(PAGE) * u64::from(POINTER_LEN)
}

fn pointers(order: ByteOrder, start: u64, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for page in 0..len.div_ceil(PAGE) {
        let (at, end) = (start + page * PAGE, start + (page + 1) * PAGE);
        // Linux loses a whole last page with a pointer to its start.
        let (place, flag) = if end == start + len {
            (end, 0)
        } else {
            (at >> CRAMFS_BLK_DIRECT_PTR_SHIFT, CRAMFS_BLK_FLAG_DIRECT_PTR)
        };
        let place = u32::try_from(place).ok().filter(|place| place & !POINTER_MASK == 0);
        let word = place.ok_or_else(too_large)? | flag | CRAMFS_BLK_FLAG_UNCOMPRESSED;
        bytes.extend_from_slice(&order.word_bytes(word));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_last_pages_are_pointed_to_by_their_end() {
        let direct = |at: u32| at >> 2 | 3 << 30;
        for (len, words) in [
            (PAGE + 1, vec![direct(0x8000), direct(0x9000)]),
            (2 * PAGE, vec![direct(0x8000), 0xa000 | 1 << 31]),
        ] {
            let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            assert_eq!(pointers(ByteOrder::Little, 0x8000, len).unwrap(), bytes);
        }
        assert!(pointers(ByteOrder::Little, 1 << 32, PAGE + 1).is_err());
    }
}
