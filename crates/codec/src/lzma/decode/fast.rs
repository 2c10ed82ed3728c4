//! LZMA with the minimum of checks for safety: this decoder's only unsafe code.
//!
//! A bit costs a chain of dependent operations (scale the range, multiply, compare, choose), and a
//! mispredicted branch costs more than two of these. Therefore bits of trees are decoded without
//! branches: both possible next probabilities are loaded before the bit is known. Only bits that
//! choose the next kind of symbol are branched on, and whether a byte is due.
//!
//! Range and code are stored in the upper halves of 64-bit numbers. The lower half of `code`
//! contains read-ahead input, so that consuming a byte is a shift without a load.

use super::careful::RangeDecoder;
use super::model::*;
use super::{Fault, State, Window};

/// Maximum bytes that one symbol reads. Its longest form has 22 bits with probabilities, none of
/// which is below 31/2048, and 26 direct bits: 20 bytes at most. Four are read ahead. The functions
/// below require the bytes that they consume and four more, so this many at the start of a symbol
/// are enough.
const SRC_MARGIN: usize = 32;

/// Maximum bytes that a copy writes beyond its end.
const DST_MARGIN: usize = 48;

/// A range below this has a byte due.
const RANGE_MIN: u64 = 1 << 56;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The output is complete, or the input near its end.
    Rest,
    Marker,
}

pub(super) struct Coder {
    /// The range times 2^32.
    range: u64,
    /// The code times 2^32, plus read-ahead input, plus zeros.
    code: u64,
    /// The input after the code.
    next: *const u8,
}

impl Coder {
    /// Reads ahead: four bytes can be consumed after this.
    ///
    /// # Safety
    ///
    /// Four bytes can be read at `next`.
    #[inline(always)]
    unsafe fn read_ahead(&mut self) {
        // SAFETY: as for this function. The bytes read ahead before are the same, or zero.
        let ahead = unsafe { self.next.cast::<[u8; 4]>().read() };
        self.code |= u64::from(u32::from_be_bytes(ahead));
    }

    /// Consumes the byte that may be due.
    ///
    /// # Safety
    ///
    /// Four bytes can be read at `next`.
    #[inline(always)]
    unsafe fn normalise(&mut self) {
        if self.range < RANGE_MIN {
            // SAFETY: as for this function.
            unsafe {
                self.read_ahead();
                self.next = self.next.add(1);
            }
            self.range <<= 8;
            self.code <<= 8;
        }
    }

    /// Decodes at most 26 direct bits.
    ///
    /// Without a byte consumed, the range after `k` of them would be `range >> k`, rounded down in
    /// units of 2^32 up to the first byte consumed, and exact after, when its last bits are zero.
    /// So all bytes can be consumed afterwards.
    ///
    /// # Safety
    ///
    /// The byte that may be due and four more can be read at `next`.
    #[inline(always)]
    unsafe fn direct_bits(&mut self, count: u32) -> u32 {
        // SAFETY: as for this function: `normalise` takes at most one byte.
        unsafe {
            self.normalise();
            self.read_ahead();
        }
        let mut rounded = 8 - self.range.leading_zeros() as i32;
        let mut bits = 0;
        let (mut range, mut code) = (self.range, self.code);
        for _ in 0..count {
            rounded -= 1;
            let units = if rounded >= 0 { u64::MAX << 32 } else { u64::MAX };
            range = (range >> 1) & units;
            let (rest, zero) = code.overflowing_sub(range);
            code = std::hint::select_unpredictable(zero, code, rest);
            bits = bits * 2 + u32::from(!zero);
        }
        let due = range.leading_zeros() & 0x38;
        self.range = range << due;
        self.code = code << due;
        // SAFETY: at most four bytes, as the range was 2^56 and has lost 26 bits.
        self.next = unsafe { self.next.add(due as usize / 8) };
        bits
    }
}

