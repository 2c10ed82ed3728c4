//! The deciding side of packing clusters: takes cut pieces in plan order, deduplicates chunks,
//! tails and zeros, writes, and builds the rows of each file.

use super::chunks::SeenChunks;
use super::cutter::{CutTail, Cutter, StoredPiece};
use super::files::{Rows, row};
use super::packed::{PackedStream, StoredStream};
use super::shape::{Shape, hole_max, piece_len, shape};
use super::share::{Candidate, Origin, Position, Region, candidates};
use super::stored::{CutCluster, CutForm};
use crate::conductor::{self, Cut};
use crate::context::{Context, Piece};
use crate::engine::Job;
use crate::seen::SeenTails;
use crate::spans::{Rules, SPAN_LEN};
use crate::spool::Spool;
use packfs_core::{Error, Result};
use packfs_format::{
    Cluster, ClusterForm, ClusterPlan, Clusters, ClustersPlaced, FileForm, FileJob, FilePlace,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use xxhash_rust::xxh3::Xxh3;

/// Inline tails kept in memory; more than that is spooled to a file beside the output.
const SPOOL_LEN: usize = 16 << 20;
const COPY_LEN: usize = 1 << 20;
/// Zeros of a flat file that form one row.
const ZEROS_LEN_MAX: u64 = 1 << 30;

pub(super) type Placement<'a, 'j> = conductor::Placement<'a, Placer<'j>>;

pub(super) struct Placer<'a> {
    pub context: &'a Context<'a, Clusters>,
    pub cut: &'a ClusterPlan,
    job: &'a Job<'a, Clusters>,
    hash: Xxh3,
    done: Position,
    pub rows: Rows,
    zeros: HashMap<(u16, u64), Cluster>,
    chunks: SeenChunks<'a>,
    pub inline: Spool,
    pub seen: SeenTails<'a, Clusters>,
    /// Starts in the packed stream of the tails that were in the base's, which are the first of
    /// `seen`.
    pub kept_tails: Vec<u64>,
    pub packed: PackedStream,
    stream: StoredStream,
    /// Starts of tails in the kept part of the base's stream that were counted already.
    kept_seen: HashSet<u64>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(job: &'a Job<'a, Clusters>) -> Self {
        let Job { context, reuse, .. } = *job;
        let cut = &context.plan.data;
        Placer {
            context,
            cut,
            job,
            hash: Xxh3::new(),
            done: Position { job: 0, offset: 0 },
            rows: Rows::default(),
            zeros: HashMap::new(),
            chunks: SeenChunks::new(context),
            inline: Spool::new(job.output, SPOOL_LEN),
            seen: SeenTails::new(context),
            kept_tails: Vec::new(),
            packed: PackedStream::new(cut.segment_len, reuse.map_or(0, |reuse| reuse.kept.len)),
            stream: StoredStream::new(job.output, cut.block_len),
            kept_seen: HashSet::new(),
        }
    }

    /// Returns the position up to which the earlier file of a region must be placed and may be
    /// used: all of another file; of the same file, the pieces before this one that the region
    /// covers.
    fn known_until(&self, job: u32, region: &Region) -> Position {
        let origin = region.origin;
        if origin.job != job {
            return Position { job: origin.job + 1, offset: 0 };
        }
        let file = &self.context.plan.files[origin.job as usize];
        let piece_len = piece_len(self.cut, file.storage, self.context.len(file.node));
        Position { job, offset: (origin.offset + region.len).next_multiple_of(piece_len) }
    }

    /// Sorted by their start in the piece.
    fn candidates(&self, placement: &Placement<'_, 'a>, piece: &Piece) -> Vec<Candidate> {
        let mut found = Vec::new();
        for region in self.job.parts.within(piece.job, &piece.range) {
            let file = &self.context.plan.files[region.origin.job as usize];
            if file.storage.recipe != self.context.job(piece).storage.recipe {
                continue;
            }
            let unfinished = self.rows.unfinished();
            let is_other = region.origin.job != piece.job;
            let origin = Origin {
                node: file.node,
                place: if is_other { &placement.placed.files[file.node.index()] } else { &unfinished },
                rows: &self.rows,
                end: if is_other {
                    self.context.len(file.node)
                } else {
                    self.known_until(piece.job, region).offset
                },
            };
            let block_len = self.cut.block_len;
            candidates(region, self.job.parts.slack, &piece.range, &origin, block_len, &mut found);
        }
        found.sort_by_key(|candidate| candidate.at);
        found
    }

    fn take_cut(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        cut: StoredPiece,
        stored: &[u8],
    ) -> Result<()> {
        let file = *self.context.job(piece);
        if let Some(chunk_len) = cut.chunk_len {
            self.align(placement)?;
            self.take_chunks(placement, piece, &cut, stored, chunk_len)?;
        } else {
            let plain = |cluster: &CutCluster| cluster.form == CutForm::Is(ClusterForm::Plain);
            if piece.range.start == 0 && (cut.zeros_len > 0 || cut.clusters.first().is_some_and(plain)) {
                self.align(placement)?;
            }
            self.take_clusters(placement, file.storage.recipe, &cut, stored)?;
            self.write_zeros(placement, cut.zeros_len)?;
        }
        let tail = self.take_tail(placement, piece, cut.tail)?;
        if piece.last {
            let first = placement.placed.files[file.node.index()].tail;
            let place = match cut.chunk_len {
                Some(chunk_len) => self.rows.end_chunks(chunk_len),
                None => self.rows.end(self.cut.block_len, tail),
            };
            if place.form == FileForm::Flat {
                self.align(placement)?;
            }
            placement.placed.files[file.node.index()] = FilePlace { tail: first.or(tail), ..place };
        } else if tail.is_some() && piece.range.start == 0 {
            // The place of a file packed in pieces into the packed stream is that of its first
            // piece.
            placement.placed.files[file.node.index()].tail = tail;
        }
        Ok(())
    }

    fn take_clusters(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        recipe: u16,
        cut: &StoredPiece,
        mut stored: &[u8],
    ) -> Result<()> {
        for cluster in &cut.clusters {
            let (now, later) = stored.split_at(cluster.space as usize);
            stored = later;
            let row = match &cluster.form {
                CutForm::Zeros(zeros) => self.zeros(placement, recipe, cluster.len, zeros)?,
                CutForm::Is(ClusterForm::Hole) => row(cluster, 0, ClusterForm::Hole),
                CutForm::Is(form) => row(cluster, placement.out.position(), *form),
                CutForm::Shared(offset, form) => row(cluster, *offset, *form),
                CutForm::Chunk(_) => row(cluster, placement.out.position(), ClusterForm::Plain),
            };
            self.rows.push(row, self.cut.block_len);
            self.write(placement, now)?;
        }
        Ok(())
    }

    /// Returns the cluster that represents `len` zeros in files with this recipe; it is written on
    /// first use.
    fn zeros(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        recipe: u16,
        len: u64,
        compressed: &[u8],
    ) -> Result<Cluster> {
        if let Some(&row) = self.zeros.get(&(recipe, len)) {
            return Ok(row);
        }
        let mut block = vec![0; compressed.len().next_multiple_of(self.cut.block_len as usize)];
        let padding = block.len() - compressed.len();
        block[padding..].copy_from_slice(compressed);
        let stored_len = compressed.len() as u32;
        let offset = placement.out.position();
        let row = Cluster { offset, len, stored_len, form: ClusterForm::Compressed, second: false };
        self.write(placement, &block)?;
        self.zeros.insert((recipe, len), row);
        Ok(row)
    }

    fn take_chunks(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        cut: &StoredPiece,
        mut stored: &[u8],
        chunk_len: u64,
    ) -> Result<()> {
        let node = self.context.node(piece.job);
        let mut offset = piece.range.start;
        for chunk in &cut.clusters {
            let (now, later) = stored.split_at(chunk.space as usize);
            stored = later;
            let row = match chunk.form {
                CutForm::Chunk(hash) => {
                    let bytes = &now[..chunk.len as usize];
                    let position = placement.out.position();
                    let found = if self.context.plan.dedupe { self.chunks.find(bytes, hash) } else { None };
                    if found.is_none() {
                        self.chunks.add(bytes, hash, position, node, offset);
                        self.write(placement, now)?;
                    }
                    row(chunk, found.unwrap_or(position), ClusterForm::Plain)
                }
                _ => row(chunk, 0, ClusterForm::Hole),
            };
            self.rows.push(row, chunk_len);
            offset += chunk.len;
        }
        Ok(())
    }

    pub(super) fn align(&mut self, placement: &mut Placement<'_, 'a>) -> Result<()> {
        let position = placement.out.position();
        let padding = position.next_multiple_of(self.cut.block_len.into()) - position;
        self.write(placement, &vec![0; padding as usize])
    }

    pub(super) fn write(&mut self, placement: &mut Placement<'_, 'a>, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        placement.write(bytes)
    }

    fn write_zeros(&mut self, placement: &mut Placement<'_, 'a>, len: u64) -> Result<()> {
        let mut left = len;
        while left > 0 {
            let part_len = left.min(ZEROS_LEN_MAX);
            let (offset, stored_len) = (placement.out.position(), part_len as u32);
            let row = Cluster { offset, len: part_len, stored_len, form: ClusterForm::Plain, second: false };
            self.rows.push(row, self.cut.block_len);
            self.job.progress.advance(0, 0, part_len);
            // Long runs of zeros are hashed by their length.
            self.hash.update(&part_len.to_le_bytes());
            placement.out.append_zeros(part_len)?;
            left -= part_len;
        }
        Ok(())
    }

    fn place_packed(
        &mut self,
        placement: &mut Placement<'_, 'a>,
    ) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        if self.packed.len() == 0 {
            return Ok(None);
        }
        placement.out.begin(0, self.stream.bytes.len())?;
        let start = placement.out.position();
        let mut buf = vec![0; COPY_LEN];
        let mut at = 0;
        while at < self.stream.bytes.len() {
            let len = (self.stream.bytes.len() - at).min(COPY_LEN as u64) as usize;
            self.stream.bytes.read(at, &mut buf[..len])?;
            self.write(placement, &buf[..len])?;
            at += len as u64;
        }
        self.rows.begin(self.cut.packed_recipe);
        for row in std::mem::take(&mut self.stream.rows.clusters) {
            self.rows.clusters.push(Cluster { offset: start + row.offset, ..row });
        }
        let place = self.rows.end(self.cut.block_len, None);
        Ok(Some((place, self.packed.len())))
    }
}

