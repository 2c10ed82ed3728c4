//! Takes the blocks that workers cut, in plan order, and decides and writes: which tail goes where,
//! what comes next on disk.

use super::cutter::{BlockPiece, Cutter};
use super::tails::{FullBlock, OPEN_IF_ALIKE, OPEN_OTHERWISE, Tails};
use crate::base::BaseReader;
use crate::class::Class;
use crate::conductor::{self, Cut};
use crate::context::Piece;
use crate::engine::Job;
use crate::order::{self, Order};
use crate::runs::{Home, Lodgers};
use crate::seen::{SeenTails, TailBytes, TailId};
use crate::spans::{Rules, SPAN_LEN};
use packfs_core::{NodeId, Result};
use packfs_format::{BlockForm, Blocks, FileJob, SharedTail, StoredBlock};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

/// Most blocks of a piece that is a hole, by whether blocks of zeros are holes or stored.
const HOLE_BLOCKS_MAX: u64 = 1 << 16;
const ZERO_BLOCKS_MAX: u64 = 1 << 10;

type Desk<'a, 'j> = conductor::Desk<'a, Placer<'j>>;

/// What is written next, in this order.
enum Waiting {
    /// A file, with room for so many bytes that the format puts in front of it.
    Start { node: NodeId, lead_len: u64 },
    /// Stored bytes of a file's piece.
    Bytes { node: NodeId, stored: Rc<Vec<u8>>, range: Range<usize> },
    /// So many zeros of a file's piece.
    Zeros { node: NodeId, len: u64 },
    /// The next shared block, once it is compressed.
    Shared,
    /// All of a span is written.
    Written { span_len: u64 },
}

const NO_TAIL: TailId = TailId::MAX;

pub(super) struct Placer<'a> {
    job: &'a Job<'a, Blocks>,
    waiting: VecDeque<Waiting>,
    tails: Tails,
    seen: SeenTails<'a, Blocks>,
    tail_places: Vec<SharedTail>,
    /// The tail of each node.
    tail_of: Vec<TailId>,
    lodgers: Lodgers,
    /// Class and length of each tail that lies in a shared block.
    tail_classes: Vec<(Class, u32)>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(job: &'a Job<'a, Blocks>) -> Self {
        let Job { context, reuse, options, .. } = *job;
        let kept_count = reuse.map_or(0, |reuse| reuse.kept.blocks.len() as u32);
        let order = order::worthwhile(options.order, context.plan);
        let are_alike = options.priorities.is_none() && matches!(order, Order::Similarity { .. });
        let open_count = if are_alike { OPEN_IF_ALIKE } else { OPEN_OTHERWISE };
        Placer {
            job,
            waiting: VecDeque::new(),
            tails: Tails::new(context.block_len() as usize, kept_count, open_count),
            seen: SeenTails::new(context),
            tail_places: Vec::new(),
            tail_of: vec![NO_TAIL; context.tree.node_count() as usize],
            lodgers: Lodgers::default(),
            tail_classes: Vec::new(),
        }
    }

    /// Begins a file with its first piece.
    fn begin(&mut self, desk: &mut Desk<'_, 'a>, piece: &Piece, is_flat: bool) {
        let (context, node) = (self.job.context, self.job.context.node(piece.job));
        let first = desk.placed.data.blocks.len() as u64;
        let place = &mut desk.placed.files[node.index()];
        place.first = first;
        place.form = if is_flat { BlockForm::Flat } else { BlockForm::Blocks };
        let plan = &context.plan.data;
        if plan.lead.is_some() || plan.file_align > 1 {
            let own_len = context.len(node) - context.shared_tail_len(piece.job);
            let block_count = own_len.div_ceil(context.block_len());
            let lead = plan.lead.filter(|_| !is_flat);
            let lead_len = lead.map_or(0, |lead| lead.len(block_count));
            self.waiting.push_back(Waiting::Start { node, lead_len });
        }
    }

    /// Finds the same tail among those before, or puts this one into a shared block, unless it has
    /// a home.
    fn take_tail(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        (tail, home): (TailBytes, Option<Home>),
        class: Class,
    ) -> Result<TailId> {
        if let Some(earlier) = self.seen.find(&tail)? {
            let len = tail.bytes.len() as u64;
            if piece.range.start == 0 && piece.range.end == len {
                desk.placed.duplicate_files += 1;
                desk.placed.duplicate_bytes += len;
            }
            return Ok(earlier);
        }
        let id = self.seen.add(self.job.context.node(piece.job), piece.range.end, &tail);
        self.tail_places.push(SharedTail { index: 0, offset: 0 });
        if let Some(home) = home {
            self.tail_classes.push((class, 0));
            self.lodgers.add(id, tail.bytes.len() as u32, home);
            return Ok(id);
        }
        self.tail_classes.push((class, tail.bytes.len() as u32));
        if let Some(full) = self.tails.add(id, &tail, class.branches()) {
            self.close_shared(desk, full);
        }
        Ok(id)
    }

    fn close_shared(&mut self, desk: &mut Desk<'_, 'a>, full: FullBlock) {
        for (id, place) in full.tails {
            self.tail_places[id as usize] = place;
        }
        self.waiting.push_back(Waiting::Shared);
        desk.hand_out((full.bytes, full.branches));
    }
}