/// Branches on a bit: executes the first block for 0, the second for 1.
macro_rules! branch {
    ($coder:ident, $prob:expr, $zero:block else $one:block) => {{
        let prob: *mut u16 = $prob;
        $coder.normalise();
        let value = *prob;
        let bound = S::bound($coder.range >> 43, u64::from(value));
        if $coder.code < bound {
            $coder.range = bound;
            *prob = value + ((2048 - value) >> 5);
            $zero
        } else {
            $coder.range -= bound;
            $coder.code -= bound;
            *prob = value - (value >> 5);
            $one
        }
    }};
}

/// The operations of a bit without branches. Implementations differ in speed only.
pub(super) trait Steps {
    /// `scaled * prob * 2^32`: where a bit with this probability divides the range, of which
    /// `scaled` is the upper 21 bits.
    fn bound(scaled: u64, prob: u64) -> u64;

    /// Decodes the bit for which `bound` divides the range. Returns one of the two values for each
    /// of `chosen`, and `node + bit`.
    fn choose(coder: &mut Coder, bound: u64, chosen: [(u32, u32); 2], node: u64) -> ([u32; 2], u64);
}

#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "what tests compare with"))]
pub(super) struct Portable;

impl Steps for Portable {
    #[inline(always)]
    fn bound(scaled: u64, prob: u64) -> u64 {
        (scaled * prob) << 32
    }

    #[inline(always)]
    fn choose(coder: &mut Coder, bound: u64, chosen: [(u32, u32); 2], node: u64) -> ([u32; 2], u64) {
        use std::hint::select_unpredictable;
        let (rest, zero) = coder.code.overflowing_sub(bound);
        coder.range = select_unpredictable(zero, bound, coder.range - bound);
        coder.code = select_unpredictable(zero, coder.code, rest);
        (
            chosen.map(|(for_zero, for_one)| select_unpredictable(zero, for_zero, for_one)),
            node + u64::from(!zero),
        )
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) type Native = Portable;
#[cfg(target_arch = "x86_64")]
pub(super) type Native = X86;

/// Conditional moves, which compilers would replace by branches or longer chains.
#[cfg(target_arch = "x86_64")]
pub(super) struct X86;

#[cfg(target_arch = "x86_64")]
impl Steps for X86 {
    #[inline(always)]
    fn bound(scaled: u64, prob: u64) -> u64 {
        let mut bound = scaled;
        // Shifted first: the probability is known before the range is.
        // SAFETY: reads and writes its operands only.
        unsafe {
            std::arch::asm!(
                "imul {bound}, {prob}",
                bound = inout(reg) bound,
                prob = in(reg) prob << 32,
                options(pure, nomem, nostack),
            );
        }
        bound
    }

