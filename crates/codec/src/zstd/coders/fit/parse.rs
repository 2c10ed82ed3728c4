//! A parse and the positions where it can be cut.

use super::cost::{BIT, Costs, Counts};
use super::ffi::{BLOCK_END, Context, Sequence, is_block_end, plain_len};
use super::quick::{Quick, Tables};
use super::split;
use crate::EncodeError;

/// Shortest match that a frame can encode.
const MATCH_LEN_MIN: u32 = 3;

/// The frame's own header: magic, descriptor, content size, and perhaps a window.
const FRAME_HEADER_LEN: u64 = 9;

/// `Block_Maximum_Size` (RFC 8878, 3.1.1.2.4), unless the window is smaller.
const BLOCK_LEN_MAX: usize = 128 << 10;

/// Costs are recomputed after at least this many further bytes.
const LOOK_LEN_MIN: usize = 1 << 10;

#[derive(Default)]
pub(super) struct Parse {
    sequences: Vec<Sequence>,
    /// Input offset of each.
    starts: Vec<usize>,
    blocks: Vec<Block>,
    /// Buffer for sequences with additional ends of blocks.
    divided: Vec<Sequence>,
}

#[derive(Clone, Copy)]
pub(super) struct Habits {
    pub(super) literals_stored: bool,
    pub(super) divides: bool,
}

struct Block {
    first: usize,
    /// Index of its end of block, plus one.
    end: usize,
    plain_start: usize,
    plain_end: usize,
    costs: Costs,
}

impl Block {
    /// Expected cost: at most that of storing it.
    fn expected(&self) -> u64 {
        self.costs.total().min(raw_cost(self.plain_end - self.plain_start))
    }
}

fn raw_cost(len: usize) -> u64 {
    (len as u64 + 3) * 8 * BIT
}

impl Parse {
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

    fn says(&self, src: &[u8]) -> bool {
        let mut at = 0;
        self.sequences.iter().all(|sequence| {
            let offset = sequence.offset as usize;
            let len = sequence.matchLength as usize;
            at += sequence.litLength as usize;
            let to = at;
            at += len;
            if is_block_end(sequence) {
                return at <= src.len();
            }
            let matches = len >= MATCH_LEN_MIN as usize && offset > 0 && offset <= to && at <= src.len();
            matches && recurs(src, to - offset, to, len)
        }) && at == src.len()
            && self.sequences.last().is_some_and(is_block_end)
    }

    fn weigh(&mut self, src: &[u8], literals_stored: bool) {
        self.blocks.clear();
        self.starts.clear();
        let (mut first, mut plain_start) = (0, 0);
        for block in self.sequences.split_inclusive(is_block_end) {
            let end = first + block.len();
            let mut plain_end = plain_start;
            self.starts.extend(block.iter().map(|sequence| {
                let start = plain_end;
                plain_end += plain_len(sequence);
                start
            }));
            let plain = &src[plain_start..plain_end];
            let costs = Costs::new(block, plain, literals_stored);
            self.blocks.push(Block { first, end, plain_start, plain_end, costs });
            (first, plain_start) = (end, plain_end);
        }
    }

    /// Starts a parse that is read piece by piece.
    pub(super) fn begin(&mut self, quick: &mut Quick, src_len: usize, tables: Tables) {
        quick.begin(src_len, tables);
        self.sequences.clear();
        self.starts.clear();
        self.blocks.clear();
    }

    /// Parses until sequences cost `wanted` bytes or `src` ends; costs are first computed at
    /// `look_at`. Returns the end of the parse.
    pub(super) fn read_on(&mut self, quick: &mut Quick, src: &[u8], wanted: usize, look_at: usize) -> usize {
        let wanted = (wanted as u64).saturating_sub(FRAME_HEADER_LEN) * 8 * BIT;
        self.reopen(quick);
        let (mut first, mut plain_start) =
            self.blocks.last().map_or((0, 0), |block| (block.end, block.plain_end));
        let mut before: u64 = self.blocks.iter().map(Block::expected).sum();
        let mut look_at = look_at.max(quick.at() + LOOK_LEN_MIN);
        while plain_start < src.len() {
            let block_end = src.len().min(plain_start + BLOCK_LEN_MAX);
            let mut counts = Counts::new();
            let mut at = plain_start;
            // Sequences before this one are counted; the block may already contain some.
            let mut next = first;
            loop {
                quick.advance(src, look_at.min(block_end), block_end, &mut self.sequences);
                self.starts.truncate(next);
                for sequence in &self.sequences[next..] {
                    self.starts.push(at);
                    let match_start = at + sequence.litLength as usize;
                    counts.add(sequence, &src[at..match_start]);
                    at = match_start + sequence.matchLength as usize;
                }
                next = self.sequences.len();
                let costs = Costs::of(&counts, false);
                let done = quick.at();
                let cost = before + costs.total().min(raw_cost(done - plain_start));
                if done == block_end || cost >= wanted {
                    self.close(quick, first, plain_start, src, counts);
                    break;
                }
                let ahead = (wanted - cost).saturating_mul(done as u64) / cost.max(1);
                let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
                look_at = done.saturating_add(LOOK_LEN_MIN).saturating_add(ahead - ahead / 32);
            }
            let Some(block) = self.blocks.last() else { break };
            (first, plain_start) = (block.end, block.plain_end);
            before += block.expected();
            if before >= wanted {
                break;
            }
            look_at = look_at.max(quick.at() + LOOK_LEN_MIN);
        }
        quick.at()
    }

