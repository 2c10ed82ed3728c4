//! Clusters of the base that belong to a single file: those of a piece are copied up to the first
//! that differs from the source.

use super::stored::{CutCluster, CutForm, Stored};
use crate::base::{BaseReader, KeptStream, Reuse, Trust, is_second, is_whole_cluster};
use crate::context::{Context, Piece, is_zero};
use crate::digest_log::PieceDigest;
use packfs_codec::BlockRef;
use packfs_codec::without_padding;
use packfs_core::ContentDigest;
use packfs_format::{ClusterForm, ClusterPlan, ClusterRecipe, Clusters, Extent, ExtentFrom};
use std::sync::atomic::Ordering;

pub(super) struct OldClusters<'a> {
    context: &'a Context<'a, Clusters>,
    cut: &'a ClusterPlan,
    reuse: &'a Reuse<'a, KeptStream>,
    reader: BaseReader<'a>,
}

impl<'a> OldClusters<'a> {
    /// `None` without a base, or if nothing of it can be used.
    pub(super) fn new(
        context: &'a Context<'a, Clusters>,
        reuse: Option<&'a Reuse<'a, KeptStream>>,
    ) -> Option<Self> {
        let cut = &context.plan.data;
        let reuse = reuse.filter(|_| !cut.interlaced && !cut.byte_aligned)?;
        Some(OldClusters { context, cut, reuse, reader: BaseReader::new(reuse.base) })
    }

    pub(super) fn needs_no_source(&self, piece: &Piece) -> bool {
        let found = self.reuse.match_of(self.context.node(piece.job));
        found.is_some_and(|found| found.trust != Trust::Neither)
    }

    /// Copies clusters of a piece from its start up to its tail or the first difference, and
    /// returns how many bytes of the piece they hold. `input` is the piece, or `None` if it is
    /// trusted; the bytes copied are added to `digest`.
    pub(super) fn copy(
        &mut self,
        piece: &Piece,
        recipe: &ClusterRecipe,
        input: Option<&[u8]>,
        out: &mut Stored,
        digest: &mut PieceDigest,
    ) -> usize {
        let Some(found) = self.reuse.match_of(self.context.node(piece.job)) else { return 0 };
        // A trusted file has the same length.
        let is_there = match input {
            Some(_) => found.len > piece.range.start,
            None => found.len == self.context.len(self.context.node(piece.job)),
        };
        // Unreadable parts of the base are not used.
        let Some(extents) = is_there.then(|| self.reader.extents(found, piece.range.clone()).ok()).flatten()
        else {
            return 0;
        };
        let kept_from = self.reuse.kept.tail(self.context.node(piece.job)).map_or(u64::MAX, |tail| tail.from);
        let mut copied = 0;
        for extent in extents {
            let at = piece.range.start + copied as u64;
            if extent.offset != at || at == kept_from {
                break;
            }
            let rest = input.map(|input| &input[copied..]);
            match self.copy_extent(recipe, found.trust, &extent, rest, out, digest) {
                Some(len) => copied += len,
                None => break,
            }
        }
        copied
    }

    fn copy_extent(
        &mut self,
        recipe: &ClusterRecipe,
        trust: Trust,
        extent: &Extent,
        input: Option<&[u8]>,
        out: &mut Stored,
        digest: &mut PieceDigest,
    ) -> Option<usize> {
        let unit = u64::from(self.cut.block_len);
        let len = usize::try_from(extent.len).ok()?;
        let raw = match input {
            Some(input) => Some(input.get(..len)?),
            None => None,
        };
        match extent.from {
            // A short block only ends a piece, and inline data is no block.
            ExtentFrom::Stored(from) if from.is_multiple_of(unit) && extent.len.is_multiple_of(unit) => {
                let plain = self.reader.plain(from, extent.len).ok()?;
                if raw.is_some_and(|raw| raw != plain) {
                    return None;
                }
                digest.add(plain);
                out.push_plain(plain, unit as usize, 0);
                self.reuse.copied.add(extent.len);
            }
            ExtentFrom::Block { block, start: 0 }
                if is_whole_cluster(self.cut, recipe, &block, extent.len) =>
            {
                let stored = self.checked(&block, raw, trust, digest)?;
                let stored_len = without_padding(stored).len() as u32;
                out.bytes.extend_from_slice(stored);
                out.clusters.push(CutCluster {
                    len: block.decoded_len.into(),
                    stored_len,
                    space: block.stored_len,
                    form: CutForm::Is(ClusterForm::Compressed),
                    second: is_second(recipe, &block),
                });
                self.reuse.copied.add(u64::from(block.stored_len));
            }
            _ => return None,
        }
        Some(len)
    }

    fn checked(
        &mut self,
        block: &BlockRef,
        raw: Option<&[u8]>,
        trust: Trust,
        digest: &mut PieceDigest,
    ) -> Option<&[u8]> {
        let reuse = self.reuse;
        if raw.is_none() && trust == Trust::Blind {
            digest.skip(ContentDigest::Nothing);
            return self.reader.stored(block).ok();
        }
        match self.reader.decode(block) {
            // Zeros share one cluster, which belongs to no single file.
            Ok((stored, decoded)) if raw.is_none_or(|raw| raw == decoded) && !is_zero(decoded) => {
                digest.add(decoded);
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
