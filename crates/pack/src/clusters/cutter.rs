//! The worker's side of packing clusters: reads pieces of files and cuts them as their recipes say.

use super::coder::CoderPool;
use super::old::OldClusters;
use super::segment::{self, Encoders, Measures, Rest};
use super::shape::{End, Shape, shape};
use super::share::{Candidate, Matcher};
use super::stored::{CutCluster, CutForm, Stored};
use super::stretches::Stretches;
use crate::base::{KeptStream, Reuse};
use crate::class::Class;
use crate::conductor::{self, Cut};
use crate::context::{Context, Piece, is_zero};
use crate::digest_log::PieceDigest;
use crate::engine::Job;
use crate::gain::Gain;
use crate::seen::TailBytes;
use packfs_core::{ContentDigest, ContentReader, NodeId, Result};
use packfs_format::{ClusterForm, ClusterPlan, ClusterRecipe, Clusters, Recipe};
use std::mem;

/// Blocks of zeros that one shared cluster represents: LZ4 compresses them into one block, and
/// shorter runs cost little.
const ZERO_BLOCKS: u64 = 128;
/// After copied clusters, the rest of a file may go to the packed stream if it is no longer than
/// this number of full clusters of incompressible data.
const REST_CLUSTERS: u64 = 4;
/// Longer scratch buffers are freed.
const SCRATCH_LEN: usize = 2 << 20;

/// End of a file that is not among its clusters.
pub(super) enum CutTail {
    /// Goes to the packed stream, deduplicated.
    Packed(TailBytes),
    /// Less than a block: inline if all data before it is plain, else a plain block.
    Plain(Vec<u8>),
    /// Already in the packed stream, at this offset.
    Kept(u64),
    /// Goes to the packed stream, without deduplication, because it is a part of a longer file.
    Stream(Vec<u8>),
    /// Inline.
    Inline { bytes: Vec<u8>, compressed: bool },
}

pub(super) struct StoredPiece {
    pub clusters: Vec<CutCluster>,
    pub tail: Option<CutTail>,
    pub chunk_len: Option<u64>,
    /// Number of zeros stored uncompressed for the piece, if it stores nothing else.
    pub zeros_len: u64,
}

pub(super) struct PackedSegment {
    pub len: u64,
    pub clusters: Vec<CutCluster<ClusterForm>>,
    pub stored: Vec<u8>,
}