    /// Ends a block at the current position.
    fn close(&mut self, quick: &mut Quick, first: usize, plain_start: usize, src: &[u8], mut counts: Counts) {
        let (anchor, plain_end) = (quick.anchor(), quick.at());
        let literals = Sequence { litLength: (plain_end - anchor) as u32, ..BLOCK_END };
        self.starts.push(anchor);
        self.sequences.push(literals);
        counts.add(&literals, &src[anchor..plain_end]);
        quick.end_literals();
        let costs = Costs::of(&counts, false);
        self.blocks.push(Block { first, end: self.sequences.len(), plain_start, plain_end, costs });
    }

    /// Reopens the last block if it may be longer.
    fn reopen(&mut self, quick: &mut Quick) {
        let is_short = |block: &mut Block| block.plain_end - block.plain_start < BLOCK_LEN_MAX;
        if let Some(block) = self.blocks.pop_if(is_short) {
            quick.reopen_literals(self.sequences[block.end - 1].litLength as usize);
            self.sequences.truncate(block.end - 1);
            self.starts.truncate(block.first);
        }
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Finds the position where the costs reach the space.
    pub(super) fn first_cut(&self, src: &[u8], room: usize) -> usize {
        let mut left = (room as u64).saturating_sub(FRAME_HEADER_LEN) * 8 * BIT;
        for block in &self.blocks {
            let whole = block.expected();
            if whole > left {
                let within = left.saturating_sub(block.costs.fixed);
                let beyond = block.costs.body().saturating_sub(within);
                let cut = if within <= beyond || within == 0 {
                    self.forward(src, block.plain_start, within)
                } else {
                    self.backward(src, block.plain_end, beyond)
                };
                return self.sound_cut(cut).max(1);
            }
            left -= whole;
        }
        src.len()
    }

    /// Returns the cut to use instead of `cut`, which yielded `written` bytes, to get `aim` bytes.
    pub(super) fn moved_cut(&self, src: &[u8], cut: usize, written: usize, aim: usize) -> usize {
        if written <= aim {
            self.forward(src, cut, ((aim - written) as u64) * 8 * BIT)
        } else {
            self.backward(src, cut, ((written - aim) as u64) * 8 * BIT)
        }
    }

    /// Returns the nearest position at or before `cut` that leaves no match too short.
    pub(super) fn sound_cut(&self, cut: usize) -> usize {
        let Some((at, sequence)) = self.sequence_at(cut) else { return cut };
        let match_start = at + sequence.litLength as usize;
        if cut > match_start && cut - match_start < MATCH_LEN_MIN as usize { match_start } else { cut }
    }

    fn block_before(&self, cut: usize) -> Option<&Block> {
        let index = self.blocks.partition_point(|block| block.plain_end < cut);
        self.blocks.get(index)
    }

    fn sequence_at(&self, cut: usize) -> Option<(usize, &Sequence)> {
        let index = self.starts.partition_point(|&start| start < cut).checked_sub(1)?;
        Some((self.starts[index], &self.sequences[index]))
    }

    /// Finds the position that a cost reaches from `from`: always a later one.
    fn forward(&self, src: &[u8], from: usize, cost: u64) -> usize {
        let mut left = cost;
        let mut index = self.starts.partition_point(|&start| start <= from).saturating_sub(1);
        let first = self.blocks.partition_point(|block| block.plain_end <= from);
        for block in &self.blocks[first..] {
            index = index.max(block.first);
            for (sequence, &start) in self.sequences[index..block.end].iter().zip(&self.starts[index..]) {
                let match_start = start + sequence.litLength as usize;
                let start = start.max(from);
                for (at, &byte) in (start..).zip(src.get(start..match_start).unwrap_or_default()) {
                    let literal = block.costs.literal(byte);
                    if literal > left {
                        return at;
                    }
                    left -= literal;
                }
                if match_start + sequence.matchLength as usize > from {
                    let whole = block.costs.without_literals(sequence);
                    if whole > left {
                        return match_start.max(from);
                    }
                    left -= whole;
                }
            }
            left = left.saturating_sub(block.costs.fixed);
        }
        src.len()
    }

    /// Finds the position back to which a cost is saved from `from`: always an earlier one, except
    /// at the start.
    fn backward(&self, src: &[u8], from: usize, cost: u64) -> usize {
        let mut left = cost;
        let end = self.starts.partition_point(|&start| start < from);
        let mut blocks =
            self.blocks[..self.blocks.partition_point(|block| block.plain_start < from)].iter().rev();
        let Some(mut block) = blocks.next() else { return from };
        for (index, sequence) in self.sequences[..end].iter().enumerate().rev() {
            if index < block.first {
                left = left.saturating_sub(block.costs.fixed);
                let Some(before) = blocks.next() else { break };
                block = before;
            }
            let start = self.starts[index];
            let match_start = start + sequence.litLength as usize;
            if match_start < from {
                let whole = block.costs.without_literals(sequence);
                if whole >= left {
                    return match_start;
                }
                left -= whole;
            }
            let literals_end = match_start.min(from);
            for at in (start..literals_end).rev() {
                let literal = src.get(at).map_or(0, |&byte| block.costs.literal(byte));
                if literal >= left {
                    return at;
                }
                left -= literal;
            }
        }
        1.min(from)
    }

    /// Returns the number of bytes before the block that contains the byte before `cut`, if that
    /// block can be coded separately; otherwise 0.
    pub(super) fn head_len(&self, cut: usize) -> usize {
        let Some(block) = self.block_before(cut) else { return 0 };
        if knows_its_offsets(&self.sequences[block.first..block.end]) { block.plain_start } else { 0 }
    }

    /// Returns the sequences of the blocks before one that starts at `head_len`.
    pub(super) fn head(&self, head_len: usize) -> &[Sequence] {
        let block = self.blocks.partition_point(|block| block.plain_end < head_len);
        self.blocks.get(block).map_or(&[], |block| &self.sequences[..block.end])
    }

    /// Calls `use_sequences` with the sequences of the bytes from `head_len`, where a block starts,
    /// to `cut`.
    pub(super) fn with_tail<T>(
        &mut self,
        head_len: usize,
        cut: usize,
        use_sequences: impl FnOnce(&[Sequence]) -> T,
    ) -> T {
        let start = self.blocks.partition_point(|block| block.plain_end <= head_len);
        let start = self.blocks.get(start).map_or(self.sequences.len(), |block| block.first);
        let Some(block) = self.block_before(cut) else { return use_sequences(&self.sequences[start..]) };
        if block.plain_end == cut {
            let end = block.end;
            return use_sequences(&self.sequences[start..end]);
        }
        let index = self.starts.partition_point(|&start| start < cut).saturating_sub(1);
        let at = self.starts[index];
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
        let result = use_sequences(&self.sequences[start..index + added]);
        self.sequences[index..index + saved.len()].copy_from_slice(&saved);
        result
    }
}

/// True if `len` bytes at `from` equal those at `to`. Most matches are too short for a call of
/// `memcmp` to pay.
fn recurs(src: &[u8], from: usize, to: usize, len: usize) -> bool {
    let (Some(a), Some(b)) = (src.get(from..from + len), src.get(to..to + len)) else { return false };
    match (a.first_chunk::<8>(), a.last_chunk::<8>(), b.first_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) => {
            a_first == b_first && a_last == b_last && (len <= 16 || a == b)
        }
        _ => a.iter().zip(b).all(|(a, b)| a == b),
    }
}