    #[inline(always)]
    fn choose(coder: &mut Coder, bound: u64, chosen: [(u32, u32); 2], node: u64) -> ([u32; 2], u64) {
        let [(mut a, a_one), (mut b, b_one)] = chosen;
        let mut range = coder.range - bound;
        let mut node = node;
        // SAFETY: as above.
        unsafe {
            std::arch::asm!(
                "mov {kept}, {code}",
                "sub {code}, {bound}",
                "cmovb {range}, {bound}",
                "cmovae {a:e}, {a_one:e}",
                "cmovb {code}, {kept}",
                "cmovae {b:e}, {b_one:e}",
                "sbb {node}, -1",
                kept = out(reg) _,
                code = inout(reg) coder.code,
                bound = in(reg) bound,
                range = inout(reg) range,
                a = inout(reg) a,
                a_one = in(reg) a_one,
                b = inout(reg) b,
                b_one = in(reg) b_one,
                node = inout(reg) node,
                options(pure, nomem, nostack),
            );
        }
        coder.range = range;
        ([a, b], node)
    }
}

/// Decodes a bit with `prob` at `at`, and returns the chosen one of two next probabilities, and
/// `node + bit`. A byte was read ahead.
///
/// # Safety
///
/// `at` can be written.
#[inline(always)]
unsafe fn step<S: Steps>(
    coder: &mut Coder,
    at: *mut u16,
    prob: u32,
    next: (u32, u32),
    node: u64,
) -> (u32, u64) {
    if coder.range < RANGE_MIN {
        coder.range <<= 8;
        coder.code <<= 8;
        coder.next = coder.next.wrapping_add(1);
    }
    let bound = S::bound(coder.range >> 43, u64::from(prob));
    // Change of the probability, times 32: prob - 2048 + 31 rounds as the specification does.
    let ([next, excess], node) = S::choose(coder, bound, [next, (prob.wrapping_sub(2017), prob)], node);
    // SAFETY: as for this function.
    unsafe { *at = prob.wrapping_sub(excess >> 5) as u16 };
    (next, node)
}

/// Decodes a tree's `bits` bits and returns its node: a one, and the bits.
///
/// # Safety
///
/// `2^bits` probabilities can be written at `tree`; `bits` is at most 8; the consumed bytes and
/// four more can be read at the coder's `next`.
#[inline(always)]
unsafe fn tree<S: Steps>(coder: &mut Coder, tree: *mut u16, bits: u32) -> u32 {
    // SAFETY: a node of depth k, from 0, is below 2^(k + 1); all but the last bit's have children.
    // Four steps take at most four bytes.
    unsafe {
        coder.read_ahead();
        let mut node = 1u64;
        let mut prob = u32::from(*tree.add(1));
        for depth in 0..bits - 1 {
            if depth == 4 {
                coder.read_ahead();
            }
            let children = tree.add(2 * node as usize);
            let next = (u32::from(*children), u32::from(*children.add(1)));
            (prob, node) = step::<S>(coder, tree.add(node as usize), prob, next, node * 2);
        }
        step::<S>(coder, tree.add(node as usize), prob, (0, 0), node * 2).1 as u32
    }
}

/// Decodes a literal that probably differs from the byte `matched` in one bit.
///
/// While all bits equal those of `matched`, probabilities come from one of two other trees, chosen
/// by its next bit. Their addresses are known in advance.
///
/// # Safety
///
/// [`LITERAL_COUNT`] probabilities can be written at `probs`; the consumed bytes and four more can
/// be read at the coder's `next`.
#[inline(always)]
unsafe fn matched_literal<S: Steps>(coder: &mut Coder, probs: *mut u16, matched: u8) -> u32 {
    use std::hint::select_unpredictable;
    let path = 0x100 | usize::from(matched);
    // SAFETY: nodes of all but the last bit are below 128 and have children below 256; on the path
    // they are up to 512 further. Four steps take at most four bytes.
    unsafe {
        let mut node = 1u64;
        let mut at = probs.add(0x101 + (path << 1 & 0x100));
        let mut prob = u32::from(*at);
        macro_rules! steps {
            ($($depth:literal)*) => {$({
                let expected = path >> (7 - $depth);
                let expected_at = probs.add(expected + 0x100 + (path << ($depth + 2) & 0x100));
                let expected_prob = u32::from(*expected_at);
                let children = probs.add(2 * node as usize);
                let expected_child = expected.wrapping_sub(2 * node as usize);
                let zero = select_unpredictable(expected_child == 0, expected_prob, u32::from(*children));
                let one = select_unpredictable(expected_child == 1, expected_prob, u32::from(*children.add(1)));
                (prob, node) = step::<S>(coder, at, prob, (zero, one), node * 2);
                at = select_unpredictable(node as usize == expected, expected_at, probs.add(node as usize));
            })*};
        }
        coder.read_ahead();
        steps!(0 1 2 3);
        coder.read_ahead();
        steps!(4 5 6);
        step::<S>(coder, at, prob, (0, 0), node * 2).1 as u32
    }
}

/// Decodes the length of a copy.
///
/// # Safety
///
/// All probabilities of lengths are at `probs`; `pos_state` is below [`POS_STATES`]; the consumed
/// bytes and four more can be read at the coder's `next`.
#[inline(always)]
unsafe fn len<S: Steps>(coder: &mut Coder, probs: *mut u16, pos_state: usize) -> u32 {
    // SAFETY: as for this function.
    unsafe {
        branch!(coder, probs.add(LEN_CHOICE), {
            tree::<S>(coder, probs.add(LEN_LOW + pos_state * 8), 3) - 8 + LEN_LOW_MIN
        } else {
            branch!(coder, probs.add(LEN_CHOICE2), {
                tree::<S>(coder, probs.add(LEN_MID + pos_state * 8), 3) - 8 + LEN_MID_MIN
            } else {
                tree::<S>(coder, probs.add(LEN_HIGH), 8) - 256 + LEN_HIGH_MIN
            })
        })
    }
}

/// Decodes the distance, minus 1, of a copy of `len` bytes.
///
/// # Safety
///
/// `probs` are all of a model; the consumed bytes and four more can be read at the coder's `next`.
#[inline(always)]
unsafe fn distance<S: Steps>(coder: &mut Coder, probs: *mut u16, len: u32) -> u32 {
    // SAFETY: every tree is whole within the model (see its tests).
    unsafe {
        let slot = tree::<S>(coder, probs.add(slot_tree(len)), 6) - 64;
        if slot < 4 {
            return slot;
        }
        let bits = (slot >> 1) - 1;
        let high = (2 | (slot & 1)) << bits;
        if slot < 14 {
            let node = tree::<S>(coder, probs.add(special_tree(slot, high)), bits);
            // The node's first bit is not part of the distance.
            high + ((node << (32 - bits)).reverse_bits())
        } else {
            let direct = coder.direct_bits(bits - 4);
            let node = tree::<S>(coder, probs.add(DIST_ALIGN), 4);
            high + (direct << 4) + u32::from(REVERSED[(node & 15) as usize])
        }
    }
}

/// The four bits of the index in reverse.
const REVERSED: [u8; 16] = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15];

