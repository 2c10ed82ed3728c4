//! Packed streams of all inputs, concatenated as the stream of the new image.
//!
//! In an index, at most one cluster starts in each block of the stream, so every input's part
//! starts at a block. The rest of the last block is filled with a cluster of zeros. If the last
//! cluster starts in that block itself, it is stored uncompressed: the only data that is decoded,
//! less than two blocks for each input.

use crate::moves::Moves;
use crate::{MergeInput, last_cluster, padding};
use packfs_codec::Algorithm;
use packfs_core::{Error, Image, Result};
use packfs_format::{
    Cluster, ClusterForm, Clusters, FileForm, FilePlace, InlineTail, Plan, Recipe, StoredClusters, TailPlace,
};
use std::ops::Range;
use std::sync::Arc;

/// Offsets of fresh bytes start here.
const FRESH: u64 = 1 << 62;
/// Longest stream, in bytes.
const LEN_MAX: u64 = 1 << 50;
const TOO_LONG: &str = "more than 2^50 packed bytes";
const PLAIN_LEN_MAX: u64 = 1 << 30;
/// Most algorithms of one index.
const ALGORITHMS_MAX: usize = 2;

pub(crate) struct Packed {
    block_len: u64,
    recipes: Vec<Recipe>,
    /// True if the new image can contain bytes of no input.
    has_fresh: bool,
    clusters: Vec<Cluster>,
    parts: Vec<Part>,
    len: u64,
    /// Blocks of no input.
    fresh: Vec<u8>,
    zeros_at: Option<u64>,
    image: Option<Arc<dyn Image>>,
    /// Fresh blocks of decoded bytes and their clusters: start within a block of the stream, offset
    /// in the fresh bytes, index of the cluster.
    decoded: Vec<(usize, usize, usize)>,
    /// Algorithms in the order of their first use.
    algorithms: Vec<Algorithm>,
    /// Forms of plain clusters that start within a block: a stream uses only one of them.
    has_rotated: bool,
    has_shifted: bool,
}

#[derive(Clone, Debug)]
struct Part {
    base: u64,
    rows: Range<usize>,
}

impl Packed {
    pub(crate) fn new(plan: &Plan<Clusters>, has_fresh: bool) -> Self {
        Packed {
            block_len: plan.data.block_len.into(),
            recipes: plan.data.recipes.clone(),
            has_fresh,
            clusters: Vec::new(),
            parts: Vec::new(),
            len: 0,
            fresh: Vec::new(),
            zeros_at: None,
            image: None,
            decoded: Vec::new(),
            algorithms: Vec::new(),
            has_rotated: false,
            has_shifted: false,
        }
    }

    /// Appends the stream of the next input, if it has one.
    ///
    /// Errors: `Unsupported` for streams that cannot be concatenated.
    pub(crate) fn gather(
        &mut self,
        stored: &dyn StoredClusters,
        is_used: bool,
        image: Arc<dyn Image>,
    ) -> Result<()> {
        let mut rows = Vec::new();
        let found = if is_used { stored.packed(&mut rows)? } else { None };
        if let Some((place, len)) = found {
            if len > LEN_MAX {
                return Err(unsupported(TOO_LONG));
            }
            self.close_block()?;
            self.complete(&mut rows, &place, len, &*image)?;
            self.note_forms(&mut rows, &place)?;
            self.image = Some(image);
        }
        let first = self.clusters.len();
        self.clusters.append(&mut rows);
        self.parts.push(Part { base: self.len, rows: first..self.clusters.len() });
        let len = found.map_or(0, |(_, len)| len);
        let end = self.len.checked_add(len).filter(|&end| end <= LEN_MAX);
        self.len = end.ok_or_else(|| unsupported(TOO_LONG))?;
        Ok(())
    }

    /// Fills the last block of the stream.
    fn close_block(&mut self) -> Result<()> {
        let gap = self.len.wrapping_neg() % self.block_len;
        let end = self.len.checked_add(gap).ok_or_else(|| unsupported(TOO_LONG))?;
        let Some(last) = self.clusters.last_mut().filter(|_| gap > 0) else { return Ok(()) };
        let block = |at: u64| at / self.block_len;
        let start = self.len.saturating_sub(last.len);
        let blocks_between = block(self.len).saturating_sub(block(start));
        // Each block of a plain run is a cluster.
        let last_start = start.saturating_add(last.len.saturating_sub(1) / self.block_len * self.block_len);
        let is_within = block(last_start) == block(self.len);
        // A cluster of several blocks needs an entry for its length.
        let blocks_min = if u64::from(last.stored_len) > self.block_len { 2 } else { 1 };
        match last.form {
            // Its block is stored whole.
            ClusterForm::Plain | ClusterForm::Rotated if is_within => {
                last.len += gap;
                last.stored_len += gap as u32;
            }
            ClusterForm::Hole => last.len += gap,
            ClusterForm::Compressed | ClusterForm::CompressedPart
                if self.has_fresh && blocks_between < blocks_min =>
            {
                self.decode_last(gap)?;
            }
            // Within one block, only extents can represent what follows.
            _ => {
                let (offset, form) = (self.zeros(), ClusterForm::Plain);
                self.clusters.push(Cluster { offset, len: gap, stored_len: gap as u32, form, second: false });
            }
        }
        if let Some(part) = self.parts.iter_mut().rev().find(|part| !part.rows.is_empty()) {
            part.rows.end = self.clusters.len();
        }
        self.len = end;
        Ok(())
    }

