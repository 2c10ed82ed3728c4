//! Places all file data: hands out work, takes results back in plan order, and has them written.
//!
//! One thread decides and writes, the others read and compress. Everything that shapes the image
//! happens on the one thread, in plan order; workers only answer. Memory is bounded by the input in
//! flight, whatever the size of files. What becomes of a piece of a file is up to one of two
//! engines ([`Placer`]).

use crate::by_class::ByClass;
use crate::class::Class;
use crate::context::Piece;
use crate::data_row::DataRow;
use crate::engine::{Engine, Job, Stored};
use crate::failures::Failures;
use crate::limits::Limits;
use crate::parallel::start;
use crate::queue::{CloseOnDrop, InOrder, TaskQueue, work};
use crate::spans::{Rules, Spans};
use crate::witness::Testimony;
use packfs_core::{Error, Result, Stage, Witnessed};
use packfs_format::{FilePlace, Placed};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};

/// Spans that wait for what they share: each is looked at whenever something was placed.
const HELD_MAX: usize = 32;

/// The worker's side of an engine.
pub(crate) trait Cutter: Send {
    /// What a worker is told of a piece besides its place.
    type Hint: Send;
    /// A piece that was cut.
    type Piece: Send;
    /// Bytes of many files that are compressed together.
    type Batch: Send;
    /// A batch that was compressed.
    type Packed: Send;

    /// Reads and cuts a piece, and appends what is stored of it.
    fn cut(&mut self, piece: &Piece, hint: &Self::Hint, stored: &mut Vec<u8>) -> Result<Cut<Self::Piece>>;

    /// Ends a span.
    fn end_span(&mut self, _stored: &mut Vec<u8>) {}

    /// Compresses a batch.
    fn pack(&mut self, batch: Self::Batch) -> Result<Self::Packed>;
}

/// A piece that was cut.
#[derive(Default)]
pub(crate) struct Cut<T> {
    pub piece: T,
    /// The class of its file.
    pub class: Class,
    /// What was seen of its bytes.
    pub seen: Witnessed,
}

/// The deciding side of an engine.
pub(crate) trait Placer: Rules<Self::Engine> + Sized {
    type Engine: Engine;
    type Cutter: Cutter;