/// Copies `len` bytes within one buffer to `to` from `distance` bytes before it, and may write
/// [`DST_MARGIN`] more.
///
/// # Safety
///
/// `distance` is at least 1; all bytes from `to - distance` to `to` can be read, and from there
/// `len` + [`DST_MARGIN`] written.
#[inline(always)]
unsafe fn copy(mut to: *mut u8, distance: usize, len: usize) {
    type Chunk = [u8; 16];
    // SAFETY: as for this function. Every write ends less than 16 bytes after `len`, except for
    // those that double a short distance: they end before 48.
    unsafe {
        let end = to.add(len);
        let mut from = to.sub(distance).cast_const();
        if distance < 16 {
            // The bytes between `from` and `to` repeat the pattern; each chunk doubles them.
            while to.offset_from_unsigned(from) < 16 {
                let chunk = from.cast::<Chunk>().read();
                let pattern_len = to.offset_from_unsigned(from);
                to.cast::<Chunk>().write(chunk);
                to = to.add(pattern_len);
            }
        }
        // A chunk apart or more: all bytes read were written.
        loop {
            to.cast::<Chunk>().write(from.cast::<Chunk>().read());
            if to.add(16) >= end {
                break;
            }
            (to, from) = (to.add(16), from.add(16));
        }
    }
}

