//! Places all file data: hands out work, takes results back in plan order, writes.
//!
//! One thread decides and writes, the others read and compress. Everything that shapes the image (which tail goes where,
//! what comes next on disk) happens here, in plan order; workers only answer. Memory is bounded by [`WINDOW_LEN`]
//! of input in flight, whatever the size of files.

use crate::PackOptions;
use crate::cut::{Context, CutPiece, CutSpan, Cutter, Piece, TailBytes};
use crate::output::Output;
use crate::queue::{CloseOnDrop, TaskQueue};
use crate::tails::{FullBlock, SeenTails, TailId, Tails};
use crate::twins::Twins;
use packfs_core::{
    Contents, Error, FilePlace, NodeId, Placed, Plan, Progress, Result, Stage, StoredBlock, TailPlace, Tree,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Input in flight: read but not yet written.
const WINDOW_LEN: u64 = 24 << 20;
/// Input of one span, unless a block is longer.
const SPAN_LEN: u64 = 512 << 10;
/// Files in one span.
const SPAN_PIECES: usize = 128;
/// Bytes of tails kept to compare later ones with.
const COMPARED_LEN: usize = 4 << 20;

enum Task {
    Span(u64, Vec<Piece>),
    Shared(u32, Vec<u8>),
}

enum Answer {
    Span(u64, Vec<Piece>, Result<CutSpan>),
    Shared(u32, Result<(StoredBlock, Vec<u8>)>),
    Panicked,
}

/// Reads, compresses and writes the data of every file of the plan. Also returns what could not be read, if that is allowed.
pub(crate) fn place(
    tree: &Tree,
    contents: &dyn Contents,
    plan: &Plan,
    twins: &Twins,
    options: &PackOptions,
    progress: &dyn Progress,
    out: &mut Output,
) -> Result<(Placed, Vec<String>)> {
    let context = &Context { tree, contents, plan };
    let bytes_total = plan.files.iter().map(|job| context.len(job.node)).sum();
    progress.begin(Stage::Data, plan.files.len() as u64, bytes_total);
    let queue = &TaskQueue::new();
    std::thread::scope(|scope| {
        let _closes = CloseOnDrop(queue);
        let (answers, answered) = channel();
        for _ in 0..options.worker_count() {
            let answers = answers.clone();
            let mut cutter = Cutter::new(context)?;
            scope.spawn(move || work(queue, &mut cutter, &answers));
        }
        let mut placer = Placer::new(context, twins, options, progress, queue, out);
        placer.run(&answered)?;
        placer.finish()
    })
}

fn work(queue: &TaskQueue<Task>, cutter: &mut Cutter<'_>, answers: &Sender<Answer>) {
    struct SayIfPanicked<'a>(&'a Sender<Answer>);
    impl Drop for SayIfPanicked<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let _ = self.0.send(Answer::Panicked);
            }
        }
    }
    let _says = SayIfPanicked(answers);
    while let Some(task) = queue.pop() {
        let answer = match task {
            Task::Span(number, pieces) => {
                let cut = cutter.cut(&pieces);
                Answer::Span(number, pieces, cut)
            }
            Task::Shared(index, bytes) => Answer::Shared(index, cutter.compress_shared(&bytes)),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Yields the spans of a plan, in plan order.
struct Spans<'a> {
    context: &'a Context<'a>,
    twins: &'a Twins,
    next_job: u32,
    next_offset: u64,
}

impl Spans<'_> {
    fn next(&mut self) -> Option<(Vec<Piece>, u64)> {
        let span_len = (SPAN_LEN / self.context.block_len()).max(1) * self.context.block_len();
        let mut pieces = Vec::new();
        let mut left = span_len;
        while let Some(job) = self.context.plan.files.get(self.next_job as usize) {
            let len = self.context.len(job.node);
            if self.twins.original(job.node).is_some() || len == 0 {
                self.next_job += 1;
                continue;
            }
            let rest = len - self.next_offset;
            if pieces.len() == SPAN_PIECES || (rest > left && !pieces.is_empty()) {
                break;
            }
            let range = self.next_offset..self.next_offset + rest.min(span_len);
            left = left.saturating_sub(rest);
            let last = range.end == len;
            let piece = Piece { job: self.next_job, range, last };
            (self.next_job, self.next_offset) =
                if last { (piece.job + 1, 0) } else { (piece.job, piece.range.end) };
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some((pieces, span_len - left))
    }
}

/// What is written next, in this order.
enum Waiting {
    /// Stored bytes of a file's piece.
    Bytes { node: NodeId, stored: Rc<Vec<u8>>, range: Range<usize> },
    /// A shared block, once it is compressed.
    Shared(u32),
    /// All of a span is written.
    Written { span_len: u64 },
}

/// A tail as it was first seen: where to read it again.
struct TailOrigin {
    node: NodeId,
    offset: u64,
    len: u32,
}

const NO_TAIL: TailId = TailId::MAX;

struct Placer<'a> {
    context: &'a Context<'a>,
    twins: &'a Twins,
    options: &'a PackOptions,
    progress: &'a dyn Progress,
    queue: &'a TaskQueue<Task>,
    out: &'a mut Output,
    placed: Placed,
    skipped: Vec<String>,
    /// Nodes that could not be read.
    failed: Vec<NodeId>,
    /// Spans handed out and not yet written: their number, their lengths, the next to take back.
    in_flight_len: u64,
    next_span: u64,
    answered: BTreeMap<u64, (Vec<Piece>, CutSpan)>,
    span_lens: VecDeque<u64>,
    waiting: VecDeque<Waiting>,
    shared_done: HashMap<u32, (StoredBlock, Vec<u8>)>,
    tails: Tails,
    seen: SeenTails,
    origins: Vec<TailOrigin>,
    tail_places: Vec<TailPlace>,
    /// The tail of each node.
    tail_of: Vec<TailId>,
    compared: HashMap<TailId, Box<[u8]>>,
    compared_len: usize,
}

