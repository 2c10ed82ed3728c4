//! The rows of [`packfs_format::Placed`], built piece by piece: runs grow, and a file of plain
//! blocks only becomes flat.

use super::stored::CutCluster;
use packfs_format::{Cluster, ClusterForm, Clusters, FileForm, FilePlace, InlineTail, TailPlace};

/// Most bytes of a row that is not a hole.
const RUN_LEN_MAX: u64 = 1 << 30;

/// Rows of clusters; those of a file are adjacent.
#[derive(Default)]
pub(super) struct Rows {
    pub clusters: Vec<Cluster>,
    starts: Vec<u64>,
    start: usize,
    recipe: u16,
}

impl Rows {
    pub(super) fn begin(&mut self, recipe: u16) {
        (self.start, self.recipe) = (self.clusters.len(), recipe);
    }

    pub(super) fn drop_file(&mut self) {
        self.clusters.truncate(self.start);
        self.starts.truncate(self.start);
    }

    pub(super) fn unfinished(&self) -> FilePlace<Clusters> {
        self.place(FileForm::Clusters { recipe: self.recipe })
    }

    /// Rows of a file that end after `start` and start before `end`, and their starts in the file.
    pub(super) fn within(
        &self,
        place: &FilePlace<Clusters>,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, Cluster)> {
        let range = place.first as usize..place.first as usize + place.count as usize;
        let rows =
            self.starts[range.clone()].iter().copied().zip(self.clusters[range.clone()].iter().copied());
        let first = self.starts[range].partition_point(|&from| from <= start).saturating_sub(1);
        rows.skip(first).take_while(move |(from, _)| *from < end)
    }

    /// Extends the last row if this one continues it; a plain run, only after a multiple of `unit`.
    pub(super) fn push(&mut self, row: Cluster, unit: impl Into<u64>) {
        if let Some(last) = self.clusters[self.start..].last_mut()
            && last.form == row.form
            && last.len.is_multiple_of(unit.into())
            && (row.form == ClusterForm::Hole || last.len <= RUN_LEN_MAX - row.len.min(RUN_LEN_MAX))
        {
            let goes_on = match row.form {
                ClusterForm::Hole => true,
                ClusterForm::Plain => last.offset + last.len == row.offset,
                ClusterForm::Rotated | ClusterForm::Compressed | ClusterForm::CompressedPart => false,
            };
            if goes_on {
                last.len += row.len;
                last.stored_len += row.stored_len;
                return;
            }
        }
        let file = self.start..self.clusters.len();
        let end = match (self.starts[file.clone()].last(), self.clusters[file].last()) {
            (Some(start), Some(last)) => start + last.len,
            _ => 0,
        };
        self.starts.push(end);
        self.clusters.push(row);
    }

    /// Returns the position at which the current file's run of plain blocks would continue; `None`
    /// if the file is no such run.
    pub(super) fn flat_end(&self, block_len: u32) -> Option<u64> {
        let mut end = None;
        for row in &self.clusters[self.start..] {
            let goes_on =
                end.is_none_or(|end| end == row.offset) && row.offset.is_multiple_of(block_len.into());
            if row.form != ClusterForm::Plain || !goes_on {
                return None;
            }
            end = Some(row.offset + row.len);
        }
        end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clusters.len() == self.start
    }

    pub(super) fn end_chunks(&mut self, chunk_len: u64) -> FilePlace<Clusters> {
        self.place(FileForm::Chunks { chunk_bits: chunk_len.trailing_zeros() as u8 })
    }

    /// Flat if the file is one run of plain blocks and its tail is uncompressed inline data.
    pub(super) fn end(&mut self, block_len: u32, tail: Option<TailPlace>) -> FilePlace<Clusters> {
        let tail_is_raw = !matches!(
            tail,
            Some(TailPlace::Packed { .. } | TailPlace::Inline(InlineTail { compressed: true, .. }))
        );
        if !tail_is_raw || !(self.is_empty() || self.flat_end(block_len).is_some()) {
            return self.place(FileForm::Clusters { recipe: self.recipe });
        }
        let place = self.place(FileForm::Flat);
        self.drop_file();
        FilePlace { first: 0, count: 0, ..place }
    }

    fn place(&self, form: FileForm) -> FilePlace<Clusters> {
        let rows = &self.clusters[self.start..];
        let is_hole = |row: &&Cluster| row.form == ClusterForm::Hole;
        FilePlace {
            start: rows.iter().find(|row| !is_hole(row)).map_or(0, |row| row.offset),
            first: if rows.is_empty() { 0 } else { self.start as u64 },
            count: rows.len() as u32,
            form,
            tail: None,
        }
    }
}

pub(super) fn row<F>(cluster: &CutCluster<F>, offset: u64, form: ClusterForm) -> Cluster {
    Cluster { offset, len: cluster.len, stored_len: cluster.stored_len, form, second: cluster.second }
}