impl Rules<Blocks> for Placer<'_> {
    fn span_len(&self) -> u64 {
        let block_len = self.job.context.block_len();
        (SPAN_LEN / block_len).max(1) * block_len
    }

    fn own_from(&self, file: &FileJob<Blocks>) -> u64 {
        let Job { context, twins, parts: runs, .. } = *self.job;
        let len = context.len(file.node);
        twins.own_from(file.node, len).max(runs.own_from(file.node, len))
    }

    fn piece_len(&self, _: &FileJob<Blocks>) -> u64 {
        self.span_len()
    }

    fn hole_max(&self, _: &FileJob<Blocks>) -> u64 {
        let context = self.job.context;
        // Where there are no holes, zeros are stored like other blocks.
        let blocks = if context.plan.holes { HOLE_BLOCKS_MAX } else { ZERO_BLOCKS_MAX };
        (blocks * context.block_len()).max(self.span_len())
    }
}

impl<'a> conductor::Placer for Placer<'a> {
    type Engine = Blocks;
    type Cutter = Cutter<'a>;

    /// Writes the blocks of the base that stay, and notes which tails lie in them.
    fn copy_kept(&mut self, desk: &mut Desk<'_, 'a>) -> Result<()> {
        let Job { context, reuse: Some(reuse), .. } = *self.job else { return Ok(()) };
        let mut reader = BaseReader::new(reuse.base);
        for (index, kept) in (0..).zip(&reuse.kept.blocks) {
            desk.check_cancelled()?;
            let stored = reader.stored(&kept.block)?;
            let block = StoredBlock { stored_len: kept.block.stored_len, compressed: true };
            desk.placed.data.shared.push((desk.out.position(), block));
            desk.write(stored)?;
            reuse.copied.add(stored.len() as u64);
            let mut ids = HashMap::new();
            for tail in &kept.tails {
                let id = *ids.entry((tail.start, tail.len)).or_insert_with(|| {
                    let end = context.len(tail.node);
                    self.tail_places.push(SharedTail { index, offset: tail.start });
                    // As of all that is copied, only the name is known.
                    let class = Class::of(context.tree.first_name(tail.node), &[]);
                    self.tail_classes.push((class, tail.len));
                    self.seen.add_known(tail.node, end, tail.len, tail.hash)
                });
                self.tail_of[tail.node.index()] = id;
            }
        }
        Ok(())
    }

    fn hints(&self, _: &Desk<'_, 'a>, pieces: &[Piece]) -> Option<Vec<()>> {
        Some(vec![(); pieces.len()])
    }

    fn close(&mut self, desk: &mut Desk<'_, 'a>) {
        for full in self.tails.finish() {
            self.close_shared(desk, full);
        }
    }

