//! What worker threads do: read pieces of files and cut them as their recipes say.

use super::coder::Coder;
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
use crate::engine::Job;
use crate::gain::Gain;
use crate::seen::TailBytes;
use crate::witness::Witness;
use packfs_core::{ContentReader, Error, NodeId, Result, Witnessed};
use packfs_format::{ClusterForm, ClusterPlan, ClusterRecipe, Clusters, Recipe};
use std::mem;
use std::sync::Arc;

/// Zeros that one shared cluster stands for, in blocks: LZ4 gets them into one block, and shorter
/// runs cost little anyway.
const ZERO_BLOCKS: u64 = 128;
/// What is left of a file that is copied may go to the packed stream if it is no longer than so
/// many full clusters decode to where nothing shrinks much.
const REST_CLUSTERS: u64 = 4;
/// Scratch of a thread that is longer than this is not kept.
const SCRATCH_LEN: usize = 2 << 20;

/// What is at the end of a file, and not among its clusters.
pub(super) enum CutTail {
    /// For the packed stream, if it is not there yet.
    Packed(TailBytes),
    /// Less than a block: for the format if all before it is plain, else a plain block.
    Plain(Vec<u8>),
    /// In the packed stream already, from this byte of it on.
    Kept(u64),
    /// For the packed stream, as it is.
    Stream(Vec<u8>),
    /// For the format.
    Inline { bytes: Vec<u8>, compressed: bool },
}

/// The clusters and the tail of a piece.
pub(super) struct StoredPiece {
    pub clusters: Vec<CutCluster>,
    pub tail: Option<CutTail>,
    /// The file is stored in chunks of this length.
    pub chunk_len: Option<u64>,
    /// So many zeros are stored of it, as they are, and nothing else.
    pub zeros_len: u64,
    /// What [`CutForm::Zeros`] stand for, if there are any: the cluster they share, without
    /// padding.
    pub zeros: Option<Arc<[u8]>>,
}

/// A segment of the packed stream that is compressed.
pub(super) struct PackedSegment {
    /// Bytes of the stream.
    pub len: u64,
    pub clusters: Vec<CutCluster>,
    pub stored: Vec<u8>,
}