pub(super) fn hand_out(placement: &mut Placement<'_, '_>, segment: Vec<u8>) {
    placement.in_flight_len += segment.len() as u64;
    placement.hand_out(segment);
}

impl Rules<Clusters> for Placer<'_> {
    fn span_len(&self) -> u64 {
        SPAN_LEN
    }

    fn stored_from(&self, file: &FileJob<Clusters>) -> u64 {
        self.job.duplicates.stored_from(file.node, self.context.len(file.node))
    }

    fn piece_len(&self, file: &FileJob<Clusters>) -> u64 {
        piece_len(self.cut, file.storage, self.context.len(file.node))
    }

    fn hole_max(&self, file: &FileJob<Clusters>) -> u64 {
        hole_max(self.cut, file.storage, self.context.len(file.node))
    }

    fn joins(&self, pieces: &[Piece], piece: &Piece) -> bool {
        !self.job.parts.lead_into(piece, pieces)
    }
}

impl<'a> conductor::Placer for Placer<'a> {
    type Engine = Clusters;
    type Cutter = Cutter<'a>;

    fn copy_kept(&mut self, placement: &mut Placement<'_, 'a>) -> Result<()> {
        let Some(reuse) = self.job.reuse else { return Ok(()) };
        let recipe = self.cut.recipes.get(usize::from(self.cut.packed_recipe));
        self.stream.copy_kept(reuse, recipe, || placement.check_cancelled())?;
        for tail in &reuse.kept.tails {
            if let Some(hash) = tail.hash {
                self.seen.add_known(tail.node, tail.len, hash);
                self.kept_tails.push(tail.at);
            }
        }
        Ok(())
    }

