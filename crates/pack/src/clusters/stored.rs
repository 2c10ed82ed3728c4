//! What workers hand back: stored bytes, and what they are.

use packfs_format::ClusterForm;

/// What a stored part of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutForm {
    /// As in the image.
    Is(ClusterForm),
    /// So many zeros that a cluster shared by all of them stands for them; nothing is stored here.
    Zeros,
    /// Stored before, at this place of the image.
    Shared(u64, ClusterForm),
    /// A chunk with this hash, as it is: stored unless it was before.
    Chunk(u128),
}

/// A run of a file's bytes and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutCluster {
    /// How many bytes of the file.
    pub len: u64,
    /// How many bytes are stored, padding not counted.
    pub stored_len: u32,
    /// How many bytes it takes, padding included.
    pub space: u32,
    /// What it is.
    pub form: CutForm,
    /// Whether it is compressed with the second codec of its recipe.
    pub second: bool,
}

/// Stored bytes and the clusters in them, one behind the other.
#[derive(Default)]
pub(super) struct Stored {
    pub bytes: Vec<u8>,
    pub clusters: Vec<CutCluster>,
}

impl Stored {
    /// Adds bytes as they are, filled up to a multiple of `unit`, each unit rotated by `phase`;
    /// whole units join those before.
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
            Some(last)
                if last.form == CutForm::Is(ClusterForm::Plain) && last.len == u64::from(last.space) =>
            {
                last.len += len;
                last.stored_len += len as u32;
                last.space += space;
            }
            _ => {
                let form = CutForm::Is(ClusterForm::Plain);
                let stored_len = len as u32;
                self.clusters.push(CutCluster { len, stored_len, space, form, second: false });
            }
        }
    }

    /// Adds a compressed cluster that decodes to `len` bytes, behind the zeros that fill it up to a
    /// multiple of `unit`; `second`: by the second codec.
    pub(super) fn push_compressed(&mut self, len: usize, compressed: &[u8], unit: usize, second: bool) {
        let space = compressed.len().next_multiple_of(unit);
        self.bytes.resize(self.bytes.len() + (space - compressed.len()), 0);
        self.bytes.extend_from_slice(compressed);
        self.clusters.push(CutCluster {
            len: len as u64,
            stored_len: compressed.len() as u32,
            space: space as u32,
            form: CutForm::Is(ClusterForm::Compressed),
            second,
        });
    }

    /// Adds a chunk, filled up to a multiple of `unit`.
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

    /// Where the last cluster starts, if they end at `end`; of plain blocks the last one.
    pub(super) fn last_start(&self, end: usize, unit: usize) -> Option<usize> {
        let last = self.clusters.last()?;
        let len = last.len as usize;
        Some(match last.form {
            CutForm::Is(ClusterForm::Plain) => end - len + (len - 1) / unit * unit,
            _ => end - len,
        })
    }

    /// Adds bytes that take no space.
    pub(super) fn push_empty(&mut self, len: u64, form: CutForm) {
        self.clusters.push(CutCluster { len, stored_len: 0, space: 0, form, second: false });
    }
}

/// A block of `unit` bytes in which the first of these stands at `phase`, and those behind the end
/// at the beginning.
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
