//! Places all file data: hands out work, takes results back in plan order, writes.
//!
//! One thread decides and writes, the others read and compress. Everything that shapes the image (which tail goes where,
//! what comes next on disk) happens here, in plan order; workers only answer. Memory is bounded by [`WINDOW_LEN`]
//! of input in flight, whatever the size of files.

use super::cutter::{CutPiece, CutSpan, Cutter};
use super::tails::{FullBlock, OPEN_IF_ALIKE, OPEN_OTHERWISE, Tails};
use super::worth::Worth;
use crate::PackOptions;
use crate::base::{BaseReader, KeptBlocks, Reuse};
use crate::by_class::ByClass;
use crate::class::Class;
use crate::context::{Context, Piece};
use crate::data_row::DataRow;
use crate::engine::{Job, Stored};
use crate::failures::Failures;
use crate::limits::{Demand, Limits};
use crate::order::{self, Order};
use crate::parallel::start;
use crate::queue::{CloseOnDrop, InOrder, TaskQueue, work};
use crate::runs::{Home, Lodgers, Runs};
use crate::seen::{SeenTails, TailBytes, TailId};
use crate::spans::{Rules, SPAN_LEN, Spans};
use crate::twins::Twins;
use crate::witness::Testimony;
use packfs_codec::BranchSet;
use packfs_core::{Error, NodeId, Progress, Result, Stage};
use packfs_format::{BlockForm, Blocks, FileJob, FilePlace, Placed, SharedTail, StoredBlock};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};

/// Input in flight, read but not yet written, where memory is not short.
const WINDOW_LEN: u64 = 24 << 20;

/// Most blocks of a piece that is a hole, by whether blocks of zeros are holes or stored.
const HOLE_BLOCKS_MAX: u64 = 1 << 16;
const ZERO_BLOCKS_MAX: u64 = 1 << 10;

enum Task {
    Span(u64, Vec<Piece>),
    Shared(u32, Vec<u8>, BranchSet),
}

enum Answer {
    Span(u64, Vec<Piece>, Result<CutSpan>),
    Shared(u32, Result<(StoredBlock, Vec<u8>)>),
}

/// Reads, compresses and writes the data of every file of the plan. Also returns what could not be read, if that is allowed.
pub(super) fn place(
    job: &Job<'_, Blocks>,
    out: DataRow<'_>,
    testimony: &mut Testimony,
) -> Result<Stored<Blocks>> {
    let Job { context, options, progress, .. } = *job;
    let plan = context.plan;
    let bytes_total = context.bytes_total();
    progress.begin(Stage::Data, plan.files.len() as u64, bytes_total);
    let limits = limits(context, options)?;
    let queue = &TaskQueue::new();
    let worth = &Worth::default();
    std::thread::scope(|scope| {
        let _closes = CloseOnDrop(queue);
        let (answers, answered) = channel();
        for index in 0..limits.worker_count {
            let answers = answers.clone();
            let mut cutter = Cutter::new(job, worth)?;
            if !start(scope, index, move || work(queue, &answers, |task| answer(&mut cutter, task)))? {
                break;
            }
        }
        let mut placer = Placer::new(job, queue, out, testimony);
        placer.copy_kept()?;
        placer.run(&answered, limits.window_len)?;
        placer.finish()
    })
}

fn limits(context: &Context<'_, Blocks>, options: &PackOptions) -> Result<Limits> {
    let plan = context.plan;
    let codecs = plan
        .data
        .block_codec
        .iter()
        .chain(plan.data.shared_codec.iter().filter(|_| plan.data.shared_codec != plan.data.block_codec));
    let encoders: u64 = codecs.map(|codec| options.effort.encoder_memory(codec, context.block_len())).sum();
    let demand = Demand {
        // A span is read and its blocks are kept until it is written.
        encoder_len: encoders + 2 * context.block_len(),
        window_min: 2 * SPAN_LEN.max(context.block_len()),
        node_count: context.tree.node_count().into(),
    };
    Limits::new(options, &demand, |_| WINDOW_LEN)
}

fn answer(cutter: &mut Cutter<'_>, task: Task) -> Answer {
    match task {
        Task::Span(number, pieces) => {
            let cut = cutter.cut(&pieces);
            Answer::Span(number, pieces, cut)
        }
        Task::Shared(index, bytes, branches) => {
            Answer::Shared(index, cutter.compress_shared(&bytes, branches))
        }
    }
}

/// What is written next, in this order.
enum Waiting {
    /// A file, with room for so many bytes that the format puts in front of it.
    Start { node: NodeId, lead_len: u64 },
    /// Stored bytes of a file's piece.
    Bytes { node: NodeId, stored: Rc<Vec<u8>>, range: Range<usize> },
    /// So many zeros of a file's piece.
    Zeros { node: NodeId, len: u64 },
    /// A shared block, once it is compressed.
    Shared(u32),
    /// All of a span is written.
    Written { span_len: u64 },
}