/// Initial repeated offsets of a frame (RFC 8878, 3.1.1.5).
const FIRST_OFFSETS: [u32; 3] = [1, 4, 8];

/// True if a block repeats no offset of earlier blocks. The encoder treats it as the first one: it
/// must not use one of the first offsets before three others have replaced them.
fn knows_its_offsets(block: &[Sequence]) -> bool {
    let mut own = [0; FIRST_OFFSETS.len()];
    let mut count = 0;
    for sequence in block.iter().filter(|sequence| !is_block_end(sequence)) {
        if FIRST_OFFSETS.contains(&sequence.offset) {
            return false;
        }
        if !own[..count].contains(&sequence.offset) {
            own[count] = sequence.offset;
            count += 1;
            if count == own.len() {
                break;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offsets: &[u32]) -> Vec<Sequence> {
        let sequence = |&offset| Sequence { offset, litLength: 1, matchLength: 5, rep: 0 };
        offsets.iter().map(sequence).chain([BLOCK_END]).collect()
    }

    #[test]
    fn a_block_is_apart_once_it_has_three_offsets_of_its_own() {
        for offsets in [&[][..], &[9], &[9, 9, 9], &[9, 10, 11, 1, 4, 8], &[9, 10, 10, 9, 11, 8]] {
            assert!(knows_its_offsets(&block(offsets)), "{offsets:?}");
        }
        for offsets in [&[1][..], &[9, 4], &[9, 10, 8, 11], &[9, 9, 9, 4], &[9, 10, 9, 10, 1, 12]] {
            assert!(!knows_its_offsets(&block(offsets)), "{offsets:?}");
        }
    }

    #[test]
    fn a_difference_is_found_wherever_it_is_in_a_match() {
        for len in [3, 7, 8, 9, 15, 16, 17, 40] {
            let mut src: Vec<u8> = (0..2 * len as u8).map(|i| i % len as u8).collect();
            assert!(recurs(&src, 0, len, len));
            for at in len..2 * len {
                src[at] ^= 1;
                assert!(!recurs(&src, 0, len, len), "{at} of {len}");
                src[at] ^= 1;
            }
        }
        assert!(!recurs(&[0; 10], 0, 5, 6));
    }
}
