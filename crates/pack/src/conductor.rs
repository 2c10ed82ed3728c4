//! Runs an engine: hands out work, takes results in plan order, and has them written.
//!
//! One thread decides and writes; the others read and compress. Every decision that affects the
//! image is made on the one thread, in plan order. Memory is bounded by the input in flight,
//! whatever the size of files. Each of the two engines implements [`Cutter`] and [`Placer`].

use crate::by_class::ByClass;
use crate::class::Class;
use crate::context::Piece;
use crate::data_row::DataRow;
use crate::digest_log::DigestLog;
use crate::engine::{Engine, Job, Stored};
use crate::failures::Failures;
use crate::limits::Limits;
use crate::parallel::start;
use crate::queue::{CloseOnDrop, InOrder, TaskQueue, work};
use crate::spans::{Rules, Spans};
use packfs_core::{ContentDigest, Error, Result, Stage};
use packfs_format::{FilePlace, Placed};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};

/// Most spans that wait for data they may share; each is checked again after every answer.
const HELD_MAX: usize = 32;

/// The worker's side of an engine.
pub(crate) trait Cutter: Send {
    /// Information about a piece that the worker needs besides its position.
    type Hint: Send;
    type Piece: Send;
    /// Bytes of several files that are compressed together.
    type Batch: Send;
    type Packed: Send;

    fn cut(&mut self, piece: &Piece, hint: &Self::Hint, stored: &mut Vec<u8>) -> Result<Cut<Self::Piece>>;

    fn end_span(&mut self, _stored: &mut Vec<u8>) {}

    fn pack(&mut self, batch: Self::Batch) -> Result<Self::Packed>;
}

#[derive(Default)]
pub(crate) struct Cut<T> {
    pub piece: T,
    pub class: Class,
    pub seen: ContentDigest,
}

/// The deciding side of an engine.
pub(crate) trait Placer: Rules<Self::Engine> + Sized {
    type Engine: Engine;
    type Cutter: Cutter;