    /// Copies what stays of the base, before anything else is placed.
    fn copy_kept(&mut self, desk: &mut Desk<'_, Self>) -> Result<()>;

    /// Returns what workers are told of each piece of a span; `None` while what it may share is not
    /// placed.
    fn hints(&self, desk: &Desk<'_, Self>, pieces: &[Piece]) -> Option<Vec<<Self::Cutter as Cutter>::Hint>>;

    /// Sees to it that what comes next is compressed with nothing that came before.
    fn close(&mut self, desk: &mut Desk<'_, Self>);

    /// Begins a file with its first piece, before that is known.
    fn begin_file(&mut self, _desk: &mut Desk<'_, Self>, _piece: &Piece) -> Result<()> {
        Ok(())
    }

    /// Takes a piece, whose bytes are a range of those stored of its span. Returns how many bytes
    /// it takes in the image by itself.
    fn take(
        &mut self,
        desk: &mut Desk<'_, Self>,
        piece: &Piece,
        cut: Cut<<Self::Cutter as Cutter>::Piece>,
        stored: (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64>;

    /// Ends a piece, which could not be read if it is `lost`.
    fn end_piece(&mut self, _piece: &Piece, _lost: bool) {}

    /// Ends a span of so much input.
    fn end_span(&mut self, desk: &mut Desk<'_, Self>, span_len: u64);

    /// Does all that became possible by the last answer.
    fn go_on(&mut self, desk: &mut Desk<'_, Self>) -> Result<()>;

    /// Ends what is placed. Returns the lengths of what several files share, before and after
    /// compression.
    fn finish(self, desk: &mut Desk<'_, Self>) -> Result<Vec<(u64, u64)>>;
}

type Tasks<P> = TaskQueue<Task<<P as Placer>::Cutter>>;

enum Task<C: Cutter> {
    Span(u64, Vec<Piece>, Vec<C::Hint>),
    Batch(u64, C::Batch),
}

enum Answer<C: Cutter> {
    Span(u64, Vec<Piece>, Span<C>),
    Batch(u64, Result<C::Packed>),
}

/// What became of a span: its pieces, each with the length of what is stored of it, or why they
/// could not be read.
struct Span<C: Cutter> {
    pieces: Vec<Result<(Cut<C::Piece>, usize)>>,
    stored: Vec<u8>,
}

impl<C: Cutter> Task<C> {
    fn answer(self, cutter: &mut C) -> Answer<C> {
        match self {
            Task::Span(number, pieces, hints) => {
                let span = Span::cut(cutter, &pieces, &hints);
                Answer::Span(number, pieces, span)
            }
            Task::Batch(number, batch) => Answer::Batch(number, cutter.pack(batch)),
        }
    }
}

impl<C: Cutter> Span<C> {
    /// A piece that cannot be read is an error of its own.
    fn cut(cutter: &mut C, pieces: &[Piece], hints: &[C::Hint]) -> Self {
        let mut stored = Vec::new();
        let cut = |(piece, hint)| {
            let before = stored.len();
            let cut = cutter.cut(piece, hint, &mut stored);
            if cut.is_err() {
                stored.truncate(before);
            }
            cut.map(|cut| (cut, stored.len() - before))
        };
        let pieces = pieces.iter().zip(hints).map(cut).collect();
        cutter.end_span(&mut stored);
        Span { pieces, stored }
    }
}

/// What a placer writes to and keeps account with.
pub(crate) struct Desk<'a, P: Placer> {
    pub job: &'a Job<'a, P::Engine>,
    pub out: DataRow<'a>,
    pub placed: Placed<P::Engine>,
    pub failures: Failures,
    pub by_class: ByClass,
    pub testimony: &'a mut Testimony,
    /// Input that was handed out and is not yet written.
    pub in_flight_len: u64,
    /// Batches that were compressed.
    pub packed: InOrder<<P::Cutter as Cutter>::Packed>,
    batch_count: u64,
    queue: &'a Tasks<P>,
}

impl<P: Placer> Desk<'_, P> {
    /// Writes behind what was written last.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.job.progress.advance(0, 0, bytes.len() as u64);
        self.out.append(bytes)
    }

    /// Hands out a batch, before everything else: others wait for it.
    pub(crate) fn hand_out(&mut self, batch: <P::Cutter as Cutter>::Batch) {
        self.queue.push_urgent(Task::Batch(self.batch_count, batch));
        self.batch_count += 1;
    }

    /// Errors: `Cancelled`.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.job.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}

/// Reads, compresses and writes the data of every file of the plan.
pub(crate) fn place<P: Placer>(
    job: &Job<'_, P::Engine>,
    limits: &Limits,
    make_cutter: impl Fn() -> Result<P::Cutter>,
    placer: P,
    out: DataRow<'_>,
    testimony: &mut Testimony,
) -> Result<Stored<P::Engine>> {
    let context = job.context;
    job.progress.begin(Stage::Data, context.plan.files.len() as u64, context.bytes_total());
    let queue = &Tasks::<P>::new();
    std::thread::scope(|scope| {
        let _closes = CloseOnDrop(queue);
        let (answers, answered) = channel();
        for index in 0..limits.worker_count {
            let answers = answers.clone();
            let mut cutter = make_cutter()?;
            if !start(scope, index, move || work(queue, &answers, |task| task.answer(&mut cutter)))? {
                break;
            }
        }
        let files = vec![FilePlace::default(); context.tree.node_count() as usize];
        let desk = Desk {
            job,
            out,
            placed: Placed { files, ..Placed::default() },
            failures: Failures::default(),
            by_class: ByClass::default(),
            testimony,
            in_flight_len: 0,
            packed: InOrder::new(),
            batch_count: 0,
            queue,
        };
        let boundaries = context.boundaries.all().collect();
        let spans = InOrder::new();
        let mut conductor =
            Conductor { desk, placer, answered, spans, span_lens: VecDeque::new(), boundaries };
        conductor.run(limits.window_len)?;
        conductor.finish()
    })
}

/// See the module.
struct Conductor<'a, P: Placer> {
    desk: Desk<'a, P>,
    placer: P,
    answered: Receiver<Option<Answer<P::Cutter>>>,
    /// Spans that came back early.
    spans: InOrder<(Vec<Piece>, Span<P::Cutter>)>,
    /// Lengths of the spans that were handed out and are not taken.
    span_lens: VecDeque<u64>,
    /// Files that share nothing with those before them, as far as they are not reached.
    boundaries: VecDeque<u32>,
}

impl<P: Placer> Conductor<'_, P> {
    /// Hands out work and takes it back until all is placed.
    fn run(&mut self, window_len: u64) -> Result<()> {
        self.placer.copy_kept(&mut self.desk)?;
        let mut spans = Spans::new(self.desk.job.context);
        let mut span_count = 0;
        let mut all_seen = false;
        // What must wait for what it shares, in plan order; what comes behind need not.
        let mut held: VecDeque<(u64, Vec<Piece>)> = VecDeque::new();
        loop {
            for _ in 0..held.len() {
                let Some((number, pieces)) = held.pop_front() else { break };
                held.extend(self.hand_out(number, pieces));
            }
            while !all_seen && self.desk.in_flight_len < window_len && held.len() < HELD_MAX {
                let Some((pieces, len)) = spans.next(&self.placer) else {
                    all_seen = true;
                    break;
                };
                self.desk.in_flight_len += len;
                self.span_lens.push_back(len);
                held.extend(self.hand_out(span_count, pieces));
                span_count += 1;
            }
            if all_seen && self.spans.taken() == span_count {
                break;
            }
            self.take()?;
        }
        self.placer.close(&mut self.desk);
        self.placer.go_on(&mut self.desk)?;
        while self.desk.packed.taken() < self.desk.batch_count {
            self.take()?;
        }
        Ok(())
    }

    /// Hands out a span; returns it if it has to wait.
    fn hand_out(&self, number: u64, pieces: Vec<Piece>) -> Option<(u64, Vec<Piece>)> {
        match self.placer.hints(&self.desk, &pieces) {
            Some(hints) => self.desk.queue.push(Task::Span(number, pieces, hints)),
            None => return Some((number, pieces)),
        }
        None
    }

    /// Waits for one answer and does all that it makes possible.
    fn take(&mut self) -> Result<()> {
        self.desk.check_cancelled()?;
        match self.answered.recv() {
            Ok(Some(Answer::Span(number, pieces, span))) => {
                self.spans.put(number, (pieces, span));
                while let Some((pieces, span)) = self.spans.take() {
                    self.take_span(&pieces, span)?;
                }
            }
            Ok(Some(Answer::Batch(number, packed))) => self.desk.packed.put(number, packed?),
            Ok(None) | Err(_) => return Err(Error::failed("internal: a worker thread panicked")),
        }
        self.placer.go_on(&mut self.desk)
    }

    fn take_span(&mut self, pieces: &[Piece], span: Span<P::Cutter>) -> Result<()> {
        let Conductor { desk, placer, .. } = self;
        let Job { context, options, progress, .. } = *desk.job;
        let stored = Rc::new(span.stored);
        let mut at = 0;
        for (piece, cut) in pieces.iter().zip(span.pieces) {
            while self.boundaries.front().is_some_and(|&start| piece.job >= start) {
                self.boundaries.pop_front();
                placer.close(desk);
            }
            if piece.range.start == 0 {
                placer.begin_file(desk, piece)?;
            }
            let node = context.node(piece.job);
            let lost = cut.is_err();
            match cut {
                Ok((cut, stored_len)) => {
                    let range = at..at + stored_len;
                    at = range.end;
                    if !desk.failures.is_last(node) {
                        let class = cut.class;
                        desk.testimony.add(node, cut.seen);
                        let own_len = placer.take(desk, piece, cut, (&stored, range))?;
                        desk.by_class.add(class, piece.last, piece.len(), own_len);
                    }
                }
                Err(error) if options.keep_going => desk.failures.add(node, &error, progress),
                Err(error) => return Err(error),
            }
            placer.end_piece(piece, lost);
            progress.advance(u64::from(piece.last), piece.len(), 0);
        }
        let span_len = self.span_lens.pop_front().unwrap_or(0);
        placer.end_span(desk, span_len);
        Ok(())
    }

    /// Gives every duplicate its original's place.
    fn finish(self) -> Result<Stored<P::Engine>> {
        let mut desk = self.desk;
        let shared = self.placer.finish(&mut desk)?;
        let Job { context, twins, progress, .. } = *desk.job;
        let skipped = twins.place(context, desk.failures, progress, &mut desk.placed);
        let classes = desk.by_class.finish(shared.into_iter());
        Ok(Stored { placed: desk.placed, skipped, classes })
    }
}
