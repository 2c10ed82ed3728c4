//! A parse and the places where it can be cut.

use super::cost::{BIT, Costs, with_literals};
use super::ffi::{BLOCK_END, Context, Sequence, is_block_end, plain_len};
use super::split;
use crate::EncodeError;

/// The shortest match that a frame can hold.
const MATCH_LEN_MIN: u32 = 3;

/// The frame's own header: magic, descriptor, content size and perhaps a window.
const FRAME_HEADER_LEN: u64 = 9;

/// The sequences of one input, in blocks, and what they cost.
#[derive(Default)]
pub(super) struct Parse {
    sequences: Vec<Sequence>,
    blocks: Vec<Block>,
    /// Memory for the sequences with further ends of blocks.
    divided: Vec<Sequence>,
}

/// What is done with literals and blocks at a level.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// Literals are not coded.
    pub(super) literals_stored: bool,
    /// Blocks are divided where it pays.
    pub(super) divides: bool,
}

/// A run of sequences up to an end of block.
struct Block {
    first: usize,
    /// Of its end of block, plus one.
    end: usize,
    plain_start: usize,
    plain_end: usize,
    costs: Costs,
}

impl Parse {
    /// Parses all of `src`.
    pub(super) fn read(
        &mut self,
        parser: &mut Context,
        src: &[u8],
        habits: Habits,
    ) -> Result<(), EncodeError> {
        parser.parse(src, &mut self.sequences)?;
        if !self.says(src) {
            return Err(EncodeError::Internal("zstd sequences that do not give their input"));
        }
        if habits.divides {
            self.divide(src, habits.literals_stored);
        }
        self.weigh(src, habits.literals_stored);
        Ok(())
    }

    /// Divides blocks where it pays.
    fn divide(&mut self, src: &[u8], literals_stored: bool) {
        self.divided.clear();
        let mut at = 0;
        for block in self.sequences.split_inclusive(is_block_end) {
            let end = at + block.iter().map(plain_len).sum::<usize>();
            split::divide(block, &src[at..end], literals_stored, &mut self.divided);
            at = end;
        }
        std::mem::swap(&mut self.sequences, &mut self.divided);
    }

    /// Whether the sequences give `src`.
    fn says(&self, src: &[u8]) -> bool {
        let mut at = 0;
        self.sequences.iter().all(|sequence| {
            let (offset, len) = (sequence.offset as usize, sequence.matchLength as usize);
            at += sequence.litLength as usize;
            let to = at;
            at += len;
            if is_block_end(sequence) {
                return at <= src.len();
            }
            let matches = len >= MATCH_LEN_MIN as usize && offset > 0 && offset <= to && at <= src.len();
            matches && src[to - offset..at - offset] == src[to..at]
        }) && at == src.len()
            && self.sequences.last().is_some_and(is_block_end)
    }

