//! The deciding side of packing blocks: takes cut pieces in plan order, assigns tails, and writes.

use super::cutter::{BlockPiece, Cutter};
use super::tails::{FullBlock, Tails};
use crate::base::BaseReader;
use crate::class::Class;
use crate::conductor::{self, Cut};
use crate::context::Piece;
use crate::engine::Job;
use crate::runs::{BorrowedTails, HostBlock};
use crate::seen::{SeenTails, TailBytes, TailId};
use crate::spans::{Rules, SPAN_LEN};
use packfs_core::{NodeId, Result};
use packfs_format::{BlockForm, Blocks, FileJob, SharedTail, StoredBlock};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

/// Most blocks in a piece that is a hole, if blocks of zeros are holes or if they are stored.
const HOLE_BLOCKS_MAX: u64 = 1 << 16;
const ZERO_BLOCKS_MAX: u64 = 1 << 10;

type Placement<'a, 'j> = conductor::Placement<'a, Placer<'j>>;

enum Waiting {
    /// Start of a file at a multiple of `align`, with `lead_len` bytes reserved for the format in
    /// front of it.
    Start { node: NodeId, align: u32, lead_len: u64 },
    /// Stored bytes of a file's piece.
    Bytes { node: NodeId, stored: Rc<Vec<u8>>, range: Range<usize> },
    /// Zeros of a file's piece.
    Zeros { node: NodeId, len: u64 },
    /// The next fragment block, once it is compressed.
    Shared,
    /// End of a span.
    Written { span_len: u64 },
}

const NO_TAIL: TailId = TailId::MAX;
/// Tail whose fragment block is not complete, or that is in another file's block.
const UNPLACED: SharedTail = SharedTail { index: u32::MAX, offset: 0 };

pub(super) struct Placer<'a> {
    job: &'a Job<'a, Blocks>,
    waiting: VecDeque<Waiting>,
    tails: Tails,
    seen: SeenTails<'a, Blocks>,
    tail_places: Vec<SharedTail>,
    tail_classes: Vec<Class>,
    tail_of: Vec<TailId>,
    borrowed_tails: BorrowedTails,
}

impl<'a> Placer<'a> {
    pub(super) fn new(job: &'a Job<'a, Blocks>) -> Self {
        let Job { context, reuse, .. } = *job;
        let kept_count = reuse.map_or(0, |reuse| reuse.kept.blocks.len() as u32);
        Placer {
            job,
            waiting: VecDeque::new(),
            tails: Tails::new(context.block_len() as usize, kept_count),
            seen: SeenTails::new(context),
            tail_places: Vec::new(),
            tail_classes: Vec::new(),
            tail_of: vec![NO_TAIL; context.tree.node_count() as usize],
            borrowed_tails: BorrowedTails::default(),
        }
    }

    fn begin(&mut self, placement: &mut Placement<'_, 'a>, piece: &Piece, is_flat: bool) {
        let (context, node) = (self.job.context, self.job.context.node(piece.job));
        let first = placement.placed.data.blocks.len() as u64;
        let place = &mut placement.placed.files[node.index()];
        place.first = first;
        place.form = if is_flat { BlockForm::Flat } else { BlockForm::Blocks };
        let plan = &context.plan.data;
        if plan.lead.is_some() || plan.file_align > 1 {
            let own_len = context.len(node) - context.shared_tail_len(piece.job);
            let block_count = own_len.div_ceil(context.block_len());
            let lead = plan.lead.filter(|_| !is_flat);
            let lead_len = lead.map_or(0, |lead| lead.len(block_count));
            let align = if is_flat { plan.flat_align.max(plan.file_align) } else { plan.file_align };
            self.waiting.push_back(Waiting::Start { node, align, lead_len });
        }
    }