    /// Appends `gap` zeros.
    fn decode_last(&mut self, gap: u64) -> Result<()> {
        let Some(row) = self.clusters.pop() else { return Ok(()) };
        last_cluster::check_len(&row)?;
        let lost = || Error::failed("internal: no algorithm for a packed cluster");
        let algorithm = *self.algorithms.get(usize::from(row.second)).ok_or_else(lost)?;
        let mut stored = vec![0; row.stored_len as usize];
        match (row.offset.checked_sub(FRESH), &self.image) {
            (Some(at), _) => copy_fresh(&self.fresh, at, &mut stored)?,
            (None, Some(image)) => image.read_exact_at(row.offset, &mut stored)?,
            (None, None) => return Err(lost()),
        }
        let mut bytes = last_cluster::decode(&row, algorithm, &stored)?;
        bytes.resize(bytes.len() + gap as usize, 0);
        let block_len = self.block_len as usize;
        let mut within = (self.len.saturating_sub(row.len) % self.block_len) as usize;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (part, later) = rest.split_at(rest.len().min(block_len - within));
            let at = self.fresh.len();
            self.fresh.extend_from_slice(part);
            self.fresh.resize(at + block_len, 0);
            self.decoded.push((within, at, self.clusters.len()));
            let (offset, len) = (FRESH + at as u64, part.len() as u64);
            let form = ClusterForm::Plain;
            self.clusters.push(Cluster { offset, len, stored_len: len as u32, form, second: false });
            (rest, within) = (later, 0);
        }
        Ok(())
    }

    /// Required if other plain clusters are rotated.
    fn rotate_decoded(&mut self) {
        for &(within, at, row) in self.decoded.iter().filter(|row| self.has_rotated && row.0 > 0) {
            let block = self.fresh.get_mut(at..at + self.block_len as usize);
            block.unwrap_or_default().rotate_right(within);
            if let Some(row) = self.clusters.get_mut(row) {
                row.form = ClusterForm::Rotated;
            }
        }
    }

    /// Offset of a block whose contents do not matter. An image that cannot contain fresh bytes
    /// contains whole inputs, of which the first block serves.
    fn zeros(&mut self) -> u64 {
        if !self.has_fresh {
            return 0;
        }
        let block_len = self.block_len as usize;
        let fresh = &mut self.fresh;
        *self.zeros_at.get_or_insert_with(|| {
            let at = FRESH + fresh.len() as u64;
            fresh.resize(fresh.len() + block_len, 0);
            at
        })
    }

    fn complete(
        &mut self,
        rows: &mut Vec<Cluster>,
        place: &FilePlace<Clusters>,
        len: u64,
        image: &dyn Image,
    ) -> Result<()> {
        let inline = match place.tail {
            Some(TailPlace::Inline(tail)) => Some(tail),
            Some(TailPlace::Packed { .. }) => return Err(unsupported("the packed inode is packed itself")),
            None => None,
        };
        if place.form == FileForm::Flat {
            let end = len.saturating_sub(inline.map_or(0, |tail| tail.stored_len.into()));
            let mut at = 0;
            while at < end {
                let len = (end - at).min(PLAIN_LEN_MAX);
                let (offset, form) = (place.start.saturating_add(at), ClusterForm::Plain);
                rows.push(Cluster { offset, len, stored_len: len as u32, form, second: false });
                at += len;
            }
        }
        if let Some(tail) = inline {
            let before = rows.iter().map(|row| row.len).fold(0, u64::saturating_add);
            rows.push(self.fresh_tail(tail, len.saturating_sub(before), image)?);
        }
        Ok(())
    }

    fn fresh_tail(&mut self, tail: InlineTail, len: u64, image: &dyn Image) -> Result<Cluster> {
        if !self.has_fresh {
            let error = unsupported("the packed inode ends beside its inode, which is in no device");
            return Err(error.hint("merge the images into one file"));
        }
        if u64::from(tail.stored_len) > self.block_len {
            return Err(unsupported("a tail beside its inode that is longer than a block"));
        }
        let at = self.fresh.len();
        let end = at + self.block_len as usize;
        self.fresh.resize(end, 0);
        // Zeros precede compressed bytes, and follow others.
        let stored_len = tail.stored_len as usize;
        let start = if tail.compressed { end - stored_len } else { at };
        image.read_exact_at(tail.id, self.fresh.get_mut(start..start + stored_len).unwrap_or_default())?;
        let form = if tail.compressed { ClusterForm::Compressed } else { ClusterForm::Plain };
        // Includes the zeros before compressed bytes.
        let stored_len = if tail.compressed { self.block_len as u32 } else { tail.stored_len };
        Ok(Cluster { offset: FRESH + at as u64, len, stored_len, form, second: false })
    }

    /// Sets the codec of clusters by the algorithms of the whole stream.
    fn note_forms(&mut self, rows: &mut [Cluster], place: &FilePlace<Clusters>) -> Result<()> {
        let recipe = match place.form {
            FileForm::Clusters { recipe } => self.recipes.get(usize::from(recipe)),
            _ => None,
        };
        let mut start = 0_u64;
        for row in rows {
            match (row.form, recipe) {
                (ClusterForm::Compressed | ClusterForm::CompressedPart, Some(Recipe::Clusters(recipe))) => {
                    let codec = recipe.second.as_ref().filter(|_| row.second).unwrap_or(&recipe.codec);
                    let algorithm = codec.algorithm();
                    let known = self.algorithms.iter().position(|known| *known == algorithm);
                    let index = known.unwrap_or(self.algorithms.len());
                    if known.is_none() {
                        self.algorithms.push(algorithm);
                    }
                    row.second = index > 0;
                }
                (ClusterForm::Compressed | ClusterForm::CompressedPart, _) => {
                    return Err(Error::failed("internal: compressed clusters without a recipe"));
                }
                (ClusterForm::Rotated, _) => self.has_rotated = true,
                (ClusterForm::Plain, _) => self.has_shifted |= !start.is_multiple_of(self.block_len),
                (ClusterForm::Hole, _) => {}
            }
            start = start.saturating_add(row.len);
        }
        if self.algorithms.len() > ALGORITHMS_MAX {
            let names: Vec<&str> = self.algorithms.iter().map(|algorithm| algorithm.name()).collect();
            let fault = format!("packed inodes with {}: at most two codecs go into one", names.join(", "));
            return Err(unsupported(&fault).hint("packfs repack makes images with one codec"));
        }
        if self.has_rotated && self.has_shifted {
            let fault = "packed inodes with and without interlaced blocks, which cannot be joined";
            return Err(unsupported(fault).hint("packfs repack makes images of one kind"));
        }
        Ok(())
    }

    pub(crate) fn base(&self, input: usize) -> u64 {
        self.parts.get(input).map_or(0, |part| part.base)
    }

    pub(crate) fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    pub(crate) fn last(&self) -> impl Iterator<Item = &Cluster> {
        let rows = self.parts.last().and_then(|part| self.clusters.get(part.rows.clone()));
        rows.unwrap_or_default().iter().filter(|row| row.offset < FRESH)
    }

    /// Assigns the offset of the stream, and appends its clusters to those of the files. With
    /// inputs as devices, zeros before clusters are omitted.
    pub(crate) fn finish(
        &mut self,
        clusters: &mut Vec<Cluster>,
        moves: &mut Moves,
        inputs: &[MergeInput],
    ) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        if self.len == 0 {
            return Ok(None);
        }
        self.rotate_decoded();
        moves.fresh = std::mem::take(&mut self.fresh);
        for (input, part) in self.parts.iter().enumerate() {
            let image = inputs.get(input).map(MergeInput::data_image);
            for row in self.clusters.get_mut(part.rows.clone()).unwrap_or_default() {
                if let Some(image) = &image {
                    let fresh = &moves.fresh;
                    padding::leave_out(row, self.block_len, |at, bytes| match at.checked_sub(FRESH) {
                        Some(at) => copy_fresh(fresh, at, bytes),
                        None => image.read_exact_at(at, bytes),
                    })?;
                }
                match row.offset.checked_sub(FRESH) {
                    Some(at) => row.offset = moves.fresh_at.saturating_add(at),
                    None => moves.relocate(row, input)?,
                }
            }
        }
        let recipe = self.recipe()?;
        let count = u32::try_from(self.clusters.len())
            .map_err(|_| unsupported("more packed clusters than an index can list"))?;
        let first = clusters.len() as u64;
        clusters.append(&mut self.clusters);
        let place = FilePlace { first, count, form: FileForm::Clusters { recipe }, ..FilePlace::default() };
        Ok(Some((place, self.len)))
    }

    fn recipe(&self) -> Result<u16> {
        let serves = |recipe: &Recipe| match recipe {
            Recipe::Clusters(recipe) => {
                let codecs = [Some(&recipe.codec), recipe.second.as_ref()].into_iter().flatten();
                codecs
                    .map(|codec| codec.algorithm())
                    .take(self.algorithms.len())
                    .eq(self.algorithms.iter().copied())
            }
            _ => false,
        };
        let found = self.recipes.iter().position(serves).and_then(|index| u16::try_from(index).ok());
        found.ok_or_else(|| Error::failed("internal: no recipe for the packed stream"))
    }
}

fn copy_fresh(fresh: &[u8], at: u64, out: &mut [u8]) -> Result<()> {
    let found = fresh.get(at as usize..).and_then(|rest| rest.get(..out.len()));
    out.copy_from_slice(found.ok_or_else(|| Error::failed("internal: no such fresh bytes"))?);
    Ok(())
}

fn unsupported(what: &str) -> Error {
    Error::unsupported("merge", what)
}