    /// Finds the blocks and their costs.
    fn weigh(&mut self, src: &[u8], literals_stored: bool) {
        self.blocks.clear();
        let (mut first, mut plain_start) = (0, 0);
        for block in self.sequences.split_inclusive(is_block_end) {
            let end = first + block.len();
            let plain_end = plain_start + block.iter().map(plain_len).sum::<usize>();
            let plain = &src[plain_start..plain_end];
            let costs = Costs::new(block, plain, literals_stored);
            self.blocks.push(Block { first, end, plain_start, plain_end, costs });
            (first, plain_start) = (end, plain_end);
        }
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Where the costs reach the room.
    pub(super) fn first_cut(&self, src: &[u8], room: usize) -> usize {
        let mut left = (room as u64).saturating_sub(FRAME_HEADER_LEN) * 8 * BIT;
        for block in &self.blocks {
            let raw = ((block.plain_end - block.plain_start) as u64 + 3) * 8 * BIT;
            let whole = (block.costs.total()).min(raw);
            if whole > left {
                let within = left.saturating_sub(block.costs.fixed);
                return self.sound_cut(self.forward(src, block.plain_start, within)).max(1);
            }
            left -= whole;
        }
        src.len()
    }

    /// Where to cut instead of at `cut`, which gave `written` bytes, to get `aim` bytes.
    pub(super) fn moved_cut(&self, src: &[u8], cut: usize, written: usize, aim: usize) -> usize {
        match written <= aim {
            true => self.forward(src, cut, ((aim - written) as u64) * 8 * BIT),
            false => self.backward(src, cut, ((written - aim) as u64) * 8 * BIT),
        }
    }

    /// The nearest place at or before `cut` where a match need not be cut too short.
    pub(super) fn sound_cut(&self, cut: usize) -> usize {
        let Some((at, sequence)) = self.sequence_at(cut) else { return cut };
        let match_start = at + sequence.litLength as usize;
        match cut > match_start && cut - match_start < MATCH_LEN_MIN as usize {
            true => match_start,
            false => cut,
        }
    }

    /// The block that holds the byte before `cut`.
    fn block_before(&self, cut: usize) -> Option<&Block> {
        let index = self.blocks.partition_point(|block| block.plain_end < cut);
        self.blocks.get(index)
    }

    /// The sequence that holds the byte before `cut`, and where it begins.
    fn sequence_at(&self, cut: usize) -> Option<(usize, &Sequence)> {
        let block = self.block_before(cut)?;
        let mut at = block.plain_start;
        for sequence in &self.sequences[block.first..block.end] {
            let end = at + plain_len(sequence);
            if cut <= end {
                return Some((at, sequence));
            }
            at = end;
        }
        None
    }

    /// Where one gets from `from` for a cost: always further.
    fn forward(&self, src: &[u8], from: usize, cost: u64) -> usize {
        let mut left = cost;
        let first = self.blocks.partition_point(|block| block.plain_end <= from);
        for block in &self.blocks[first..] {
            let mut at = block.plain_start;
            for sequence in &self.sequences[block.first..block.end] {
                let match_start = at + sequence.litLength as usize;
                let end = match_start + sequence.matchLength as usize;
                if end > from {
                    for &byte in src.get(at.max(from)..match_start).unwrap_or_default() {
                        let literal = block.costs.literal(byte);
                        if literal > left {
                            return at.max(from);
                        }
                        left -= literal;
                        at = at.max(from) + 1;
                    }
                    let whole = block.costs.without_literals(sequence);
                    if whole > left {
                        return match_start.max(from);
                    }
                    left -= whole;
                }
                at = end;
            }
            left = left.saturating_sub(block.costs.fixed);
        }
        src.len()
    }

    /// Where one gets back to from `from` to save a cost.
    fn backward(&self, src: &[u8], from: usize, cost: u64) -> usize {
        let Some(block) = self.block_before(from) else { return from };
        let plain = &src[block.plain_start..block.plain_end];
        // From the front, as literals are found from there: as much as all before `from` costs, less what to save.
        let mut before = 0;
        let mut at = block.plain_start;
        for (sequence, literals) in with_literals(&self.sequences[block.first..block.end], plain) {
            if at >= from {
                break;
            }
            let literals = &literals[..literals.len().min(from - at)];
            before += block.costs.sequence(sequence, literals);
            at += plain_len(sequence);
        }
        match before.checked_sub(cost) {
            Some(left) => self.forward(src, block.plain_start, left).min(from.saturating_sub(1)),
            // Further back than this block: somewhere before it; the next run tells.
            None => {
                let saved = ((cost - before) / (8 * BIT)) as usize;
                block.plain_start.saturating_sub(saved).max(1)
            }
        }
    }

    /// Runs `use_sequences` with the sequences that stand for the first `cut` bytes.
    pub(super) fn with_cut<T>(&mut self, cut: usize, use_sequences: impl FnOnce(&[Sequence]) -> T) -> T {
        let Some(block) = self.block_before(cut) else { return use_sequences(&self.sequences) };
        if block.plain_end == cut {
            let end = block.end;
            return use_sequences(&self.sequences[..end]);
        }
        let mut at = block.plain_start;
        let mut index = block.first;
        while at + plain_len(&self.sequences[index]) < cut {
            at += plain_len(&self.sequences[index]);
            index += 1;
        }
        let saved: Vec<Sequence> = self.sequences[index..].iter().take(2).copied().collect();
        let whole = saved[0];
        let part = (cut - at) as u32;
        let added = match part.checked_sub(whole.litLength) {
            Some(match_len @ MATCH_LEN_MIN..) if !is_block_end(&whole) => {
                self.sequences[index].matchLength = match_len;
                if self.sequences.len() < index + 2 {
                    self.sequences.push(BLOCK_END);
                }
                self.sequences[index + 1] = BLOCK_END;
                2
            }
            _ => {
                self.sequences[index] = Sequence { litLength: part, ..BLOCK_END };
                1
            }
        };
        let result = use_sequences(&self.sequences[..index + added]);
        self.sequences[index..index + saved.len()].copy_from_slice(&saved);
        result
    }
}