pub(super) struct Cutter<'a> {
    context: &'a Context<'a, Clusters>,
    reuse: Option<&'a Reuse<'a, KeptStream>>,
    cut: &'a ClusterPlan,
    gain: Gain,
    coders: CoderPool<'a>,
    matcher: Matcher<'a>,
    old: Option<OldClusters<'a>>,
    input: Vec<u8>,
    class: Class,
    seen: ContentDigest,
    is_verified: bool,
    /// Zeros that represent the whole piece, in bytes; 0 for other pieces.
    zeros_len: u64,
    scratch: Vec<u8>,
    /// The file of the last piece, if more of it follows.
    kept: Option<(NodeId, Box<dyn ContentReader + 'a>)>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(job: &Job<'a, Clusters>) -> Result<Self> {
        let Job { context, reuse, options, .. } = *job;
        let cut = &context.plan.data;
        let recipes = cut.recipes.iter().filter_map(|recipe| match recipe {
            Recipe::Clusters(recipe) => Some(recipe),
            Recipe::Flat { .. } | Recipe::Chunks { .. } => None,
        });
        let coders = CoderPool::new(options, recipes)?;
        let matcher = Matcher::new(context);
        let gain = options.min_gain;
        let old = OldClusters::new(context, reuse);
        Ok(Cutter {
            context,
            reuse,
            cut,
            gain,
            coders,
            matcher,
            old,
            input: Vec::new(),
            class: Class::default(),
            seen: ContentDigest::default(),
            is_verified: options.verify.is_some(),
            zeros_len: 0,
            scratch: Vec::new(),
            kept: None,
        })
    }

    fn measures(&self, cluster_len: u32) -> Measures {
        Measures {
            block_len: self.cut.block_len as usize,
            cluster_len: cluster_len as usize,
            decoded_len_max: self.cut.decoded_len_max as usize,
            inline_flat_max: self.cut.inline_flat_max as usize,
            byte_aligned: self.cut.byte_aligned,
            interlaced: self.cut.interlaced,
            gain: self.gain,
        }
    }

    fn cut_piece(&mut self, piece: &Piece, candidates: &[Candidate], stored: &mut Stored) -> Result<CutRest> {
        let job = self.context.job(piece);
        let file_len = self.context.len(job.node);
        let shape = shape(self.cut, job.storage, file_len);
        // Data that is copied unread is classified by name.
        self.class = Class::of(self.context.tree.first_name(job.node), &[]);
        if let Some(reuse) = self.reuse
            && let Some(kept) = reuse.kept.tail(job.node)
            && matches!(shape, Shape::Stream | Shape::Whole { .. })
        {
            self.seen = reuse.digest_of_kept(job.node);
            return Ok(((piece.range.start == 0).then_some(CutTail::Kept(kept.at)), None));
        }
        let mut reader = match self.kept.take() {
            Some((node, reader)) if node == job.node => reader,
            _ => self.context.open(job.node)?,
        };
        let cut = self.cut_opened(reader.as_mut(), piece, shape, candidates, stored)?;
        reader.check_unchanged()?;
        self.kept = (!piece.last).then_some((job.node, reader));
        Ok(cut)
    }

    fn cut_opened(
        &mut self,
        reader: &mut dyn ContentReader,
        piece: &Piece,
        shape: Shape<'_>,
        candidates: &[Candidate],
        stored: &mut Stored,
    ) -> Result<CutRest> {
        let job = self.context.job(piece);
        let file_len = self.context.len(job.node);
        if piece.is_hole
            && let Some(cut) = self.cut_hole(piece, shape, stored)?
        {
            return Ok(cut);
        }
        match shape {
            Shape::Stream => {
                self.read(reader, piece)?;
                Ok((Some(CutTail::Stream(self.input.clone())), None))
            }
            Shape::Whole { else_by } => {
                self.read(reader, piece)?;
                if let Some(recipe) = else_by
                    && self.is_better_flat(file_len)
                {
                    return self.cut_clusters(piece, recipe, 0, &[], End::Packed, stored);
                }
                Ok((Some(CutTail::Packed(TailBytes::new(self.input.as_slice().into()))), None))
            }
            Shape::Clusters { recipe, end } => {
                if candidates.is_empty() && self.may_be_old(piece) {
                    return self.copy_and_cut(reader, piece, recipe, end, stored);
                }
                self.read(reader, piece)?;
                self.cut_clusters(piece, recipe, 0, candidates, end, stored)
            }
            Shape::Chunks { chunk_len } => self.cut_chunks(reader, piece, chunk_len, stored),
            Shape::Flat { sparse_chunk_len, end } => {
                if let Some(chunk_len) = sparse_chunk_len
                    && self.context.plan.holes
                    && has_hole(reader, file_len, chunk_len)?
                {
                    return self.cut_chunks(reader, piece, chunk_len, stored);
                }
                self.read(reader, piece)?;
                Ok((self.cut_flat(piece, end, stored), None))
            }
        }
    }

    /// Cuts a piece that is a hole without reading it, if its shape allows that.
    fn cut_hole(&mut self, piece: &Piece, shape: Shape<'_>, stored: &mut Stored) -> Result<Option<CutRest>> {
        let len = piece.len();
        let holes = self.context.plan.holes;
        let cut = match shape {
            Shape::Flat { sparse_chunk_len, .. } if !holes || sparse_chunk_len.is_none() => {
                self.zeros_len = len;
                (None, None)
            }
            Shape::Clusters { .. } if holes && self.cut.byte_aligned => {
                stored.push_empty(len, CutForm::Is(ClusterForm::Hole));
                (None, None)
            }
            Shape::Clusters { recipe, .. } if holes => {
                let zeros_len = zeros_len(self.cut) as u64;
                let block_len = self.cut.block_len as usize;
                let zeros =
                    self.coders.with(recipe, |coders| coders.first.zeros(zeros_len as usize, block_len))?;
                let Some(zeros) = zeros.filter(|_| len.is_multiple_of(zeros_len)) else { return Ok(None) };
                (0..len / zeros_len)
                    .for_each(|_| stored.push_empty(zeros_len, CutForm::Zeros(zeros.clone())));
                (None, None)
            }
            _ => return Ok(None),
        };
        let mut digest = PieceDigest::new(self.is_verified, piece.range.start);
        digest.add_zeros(len);
        self.seen = digest.finish();
        Ok(Some(cut))
    }

    fn may_be_old(&self, piece: &Piece) -> bool {
        let reuse = self.reuse.filter(|_| self.old.is_some());
        reuse.is_some_and(|reuse| reuse.match_of(self.context.node(piece.job)).is_some())
    }

    fn copy_and_cut(
        &mut self,
        reader: &mut dyn ContentReader,
        piece: &Piece,
        recipe: &ClusterRecipe,
        end: End,
        stored: &mut Stored,
    ) -> Result<CutRest> {
        let is_read = !self.old.as_ref().is_some_and(|old| old.needs_no_source(piece));
        if is_read {
            self.read(reader, piece)?;
        }
        let input = is_read.then_some(self.input.as_slice());
        let mut digest = PieceDigest::new(self.is_verified && !is_read, piece.range.start);
        let copied = self.old.as_mut().map_or(0, |old| old.copy(piece, recipe, input, stored, &mut digest));
        let at = piece.range.start + copied as u64;
        if !is_read {
            self.seen = digest.finish();
        }
        if at == piece.range.end {
            return Ok((None, None));
        }
        let node = self.context.node(piece.job);
        if let Some(reuse) = self.reuse
            && let Some(kept) = reuse.kept.tail(node).filter(|kept| piece.last && kept.from == at)
        {
            if !is_read {
                self.seen = self.seen.and(reuse.digest_of_kept(node));
            }
            return Ok((Some(CutTail::Kept(kept.at)), None));
        }
        if !is_read {
            self.read(reader, piece)?;
        }
        let rest_max = REST_CLUSTERS * u64::from(recipe.cluster_len);
        // A rest that was in the packed stream goes there again, because the earlier cut would end
        // at the same place.
        if piece.last && end == End::Packed && copied > 0 && piece.range.end - at <= rest_max {
            let rest = TailBytes::new(self.input[copied..].into());
            return Ok((Some(CutTail::Packed(rest)), None));
        }
        self.cut_clusters(piece, recipe, copied, &[], end, stored)
    }

    /// Returns true if the packed stream saves nothing for a file that may go there whole.
    fn is_better_flat(&self, len: u64) -> bool {
        let block_len = self.cut.block_len as usize;
        len > 4 * block_len as u64
            && super::incompressible_skip::all_looks_incompressible(&self.input, block_len)
    }

    fn read(&mut self, reader: &mut dyn ContentReader, piece: &Piece) -> Result<()> {
        let range = &piece.range;
        self.input.clear();
        let mut offset = range.start;
        // Holes are skipped.
        while offset < range.end {
            let data = reader.next_data(offset)?.unwrap_or(range.end..range.end);
            // A run that ends before `offset` is of no use: all of the rest may be data.
            let data = if data.end > offset { data } else { offset..range.end };
            let start = data.start.clamp(offset, range.end);
            let end = data.end.clamp(start, range.end);
            self.input.resize((start - range.start) as usize, 0);
            self.input.resize((end - range.start) as usize, 0);
            reader.read_exact_at(start, &mut self.input[(start - range.start) as usize..])?;
            offset = end;
        }
        let mut digest = PieceDigest::new(self.is_verified, range.start);
        digest.add(&self.input);
        self.seen = digest.finish();
        let node = self.context.node(piece.job);
        self.class = Class::of_read(self.context, node, (range.start, &self.input), reader)?;
        Ok(())
    }

    fn cut_flat(&mut self, piece: &Piece, end: End, stored: &mut Stored) -> Option<CutTail> {
        let block_len = self.cut.block_len as usize;
        let tail_len = if piece.last && end == End::Inline { self.input.len() % block_len } else { 0 };
        let (blocks, tail) = self.input.split_at(self.input.len() - tail_len);
        if !blocks.is_empty() {
            stored.push_plain(blocks, block_len, 0);
        }
        (tail_len > 0).then(|| CutTail::Inline { bytes: tail.to_vec(), compressed: false })
    }

    fn cut_chunks(
        &mut self,
        reader: &mut dyn ContentReader,
        piece: &Piece,
        chunk_len: u64,
        stored: &mut Stored,
    ) -> Result<CutRest> {
        let range = &piece.range;
        if self.context.plan.holes
            && reader.next_data(range.start)?.is_none_or(|data| data.start >= range.end)
        {
            // Holes may span terabytes, so they are not read.
            let mut digest = PieceDigest::new(self.is_verified, range.start);
            digest.add_zeros(range.end - range.start);
            self.seen = digest.finish();
            stored.push_empty(range.end - range.start, CutForm::Is(ClusterForm::Hole));
            return Ok((None, Some(chunk_len)));
        }
        self.read(reader, piece)?;
        for chunk in self.input.chunks(chunk_len as usize) {
            if self.context.plan.holes && is_zero(chunk) {
                stored.push_empty(chunk.len() as u64, CutForm::Is(ClusterForm::Hole));
            } else {
                let hash = xxhash_rust::xxh3::xxh3_128(chunk);
                stored.push_chunk(chunk, hash, self.cut.block_len as usize);
            }
        }
        Ok((None, Some(chunk_len)))
    }

    /// Cuts `input` from `from` on into clusters: shared candidates, and the data between them.
    fn cut_clusters(
        &mut self,
        piece: &Piece,
        recipe: &ClusterRecipe,
        from: usize,
        candidates: &[Candidate],
        end: End,
        stored: &mut Stored,
    ) -> Result<CutRest> {
        let measures = self.measures(recipe.cluster_len);
        let zeros_len = match (self.context.plan.holes, self.cut.byte_aligned) {
            (false, _) => None,
            (true, true) => Some(measures.cluster_len),
            (true, false) => Some(zeros_len(self.cut)),
        };
        let input = &self.input;
        let (at, rest) = self.coders.with(recipe, |coders| {
            let mut stretches = Stretches { measures, coders, zeros_len, scratch: &mut self.scratch, stored };
            let mut at = from;
            for candidate in candidates {
                let found = self.matcher.find(candidate, piece.range.start, input, at, measures.block_len);
                if let Some((start, cluster)) = found
                    && stretches.cut_before_shared(input, at..start)?
                {
                    at = start + cluster.len as usize;
                    stretches.stored.clusters.push(cluster);
                }
            }
            stretches.cut(input, at..input.len(), if piece.last { end } else { End::Own })
        })?;
        let tail = match (at, rest) {
            (_, Rest::Nothing) => None,
            (start, Rest::Packed(from)) => {
                Some(CutTail::Packed(TailBytes::new(input[start + from..].into())))
            }
            (start, Rest::Plain(from)) => Some(CutTail::Plain(input[start + from..].to_vec())),
            (_, Rest::Inline { bytes, compressed, .. }) => Some(CutTail::Inline { bytes, compressed }),
        };
        Ok((tail, None))
    }
}

