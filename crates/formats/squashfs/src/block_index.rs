//! Checkpoints in the size words of large files, so that random access starts near its offset
//! instead of at a file's first word.
//!
//! Owns a bounded cache of checkpoints, filled by walks over a file's words. Contains only checked
//! data, and may evict anything at any time.

use crate::cursor::Position;
use packfs_core::usize_of;
use packfs_format::{InodeId, units::*};
use std::sync::{Mutex, PoisonError};

/// Words between the first checkpoints of a file: a walk over as many takes a microsecond.
pub(crate) const STRIDE: u64 = 128;
const POINTS_MAX: usize = 1024;
const FILES_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) index: u64,
    pub(crate) position: Position,
    pub(crate) data_at: u64,
}

struct FileIndex {
    id: InodeId,
    /// Words between checkpoints; doubles whenever there are too many.
    stride: u64,
    /// `points[i]` is word `(i + 1) * stride`.
    points: Vec<Checkpoint>,
    /// The first word of the last walk, where a sequential reader continues.
    recent: Option<Checkpoint>,
}

impl FileIndex {
    fn next_word(&self) -> u64 {
        (self.points.len() as u64).plus(1).times(self.stride)
    }
}

/// Checkpoints of recently read files.
#[derive(Default)]
pub(crate) struct BlockIndex(Mutex<Vec<FileIndex>>);

impl BlockIndex {
    pub(crate) fn before(&self, id: InodeId, index: u64) -> Option<Checkpoint> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.iter().find(|file| file.id == id)?;
        let nth = index.checked_div(file.stride)?.min(file.points.len() as u64).checked_sub(1);
        let point = nth.and_then(|nth| file.points.get(usize_of(nth)));
        let recent = file.recent.as_ref().filter(|recent| recent.index <= index);
        point.into_iter().chain(recent).max_by_key(|point| point.index).copied()
    }

    /// Records the first word of a walk over a file that has checkpoints.
    pub(crate) fn keep_recent(&self, id: InodeId, point: Checkpoint) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.iter_mut().find(|file| file.id == id) {
            file.recent = Some(point);
        }
    }

    pub(crate) fn keep(&self, id: InodeId, point: Checkpoint) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = files.iter().position(|file| file.id == id).unwrap_or_else(|| {
            if files.len() == FILES_MAX {
                files.remove(0);
            }
            let at = files.len();
            files.push(FileIndex { id, stride: STRIDE, points: Vec::new(), recent: None });
            at
        });
        let Some(file) = files.get_mut(at) else { return };
        if point.index != file.next_word() {
            return;
        }
        file.points.push(point);
        if file.points.len() == POINTS_MAX {
            let mut is_kept = true;
            file.points.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            file.stride = file.stride.times(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(index: u64) -> Checkpoint {
        Checkpoint { index, position: Position { at: index, offset: 0 }, data_at: index }
    }

    #[test]
    fn finds_the_last_checkpoint_before_a_word() {
        let cache = BlockIndex::default();
        let id = InodeId(7);
        for nth in 1..=10 {
            cache.keep(id, point(nth * STRIDE));
        }
        assert_eq!(cache.before(id, STRIDE - 1), None);
        assert_eq!(cache.before(id, STRIDE), Some(point(STRIDE)));
        assert_eq!(cache.before(id, 5 * STRIDE + 3), Some(point(5 * STRIDE)));
        assert_eq!(cache.before(id, 500 * STRIDE), Some(point(10 * STRIDE)));
        assert_eq!(cache.before(InodeId(8), 500 * STRIDE), None);
    }

    #[test]
    fn a_reader_goes_on_where_the_last_walk_began() {
        let cache = BlockIndex::default();
        let id = InodeId(7);
        cache.keep_recent(id, point(200));
        assert_eq!(cache.before(id, 200), None);
        (1..=3).for_each(|nth| cache.keep(id, point(nth * STRIDE)));
        cache.keep_recent(id, point(STRIDE + 60));
        assert_eq!(cache.before(id, STRIDE + 59), Some(point(STRIDE)));
        assert_eq!(cache.before(id, STRIDE + 60), Some(point(STRIDE + 60)));
        assert_eq!(cache.before(id, STRIDE + 90), Some(point(STRIDE + 60)));
        assert_eq!(cache.before(id, 2 * STRIDE + 1), Some(point(2 * STRIDE)));
        assert_eq!(cache.before(InodeId(8), STRIDE + 60), None);
    }

    #[test]
    fn halves_its_checkpoints_instead_of_growing() {
        let cache = BlockIndex::default();
        let id = InodeId(7);
        for nth in 1..=3 * POINTS_MAX as u64 {
            cache.keep(id, point(nth * STRIDE));
        }
        let last = cache.before(id, u64::MAX).unwrap();
        assert!(last.index > 2 * POINTS_MAX as u64 * STRIDE, "{last:?}");
        assert_eq!(cache.before(id, 4 * STRIDE), Some(point(4 * STRIDE)));
    }

    #[test]
    fn forgets_the_files_read_first() {
        let cache = BlockIndex::default();
        for file in 0..=FILES_MAX as u64 {
            cache.keep(InodeId(file), point(STRIDE));
        }
        assert_eq!(cache.before(InodeId(0), STRIDE), None);
        assert_eq!(cache.before(InodeId(FILES_MAX as u64), STRIDE), Some(point(STRIDE)));
    }
}