impl<'a> Placer<'a> {
    fn new(
        context: &'a Context<'a>,
        twins: &'a Twins,
        options: &'a PackOptions,
        progress: &'a dyn Progress,
        queue: &'a TaskQueue<Task>,
        out: &'a mut Output,
    ) -> Self {
        let node_count = context.tree.node_count() as usize;
        Placer {
            context,
            twins,
            options,
            progress,
            queue,
            out,
            placed: Placed { files: vec![FilePlace::default(); node_count], ..Placed::default() },
            skipped: Vec::new(),
            failed: Vec::new(),
            in_flight_len: 0,
            next_span: 0,
            answered: BTreeMap::new(),
            span_lens: VecDeque::new(),
            waiting: VecDeque::new(),
            shared_done: HashMap::new(),
            tails: Tails::new(context.block_len() as usize),
            seen: SeenTails::default(),
            origins: Vec::new(),
            tail_places: Vec::new(),
            tail_of: vec![NO_TAIL; node_count],
            compared: HashMap::new(),
            compared_len: 0,
        }
    }

    fn run(&mut self, answered: &Receiver<Answer>) -> Result<()> {
        let mut spans = Spans { context: self.context, twins: self.twins, next_job: 0, next_offset: 0 };
        let mut span_count = 0;
        let mut all_handed_out = false;
        loop {
            while !all_handed_out && self.in_flight_len < WINDOW_LEN {
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
            if all_handed_out && self.next_span == span_count {
                break;
            }
            self.take(answered)?;
        }
        for full in self.tails.finish() {
            self.close_shared(full);
        }
        self.write_what_is_ready()?;
        while !self.waiting.is_empty() {
            self.take(answered)?;
        }
        Ok(())
    }

    /// Waits for one answer and does all that it makes possible.
    fn take(&mut self, answered: &Receiver<Answer>) -> Result<()> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        match answered.recv() {
            Ok(Answer::Span(number, pieces, span)) => {
                self.answered.insert(number, (pieces, span?));
                while let Some((pieces, span)) = self.answered.remove(&self.next_span) {
                    self.next_span += 1;
                    self.take_span(&pieces, span)?;
                }
            }
            Ok(Answer::Shared(index, done)) => {
                self.shared_done.insert(index, done?);
            }
            Ok(Answer::Panicked) | Err(_) => return Err(Error::failed("internal: a worker thread panicked")),
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
                    self.take_piece(node, piece, cut)?;
                    if !range.is_empty() {
                        self.waiting.push_back(Waiting::Bytes { node, stored: stored.clone(), range });
                    }
                }
                Err(error) if self.options.keep_going => self.skip(node, &error),
                Err(error) => return Err(error),
            }
            self.progress.advance(u64::from(piece.last), piece.range.end - piece.range.start, 0);
        }
        let span_len = self.span_lens.pop_front().unwrap_or(0);
        self.waiting.push_back(Waiting::Written { span_len });
        Ok(())
    }

    fn skip(&mut self, node: NodeId, error: &Error) {
        if self.failed.last() != Some(&node) {
            self.failed.push(node);
            self.skipped.push(error.to_string());
            self.progress.warn(&format!("stored empty: {error}"));
        }
    }

    fn take_piece(&mut self, node: NodeId, piece: &Piece, cut: CutPiece) -> Result<()> {
        let place = &mut self.placed.files[node.index()];
        if piece.range.start == 0 {
            place.blocks_start = self.placed.blocks.len() as u64;
        }
        place.blocks_count += cut.blocks.len() as u32;
        place.hole_len += cut.hole_len;
        self.placed.blocks.extend_from_slice(&cut.blocks);
        if let Some(tail) = cut.tail {
            self.tail_of[node.index()] = self.take_tail(node, piece, tail)?;
        }
        Ok(())
    }

    /// Finds the same tail among those before, or puts this one into a shared block.
    fn take_tail(&mut self, node: NodeId, piece: &Piece, tail: TailBytes) -> Result<TailId> {
        let id = self.origins.len() as TailId;
        let len = tail.bytes.len() as u32;
        if self.context.plan.dedupe
            && let Some(earlier) = self.seen.find_or_insert(&tail, id)
            && self.is_same(earlier, &tail)?
        {
            if piece.range.start == 0 && piece.range.end == u64::from(len) {
                self.count_duplicate(u64::from(len));
            }
            return Ok(earlier);
        }
        self.origins.push(TailOrigin { node, offset: piece.range.end - u64::from(len), len });
        self.tail_places.push(TailPlace::Shared { index: 0, offset: 0 });
        if let Some(full) = self.tails.add(id, &tail) {
            self.close_shared(full);
        }
        Ok(id)
    }

    /// Compares a tail with an earlier one byte for byte: a hash alone proves nothing.
    fn is_same(&mut self, earlier: TailId, tail: &TailBytes) -> Result<bool> {
        if let Some(bytes) = self.compared.get(&earlier) {
            return Ok(**bytes == *tail.bytes);
        }
        let TailOrigin { node, offset, len } = self.origins[earlier as usize];
        let mut bytes = vec![0; len as usize].into_boxed_slice();
        self.context.open(node)?.read_exact_at(offset, &mut bytes)?;
        let same = bytes == tail.bytes;
        if self.compared_len + bytes.len() > COMPARED_LEN {
            self.compared.clear();
            self.compared_len = 0;
        }
        self.compared_len += bytes.len();
        self.compared.insert(earlier, bytes);
        Ok(same)
    }

    fn count_duplicate(&mut self, len: u64) {
        self.placed.duplicate_files += 1;
        self.placed.duplicate_bytes += len;
    }

    fn close_shared(&mut self, full: FullBlock) {
        for (id, place) in full.tails {
            self.tail_places[id as usize] = place;
        }
        self.waiting.push_back(Waiting::Shared(full.index));
        self.queue.push_urgent(Task::Shared(full.index, full.bytes));
    }

    fn write_what_is_ready(&mut self) -> Result<()> {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Bytes { node, stored, range } => {
                    let place = &mut self.placed.files[node.index()];
                    if place.start == 0 {
                        place.start = self.out.position();
                    }
                    self.write(&stored[range])?;
                }
                Waiting::Shared(index) => {
                    let Some((block, bytes)) = self.shared_done.remove(&index) else {
                        self.waiting.push_front(Waiting::Shared(index));
                        return Ok(());
                    };
                    self.placed.shared.push((self.out.position(), block));
                    self.write(&bytes)?;
                }
                Waiting::Written { span_len } => self.in_flight_len -= span_len,
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.progress.advance(0, 0, bytes.len() as u64);
        self.out.append(bytes)
    }

    /// Gives every file its tail and every duplicate its original's place.
    fn finish(mut self) -> Result<(Placed, Vec<String>)> {
        let tree = self.context.tree;
        for (node, _) in tree.nodes() {
            let tail = self.tail_of[node.index()];
            if tail != NO_TAIL {
                self.placed.files[node.index()].tail = Some(self.tail_places[tail as usize]);
            }
        }
        for &node in &self.failed {
            self.placed.files[node.index()] = FilePlace::default();
        }
        for job in &self.context.plan.files {
            if let Some(original) = self.twins.original(job.node) {
                self.placed.files[job.node.index()] = self.placed.files[original.index()];
                self.count_duplicate(self.context.len(job.node));
                self.progress.advance(1, self.context.len(job.node), 0);
                if self.failed.contains(&original) {
                    self.failed.push(job.node);
                }
            }
        }
        self.placed.failed = self.failed;
        self.placed.failed.sort_unstable();
        self.placed.data_end = self.out.position();
        Ok((self.placed, self.skipped))
    }
}
