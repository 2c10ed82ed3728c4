//! Stored bytes and the clusters in them, as workers return them.

use packfs_format::ClusterForm;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CutForm {
    Is(ClusterForm),
    /// Zeros that are represented by this cluster, without padding, which all of them share.
    Zeros(Arc<[u8]>),
    Shared(u64, ClusterForm),
    /// An uncompressed chunk with this hash: stored unless an equal one is.
    Chunk(u128),
}

impl From<ClusterForm> for CutForm {
    fn from(form: ClusterForm) -> Self {
        CutForm::Is(form)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutCluster<F = CutForm> {
    pub len: u64,
    /// Excludes padding.
    pub stored_len: u32,
    /// Includes padding; in bytes.
    pub space: u32,
    pub form: F,
    pub second: bool,
}

pub(super) struct Stored<F = CutForm> {
    pub bytes: Vec<u8>,
    pub clusters: Vec<CutCluster<F>>,
}

impl<F: From<ClusterForm> + PartialEq> Stored<F> {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Stored { bytes, clusters: Vec::new() }
    }

    /// Pads to a multiple of `unit`, each unit rotated by `phase`; whole units extend the run
    /// before.
    pub(super) fn push_plain(&mut self, raw: &[u8], unit: usize, phase: usize) {
        let space = raw.len().next_multiple_of(unit);
        if phase == 0 {
            self.bytes.extend_from_slice(raw);
            self.bytes.resize(self.bytes.len() + (space - raw.len()), 0);
        } else {
            raw.chunks(unit).for_each(|block| self.bytes.extend_from_slice(&rotated(block, unit, phase)));
        }
        let (len, space) = (raw.len() as u64, space as u32);
        match self.clusters.last_mut() {
            Some(last) if last.form == ClusterForm::Plain.into() && last.len == u64::from(last.space) => {
                last.len += len;
                last.stored_len += len as u32;
                last.space += space;
            }
            _ => {
                let form = ClusterForm::Plain.into();
                let stored_len = len as u32;
                self.clusters.push(CutCluster { len, stored_len, space, form, second: false });
            }
        }
    }

    /// Pads with leading zeros to a multiple of `unit`.
    pub(super) fn push_compressed(&mut self, len: usize, compressed: &[u8], unit: usize, second: bool) {
        let space = compressed.len().next_multiple_of(unit);
        self.bytes.resize(self.bytes.len() + (space - compressed.len()), 0);
        self.bytes.extend_from_slice(compressed);
        self.clusters.push(CutCluster {
            len: len as u64,
            stored_len: compressed.len() as u32,
            space: space as u32,
            form: ClusterForm::Compressed.into(),
            second,
        });
    }
}

impl Stored {
    pub(super) fn push_chunk(&mut self, raw: &[u8], hash: u128, unit: usize) {
        self.bytes.extend_from_slice(raw);
        let space = raw.len().next_multiple_of(unit);
        self.bytes.resize(self.bytes.len() + (space - raw.len()), 0);
        self.clusters.push(CutCluster {
            len: raw.len() as u64,
            stored_len: raw.len() as u32,
            space: space as u32,
            form: CutForm::Chunk(hash),
            second: false,
        });
    }

    /// `None` unless the clusters end at `end`; of plain blocks, the start of the last one.
    pub(super) fn last_start(&self, end: usize, unit: usize) -> Option<usize> {
        let last = self.clusters.last()?;
        let len = last.len as usize;
        Some(match last.form {
            CutForm::Is(ClusterForm::Plain) => end - len + (len - 1) / unit * unit,
            _ => end - len,
        })
    }

    pub(super) fn push_empty(&mut self, len: u64, form: CutForm) {
        self.clusters.push(CutCluster { len, stored_len: 0, space: 0, form, second: false });
    }
}

/// `bytes` start at `phase` and wrap around at the end of the block of `unit` bytes.
pub(super) fn rotated(bytes: &[u8], unit: usize, phase: usize) -> Vec<u8> {
    let mut block = vec![0; unit];
    let (front, wrapped) = bytes.split_at(bytes.len().min(unit - phase));
    block[phase..phase + front.len()].copy_from_slice(front);
    block[..wrapped.len()].copy_from_slice(wrapped);
    block
}

#[cfg(test)]
mod tests {
    use super::rotated;

    #[test]
    fn bytes_keep_their_place_within_a_block() {
        assert_eq!(rotated(&[1, 2, 3, 4], 4, 3), [2, 3, 4, 1]);
        assert_eq!(rotated(&[1, 2], 4, 1), [0, 1, 2, 0]);
        assert_eq!(rotated(&[1, 2], 4, 3), [2, 0, 0, 1]);
        assert_eq!(rotated(&[1], 4, 0), [1, 0, 0, 0]);
    }
}
