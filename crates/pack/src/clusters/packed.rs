//! The packed stream: tails of many files, concatenated, and handed out in segments as they fill.

use super::files::{Rows, row};
use super::stored::CutCluster;
use crate::base::{BaseReader, KeptStream, Reuse, is_second};
use crate::spool::Spool;
use packfs_codec::without_padding;
use packfs_core::Result;
use packfs_format::{Cluster, ClusterForm, Recipe};
use std::mem;
use std::path::Path;

/// Stored bytes kept in memory; more than that is spooled to a file beside the output.
const SPOOL_LEN: usize = 16 << 20;

pub(super) struct PackedStream {
    segment_len: usize,
    start: u64,
    pending: Vec<u8>,
}

impl PackedStream {
    /// `start` bytes exist already; the first segment ends where it would end without them.
    pub(super) fn new(segment_len: u64, start: u64) -> Self {
        PackedStream { segment_len: segment_len as usize, start, pending: Vec::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.start + self.pending.len() as u64
    }

    /// Passes every filled segment to `full`; returns the start of the bytes.
    pub(super) fn append(&mut self, mut bytes: &[u8], mut full: impl FnMut(Vec<u8>)) -> u64 {
        let offset = self.len();
        while !bytes.is_empty() {
            let segment_len = self.segment_len - (self.start % self.segment_len as u64) as usize;
            let room = segment_len - self.pending.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == segment_len {
                self.start += self.pending.len() as u64;
                full(mem::take(&mut self.pending));
            }
        }
        offset
    }

    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        self.start = self.len();
        let rest = mem::take(&mut self.pending);
        (!rest.is_empty()).then_some(rest)
    }
}

pub(super) struct StoredStream {
    pub bytes: Spool,
    pub rows: Rows,
    block_len: u32,
}

impl StoredStream {
    /// Spooled beside `output` if memory is short.
    pub(super) fn new(output: &Path, block_len: u32) -> Self {
        StoredStream { bytes: Spool::new(output, SPOOL_LEN), rows: Rows::default(), block_len }
    }

    pub(super) fn copy_kept(
        &mut self,
        reuse: &Reuse<'_, KeptStream>,
        recipe: Option<&Recipe>,
        check: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut reader = BaseReader::new(reuse.base);
        for cluster in &reuse.kept.clusters {
            check()?;
            let (row, offset) = match cluster.block {
                Some(block) => {
                    let stored = reader.stored(&block)?;
                    let stored_len = without_padding(stored).len() as u32;
                    let form = ClusterForm::Compressed;
                    let second =
                        matches!(recipe, Some(Recipe::Clusters(recipe)) if is_second(recipe, &block));
                    let row = Cluster { offset: 0, len: block.decoded_len.into(), stored_len, form, second };
                    (row, self.bytes.append(stored)?)
                }
                None => {
                    let plain = reader.plain(cluster.offset, cluster.len)?;
                    let padding = vec![0; (cluster.space - cluster.len) as usize];
                    let len = plain.len() as u32;
                    let form = ClusterForm::Plain;
                    let offset = self.bytes.append(plain)?;
                    self.bytes.append(&padding)?;
                    (Cluster { offset: 0, len: len.into(), stored_len: len, form, second: false }, offset)
                }
            };
            reuse.copied.add(cluster.space);
            self.rows.push(Cluster { offset, ..row }, self.block_len);
        }
        Ok(())
    }

    pub(super) fn push(&mut self, clusters: &[CutCluster<ClusterForm>], mut stored: &[u8]) -> Result<()> {
        for cluster in clusters {
            let (now, later) = stored.split_at(cluster.space as usize);
            stored = later;
            let offset = self.bytes.append(now)?;
            self.rows.push(row(cluster, offset, cluster.form), self.block_len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_whole_segments_and_then_the_rest() {
        let mut stream = PackedStream::new(10, 0);
        let mut segments: Vec<Vec<u8>> = Vec::new();
        let mut offsets = Vec::new();
        for (value, len) in [(1, 4), (2, 6), (3, 25), (4, 0), (5, 3)] {
            offsets.push(stream.append(&vec![value; len], |full| segments.push(full)));
        }
        segments.extend(stream.finish());
        assert_eq!(offsets, [0, 4, 10, 35, 35]);
        assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 10, 8]);
        assert_eq!(segments.concat()[35..], [5, 5, 5]);
        assert!(stream.finish().is_none());
        assert_eq!(stream.len(), 38);
    }

    #[test]
    fn existing_bytes_shorten_the_first_segment() {
        let mut stream = PackedStream::new(10, 23);
        let mut lens = Vec::new();
        assert_eq!(stream.append(&[1; 25], |full| lens.push(full.len())), 23);
        assert_eq!((lens, stream.finish().map(|rest| rest.len())), (vec![7, 10], Some(8)));
        assert_eq!(stream.len(), 48);
    }
}