    fn hints(&self, placement: &Placement<'_, 'a>, pieces: &[Piece]) -> Option<Vec<Vec<Candidate>>> {
        let may_start = pieces.iter().all(|piece| {
            let regions = self.job.parts.within(piece.job, &piece.range);
            regions.iter().all(|region| self.known_until(piece.job, region) <= self.done)
        });
        may_start.then(|| pieces.iter().map(|piece| self.candidates(placement, piece)).collect())
    }

    fn close(&mut self, placement: &mut Placement<'_, 'a>) {
        if self.job.options.fills_stream {
            let gap = self.packed.len().wrapping_neg() % u64::from(self.cut.block_len.max(1));
            self.append_packed(placement, &vec![0; gap as usize]);
        }
        if let Some(segment) = self.packed.finish() {
            hand_out(placement, segment);
        }
    }

    fn begin_file(&mut self, placement: &mut Placement<'_, 'a>, piece: &Piece) -> Result<()> {
        let file = self.context.job(piece);
        self.rows.begin(file.storage.recipe);
        let len = self.context.len(file.node);
        if matches!(shape(self.cut, file.storage, len), Shape::Stream) {
            return Ok(());
        }
        let space = len.next_multiple_of(self.cut.block_len.into());
        let at_path = |error: Error| error.at(format_args!("{:?}", self.context.tree.path(file.node)));
        placement.out.begin(file.storage.data_file, space).map_err(at_path)
    }