    fn take(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        cut: Cut<BlockPiece>,
        (stored, range): (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64> {
        let node = self.job.context.node(piece.job);
        let Cut { piece: cut, class, .. } = cut;
        if piece.range.start == 0 {
            self.begin(desk, piece, cut.is_flat);
        }
        let place = &mut desk.placed.files[node.index()];
        place.count += cut.blocks.len() as u32;
        place.hole_len += cut.hole_len;
        desk.placed.data.blocks.extend_from_slice(&cut.blocks);
        let own_len = range.len() as u64 + cut.zeros_len;
        // Before the tail, which may fill a shared block: that must not get between the pieces of a
        // file.
        if !range.is_empty() {
            self.waiting.push_back(Waiting::Bytes { node, stored: Rc::clone(stored), range });
        }
        if cut.zeros_len > 0 {
            self.waiting.push_back(Waiting::Zeros { node, len: cut.zeros_len });
        }
        if let Some(tail) = cut.tail {
            self.tail_of[node.index()] = self.take_tail(desk, piece, (tail, cut.home), class)?;
        }
        Ok(own_len)
    }

    fn end_span(&mut self, _: &mut Desk<'_, 'a>, span_len: u64) {
        self.waiting.push_back(Waiting::Written { span_len });
    }

    /// Writes what is ready.
    fn go_on(&mut self, desk: &mut Desk<'_, 'a>) -> Result<()> {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Start { node, lead_len } => {
                    let align = self.job.context.plan.data.file_align;
                    let start = desk.out.position().next_multiple_of(align.into());
                    desk.placed.files[node.index()].start = start;
                    desk.out.append_zeros(start + lead_len - desk.out.position())?;
                }
                Waiting::Bytes { node, stored, range } => {
                    begin_data(desk, node);
                    desk.write(&stored[range])?;
                }
                Waiting::Zeros { node, len } => {
                    begin_data(desk, node);
                    self.job.progress.advance(0, 0, len);
                    desk.out.append_zeros(len)?;
                }
                Waiting::Shared => {
                    let Some((block, bytes)) = desk.packed.take() else {
                        self.waiting.push_front(Waiting::Shared);
                        return Ok(());
                    };
                    desk.placed.data.shared.push((desk.out.position(), block));
                    desk.write(&bytes)?;
                }
                Waiting::Written { span_len } => desk.in_flight_len -= span_len,
            }
        }
        Ok(())
    }

    /// Gives every file its tail, and every run its blocks.
    fn finish(mut self, desk: &mut Desk<'_, 'a>) -> Result<Vec<(u64, u64)>> {
        let Job { context, parts: runs, progress, .. } = *self.job;
        let lost = self.lodgers.place(&desk.failures, &mut self.tail_places, &mut desk.placed);
        for (node, _) in context.tree.nodes() {
            let tail = self.tail_of[node.index()];
            if lost.contains(&tail) {
                desk.failures.nodes.push(node);
            } else if tail != NO_TAIL {
                desk.placed.files[node.index()].tail = Some(self.tail_places[tail as usize]);
            }
        }
        runs.testify(desk.testimony);
        runs.place(context, &mut desk.failures, progress, &mut desk.placed);
        desk.placed.data_end = desk.out.position();
        let block_len = context.block_len();
        for (place, &(class, len)) in self.tail_places.iter().zip(&self.tail_classes) {
            let offset = u64::from(place.index) * block_len + u64::from(place.offset);
            desk.by_class.add_shared(class, offset, len.into());
        }
        let shared = desk.placed.data.shared.iter();
        Ok(shared.map(|(_, block)| (block_len, block.stored_len.into())).collect())
    }
}

/// Goes on with the data of a file; it starts here if nothing of it was written yet.
fn begin_data(desk: &mut Desk<'_, '_>, node: NodeId) {
    let place = &mut desk.placed.files[node.index()];
    if place.start == 0 {
        place.start = desk.out.position();
    }
}
