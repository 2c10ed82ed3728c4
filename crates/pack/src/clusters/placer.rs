//! Takes what workers cut, in plan order, and decides and writes: which chunk, tail or run of zeros is there already,
//! what comes next in the image, and what each file's rows are.

use super::chunks::SeenChunks;
use super::cutter::{CutPiece, CutSpan, CutTail};
use super::files::Rows;
use super::packed::PackedStream;
use super::shape::{Shape, hole_max, piece_len, shape};
use super::share::{Candidate, Origin, Region, Regions, Spot, candidates};
use super::stored::{CutCluster, CutForm, rotated};
use super::{Answer, Task};
use crate::base::{BaseReader, is_second};
use crate::by_class::ByClass;
use crate::context::{Context, Piece};
use crate::data_row::DataRow;
use crate::engine::{Job, Stored};
use crate::failures::Failures;
use crate::queue::{InOrder, TaskQueue};
use crate::seen::{SeenTails, TailBytes};
use crate::spans::{Rules, SPAN_LEN, Spans};
use crate::spool::Spool;
use crate::witness::Testimony;
use packfs_codec::without_padding;
use packfs_core::{Error, Result};
use packfs_format::{
    Cluster, ClusterForm, ClusterPlan, Clusters, ClustersPlaced, FileForm, FileJob, FilePlace, InlineTail,
    Placed, TailPlace,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::Receiver;
use xxhash_rust::xxh3::Xxh3;

/// Inline tails, and stored parts of the packed stream, kept in memory; more than that lies beside the output.
const SPOOL_LEN: usize = 16 << 20;
const COPY_LEN: usize = 1 << 20;
/// Zeros of a flat file that are one row.
const ZEROS_LEN_MAX: u64 = 1 << 30;
/// Spans that wait for what they share: each is looked at whenever something was placed.
const HELD_MAX: usize = 32;
/// A flat file's last block may waste this part of the file, before its tail goes to the packed stream.
const FLAT_WASTE_SHARE: u64 = 64;

pub(super) struct Placer<'a> {
    context: &'a Context<'a, Clusters>,
    cut: &'a ClusterPlan,
    job: &'a Job<'a, Clusters>,
    regions: &'a Regions,
    queue: &'a TaskQueue<Task>,
    out: DataRow<'a>,
    testimony: &'a mut Testimony,
    hash: Xxh3,
    placed: Placed<Clusters>,
    failures: Failures,
    /// Input handed out and not yet taken back.
    in_flight_len: u64,
    /// All before it is placed.
    done: Spot,
    spans: InOrder<(Vec<Piece>, CutSpan)>,
    span_lens: VecDeque<u64>,
    rows: Rows,
    /// Where shared clusters of zeros lie, by recipe and length.
    zeros: HashMap<(u16, u64), Cluster>,
    chunks: SeenChunks<'a>,
    inline: Spool,
    seen: SeenTails<'a, Clusters>,
    /// Where each seen tail starts in the packed stream.
    tail_offsets: Vec<u64>,
    packed: PackedStream,
    is_behind_first_used: bool,
    packed_count: u64,
    packed_done: InOrder<(u64, Vec<CutCluster>, Vec<u8>)>,
    /// What is stored of the packed stream, until all files are written: the stream lies in one piece behind them.
    packed_stored: Spool,
    /// Its rows, as if it started at the image's start.
    packed_rows: Rows,
    by_class: ByClass,
    /// Where tails lie in what stays of the base's stream, as far as they were counted.
    kept_seen: HashSet<u64>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(
        job: &'a Job<'a, Clusters>,
        queue: &'a TaskQueue<Task>,
        out: DataRow<'a>,
        testimony: &'a mut Testimony,
    ) -> Self {
        let Job { context, reuse, parts: regions, .. } = *job;
        let cut = &context.plan.data;
        let node_count = context.tree.node_count() as usize;
        let kept_len = reuse.map_or(0, |reuse| reuse.kept.len);
        Placer {
            context,
            cut,
            job,
            regions,
            queue,
            out,
            testimony,
            hash: Xxh3::new(),
            placed: Placed { files: vec![FilePlace::default(); node_count], ..Placed::default() },
            failures: Failures::default(),
            in_flight_len: 0,
            done: Spot { job: 0, offset: 0 },
            spans: InOrder::new(),
            span_lens: VecDeque::new(),
            rows: Rows::default(),
            zeros: HashMap::new(),
            chunks: SeenChunks::new(context),
            inline: Spool::new(job.output, SPOOL_LEN),
            seen: SeenTails::new(context),
            tail_offsets: Vec::new(),
            is_behind_first_used: false,
            packed: PackedStream::new(cut.segment_len, kept_len),
            packed_count: 0,
            packed_done: InOrder::new(),
            packed_stored: Spool::new(job.output, SPOOL_LEN),
            packed_rows: Rows::default(),
            by_class: ByClass::default(),
            kept_seen: HashSet::new(),
        }
    }

    /// Begins the packed stream with what stays of the base's, and notes which tails lie there.
    pub(super) fn copy_kept(&mut self) -> Result<()> {
        let Some(reuse) = self.job.reuse else { return Ok(()) };
        let recipe = self.cut.recipes.get(usize::from(self.cut.packed_recipe));
        let mut reader = BaseReader::new(reuse.base);
        for cluster in &reuse.kept.clusters {
            if self.job.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let (row, offset) = match cluster.block {
                Some(block) => {
                    let stored = reader.stored(&block)?;
                    let stored_len = without_padding(stored).len() as u32;
                    let (form, second) = (ClusterForm::Compressed, is_second(recipe, &block));
                    let row = Cluster { offset: 0, len: block.decoded_len.into(), stored_len, form, second };
                    (row, self.packed_stored.append(stored)?)
                }
                None => {
                    let plain = reader.plain(cluster.offset, cluster.len)?;
                    let padding = vec![0; (cluster.space - cluster.len) as usize];
                    let len = plain.len() as u32;
                    let form = ClusterForm::Plain;
                    let offset = self.packed_stored.append(plain)?;
                    self.packed_stored.append(&padding)?;
                    (Cluster { offset: 0, len: len.into(), stored_len: len, form, second: false }, offset)
                }
            };
            reuse.copied.add(cluster.space);
            self.packed_rows.push(Cluster { offset, ..row }, self.cut.block_len);
        }
        for tail in &reuse.kept.tails {
            if let Some(hash) = tail.hash {
                self.seen.add_known(tail.node, tail.from + u64::from(tail.len), tail.len, hash);
                self.tail_offsets.push(tail.at);
            }
        }
        Ok(())
    }

    /// Hands out work and takes it back until all files and the packed stream are cut.
    pub(super) fn run(&mut self, answered: &Receiver<Option<Answer>>, window_len: u64) -> Result<()> {
        let (cut, context, regions, twins) = (self.cut, self.context, self.regions, self.job.twins);
        let rules = Rules {
            own_from: |file: &FileJob<Clusters>| twins.own_from(file.node, context.len(file.node)),
            span_len: SPAN_LEN,
            piece_len: |file: &FileJob<Clusters>| piece_len(cut, file.storage, context.len(file.node)),
            hole_max: |file: &FileJob<Clusters>| hole_max(cut, file.storage, context.len(file.node)),
            joins: |pieces: &[Piece], piece: &Piece| !regions.lead_into(piece, pieces),
        };
        let mut spans = Spans::new(context, rules);
        let mut span_count = 0;
        let mut all_seen = false;
        // What must wait for what it shares, in plan order; what comes behind need not.
        let mut held: VecDeque<(u64, Vec<Piece>)> = VecDeque::new();
        loop {
            for _ in 0..held.len() {
                let Some((number, pieces)) = held.pop_front() else { break };
                match self.may_start(&pieces) {
                    true => self.hand_out(number, pieces),
                    false => held.push_back((number, pieces)),
                }
            }
            while !all_seen && self.in_flight_len < window_len && held.len() < HELD_MAX {
                let Some((pieces, len)) = spans.next() else {
                    all_seen = true;
                    break;
                };
                self.in_flight_len += len;
                self.span_lens.push_back(len);
                match self.may_start(&pieces) {
                    true => self.hand_out(span_count, pieces),
                    false => held.push_back((span_count, pieces)),
                }
                span_count += 1;
            }
            if all_seen && self.spans.taken() == span_count {
                break;
            }
            self.take(answered)?;
        }
        self.end_packed_segment();
        while self.packed_done.taken() < self.packed_count {
            self.take(answered)?;
        }
        Ok(())
    }

    fn hand_out(&mut self, number: u64, pieces: Vec<Piece>) {
        let candidates = pieces.iter().map(|piece| self.candidates(piece)).collect();
        self.queue.push(Task::Span(number, pieces, candidates));
    }

    /// How much of the earlier file of a region must be placed, and may be used: all of another file; of the same file the
    /// pieces that the region reaches into.
    fn known_until(&self, job: u32, region: &Region) -> Spot {
        let origin = region.origin;
        if origin.job != job {
            return Spot { job: origin.job + 1, offset: 0 };
        }
        let file = &self.context.plan.files[origin.job as usize];
        let piece_len = piece_len(self.cut, file.storage, self.context.len(file.node));
        Spot { job, offset: (origin.offset + region.len).next_multiple_of(piece_len) }
    }

    /// Whether all that a span may share is placed.
    fn may_start(&self, pieces: &[Piece]) -> bool {
        pieces.iter().all(|piece| {
            let regions = self.regions.within(piece.job, &piece.range);
            regions.iter().all(|region| self.known_until(piece.job, region) <= self.done)
        })
    }

    /// The stored clusters that a piece may share, by where they would start in it.
    fn candidates(&self, piece: &Piece) -> Vec<Candidate> {
        let mut found = Vec::new();
        for region in self.regions.within(piece.job, &piece.range) {
            let file = &self.context.plan.files[region.origin.job as usize];
            if file.storage.recipe != self.context.job(piece).storage.recipe {
                continue;
            }
            let unfinished = self.rows.unfinished();
            let is_other = region.origin.job != piece.job;
            let origin = Origin {
                node: file.node,
                place: if is_other { &self.placed.files[file.node.index()] } else { &unfinished },
                rows: &self.rows,
                end: match is_other {
                    true => self.context.len(file.node),
                    false => self.known_until(piece.job, region).offset,
                },
            };
            let block_len = self.cut.block_len;
            candidates(region, self.regions.slack, &piece.range, &origin, block_len, &mut found);
        }
        found.sort_by_key(|candidate| candidate.at);
        found
    }

    /// Waits for one answer and does all that it makes possible.
    fn take(&mut self, answered: &Receiver<Option<Answer>>) -> Result<()> {
        if self.job.progress.cancelled() {
            return Err(Error::cancelled());
        }
        match answered.recv() {
            Ok(Some(Answer::Span(number, pieces, span))) => {
                self.spans.put(number, (pieces, span));
                while let Some((pieces, span)) = self.spans.take() {
                    self.take_span(&pieces, span)?;
                }
            }
            Ok(Some(Answer::Packed(number, len, cut))) => {
                let (clusters, stored) = cut?;
                self.packed_done.put(number, (len, clusters, stored));
                while let Some((len, clusters, stored)) = self.packed_done.take() {
                    self.take_packed(&clusters, &stored)?;
                    self.in_flight_len -= len;
                }
            }
            Ok(None) | Err(_) => return Err(Error::failed("internal: a worker thread panicked")),
        }
        Ok(())
    }

    fn take_span(&mut self, pieces: &[Piece], span: CutSpan) -> Result<()> {
        let mut stored = span.stored.as_slice();
        for (piece, cut) in pieces.iter().zip(span.pieces) {
            let node = self.context.node(piece.job);
            if piece.range.start == 0 {
                self.begin_file(piece)?;
            }
            match cut {
                Ok(cut) => {
                    let (now, later) = stored.split_at(cut.stored_len);
                    stored = later;
                    if !self.failures.is_last(node) {
                        self.take_piece(piece, cut, now)?;
                    }
                }
                Err(error) if self.job.options.keep_going => {
                    self.failures.add(node, &error, self.job.progress);
                    self.rows.drop_file();
                }
                Err(error) => return Err(error),
            }
            self.done = match piece.last {
                true => Spot { job: piece.job + 1, offset: 0 },
                false => Spot { job: piece.job, offset: piece.range.end },
            };
            self.job.progress.advance(u64::from(piece.last), piece.len(), 0);
        }
        self.in_flight_len -= self.span_lens.pop_front().unwrap_or(0);
        Ok(())
    }

    fn begin_file(&mut self, piece: &Piece) -> Result<()> {
        if !self.is_behind_first_used && piece.job >= self.context.boundaries.first_used {
            self.is_behind_first_used = true;
            self.end_packed_segment();
        }
        self.rows.begin();
        let file = &self.context.plan.files[piece.job as usize];
        let is_elsewhere =
            matches!(shape(self.cut, file.storage, self.context.len(file.node)), Shape::Stream);
        if is_elsewhere {
            return Ok(());
        }
        let space = self.context.len(file.node).next_multiple_of(self.cut.block_len.into());
        let at_path = |error: Error| error.at(format_args!("{:?}", self.context.tree.path(file.node)));
        self.out.begin(file.storage.data_file, space).map_err(at_path)
    }

    fn take_piece(&mut self, piece: &Piece, cut: CutPiece, stored: &[u8]) -> Result<()> {
        let (before, packed_before, class) = (self.out.position(), self.packed.len(), cut.class);
        if let Some(CutTail::Kept(at)) = cut.tail
            && let Some(kept) = self.job.reuse.and_then(|reuse| reuse.kept.tail(self.context.node(piece.job)))
            && self.kept_seen.insert(at)
        {
            self.by_class.add_shared(class, at, kept.len.into());
        }
        self.testimony.add(self.context.node(piece.job), cut.seen);
        self.take_cut(piece, cut, stored)?;
        let piece_len = piece.len();
        let packed_len = self.packed.len() - packed_before;
        let own = self.out.position() - before;
        self.by_class.add(class, piece.last, piece_len, own);
        if packed_len > 0 {
            self.by_class.add_shared(class, packed_before, packed_len);
        }
        Ok(())
    }

    fn take_cut(&mut self, piece: &Piece, cut: CutPiece, stored: &[u8]) -> Result<()> {
        let file = self.context.plan.files[piece.job as usize];
        if let Some(chunk_len) = cut.chunk_len {
            self.align()?;
            self.take_chunks(piece, &cut, stored, chunk_len)?;
        } else {
            let plain = |cluster: &CutCluster| cluster.form == CutForm::Is(ClusterForm::Plain);
            if piece.range.start == 0 && (cut.zeros_len > 0 || cut.clusters.first().is_some_and(plain)) {
                self.align()?;
            }
            self.take_clusters(file.storage.recipe, &cut, stored)?;
            self.write_zeros(cut.zeros_len)?;
        }
        let tail = match cut.tail {
            None => None,
            Some(CutTail::Kept(offset)) => Some(TailPlace::Packed { offset }),
            Some(CutTail::Inline { bytes, compressed }) => Some(self.keep_inline(&bytes, compressed)?),
            Some(CutTail::Stream(bytes)) => Some(TailPlace::Packed { offset: self.append_packed(&bytes) }),
            Some(CutTail::Plain(bytes)) if self.is_flat_so_far() => Some(self.keep_inline(&bytes, false)?),
            Some(CutTail::Plain(bytes)) => self.write_short_block(piece, &bytes)?,
            Some(CutTail::Packed(tail)) => self.take_tail(piece, &tail)?,
        };
        if piece.last {
            let first = self.placed.files[file.node.index()].tail;
            let place = match cut.chunk_len {
                Some(_) => self.rows.end_chunks(),
                None => self.rows.end(self.cut.block_len, tail),
            };
            if place.form == FileForm::Flat {
                self.align()?;
            }
            self.placed.files[file.node.index()] = FilePlace { tail: first.or(tail), ..place };
        } else if tail.is_some() && piece.range.start == 0 {
            // A file that goes to the packed stream piece by piece lies where its first piece lies.
            self.placed.files[file.node.index()].tail = tail;
        }
        Ok(())
    }

    /// Writes clusters and notes where they are.
    fn take_clusters(&mut self, recipe: u16, cut: &CutPiece, mut stored: &[u8]) -> Result<()> {
        for cluster in &cut.clusters {
            let (now, later) = stored.split_at(cluster.space as usize);
            stored = later;
            let row = match cluster.form {
                CutForm::Zeros => self.zeros(recipe, cluster.len, cut.zeros.as_deref())?,
                CutForm::Is(ClusterForm::Hole) => row(cluster, 0, ClusterForm::Hole),
                CutForm::Is(form) => row(cluster, self.out.position(), form),
                CutForm::Shared(offset, form) => row(cluster, offset, form),
                CutForm::Chunk(_) => row(cluster, self.out.position(), ClusterForm::Plain),
            };
            self.rows.push(row, self.cut.block_len);
            self.write(now)?;
        }
        Ok(())
    }

    /// The cluster that so many zeros of files with this recipe share; written when it is first needed.
    fn zeros(&mut self, recipe: u16, len: u64, compressed: Option<&[u8]>) -> Result<Cluster> {
        if let Some(&row) = self.zeros.get(&(recipe, len)) {
            return Ok(row);
        }
        let compressed = compressed.ok_or_else(|| Error::failed("internal: no cluster stands for zeros"))?;
        let mut block = vec![0; compressed.len().next_multiple_of(self.cut.block_len as usize)];
        let padding = block.len() - compressed.len();
        block[padding..].copy_from_slice(compressed);
        let stored_len = compressed.len() as u32;
        let offset = self.out.position();
        let row = Cluster { offset, len, stored_len, form: ClusterForm::Compressed, second: false };
        self.write(&block)?;
        self.zeros.insert((recipe, len), row);
        Ok(row)
    }

    /// Writes the chunks that are not in the image yet.
    fn take_chunks(
        &mut self,
        piece: &Piece,
        cut: &CutPiece,
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
                    let position = self.out.position();
                    let found = match self.context.plan.dedupe {
                        true => self.chunks.find(bytes, hash),
                        false => None,
                    };
                    if found.is_none() {
                        self.chunks.add(bytes, hash, position, node, offset);
                        self.write(now)?;
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

    fn keep_inline(&mut self, bytes: &[u8], compressed: bool) -> Result<TailPlace> {
        let id = self.inline.append(bytes)?;
        Ok(TailPlace::Inline(InlineTail { id, stored_len: bytes.len() as u32, compressed }))
    }

    /// Finds the same tail in the packed stream, or puts this one there. A long file that does not shrink is to stay flat, as
    /// that reads best.
    fn take_tail(&mut self, piece: &Piece, tail: &TailBytes) -> Result<Option<TailPlace>> {
        let file = self.context.plan.files[piece.job as usize];
        if tail.bytes.len() < self.cut.block_len as usize && !self.rows.is_empty() && self.is_flat_so_far() {
            if tail.bytes.len() <= self.cut.inline_flat_max as usize {
                return self.keep_inline(&tail.bytes, false).map(Some);
            }
            let wasted = u64::from(self.cut.block_len) - tail.bytes.len() as u64;
            if wasted <= piece.range.end / FLAT_WASTE_SHARE {
                return self.write_short_block(piece, &tail.bytes);
            }
        }
        if self.cut.share_tails
            && let Some(earlier) = self.seen.find(tail)?
        {
            if piece.range.start == 0 && self.rows.is_empty() {
                self.placed.duplicate_files += 1;
                self.placed.duplicate_bytes += tail.bytes.len() as u64;
            }
            return Ok(Some(TailPlace::Packed { offset: self.tail_offsets[earlier as usize] }));
        }
        self.seen.add(file.node, piece.range.end, tail);
        let offset = self.append_packed(&tail.bytes);
        self.tail_offsets.push(offset);
        Ok(Some(TailPlace::Packed { offset }))
    }

    /// Whether the file in work is one run of plain blocks up to here, or nothing.
    fn is_flat_so_far(&self) -> bool {
        self.rows.is_empty() || self.rows.flat_end(self.cut.block_len) == Some(self.out.position())
    }

    /// Writes the last bytes of a file as a block of its own.
    fn write_short_block(&mut self, piece: &Piece, bytes: &[u8]) -> Result<Option<TailPlace>> {
        let (offset, len) = (self.out.position(), bytes.len() as u32);
        let row =
            Cluster { offset, len: len.into(), stored_len: len, form: ClusterForm::Plain, second: false };
        self.rows.push(row, self.cut.block_len);
        let block_len = u64::from(self.cut.block_len);
        match (piece.range.end - bytes.len() as u64) % block_len {
            phase if self.cut.interlaced && phase > 0 => {
                self.write(&rotated(bytes, block_len as usize, phase as usize))?;
            }
            _ => self.write(bytes)?,
        }
        self.align()?;
        Ok(None)
    }

    fn append_packed(&mut self, bytes: &[u8]) -> u64 {
        let mut segments = Vec::new();
        let offset = self.packed.append(bytes, |segment| segments.push(segment));
        for segment in segments {
            self.hand_out_packed(segment);
        }
        offset
    }

    /// What comes next shares no cluster of the packed stream with what came before.
    fn end_packed_segment(&mut self) {
        if let Some(segment) = self.packed.finish() {
            self.hand_out_packed(segment);
        }
    }

    fn hand_out_packed(&mut self, segment: Vec<u8>) {
        self.in_flight_len += segment.len() as u64;
        self.queue.push_urgent(Task::Packed(self.packed_count, segment));
        self.packed_count += 1;
    }

    fn take_packed(&mut self, clusters: &[CutCluster], mut stored: &[u8]) -> Result<()> {
        for cluster in clusters {
            let (now, later) = stored.split_at(cluster.space as usize);
            stored = later;
            let CutForm::Is(form) = cluster.form else {
                return Err(Error::failed("internal: the packed stream has neither holes nor chunks"));
            };
            let offset = self.packed_stored.append(now)?;
            self.packed_rows.push(row(cluster, offset, form), self.cut.block_len);
        }
        Ok(())
    }

    fn align(&mut self) -> Result<()> {
        let position = self.out.position();
        let padding = position.next_multiple_of(self.cut.block_len.into()) - position;
        self.write(&vec![0; padding as usize])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.job.progress.advance(0, 0, bytes.len() as u64);
        self.hash.update(bytes);
        self.out.append(bytes)
    }

    /// Writes zeros of a flat file.
    fn write_zeros(&mut self, len: u64) -> Result<()> {
        let mut left = len;
        while left > 0 {
            let part_len = left.min(ZEROS_LEN_MAX);
            let (offset, stored_len) = (self.out.position(), part_len as u32);
            let row = Cluster { offset, len: part_len, stored_len, form: ClusterForm::Plain, second: false };
            self.rows.push(row, self.cut.block_len);
            self.job.progress.advance(0, 0, part_len);
            // Of zeros without end their length is hashed.
            self.hash.update(&part_len.to_le_bytes());
            self.out.append_zeros(part_len)?;
            left -= part_len;
        }
        Ok(())
    }

    /// Writes the packed stream and gives every duplicate its original's place.
    pub(super) fn finish(mut self) -> Result<Stored<Clusters>> {
        self.align()?;
        let packed = self.place_packed()?;
        self.align()?;
        let skipped = self.job.twins.place(self.context, self.failures, self.job.progress, &mut self.placed);
        self.placed.data_end = self.out.position();
        self.placed.data = ClustersPlaced {
            clusters: self.rows.clusters,
            packed,
            tails: Box::new(self.inline),
            hash: self.hash.digest128(),
            files: self.out.finish()?,
        };
        if let Some(last) = self.placed.data.files.last() {
            self.placed.data_end = last.end;
        }
        let packed = packed.map(|(place, _)| place).unwrap_or_default();
        let clusters = self.placed.clusters_of(&packed).iter();
        let classes = self.by_class.finish(clusters.map(|row| (row.len, row.stored_len.into())));
        Ok(Stored { placed: self.placed, skipped, classes })
    }

    fn place_packed(&mut self) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        if self.packed.len() == 0 {
            return Ok(None);
        }
        self.out.begin(0, self.packed_stored.len())?;
        let start = self.out.position();
        let mut buf = vec![0; COPY_LEN];
        let mut at = 0;
        while at < self.packed_stored.len() {
            let len = (self.packed_stored.len() - at).min(COPY_LEN as u64) as usize;
            self.packed_stored.read(at, &mut buf[..len])?;
            self.write(&buf[..len])?;
            at += len as u64;
        }
        self.rows.begin();
        for row in std::mem::take(&mut self.packed_rows.clusters) {
            self.rows.clusters.push(Cluster { offset: start + row.offset, ..row });
        }
        let place = self.rows.end(self.cut.block_len, None);
        Ok(Some((place, self.packed.len())))
    }
}

fn row(cluster: &CutCluster, offset: u64, form: ClusterForm) -> Cluster {
    Cluster { offset, len: cluster.len, stored_len: cluster.stored_len, form, second: cluster.second }
}