/// One worker's encoders and scratch.
pub(super) struct Cutter<'a> {
    context: &'a Context<'a, Clusters>,
    reuse: Option<&'a Reuse<'a, KeptStream>>,
    cut: &'a ClusterPlan,
    gain: Gain,
    coders: Vec<Coder>,
    matcher: Matcher<'a>,
    old: Option<OldClusters<'a>>,
    input: Vec<u8>,
    /// What the file is of which that is a piece.
    class: Class,
    /// What was seen of that piece.
    seen: Witnessed,
    is_verified: bool,
    /// Zeros that stand for the whole piece, in bytes; 0 for other pieces.
    zeros_len: u64,
    scratch: Vec<u8>,
    /// The file of the last piece, if more of it is to come.
    kept: Option<(NodeId, Box<dyn ContentReader + 'a>)>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(job: &Job<'a, Clusters>) -> Result<Self> {
        let Job { context, reuse, options, .. } = *job;
        let cut = &context.plan.data;
        let mut coders: Vec<Coder> = Vec::new();
        for recipe in &cut.recipes {
            let Recipe::Clusters(recipe) = recipe else { continue };
            for codec in recipe.codecs() {
                if !coders.iter().any(|coder| coder.settings == *codec) {
                    let encoder = options.effort.fit_encoder(codec)?;
                    coders.push(Coder::new(codec.clone(), encoder));
                }
            }
        }
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
            seen: Witnessed::default(),
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
        // Of what is copied unseen only the name is known.
        self.class = Class::of(self.context.tree.first_name(job.node), &[]);
        if let Some(reuse) = self.reuse
            && let Some(kept) = reuse.kept.tail(job.node)
            && matches!(shape, Shape::Stream | Shape::Whole { .. })
        {
            self.seen = reuse.kept_is_known(job.node);
            return Ok(((piece.range.start == 0).then_some(CutTail::Kept(kept.at)), None, None));
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
                Ok((Some(CutTail::Stream(self.input.clone())), None, None))
            }
            Shape::Whole { else_by } => {
                self.read(reader, piece)?;
                if let Some(recipe) = else_by
                    && self.is_better_flat(file_len)
                {
                    return self.cut_clusters(piece, recipe, 0, &[], End::Packed, stored);
                }
                Ok((Some(CutTail::Packed(TailBytes::new(self.input.as_slice().into()))), None, None))
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
                Ok((self.cut_flat(piece, end, stored), None, None))
            }
        }
    }

    /// Cuts a piece that is a hole without reading it, where that makes a difference.
    fn cut_hole(&mut self, piece: &Piece, shape: Shape<'_>, stored: &mut Stored) -> Result<Option<CutRest>> {
        let len = piece.len();
        let holes = self.context.plan.holes;
        let cut = match shape {
            Shape::Flat { sparse_chunk_len, .. } if !holes || sparse_chunk_len.is_none() => {
                self.zeros_len = len;
                (None, None, None)
            }
            Shape::Clusters { .. } if holes && self.cut.byte_aligned => {
                stored.push_empty(len, CutForm::Is(ClusterForm::Hole));
                (None, None, None)
            }
            Shape::Clusters { recipe, .. } if holes => {
                let zeros_len = zeros_len(self.cut) as u64;
                let (coder, _) = coders(&mut self.coders, recipe)?;
                let zeros = coder.zeros(zeros_len as usize, self.cut.block_len as usize)?;
                if zeros.is_none() || !len.is_multiple_of(zeros_len) {
                    return Ok(None);
                }
                (0..len / zeros_len).for_each(|_| stored.push_empty(zeros_len, CutForm::Zeros));
                (None, None, zeros)
            }
            _ => return Ok(None),
        };
        let mut witness = Witness::new(self.is_verified, piece.range.start);
        witness.saw_zeros(len);
        self.seen = witness.finish();
        Ok(Some(cut))
    }

    fn may_be_old(&self, piece: &Piece) -> bool {
        let reuse = self.reuse.filter(|_| self.old.is_some());
        reuse.is_some_and(|reuse| reuse.match_of(self.context.node(piece.job)).is_some())
    }

    /// Copies from the base what of a piece is still there from its start on, and cuts the rest.
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
        let mut witness = Witness::new(self.is_verified && !is_read, piece.range.start);
        let copied = self.old.as_mut().map_or(0, |old| old.copy(piece, recipe, input, stored, &mut witness));
        let at = piece.range.start + copied as u64;
        if !is_read {
            self.seen = witness.finish();
        }
        if at == piece.range.end {
            return Ok((None, None, None));
        }
        let node = self.context.node(piece.job);
        if let Some(reuse) = self.reuse
            && let Some(kept) = reuse.kept.tail(node).filter(|kept| piece.last && kept.from == at)
        {
            if !is_read {
                self.seen = self.seen.and(reuse.kept_is_known(node));
            }
            return Ok((Some(CutTail::Kept(kept.at)), None, None));
        }
        if !is_read {
            self.read(reader, piece)?;
        }
        let rest_max = REST_CLUSTERS * u64::from(recipe.cluster_len);
        // What was in the packed stream goes there again, as the cut before would be made at the
        // same place.
        if piece.last && end == End::Packed && copied > 0 && piece.range.end - at <= rest_max {
            let rest = TailBytes::new(self.input[copied..].into());
            return Ok((Some(CutTail::Packed(rest)), None, None));
        }
        self.cut_clusters(piece, recipe, copied, &[], end, stored)
    }

    /// Whether a file that may go to the packed stream as a whole gains nothing there.
    fn is_better_flat(&self, len: u64) -> bool {
        let block_len = self.cut.block_len as usize;
        len > 4 * block_len as u64 && super::doubt::all_looks_incompressible(&self.input, block_len)
    }

    /// Reads a piece into `input`.
    fn read(&mut self, reader: &mut dyn ContentReader, piece: &Piece) -> Result<()> {
        let range = &piece.range;
        self.input.clear();
        let mut offset = range.start;
        // Long holes are not read.
        while offset < range.end {
            let data = reader.next_data(offset)?.unwrap_or(range.end..range.end);
            let start = data.start.clamp(offset, range.end);
            self.input.resize((start - range.start) as usize, 0);
            let end = data.end.clamp(start, range.end);
            self.input.resize((end - range.start) as usize, 0);
            reader.read_exact_at(start, &mut self.input[(start - range.start) as usize..])?;
            if end <= offset {
                return Err(Error::failed("internal: a source's runs of data do not go on"));
            }
            offset = end;
        }
        let mut witness = Witness::new(self.is_verified, range.start);
        witness.saw(&self.input);
        self.seen = witness.finish();
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
            // Nothing to read: files may have terabytes of it.
            let mut witness = Witness::new(self.is_verified, range.start);
            witness.saw_zeros(range.end - range.start);
            self.seen = witness.finish();
            stored.push_empty(range.end - range.start, CutForm::Is(ClusterForm::Hole));
            return Ok((None, Some(chunk_len), None));
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
        Ok((None, Some(chunk_len), None))
    }

    /// Cuts what is in `input` from there on into clusters: what may be shared, and the stretches
    /// between.
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
        let (coder, second) = coders(&mut self.coders, recipe)?;
        let zeros_len = match (self.context.plan.holes, self.cut.byte_aligned) {
            (false, _) => None,
            (true, true) => Some(measures.cluster_len),
            (true, false) => Some(zeros_len(self.cut)),
        };
        let input = &self.input;
        let mut stretches =
            Stretches { measures, coder, second, zeros_len, scratch: &mut self.scratch, stored, zeros: None };
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
        let end = if piece.last { end } else { End::Own };
        let tail = match stretches.cut(input, at..input.len(), end)? {
            (_, Rest::Nothing) => None,
            (start, Rest::Packed(from)) => {
                Some(CutTail::Packed(TailBytes::new(input[start + from..].into())))
            }
            (start, Rest::Plain(from)) => Some(CutTail::Plain(input[start + from..].to_vec())),
            (_, Rest::Inline { bytes, compressed, .. }) => Some(CutTail::Inline { bytes, compressed }),
        };
        Ok((tail, None, stretches.zeros))
    }
}