const NO_TAIL: TailId = TailId::MAX;

struct Placer<'a> {
    context: &'a Context<'a, Blocks>,
    reuse: Option<&'a Reuse<'a, KeptBlocks>>,
    twins: &'a Twins,
    runs: &'a Runs,
    options: &'a PackOptions,
    progress: &'a dyn Progress,
    queue: &'a TaskQueue<Task>,
    out: DataRow<'a>,
    testimony: &'a mut Testimony,
    placed: Placed<Blocks>,
    failures: Failures,
    /// Spans handed out and not yet written: the input in them, what came back early, their lengths.
    in_flight_len: u64,
    spans: InOrder<(Vec<Piece>, CutSpan)>,
    span_lens: VecDeque<u64>,
    waiting: VecDeque<Waiting>,
    shared_done: HashMap<u32, (StoredBlock, Vec<u8>)>,
    tails: Tails,
    is_behind_first_used: bool,
    /// Number of stretches that were reached.
    stretches_begun: usize,
    seen: SeenTails<'a, Blocks>,
    tail_places: Vec<SharedTail>,
    /// The tail of each node.
    tail_of: Vec<TailId>,
    lodgers: Lodgers,
    by_class: ByClass,
    /// Class and length of each tail that lies in a shared block.
    tail_classes: Vec<(Class, u32)>,
}

impl<'a> Placer<'a> {
    fn new(
        job: &'a Job<'a, Blocks>,
        queue: &'a TaskQueue<Task>,
        out: DataRow<'a>,
        testimony: &'a mut Testimony,
    ) -> Self {
        let Job { context, reuse, twins, parts: runs, options, progress, .. } = *job;
        let node_count = context.tree.node_count() as usize;
        let kept_count = reuse.map_or(0, |reuse| reuse.kept.blocks.len() as u32);
        let order = order::worthwhile(options.order, context.plan);
        let are_alike = options.priorities.is_none() && matches!(order, Order::Similarity { .. });
        let open_count = if are_alike { OPEN_IF_ALIKE } else { OPEN_OTHERWISE };
        Placer {
            context,
            reuse,
            twins,
            runs,
            options,
            progress,
            queue,
            out,
            testimony,
            placed: Placed { files: vec![FilePlace::default(); node_count], ..Placed::default() },
            failures: Failures::default(),
            in_flight_len: 0,
            spans: InOrder::new(),
            span_lens: VecDeque::new(),
            waiting: VecDeque::new(),
            shared_done: HashMap::new(),
            is_behind_first_used: false,
            stretches_begun: 0,
            tails: Tails::new(context.block_len() as usize, kept_count, open_count),
            seen: SeenTails::new(context),
            tail_places: Vec::new(),
            tail_of: vec![NO_TAIL; node_count],
            lodgers: Lodgers::default(),
            by_class: ByClass::default(),
            tail_classes: Vec::new(),
        }
    }

    /// Writes the blocks of the base that stay, before any other, and notes which tails lie in them.
    fn copy_kept(&mut self) -> Result<()> {
        let Some(reuse) = self.reuse else { return Ok(()) };
        let mut reader = BaseReader::new(reuse.base);
        for (index, kept) in (0..).zip(&reuse.kept.blocks) {
            if self.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let stored = reader.stored(&kept.block)?;
            let block = StoredBlock { stored_len: kept.block.stored_len, compressed: true };
            self.placed.data.shared.push((self.out.position(), block));
            self.progress.advance(0, 0, stored.len() as u64);
            self.out.append(stored)?;
            reuse.copied.add(stored.len() as u64);
            let mut ids = HashMap::new();
            for tail in &kept.tails {
                let id = *ids.entry((tail.start, tail.len)).or_insert_with(|| {
                    let end = self.context.len(tail.node);
                    self.tail_places.push(SharedTail { index, offset: tail.start });
                    // As of all that is copied, only the name is known.
                    let class = Class::of(self.context.tree.first_name(tail.node), &[]);
                    self.tail_classes.push((class, tail.len));
                    self.seen.add_known(tail.node, end, tail.len, tail.hash)
                });
                self.tail_of[tail.node.index()] = id;
            }
        }
        Ok(())
    }