    /// Finds an earlier tail with the same bytes, or adds this one to a fragment block, unless
    /// another file's block holds it.
    fn take_tail(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        (tail, host_block): (TailBytes, Option<HostBlock>),
        class: Class,
    ) -> Result<TailId> {
        let node = self.job.context.node(piece.job);
        let is_apart = self.job.context.boundaries.is_stored_again(node);
        let earlier = if is_apart { None } else { self.seen.find(&tail)? };
        if let Some(earlier) = earlier {
            let len = tail.bytes.len() as u64;
            if piece.range.start == 0 && piece.range.end == len {
                placement.placed.duplicate_files += 1;
                placement.placed.duplicate_bytes += len;
            }
            return Ok(earlier);
        }
        let id = if is_apart { self.seen.add_apart(node, &tail) } else { self.seen.add(node, &tail) };
        self.tail_places.push(UNPLACED);
        self.tail_classes.push(class);
        if let Some(host_block) = host_block {
            self.borrowed_tails.add(id, tail.bytes.len() as u32, host_block);
            return Ok(id);
        }
        if let Some(full) = self.tails.add(id, &tail, class.branches()) {
            self.close_shared(placement, full);
        }
        Ok(id)
    }

    fn close_shared(&mut self, placement: &mut Placement<'_, 'a>, full: FullBlock) {
        for (id, place) in full.tails {
            self.tail_places[id as usize] = place;
        }
        self.waiting.push_back(Waiting::Shared);
        placement.hand_out((full.bytes, full.branches));
    }
}

impl Rules<Blocks> for Placer<'_> {
    fn span_len(&self) -> u64 {
        let block_len = self.job.context.block_len();
        (SPAN_LEN / block_len).max(1) * block_len
    }

    fn stored_from(&self, file: &FileJob<Blocks>) -> u64 {
        let Job { context, duplicates, parts: runs, .. } = *self.job;
        let len = context.len(file.node);
        duplicates.stored_from(file.node, len).max(runs.stored_from(file.node, len))
    }

    fn piece_len(&self, _: &FileJob<Blocks>) -> u64 {
        self.span_len()
    }

    fn hole_max(&self, _: &FileJob<Blocks>) -> u64 {
        let context = self.job.context;
        // Without holes, zeros are stored like other blocks.
        let blocks = if context.plan.holes { HOLE_BLOCKS_MAX } else { ZERO_BLOCKS_MAX };
        (blocks * context.block_len()).max(self.span_len())
    }
}

impl<'a> conductor::Placer for Placer<'a> {
    type Engine = Blocks;
    type Cutter = Cutter<'a>;

    fn copy_kept(&mut self, placement: &mut Placement<'_, 'a>) -> Result<()> {
        let Job { context, reuse: Some(reuse), .. } = *self.job else { return Ok(()) };
        let mut reader = BaseReader::new(reuse.base);
        for (index, kept) in (0..).zip(&reuse.kept.blocks) {
            placement.check_cancelled()?;
            let stored = reader.stored(&kept.block)?;
            let block = StoredBlock { stored_len: kept.block.stored_len, compressed: true };
            placement.placed.data.shared.push((placement.out.position(), block));
            placement.write(stored)?;
            reuse.copied.add(stored.len() as u64);
            let mut ids = HashMap::new();
            for tail in &kept.tails {
                let id = *ids.entry((tail.start, tail.len)).or_insert_with(|| {
                    self.tail_places.push(SharedTail { index, offset: tail.start });
                    // Copied data is not read, so only its name tells its class.
                    let class = Class::of(context.tree.first_name(tail.node), &[]);
                    self.tail_classes.push(class);
                    self.seen.add_known(tail.node, tail.len, tail.hash)
                });
                self.tail_of[tail.node.index()] = id;
            }
        }
        Ok(())
    }

    fn hints(&self, _: &Placement<'_, 'a>, pieces: &[Piece]) -> Option<Vec<()>> {
        Some(vec![(); pieces.len()])
    }

    fn close(&mut self, placement: &mut Placement<'_, 'a>) {
        if let Some(full) = self.tails.close() {
            self.close_shared(placement, full);
        }
    }