impl conductor::Cutter for Cutter<'_> {
    /// The stored clusters that a piece may share.
    type Hint = Vec<Candidate>;
    type Piece = StoredPiece;
    /// A segment of the packed stream.
    type Batch = Vec<u8>;
    type Packed = PackedSegment;

    fn cut(
        &mut self,
        piece: &Piece,
        candidates: &Vec<Candidate>,
        bytes: &mut Vec<u8>,
    ) -> Result<Cut<StoredPiece>> {
        let mut stored = Stored { bytes: mem::take(bytes), clusters: Vec::new() };
        let cut = self.cut_piece(piece, candidates, &mut stored);
        *bytes = stored.bytes;
        let (tail, chunk_len, zeros) = cut?;
        let zeros_len = mem::take(&mut self.zeros_len);
        let piece = StoredPiece { clusters: stored.clusters, tail, chunk_len, zeros_len, zeros };
        Ok(Cut { piece, class: self.class, seen: self.seen })
    }

    fn end_span(&mut self, stored: &mut Vec<u8>) {
        stored.shrink_to_fit();
        if self.input.len() > SCRATCH_LEN {
            self.input = Vec::new();
        }
    }

    fn pack(&mut self, input: Vec<u8>) -> Result<PackedSegment> {
        let mut stored = Stored::default();
        match self.cut.recipes.get(usize::from(self.cut.packed_recipe)) {
            Some(Recipe::Clusters(recipe)) => {
                let measures = self.measures(recipe.cluster_len);
                let (coder, second) = coders(&mut self.coders, recipe)?;
                let encoders = Encoders::of(coder, second);
                segment::cut(measures, &input, End::Own, encoders, &mut self.scratch, &mut stored)?;
            }
            _ => stored.push_plain(&input, self.cut.block_len as usize, 0),
        }
        Ok(PackedSegment { len: input.len() as u64, clusters: stored.clusters, stored: stored.bytes })
    }
}

/// The tail of a piece, its file's chunk length, and what its zeros share.
type CutRest = (Option<CutTail>, Option<u64>, Option<Arc<[u8]>>);

/// The coders of a recipe.
fn coders<'c>(
    coders: &'c mut [Coder],
    recipe: &ClusterRecipe,
) -> Result<(&'c mut Coder, Option<&'c mut Coder>)> {
    let (mut one, mut other) = (None, None);
    for coder in coders {
        if coder.settings == recipe.codec {
            one = Some(coder);
        } else if Some(&coder.settings) == recipe.second.as_ref() {
            other = Some(coder);
        }
    }
    match one {
        Some(one) if other.is_some() == recipe.second.is_some() => Ok((one, other)),
        _ => Err(Error::failed("internal: a recipe without an encoder")),
    }
}

/// How many zeros one shared cluster stands for.
fn zeros_len(cut: &ClusterPlan) -> usize {
    let len = ZERO_BLOCKS * u64::from(cut.block_len);
    let most = u64::from(cut.decoded_len_max / cut.block_len * cut.block_len);
    len.min(most) as usize
}

/// Whether a source knows of a hole that a chunk fits into.
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