pub(super) fn decode<S: Steps>(
    state: &mut State,
    rc: &mut RangeDecoder<'_>,
    window: &mut Window<'_>,
) -> Result<Left, Fault> {
    let State { model, state, reps } = state;
    let limit = window.limit.min(window.dst.len());
    let Some(last_start) = rc.src.len().checked_sub(SRC_MARGIN) else { return Ok(Left::Rest) };
    if rc.at > last_start || window.len >= limit {
        return Ok(Left::Rest);
    }
    let [mut rep0, mut rep1, mut rep2, mut rep3] = reps.map(|rep| rep as usize);
    if *state >= STATES || (*state >= LITERAL_STATES && rep0 >= window.len) {
        return Err(Fault::Damaged);
    }
    let mut at_state = *state;
    let mut len_done = window.len;
    let dict_len = window.dict_len;
    let (contexts, cut) = (model.contexts, window.cut);
    let mut before = match len_done {
        0 => 0,
        _ => window.dst[len_done - 1],
    };
    let dst = window.dst.as_mut_ptr();
    let probs = model.probs.as_mut_ptr();
    // SAFETY: the sum is at most the length of `src`.
    let (start, last_start) = unsafe { (rc.src.as_ptr().add(rc.at), rc.src.as_ptr().add(last_start)) };
    let mut coder = Coder { range: u64::from(rc.range) << 32, code: u64::from(rc.code) << 32, next: start };
    let coder = &mut coder;
    // SAFETY: at the top of the loop, 32 bytes can be read at `next`, and a symbol takes at most
    // 20. `at_state` is a state: all tables and functions give states. `len_done` is below `limit`,
    // which is within `dst`, so one byte can be written at it. After a literal's state or once it
    // was checked, `rep0` is below `len_done`, which only grows.
    let result = unsafe {
        loop {
            if coder.next > last_start || len_done >= limit {
                break Ok(Left::Rest);
            }
            let pos_state = contexts.pos_state(len_done);
            branch!(coder, probs.add(IS_MATCH + at_state * POS_STATES + pos_state), {
                let tree_at = probs.add(contexts.literal(len_done, before));
                let node = if at_state < LITERAL_STATES {
                    tree::<S>(coder, tree_at, 8)
                } else {
                    matched_literal::<S>(coder, tree_at, *dst.add(len_done - rep0 - 1))
                };
                at_state = usize::from(AFTER_LITERAL[at_state & 15]);
                before = node as u8;
                *dst.add(len_done) = before;
                len_done += 1;
                continue;
            } else {});
            let copy_len;
            branch!(coder, probs.add(IS_REP + at_state), {
                at_state = after_match(at_state);
                copy_len = len::<S>(coder, probs.add(MATCH_LEN), pos_state);
                (rep3, rep2, rep1) = (rep2, rep1, rep0);
                let distance = distance::<S>(coder, probs, copy_len);
                rep0 = distance as usize;
                if distance == u32::MAX {
                    break Ok(Left::Marker);
                }
            } else {
                branch!(coder, probs.add(IS_REP0 + at_state), {
                    branch!(coder, probs.add(IS_REP0_LONG + at_state * POS_STATES + pos_state), {
                        if rep0 >= len_done.min(dict_len) {
                            break Err(Fault::Damaged);
                        }
                        at_state = after_short_rep(at_state);
                        before = *dst.add(len_done - rep0 - 1);
                        *dst.add(len_done) = before;
                        len_done += 1;
                        continue;
                    } else {});
                } else {
                    branch!(coder, probs.add(IS_REP1 + at_state), {
                        (rep0, rep1) = (rep1, rep0);
                    } else {
                        branch!(coder, probs.add(IS_REP2 + at_state), {
                            (rep0, rep1, rep2) = (rep2, rep0, rep1);
                        } else {
                            (rep0, rep1, rep2, rep3) = (rep3, rep0, rep1, rep2);
                        });
                    });
                });
                at_state = after_rep(at_state);
                copy_len = len::<S>(coder, probs.add(REP_LEN), pos_state);
            });
            if rep0 >= len_done.min(dict_len) {
                break Err(Fault::Damaged);
            }
            let (room, mut copy_len) = (limit - len_done, copy_len as usize);
            if copy_len + DST_MARGIN <= room {
                copy(dst.add(len_done), rep0 + 1, copy_len);
            } else {
                if copy_len > room {
                    if !cut {
                        break Err(Fault::Overlong);
                    }
                    copy_len = room;
                }
                for at in len_done..len_done + copy_len {
                    *dst.add(at) = *dst.add(at - rep0 - 1);
                }
            }
            len_done += copy_len;
            before = *dst.add(len_done - 1);
        }
    };
    *state = at_state;
    *reps = [rep0, rep1, rep2, rep3].map(|rep| rep as u32);
    window.len = len_done;
    // The read-ahead input is dropped.
    (rc.range, rc.code) = ((coder.range >> 32) as u32, (coder.code >> 32) as u32);
    // SAFETY: both point into `src`, `next` not before `start`.
    rc.at += unsafe { coder.next.offset_from_unsigned(start) };
    result
}