impl conductor::Cutter for Cutter<'_> {
    type Hint = Vec<Candidate>;
    type Piece = StoredPiece;
    type Batch = Vec<u8>;
    type Packed = PackedSegment;

    fn cut(
        &mut self,
        piece: &Piece,
        candidates: &Vec<Candidate>,
        bytes: &mut Vec<u8>,
    ) -> Result<Cut<StoredPiece>> {
        let mut stored = Stored::new(mem::take(bytes));
        let cut = self.cut_piece(piece, candidates, &mut stored);
        *bytes = stored.bytes;
        let (tail, chunk_len) = cut?;
        let zeros_len = mem::take(&mut self.zeros_len);
        let piece = StoredPiece { clusters: stored.clusters, tail, chunk_len, zeros_len };
        Ok(Cut { piece, class: self.class, seen: self.seen })
    }

    fn end_span(&mut self, stored: &mut Vec<u8>) {
        stored.shrink_to_fit();
        if self.input.len() > SCRATCH_LEN {
            self.input = Vec::new();
        }
    }

    fn pack(&mut self, input: Vec<u8>) -> Result<PackedSegment> {
        let mut stored = Stored::new(Vec::new());
        match self.cut.recipes.get(usize::from(self.cut.packed_recipe)) {
            Some(Recipe::Clusters(recipe)) => {
                let measures = self.measures(recipe.cluster_len);
                self.coders.with(recipe, |coders| {
                    let encoders = Encoders::of(coders);
                    segment::cut(measures, &input, End::Own, encoders, &mut self.scratch, &mut stored)
                })?;
            }
            _ => stored.push_plain(&input, self.cut.block_len as usize, 0),
        }
        Ok(PackedSegment { len: input.len() as u64, clusters: stored.clusters, stored: stored.bytes })
    }
}

type CutRest = (Option<CutTail>, Option<u64>);

fn zeros_len(cut: &ClusterPlan) -> usize {
    let len = ZERO_BLOCKS * u64::from(cut.block_len);
    let most = u64::from(cut.decoded_len_max / cut.block_len * cut.block_len);
    len.min(most) as usize
}

/// Returns true if the source reports a hole that a chunk fits into.
fn has_hole(reader: &mut dyn ContentReader, len: u64, chunk_len: u64) -> Result<bool> {
    let mut offset: u64 = 0;
    while offset < len {
        let data = reader.next_data(offset)?.unwrap_or(len..len);
        if offset.next_multiple_of(chunk_len) + chunk_len <= data.start {
            return Ok(true);
        }
        offset = data.end.max(offset + 1);
    }
    Ok(false)
}
