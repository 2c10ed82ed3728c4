//! Takes what workers cut, in plan order, and decides and writes: which chunk, tail or run of zeros
//! is there already, what comes next in the image, and what each file's rows are.

use super::chunks::SeenChunks;
use super::cutter::{CutTail, Cutter, StoredPiece};
use super::files::{Rows, row};
use super::packed::{PackedStream, StoredStream};
use super::shape::{Shape, hole_max, piece_len, shape};
use super::share::{Candidate, Origin, Region, Spot, candidates};
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

/// Inline tails kept in memory; more than that lies beside the output.
const SPOOL_LEN: usize = 16 << 20;
const COPY_LEN: usize = 1 << 20;
/// Zeros of a flat file that are one row.
const ZEROS_LEN_MAX: u64 = 1 << 30;

pub(super) type Desk<'a, 'j> = conductor::Desk<'a, Placer<'j>>;

pub(super) struct Placer<'a> {
    pub context: &'a Context<'a, Clusters>,
    pub cut: &'a ClusterPlan,
    job: &'a Job<'a, Clusters>,
    hash: Xxh3,
    /// All before it is placed.
    done: Spot,
    pub rows: Rows,
    /// Where shared clusters of zeros lie, by recipe and length.
    zeros: HashMap<(u16, u64), Cluster>,
    chunks: SeenChunks<'a>,
    pub inline: Spool,
    pub seen: SeenTails<'a, Clusters>,
    /// Where each seen tail starts in the packed stream.
    pub tail_offsets: Vec<u64>,
    pub packed: PackedStream,
    /// What is stored of the packed stream, until all files are written: the stream lies in one
    /// piece behind them.
    stream: StoredStream,
    /// Where tails lie in what stays of the base's stream, as far as they were counted.
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
            done: Spot { job: 0, offset: 0 },
            rows: Rows::default(),
            zeros: HashMap::new(),
            chunks: SeenChunks::new(context),
            inline: Spool::new(job.output, SPOOL_LEN),
            seen: SeenTails::new(context),
            tail_offsets: Vec::new(),
            packed: PackedStream::new(cut.segment_len, reuse.map_or(0, |reuse| reuse.kept.len)),
            stream: StoredStream::new(job.output, cut.block_len),
            kept_seen: HashSet::new(),
        }
    }

    /// How much of the earlier file of a region must be placed, and may be used: all of another
    /// file; of the same file the pieces that the region reaches into.
    fn known_until(&self, job: u32, region: &Region) -> Spot {
        let origin = region.origin;
        if origin.job != job {
            return Spot { job: origin.job + 1, offset: 0 };
        }
        let file = &self.context.plan.files[origin.job as usize];
        let piece_len = piece_len(self.cut, file.storage, self.context.len(file.node));
        Spot { job, offset: (origin.offset + region.len).next_multiple_of(piece_len) }
    }

    /// The stored clusters that a piece may share, by where they would start in it.
    fn candidates(&self, desk: &Desk<'_, 'a>, piece: &Piece) -> Vec<Candidate> {
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
                place: if is_other { &desk.placed.files[file.node.index()] } else { &unfinished },
                rows: &self.rows,
                end: match is_other {
                    true => self.context.len(file.node),
                    false => self.known_until(piece.job, region).offset,
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
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        cut: StoredPiece,
        stored: &[u8],
    ) -> Result<()> {
        let file = *self.context.job(piece);
        if let Some(chunk_len) = cut.chunk_len {
            self.align(desk)?;
            self.take_chunks(desk, piece, &cut, stored, chunk_len)?;
        } else {
            let plain = |cluster: &CutCluster| cluster.form == CutForm::Is(ClusterForm::Plain);
            if piece.range.start == 0 && (cut.zeros_len > 0 || cut.clusters.first().is_some_and(plain)) {
                self.align(desk)?;
            }
            self.take_clusters(desk, file.storage.recipe, &cut, stored)?;
            self.write_zeros(desk, cut.zeros_len)?;
        }
        let tail = self.take_tail(desk, piece, cut.tail)?;
        if piece.last {
            let first = desk.placed.files[file.node.index()].tail;
            let place = match cut.chunk_len {
                Some(chunk_len) => self.rows.end_chunks(chunk_len),
                None => self.rows.end(self.cut.block_len, tail),
            };
            if place.form == FileForm::Flat {
                self.align(desk)?;
            }
            desk.placed.files[file.node.index()] = FilePlace { tail: first.or(tail), ..place };
        } else if tail.is_some() && piece.range.start == 0 {
            // A file that goes to the packed stream piece by piece lies where its first piece lies.
            desk.placed.files[file.node.index()].tail = tail;
        }
        Ok(())
    }

    /// Writes clusters and notes where they are.
    fn take_clusters(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        recipe: u16,
        cut: &StoredPiece,
        mut stored: &[u8],
    ) -> Result<()> {
        for cluster in &cut.clusters {
            let (now, later) = stored.split_at(cluster.space as usize);
            stored = later;
            let row = match cluster.form {
                CutForm::Zeros => self.zeros(desk, recipe, cluster.len, cut.zeros.as_deref())?,
                CutForm::Is(ClusterForm::Hole) => row(cluster, 0, ClusterForm::Hole),
                CutForm::Is(form) => row(cluster, desk.out.position(), form),
                CutForm::Shared(offset, form) => row(cluster, offset, form),
                CutForm::Chunk(_) => row(cluster, desk.out.position(), ClusterForm::Plain),
            };
            self.rows.push(row, self.cut.block_len);
            self.write(desk, now)?;
        }
        Ok(())
    }

    /// The cluster that so many zeros of files with this recipe share; written when it is first
    /// needed.
    fn zeros(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        recipe: u16,
        len: u64,
        compressed: Option<&[u8]>,
    ) -> Result<Cluster> {
        if let Some(&row) = self.zeros.get(&(recipe, len)) {
            return Ok(row);
        }
        let compressed = compressed.ok_or_else(|| Error::failed("internal: no cluster stands for zeros"))?;
        let mut block = vec![0; compressed.len().next_multiple_of(self.cut.block_len as usize)];
        let padding = block.len() - compressed.len();
        block[padding..].copy_from_slice(compressed);
        let stored_len = compressed.len() as u32;
        let offset = desk.out.position();
        let row = Cluster { offset, len, stored_len, form: ClusterForm::Compressed, second: false };
        self.write(desk, &block)?;
        self.zeros.insert((recipe, len), row);
        Ok(row)
    }

    /// Writes the chunks that are not in the image yet.
    fn take_chunks(
        &mut self,
        desk: &mut Desk<'_, 'a>,
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
                    let position = desk.out.position();
                    let found = match self.context.plan.dedupe {
                        true => self.chunks.find(bytes, hash),
                        false => None,
                    };
                    if found.is_none() {
                        self.chunks.add(bytes, hash, position, node, offset);
                        self.write(desk, now)?;
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

    pub(super) fn align(&mut self, desk: &mut Desk<'_, 'a>) -> Result<()> {
        let position = desk.out.position();
        let padding = position.next_multiple_of(self.cut.block_len.into()) - position;
        self.write(desk, &vec![0; padding as usize])
    }

    pub(super) fn write(&mut self, desk: &mut Desk<'_, 'a>, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        desk.write(bytes)
    }

    /// Writes zeros of a flat file.
    fn write_zeros(&mut self, desk: &mut Desk<'_, 'a>, len: u64) -> Result<()> {
        let mut left = len;
        while left > 0 {
            let part_len = left.min(ZEROS_LEN_MAX);
            let (offset, stored_len) = (desk.out.position(), part_len as u32);
            let row = Cluster { offset, len: part_len, stored_len, form: ClusterForm::Plain, second: false };
            self.rows.push(row, self.cut.block_len);
            self.job.progress.advance(0, 0, part_len);
            // Of zeros without end their length is hashed.
            self.hash.update(&part_len.to_le_bytes());
            desk.out.append_zeros(part_len)?;
            left -= part_len;
        }
        Ok(())
    }

    fn place_packed(&mut self, desk: &mut Desk<'_, 'a>) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        if self.packed.len() == 0 {
            return Ok(None);
        }
        desk.out.begin(0, self.stream.bytes.len())?;
        let start = desk.out.position();
        let mut buf = vec![0; COPY_LEN];
        let mut at = 0;
        while at < self.stream.bytes.len() {
            let len = (self.stream.bytes.len() - at).min(COPY_LEN as u64) as usize;
            self.stream.bytes.read(at, &mut buf[..len])?;
            self.write(desk, &buf[..len])?;
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

/// Hands out a segment of the packed stream.
pub(super) fn hand_out(desk: &mut Desk<'_, '_>, segment: Vec<u8>) {
    desk.in_flight_len += segment.len() as u64;
    desk.hand_out(segment);
}

impl Rules<Clusters> for Placer<'_> {
    fn span_len(&self) -> u64 {
        SPAN_LEN
    }

    fn own_from(&self, file: &FileJob<Clusters>) -> u64 {
        self.job.twins.own_from(file.node, self.context.len(file.node))
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

    /// Begins the packed stream with what stays of the base's, and notes which tails lie there.
    fn copy_kept(&mut self, desk: &mut Desk<'_, 'a>) -> Result<()> {
        let Some(reuse) = self.job.reuse else { return Ok(()) };
        let recipe = self.cut.recipes.get(usize::from(self.cut.packed_recipe));
        self.stream.copy_kept(reuse, recipe, || desk.check_cancelled())?;
        for tail in &reuse.kept.tails {
            if let Some(hash) = tail.hash {
                self.seen.add_known(tail.node, tail.from + u64::from(tail.len), tail.len, hash);
                self.tail_offsets.push(tail.at);
            }
        }
        Ok(())
    }

    /// Returns the stored clusters that each piece may share, once all of them are placed.
    fn hints(&self, desk: &Desk<'_, 'a>, pieces: &[Piece]) -> Option<Vec<Vec<Candidate>>> {
        let may_start = pieces.iter().all(|piece| {
            let regions = self.job.parts.within(piece.job, &piece.range);
            regions.iter().all(|region| self.known_until(piece.job, region) <= self.done)
        });
        may_start.then(|| pieces.iter().map(|piece| self.candidates(desk, piece)).collect())
    }

    fn close(&mut self, desk: &mut Desk<'_, 'a>) {
        if let Some(segment) = self.packed.finish() {
            hand_out(desk, segment);
        }
    }

    fn begin_file(&mut self, desk: &mut Desk<'_, 'a>, piece: &Piece) -> Result<()> {
        let file = self.context.job(piece);
        self.rows.begin(file.storage.recipe);
        let len = self.context.len(file.node);
        if matches!(shape(self.cut, file.storage, len), Shape::Stream) {
            return Ok(());
        }
        let space = len.next_multiple_of(self.cut.block_len.into());
        let at_path = |error: Error| error.at(format_args!("{:?}", self.context.tree.path(file.node)));
        desk.out.begin(file.storage.data_file, space).map_err(at_path)
    }

    fn take(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        cut: Cut<StoredPiece>,
        (stored, range): (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64> {
        let (before, packed_before) = (desk.out.position(), self.packed.len());
        let Cut { piece: cut, class, .. } = cut;
        if let Some(CutTail::Kept(at)) = cut.tail
            && let Some(kept) = self.job.reuse.and_then(|reuse| reuse.kept.tail(self.context.node(piece.job)))
            && self.kept_seen.insert(at)
        {
            desk.by_class.add_shared(class, at, kept.len.into());
        }
        self.take_cut(desk, piece, cut, &stored[range])?;
        let packed_len = self.packed.len() - packed_before;
        if packed_len > 0 {
            desk.by_class.add_shared(class, packed_before, packed_len);
        }
        Ok(desk.out.position() - before)
    }

    fn end_piece(&mut self, piece: &Piece, lost: bool) {
        if lost {
            self.rows.drop_file();
        }
        self.done = match piece.last {
            true => Spot { job: piece.job + 1, offset: 0 },
            false => Spot { job: piece.job, offset: piece.range.end },
        };
    }

    fn end_span(&mut self, desk: &mut Desk<'_, 'a>, span_len: u64) {
        desk.in_flight_len -= span_len;
    }

    /// Keeps the segments of the packed stream that are compressed.
    fn go_on(&mut self, desk: &mut Desk<'_, 'a>) -> Result<()> {
        while let Some(segment) = desk.packed.take() {
            self.stream.push(&segment.clusters, &segment.stored)?;
            desk.in_flight_len -= segment.len;
        }
        Ok(())
    }

    /// Writes the packed stream.
    fn finish(mut self, desk: &mut Desk<'_, 'a>) -> Result<Vec<(u64, u64)>> {
        self.align(desk)?;
        let packed = self.place_packed(desk)?;
        self.align(desk)?;
        desk.placed.data_end = desk.out.position();
        desk.placed.data = ClustersPlaced {
            clusters: self.rows.clusters,
            packed,
            tails: Box::new(self.inline),
            hash: self.hash.digest128(),
            files: desk.out.finish()?,
        };
        if let Some(last) = desk.placed.data.files.last() {
            desk.placed.data_end = last.end;
        }
        let packed = packed.map(|(place, _)| place).unwrap_or_default();
        let clusters = desk.placed.clusters_of(&packed).iter();
        Ok(clusters.map(|row| (row.len, row.stored_len.into())).collect())
    }
}