    fn take(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        cut: Cut<StoredPiece>,
        (stored, range): (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64> {
        let (before, packed_before) = (placement.out.position(), self.packed.len());
        let Cut { piece: cut, class, .. } = cut;
        let node = self.context.node(piece.job);
        if let Some(CutTail::Kept(at)) = cut.tail
            && let Some(kept) = self.job.reuse.and_then(|reuse| reuse.kept.tail(node))
            && self.kept_seen.insert(at)
        {
            placement.by_class.add_shared((node, class), at, kept.len.into());
        }
        self.take_cut(placement, piece, cut, &stored[range])?;
        let packed_len = self.packed.len() - packed_before;
        if packed_len > 0 {
            placement.by_class.add_shared((node, class), packed_before, packed_len);
        }
        Ok(placement.out.position() - before)
    }

    fn end_piece(&mut self, piece: &Piece, lost: bool) {
        if lost {
            self.rows.drop_file();
        }
        self.done = if piece.last {
            Position { job: piece.job + 1, offset: 0 }
        } else {
            Position { job: piece.job, offset: piece.range.end }
        };
    }

    fn end_span(&mut self, placement: &mut Placement<'_, 'a>, span_len: u64) {
        placement.in_flight_len -= span_len;
    }

    fn write_ready(&mut self, placement: &mut Placement<'_, 'a>) -> Result<()> {
        while let Some(segment) = placement.packed.take() {
            self.stream.push(&segment.clusters, &segment.stored)?;
            placement.in_flight_len -= segment.len;
        }
        Ok(())
    }

    fn finish(mut self, placement: &mut Placement<'_, 'a>) -> Result<Vec<(u64, u64)>> {
        self.align(placement)?;
        let packed = self.place_packed(placement)?;
        self.align(placement)?;
        placement.placed.data_end = placement.out.position();
        placement.placed.data = ClustersPlaced {
            clusters: self.rows.clusters,
            packed,
            tails: Box::new(self.inline),
            hash: self.hash.digest128(),
            files: placement.out.finish()?,
        };
        if let Some(last) = placement.placed.data.files.last() {
            placement.placed.data_end = last.end;
        }
        let packed = packed.map(|(place, _)| place).unwrap_or_default();
        let clusters = placement.placed.clusters_of(&packed).iter();
        Ok(clusters.map(|row| (row.len, row.stored_len.into())).collect())
    }
}