    fn run(&mut self, answered: &Receiver<Option<Answer>>, window_len: u64) -> Result<()> {
        let span_len = (SPAN_LEN / self.context.block_len()).max(1) * self.context.block_len();
        let (context, twins, runs) = (self.context, self.twins, self.runs);
        let own_from = |job: &FileJob<Blocks>| {
            let len = context.len(job.node);
            twins.own_from(job.node, len).max(runs.own_from(job.node, len))
        };
        // Where there are no holes, zeros are stored like other blocks.
        let hole_blocks = if context.plan.holes { HOLE_BLOCKS_MAX } else { ZERO_BLOCKS_MAX };
        let hole_max = (hole_blocks * context.block_len()).max(span_len);
        let rules = Rules {
            own_from,
            span_len,
            piece_len: |_: &FileJob<Blocks>| span_len,
            hole_max: |_: &FileJob<Blocks>| hole_max,
            joins: |_: &[Piece], _: &Piece| true,
        };
        let mut spans = Spans::new(context, rules);
        let mut span_count = 0;
        let mut all_handed_out = false;
        loop {
            while !all_handed_out && self.in_flight_len < window_len {
                match spans.next() {
                    Some((pieces, len)) => {
                        self.in_flight_len += len;
                        self.span_lens.push_back(len);
                        self.queue.push(Task::Span(span_count, pieces));
                        span_count += 1;
                    }
                    None => all_handed_out = true,
                }
            }
            if all_handed_out && self.spans.taken() == span_count {
                break;
            }
            self.take(answered)?;
        }
        self.close_open_shared();
        self.write_what_is_ready()?;
        while !self.waiting.is_empty() {
            self.take(answered)?;
        }
        Ok(())
    }