    fn take(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        cut: Cut<BlockPiece>,
        (stored, range): (&Rc<Vec<u8>>, Range<usize>),
    ) -> Result<u64> {
        let node = self.job.context.node(piece.job);
        let Cut { piece: cut, class, .. } = cut;
        if piece.range.start == 0 {
            self.begin(placement, piece, cut.is_flat);
        }
        let place = &mut placement.placed.files[node.index()];
        place.count += cut.blocks.len() as u32;
        placement.placed.data.blocks.extend_from_slice(&cut.blocks);
        let own_len = range.len() as u64 + cut.zeros_len;
        // Data is queued before the tail: the tail may complete a fragment block, which must not
        // lie between pieces of a file.
        if !range.is_empty() {
            self.waiting.push_back(Waiting::Bytes { node, stored: Rc::clone(stored), range });
        }
        if cut.zeros_len > 0 {
            self.waiting.push_back(Waiting::Zeros { node, len: cut.zeros_len });
        }
        if let Some(tail) = cut.tail {
            self.tail_of[node.index()] = self.take_tail(placement, piece, (tail, cut.host_block), class)?;
        }
        Ok(own_len)
    }

    fn end_span(&mut self, _: &mut Placement<'_, 'a>, span_len: u64) {
        self.waiting.push_back(Waiting::Written { span_len });
    }

    fn write_ready(&mut self, placement: &mut Placement<'_, 'a>) -> Result<()> {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Start { node, align, lead_len } => {
                    let start = placement.out.position().next_multiple_of(align.into());
                    placement.placed.files[node.index()].start = start;
                    placement.out.append_zeros(start + lead_len - placement.out.position())?;
                }
                Waiting::Bytes { node, stored, range } => {
                    begin_data(placement, node);
                    placement.write(&stored[range])?;
                }
                Waiting::Zeros { node, len } => {
                    begin_data(placement, node);
                    self.job.progress.advance(0, 0, len);
                    placement.out.append_zeros(len)?;
                }
                Waiting::Shared => {
                    let Some((block, bytes)) = placement.packed.take() else {
                        self.waiting.push_front(Waiting::Shared);
                        return Ok(());
                    };
                    placement.placed.data.shared.push((placement.out.position(), block));
                    placement.write(&bytes)?;
                }
                Waiting::Written { span_len } => placement.in_flight_len -= span_len,
            }
        }
        Ok(())
    }

    fn finish(mut self, placement: &mut Placement<'_, 'a>) -> Result<Vec<(u64, u64)>> {
        let Job { context, parts: runs, progress, .. } = *self.job;
        let lost =
            self.borrowed_tails.place(&placement.failures, &mut self.tail_places, &mut placement.placed);
        for (node, _) in context.tree.nodes() {
            let tail = self.tail_of[node.index()];
            if lost.contains(&tail) {
                placement.failures.nodes.push(node);
            } else if tail != NO_TAIL {
                placement.placed.files[node.index()].tail = Some(self.tail_places[tail as usize]);
            }
        }
        runs.log_digests(placement.digests);
        runs.place(context, &mut placement.failures, progress, &mut placement.placed);
        placement.placed.data_end = placement.out.position();
        let block_len = context.block_len();
        let shared_count = placement.placed.data.shared.len();
        for (id, (place, &class)) in (0..).zip(self.tail_places.iter().zip(&self.tail_classes)) {
            if (place.index as usize) < shared_count {
                let offset = u64::from(place.index) * block_len + u64::from(place.offset);
                let file = (self.seen.node(id), class);
                placement.by_class.add_shared(file, offset, self.seen.len(id).into());
            }
        }
        let shared = placement.placed.data.shared.iter();
        Ok(shared.map(|(_, block)| (block_len, block.stored_len.into())).collect())
    }
}

fn begin_data(placement: &mut Placement<'_, '_>, node: NodeId) {
    let place = &mut placement.placed.files[node.index()];
    if place.start == 0 {
        place.start = placement.out.position();
    }
}