    /// Copies the kept parts of the base, before anything else is placed.
    fn copy_kept(&mut self, placement: &mut Placement<'_, Self>) -> Result<()>;

    /// Returns the hint for each piece of a span; `None` while data that it may share is not
    /// placed.
    fn hints(
        &self,
        placement: &Placement<'_, Self>,
        pieces: &[Piece],
    ) -> Option<Vec<<Self::Cutter as Cutter>::Hint>>;

    /// Ends open batches, so that later files share no block with earlier ones.
    fn close(&mut self, placement: &mut Placement<'_, Self>);

    /// Begins a file, before its first piece is taken.
    fn begin_file(&mut self, _placement: &mut Placement<'_, Self>, _piece: &Piece) -> Result<()> {
        Ok(())
    }

    /// Takes a piece, whose bytes are a range of those stored for its span. Returns the bytes that
    /// it takes in the image by itself.
    fn take(
        &mut self,
        placement: &mut Placement<'_, Self>,
        piece: &Piece,
        cut: Cut<<Self::Cutter as Cutter>::Piece>,
        stored: (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64>;

    /// Ends a piece; `lost`: it could not be read.
    fn end_piece(&mut self, _piece: &Piece, _lost: bool) {}

    fn end_span(&mut self, placement: &mut Placement<'_, Self>, span_len: u64);

    /// Writes everything that the last answer made ready.
    fn write_ready(&mut self, placement: &mut Placement<'_, Self>) -> Result<()>;

    fn finish(self, placement: &mut Placement<'_, Self>) -> Result<Vec<(u64, u64)>>;
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

/// Result of a span: for each piece, its cut and stored length, or the error of reading it.
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

/// Output and running totals of a placer.
pub(crate) struct Placement<'a, P: Placer> {
    pub job: &'a Job<'a, P::Engine>,
    pub out: DataRow<'a>,
    pub placed: Placed<P::Engine>,
    pub failures: Failures,
    pub by_class: ByClass,
    pub digests: &'a mut DigestLog,
    pub in_flight_len: u64,
    pub packed: InOrder<<P::Cutter as Cutter>::Packed>,
    batch_count: u64,
    queue: &'a Tasks<P>,
}

impl<P: Placer> Placement<'_, P> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.job.progress.advance(0, 0, bytes.len() as u64);
        self.out.append(bytes)
    }

    /// Hands out a batch, ahead of all spans because others wait for it.
    pub(crate) fn hand_out(&mut self, batch: <P::Cutter as Cutter>::Batch) {
        self.queue.push_urgent(Task::Batch(self.batch_count, batch));
        self.batch_count += 1;
    }

    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.job.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}

pub(crate) fn place<P: Placer>(
    job: &Job<'_, P::Engine>,
    limits: &Limits,
    make_cutter: impl Fn() -> Result<P::Cutter>,
    placer: P,
    out: DataRow<'_>,
    digests: &mut DigestLog,
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
        let files_len = context.tree.node_count() as usize;
        let files = vec![FilePlace::default(); files_len];
        let placement = Placement {
            job,
            out,
            placed: Placed { files, jobs: job.options.jobs, ..Placed::default() },
            failures: Failures::default(),
            by_class: ByClass::of_nodes(if job.options.survey.is_some() { files_len } else { 0 }),
            digests,
            in_flight_len: 0,
            packed: InOrder::new(),
            batch_count: 0,
            queue,
        };
        let boundaries = context.boundaries.all().collect();
        let spans = InOrder::new();
        let mut conductor =
            Conductor { placement, placer, answered, spans, span_lens: VecDeque::new(), boundaries };
        conductor.run(limits.window_len)?;
        conductor.finish()
    })
}

struct Conductor<'a, P: Placer> {
    placement: Placement<'a, P>,
    placer: P,
    answered: Receiver<Option<Answer<P::Cutter>>>,
    spans: InOrder<(Vec<Piece>, Span<P::Cutter>)>,
    span_lens: VecDeque<u64>,
    /// First files of groups that share nothing with earlier files, as far as not reached.
    boundaries: VecDeque<u32>,
}

impl<P: Placer> Conductor<'_, P> {
    fn run(&mut self, window_len: u64) -> Result<()> {
        self.placer.copy_kept(&mut self.placement)?;
        let mut spans = Spans::new(self.placement.job.context);
        let mut span_count = 0;
        let mut all_seen = false;
        // Spans that wait for data they may share, in plan order; later ones need not wait.
        let mut held: VecDeque<(u64, Vec<Piece>)> = VecDeque::new();
        loop {
            for _ in 0..held.len() {
                let Some((number, pieces)) = held.pop_front() else { break };
                held.extend(self.hand_out(number, pieces));
            }
            while !all_seen && self.placement.in_flight_len < window_len && held.len() < HELD_MAX {
                let Some((pieces, len)) = spans.next(&self.placer) else {
                    all_seen = true;
                    break;
                };
                self.placement.in_flight_len += len;
                self.span_lens.push_back(len);
                held.extend(self.hand_out(span_count, pieces));
                span_count += 1;
            }
            if all_seen && self.spans.taken() == span_count {
                break;
            }
            self.take()?;
        }
        self.placer.close(&mut self.placement);
        self.placer.write_ready(&mut self.placement)?;
        while self.placement.packed.taken() < self.placement.batch_count {
            self.take()?;
        }
        Ok(())
    }

    /// Hands out a span; returns it if it has to wait.
    fn hand_out(&self, number: u64, pieces: Vec<Piece>) -> Option<(u64, Vec<Piece>)> {
        match self.placer.hints(&self.placement, &pieces) {
            Some(hints) => self.placement.queue.push(Task::Span(number, pieces, hints)),
            None => return Some((number, pieces)),
        }
        None
    }

    fn take(&mut self) -> Result<()> {
        self.placement.check_cancelled()?;
        match self.answered.recv() {
            Ok(Some(Answer::Span(number, pieces, span))) => {
                self.spans.put(number, (pieces, span));
                while let Some((pieces, span)) = self.spans.take() {
                    self.take_span(&pieces, span)?;
                }
            }
            Ok(Some(Answer::Batch(number, packed))) => self.placement.packed.put(number, packed?),
            // A worker panicked: the scope of its thread passes the panic on.
            Ok(None) | Err(_) => return Err(Error::cancelled()),
        }
        self.placer.write_ready(&mut self.placement)
    }

    fn take_span(&mut self, pieces: &[Piece], span: Span<P::Cutter>) -> Result<()> {
        let Conductor { placement, placer, .. } = self;
        let Job { context, options, progress, .. } = *placement.job;
        let stored = Rc::new(span.stored);
        let mut at = 0;
        for (piece, cut) in pieces.iter().zip(span.pieces) {
            while self.boundaries.front().is_some_and(|&start| piece.job >= start) {
                self.boundaries.pop_front();
                placer.close(placement);
            }
            if piece.range.start == 0 {
                placer.begin_file(placement, piece)?;
            }
            let node = context.node(piece.job);
            let lost = cut.is_err();
            match cut {
                Ok((cut, stored_len)) => {
                    let range = at..at + stored_len;
                    at = range.end;
                    if !placement.failures.is_last(node) {
                        let class = cut.class;
                        placement.digests.add(node, cut.seen);
                        let own_len = placer.take(placement, piece, cut, (&stored, range))?;
                        placement.by_class.add((node, class), piece.last, piece.len(), own_len);
                    }
                }
                Err(error) if options.keep_going => placement.failures.add(node, &error, progress),
                Err(error) => return Err(error),
            }
            placer.end_piece(piece, lost);
            progress.advance(u64::from(piece.last), piece.len(), 0);
        }
        let span_len = self.span_lens.pop_front().unwrap_or(0);
        placer.end_span(placement, span_len);
        Ok(())
    }

    fn finish(self) -> Result<Stored<P::Engine>> {
        let mut placement = self.placement;
        let shared = self.placer.finish(&mut placement)?;
        let Job { context, duplicates, progress, .. } = *placement.job;
        let skipped = duplicates.place(context, placement.failures, progress, &mut placement.placed);
        let classes = placement.by_class.finish(shared.into_iter());
        Ok(Stored { placed: placement.placed, skipped, classes })
    }
}
