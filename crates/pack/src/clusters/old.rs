//! Clusters that a file has to itself in the base, for [`packfs_core::Cut::FixedOutput`]: a piece of a file is copied if all of
//! its clusters still hold what the source holds.

use super::stored::{CutCluster, CutForm, Stored};
use crate::base::{BaseReader, Reuse, Trust, is_second, is_whole_cluster};
use crate::context::{Context, Piece, is_zero};
use packfs_core::{BlockRef, ClusterCut, ClusterForm, ExtentFrom};
use std::sync::atomic::Ordering;

/// One worker's view of the base.
pub(super) struct OldClusters<'a> {
    context: &'a Context<'a>,
    cut: &'a ClusterCut,
    reuse: &'a Reuse<'a>,
    reader: BaseReader<'a>,
}

impl<'a> OldClusters<'a> {
    /// `None` if there is no base, or nothing of it can be used.
    pub(super) fn new(context: &'a Context<'a>, cut: &'a ClusterCut) -> Option<Self> {
        let reuse = context.reuse.filter(|_| !cut.interlaced && !cut.byte_aligned)?;
        Some(OldClusters { context, cut, reuse, reader: BaseReader::new(reuse.base) })
    }

    /// Whether a piece can be copied without a look at the source.
    pub(super) fn needs_no_source(&self, piece: &Piece) -> bool {
        let found = self.reuse.match_of(self.context.node(piece.job));
        found.is_some_and(|found| found.trust != Trust::Neither)
    }

    /// Copies the clusters of a piece up to where its tail starts, and says where that is, from the start of the piece; `None`,
    /// and nothing is copied, if it is not all there. `input`: the piece, unless it need not be looked at. `rest_max`: how much
    /// may be left over for the packed stream, besides what stays there.
    pub(super) fn copy(
        &mut self,
        piece: &Piece,
        input: Option<&[u8]>,
        rest_max: u64,
        out: &mut Stored,
    ) -> Option<usize> {
        let before = (out.bytes.len(), out.clusters.len());
        let copied = self.copy_all(piece, input, out).filter(|&copied| {
            let at = piece.range.start + copied as u64;
            let stays = piece.last
                && self.reuse.kept_tail(self.context.node(piece.job)).is_some_and(|tail| tail.from == at);
            let rest_len = piece.range.end - at;
            stays || rest_len == 0 || copied > 0 && rest_len <= rest_max
        });
        if copied.is_none() {
            out.bytes.truncate(before.0);
            out.clusters.truncate(before.1);
            return None;
        }
        let stored = &out.clusters[before.1..];
        stored.iter().for_each(|row| self.reuse.copied.add(u64::from(row.space)));
        copied
    }

    fn copy_all(&mut self, piece: &Piece, input: Option<&[u8]>, out: &mut Stored) -> Option<usize> {
        let node = self.context.node(piece.job);
        let recipe = usize::from(self.context.plan.files[piece.job as usize].recipe);
        let recipe = self.cut.recipes.get(recipe)?;
        let file_len = self.context.len(node);
        let found = self.reuse.match_of(node)?;
        if found.len < piece.range.end || piece.last && found.len != file_len {
            return None;
        }
        let unit = u64::from(self.cut.block_len);
        let kept_from = self.reuse.kept_tail(node).map_or(u64::MAX, |tail| tail.from);
        let extents = self.reader.extents(found, piece.range.clone()).ok()?;
        let mut at = piece.range.start;
        for extent in extents {
            if extent.offset != at {
                return None;
            }
            if at == kept_from {
                break;
            }
            let len = usize::try_from(extent.len).ok()?;
            let end = at + extent.len;
            let start = (at - piece.range.start) as usize;
            let raw = match input {
                Some(input) => Some(input.get(start..start.checked_add(len)?)?),
                None => None,
            };
            match extent.from {
                ExtentFrom::Hole => return None,
                ExtentFrom::Stored(from) => {
                    // A short block only ends a piece, and what lies beside an inode is not a block.
                    if !from.is_multiple_of(unit) || !extent.len.is_multiple_of(unit) {
                        break;
                    }
                    let plain = self.reader.plain(from, extent.len).ok()?;
                    if raw.is_some_and(|raw| raw != plain) {
                        return None;
                    }
                    out.push_plain(plain, unit as usize, 0);
                }
                ExtentFrom::Block { block, start: 0 }
                    if is_whole_cluster(self.cut, recipe, &block, extent.len) =>
                {
                    let stored = self.checked(&block, raw, found.trust)?;
                    let zeros = stored.iter().take_while(|&&byte| byte == 0).count();
                    out.bytes.extend_from_slice(stored);
                    out.clusters.push(CutCluster {
                        len: block.decoded_len,
                        stored_len: block.stored_len - zeros as u32,
                        space: block.stored_len,
                        form: CutForm::Is(ClusterForm::Compressed),
                        second: is_second(Some(recipe), &block),
                    });
                }
                ExtentFrom::Block { .. } => break,
            }
            at = end;
        }
        // What is left is for the packed stream, or nothing.
        Some((at - piece.range.start) as usize)
    }

    /// The stored bytes of a block that holds these bytes.
    fn checked(&mut self, block: &BlockRef, raw: Option<&[u8]>, trust: Trust) -> Option<&[u8]> {
        let reuse = self.reuse;
        if raw.is_none() && trust == Trust::Blind {
            return self.reader.stored(block).ok();
        }
        match self.reader.decode(block) {
            // Zeros share a cluster, which is no file's own.
            Ok((stored, decoded)) if raw.is_none_or(|raw| raw == decoded) && !is_zero(decoded) => {
                Some(stored)
            }
            Ok(_) => None,
            Err(_) => {
                reuse.damaged.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}