    /// Waits for one answer and does all that it makes possible.
    fn take(&mut self, answered: &Receiver<Option<Answer>>) -> Result<()> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        match answered.recv() {
            Ok(Some(Answer::Span(number, pieces, span))) => {
                self.spans.put(number, (pieces, span?));
                while let Some((pieces, span)) = self.spans.take() {
                    self.take_span(&pieces, span)?;
                }
            }
            Ok(Some(Answer::Shared(index, done))) => {
                self.shared_done.insert(index, done?);
            }
            Ok(None) | Err(_) => return Err(Error::failed("internal: a worker thread panicked")),
        }
        self.write_what_is_ready()
    }

    fn take_span(&mut self, pieces: &[Piece], span: CutSpan) -> Result<()> {
        let stored = Rc::new(span.stored);
        let mut at = 0;
        for (piece, cut) in pieces.iter().zip(span.pieces) {
            let node = self.context.node(piece.job);
            match cut {
                Ok(cut) => {
                    let range = at..at + cut.stored_len;
                    at = range.end;
                    self.take_piece(node, piece, cut, (&stored, range))?;
                }
                Err(error) if self.options.keep_going => self.failures.add(node, &error, self.progress),
                Err(error) => return Err(error),
            }
            self.progress.advance(u64::from(piece.last), piece.len(), 0);
        }
        let span_len = self.span_lens.pop_front().unwrap_or(0);
        self.waiting.push_back(Waiting::Written { span_len });
        Ok(())
    }

    /// Takes a piece, whose bytes are a range of those stored of its span.
    fn take_piece(
        &mut self,
        node: NodeId,
        piece: &Piece,
        cut: CutPiece,
        (stored, range): (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<()> {
        if !self.is_behind_first_used && piece.job >= self.context.boundaries.first_used {
            self.is_behind_first_used = true;
            self.close_open_shared();
        }
        let starts = &self.context.boundaries.stretch_starts;
        while starts.get(self.stretches_begun).is_some_and(|&start| piece.job >= start) {
            self.stretches_begun += 1;
            self.close_open_shared();
        }
        let piece_len = piece.len();
        self.by_class.add(cut.class, piece.last, piece_len, cut.stored_len as u64 + cut.zeros_len);
        self.testimony.add(node, cut.seen);
        let place = &mut self.placed.files[node.index()];
        if piece.range.start == 0 {
            place.first = self.placed.data.blocks.len() as u64;
            place.form = if cut.is_flat { BlockForm::Flat } else { BlockForm::Blocks };
            let plan = self.context.plan;
            if plan.data.lead.is_some() || plan.data.file_align > 1 {
                let own_len = self.context.len(node) - self.context.shared_tail_len(piece.job);
                let block_count = own_len.div_ceil(self.context.block_len());
                let lead = plan.data.lead.filter(|_| !cut.is_flat);
                let lead_len = lead.map_or(0, |lead| lead.len(block_count));
                self.waiting.push_back(Waiting::Start { node, lead_len });
            }
        }
        place.count += cut.blocks.len() as u32;
        place.hole_len += cut.hole_len;
        self.placed.data.blocks.extend_from_slice(&cut.blocks);
        // Before the tail, which may fill a shared block: that must not get between the pieces of a file.
        if !range.is_empty() {
            self.waiting.push_back(Waiting::Bytes { node, stored: Rc::clone(stored), range });
        }
        if cut.zeros_len > 0 {
            self.waiting.push_back(Waiting::Zeros { node, len: cut.zeros_len });
        }
        if let Some(tail) = cut.tail {
            self.tail_of[node.index()] = self.take_tail(node, piece, (tail, cut.home), cut.class)?;
        }
        Ok(())
    }

    /// Finds the same tail among those before, or puts this one into a shared block, unless it has a home.
    fn take_tail(
        &mut self,
        node: NodeId,
        piece: &Piece,
        (tail, home): (TailBytes, Option<Home>),
        class: Class,
    ) -> Result<TailId> {
        if let Some(earlier) = self.seen.find(&tail)? {
            let len = tail.bytes.len() as u64;
            if piece.range.start == 0 && piece.range.end == len {
                self.placed.duplicate_files += 1;
                self.placed.duplicate_bytes += len;
            }
            return Ok(earlier);
        }
        let id = self.seen.add(node, piece.range.end, &tail);
        self.tail_places.push(SharedTail { index: 0, offset: 0 });
        if let Some(home) = home {
            self.tail_classes.push((class, 0));
            self.lodgers.add(id, tail.bytes.len() as u32, home);
            return Ok(id);
        }
        self.tail_classes.push((class, tail.bytes.len() as u32));
        if let Some(full) = self.tails.add(id, &tail, class.branches()) {
            self.close_shared(full);
        }
        Ok(id)
    }

    /// What comes next shares no block with what came before.
    fn close_open_shared(&mut self) {
        for full in self.tails.finish() {
            self.close_shared(full);
        }
    }

    fn close_shared(&mut self, full: FullBlock) {
        for (id, place) in full.tails {
            self.tail_places[id as usize] = place;
        }
        self.waiting.push_back(Waiting::Shared(full.index));
        self.queue.push_urgent(Task::Shared(full.index, full.bytes, full.branches));
    }

    fn write_what_is_ready(&mut self) -> Result<()> {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Start { node, lead_len } => {
                    let start =
                        self.out.position().next_multiple_of(self.context.plan.data.file_align.into());
                    self.placed.files[node.index()].start = start;
                    self.out.append_zeros(start + lead_len - self.out.position())?;
                }
                Waiting::Bytes { node, stored, range } => {
                    self.begin_data(node);
                    self.write(&stored[range])?;
                }
                Waiting::Zeros { node, len } => {
                    self.begin_data(node);
                    self.progress.advance(0, 0, len);
                    self.out.append_zeros(len)?;
                }
                Waiting::Shared(index) => {
                    let Some((block, bytes)) = self.shared_done.remove(&index) else {
                        self.waiting.push_front(Waiting::Shared(index));
                        return Ok(());
                    };
                    self.placed.data.shared.push((self.out.position(), block));
                    self.write(&bytes)?;
                }
                Waiting::Written { span_len } => self.in_flight_len -= span_len,
            }
        }
        Ok(())
    }

    /// A file's data goes on here; it starts here if nothing of it was written yet.
    fn begin_data(&mut self, node: NodeId) {
        let place = &mut self.placed.files[node.index()];
        if place.start == 0 {
            place.start = self.out.position();
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.progress.advance(0, 0, bytes.len() as u64);
        self.out.append(bytes)
    }

    /// Gives every file its tail and every duplicate its original's place.
    fn finish(mut self) -> Result<Stored<Blocks>> {
        let tree = self.context.tree;
        let lodgers = std::mem::take(&mut self.lodgers);
        let lost = lodgers.place(&self.failures, &mut self.tail_places, &mut self.placed);
        for (node, _) in tree.nodes() {
            let tail = self.tail_of[node.index()];
            if lost.contains(&tail) {
                self.failures.nodes.push(node);
            } else if tail != NO_TAIL {
                self.placed.files[node.index()].tail = Some(self.tail_places[tail as usize]);
            }
        }
        self.runs.testify(self.testimony);
        self.runs.place(self.context, &mut self.failures, self.progress, &mut self.placed);
        let skipped = self.twins.place(self.context, self.failures, self.progress, &mut self.placed);
        self.placed.data_end = self.out.position();
        let block_len = self.context.block_len();
        for (place, &(class, len)) in self.tail_places.iter().zip(&self.tail_classes) {
            let offset = u64::from(place.index) * block_len + u64::from(place.offset);
            self.by_class.add_shared(class, offset, len.into());
        }
        let shared = self.placed.data.shared.iter().map(|(_, block)| (block_len, block.stored_len.into()));
        let classes = self.by_class.finish(shared);
        Ok(Stored { placed: self.placed, skipped, classes })
    }
}
