//! LZMA symbol by symbol, with a check of the input before every byte: the specification as code.
//! It decodes what the fast loop leaves, the last bytes of every stream.

use super::model::*;
use super::{Fault, State};

/// A range decoder between two symbols.
#[derive(Clone, Copy)]
pub(crate) struct RangeDecoder<'a> {
    pub(super) src: &'a [u8],
    pub(super) at: usize,
    pub(super) range: u32,
    /// Below `range`.
    pub(super) code: u32,
}

impl<'a> RangeDecoder<'a> {
    /// Reads a zero byte and four more.
    pub(crate) fn new(src: &'a [u8]) -> Result<RangeDecoder<'a>, Fault> {
        match src.split_first() {
            Some((0, rest)) => {
                let decoder = RangeDecoder::without_zero(rest)?;
                Ok(RangeDecoder { src, at: decoder.at + 1, ..decoder })
            }
            Some(_) => Err(Fault::Damaged),
            None => Err(Fault::Exhausted),
        }
    }

    pub(crate) fn without_zero(src: &'a [u8]) -> Result<RangeDecoder<'a>, Fault> {
        let bytes = src.first_chunk().ok_or(Fault::Exhausted)?;
        let code = u32::from_be_bytes(*bytes);
        // No encoder produces this, and otherwise `code` remains below `range`.
        if code == u32::MAX {
            return Err(Fault::Damaged);
        }
        Ok(RangeDecoder { src, at: 4, range: u32::MAX, code })
    }

    /// Reads the byte that may be due, and reports if the stream can end here, and if it ends with
    /// the input.
    pub(crate) fn finish(&mut self) -> Result<Finish, Fault> {
        self.normalise()?;
        match self.code {
            0 if self.at == self.src.len() => Ok(Finish::AtEnd),
            0 => Ok(Finish::Before),
            _ => Ok(Finish::No),
        }
    }

    /// Terminates the stream after the last decoded symbol: the bytes read, minus those that an
    /// encoder would not have written yet. `None` if a due byte is missing.
    #[cfg(feature = "xz")]
    pub(crate) fn ended_here(mut self, stream: &mut Vec<u8>) -> Option<()> {
        self.normalise().ok()?;
        stream.clear();
        stream.extend_from_slice(&self.src[..self.at]);
        // Decoders store the number in the input minus the lower end of the range; encoders write
        // that lower end.
        let mut rest = self.code;
        for byte in stream.iter_mut().rev() {
            let (less, borrows) = byte.overflowing_sub(rest as u8);
            *byte = less;
            rest = (rest >> 8) + u32::from(borrows);
            if rest == 0 {
                break;
            }
        }
        (rest == 0).then_some(())
    }

    #[cfg(feature = "xz")]
    pub(super) fn may_end(&self) -> bool {
        self.range >= 1 << 24 || self.at < self.src.len()
    }

    /// True if the stream can end here, and the input does.
    pub(super) fn ends_here(&self) -> bool {
        matches!({ *self }.finish(), Ok(Finish::AtEnd))
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.src.len()
    }

    pub(crate) fn left(&self) -> usize {
        self.src.len() - self.at
    }

    fn normalise(&mut self) -> Result<(), Fault> {
        if self.range < 1 << 24 {
            let &byte = self.src.get(self.at).ok_or(Fault::Exhausted)?;
            self.at += 1;
            self.range <<= 8;
            self.code = self.code << 8 | u32::from(byte);
        }
        Ok(())
    }

    fn bit(&mut self, prob: &mut u16) -> Result<u32, Fault> {
        self.normalise()?;
        let bound = (self.range >> 11) * u32::from(*prob);
        if self.code < bound {
            self.range = bound;
            *prob += (2048 - *prob) >> 5;
            Ok(0)
        } else {
            self.range -= bound;
            self.code -= bound;
            *prob -= *prob >> 5;
            Ok(1)
        }
    }

    /// Decodes a bit without a probability.
    fn direct_bit(&mut self) -> Result<u32, Fault> {
        self.normalise()?;
        self.range >>= 1;
        let bit = u32::from(self.code >= self.range);
        self.code -= self.range * bit;
        Ok(bit)
    }

    fn tree(&mut self, tree: &mut [u16], bits: u32) -> Result<u32, Fault> {
        let mut node = 1;
        for _ in 0..bits {
            node = node << 1 | self.bit(&mut tree[node as usize])?;
        }
        Ok(node - (1 << bits))
    }

    /// Like `tree`, with the lowest bit first.
    fn reverse_tree(&mut self, tree: &mut [u16], bits: u32) -> Result<u32, Fault> {
        let symbol = self.tree(tree, bits)?;
        Ok(symbol.reverse_bits() >> (32 - bits))
    }

    fn len(&mut self, probs: &mut [u16], pos_state: usize) -> Result<u32, Fault> {
        if self.bit(&mut probs[LEN_CHOICE])? == 0 {
            return Ok(LEN_LOW_MIN + self.tree(&mut probs[LEN_LOW + pos_state * 8..], 3)?);
        }
        if self.bit(&mut probs[LEN_CHOICE2])? == 0 {
            return Ok(LEN_MID_MIN + self.tree(&mut probs[LEN_MID + pos_state * 8..], 3)?);
        }
        Ok(LEN_HIGH_MIN + self.tree(&mut probs[LEN_HIGH..], 8)?)
    }

    fn distance(&mut self, probs: &mut [u16], len: u32) -> Result<u32, Fault> {
        let slot = self.tree(&mut probs[slot_tree(len)..], 6)?;
        if slot < 4 {
            return Ok(slot);
        }
        let bits = (slot >> 1) - 1;
        let high = (2 | (slot & 1)) << bits;
        if slot < 14 {
            return Ok(high + self.reverse_tree(&mut probs[special_tree(slot, high)..], bits)?);
        }
        let mut direct = 0;
        for _ in 4..bits {
            direct = direct << 1 | self.direct_bit()?;
        }
        Ok(high + (direct << 4) + self.reverse_tree(&mut probs[DIST_ALIGN..], 4)?)
    }

    /// Decodes a literal after a match: its likely bits are those of `matched`, until one differs.
    fn matched_literal(&mut self, probs: &mut [u16], matched: u8) -> Result<u32, Fault> {
        let mut node = 1;
        for shift in (0..8).rev() {
            let expected = u32::from(matched >> shift) & 1;
            let bit = self.bit(&mut probs[((1 + expected) << 8 | node) as usize])?;
            node = node << 1 | bit;
            if bit != expected {
                for _ in 0..shift {
                    node = node << 1 | self.bit(&mut probs[node as usize])?;
                }
                break;
            }
        }
        Ok(node)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    AtEnd,
    /// The stream ends here, but not the input.
    Before,
    No,
}

/// An LZMA symbol; the distance of a copy is the state's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Literal(u8),
    Copy(u32),
    Marker,
}

/// Decodes the symbol that follows `before`, the output since the last reset of the dictionary.
pub(super) fn symbol(state: &mut State, rc: &mut RangeDecoder<'_>, before: &[u8]) -> Result<Symbol, Fault> {
    let State { model, state, reps } = state;
    let pos_state = model.contexts.pos_state(before.len());
    if rc.bit(&mut model.probs[IS_MATCH + *state * POS_STATES + pos_state])? == 0 {
        let literal = model.contexts.literal(before.len(), before.last().copied().unwrap_or(0));
        let probs = &mut model.probs[literal..literal + LITERAL_COUNT];
        let byte = if *state < LITERAL_STATES {
            rc.tree(probs, 8)?
        } else {
            rc.matched_literal(probs, at_distance(before, reps[0])?)?
        };
        *state = usize::from(AFTER_LITERAL[*state]);
        return Ok(Symbol::Literal(byte as u8));
    }
    if rc.bit(&mut model.probs[IS_REP + *state])? == 0 {
        let len = rc.len(&mut model.probs[MATCH_LEN..], pos_state)?;
        let distance = rc.distance(&mut model.probs[..], len)?;
        *reps = [distance, reps[0], reps[1], reps[2]];
        *state = after_match(*state);
        return Ok(if distance == u32::MAX { Symbol::Marker } else { Symbol::Copy(len) });
    }
    if rc.bit(&mut model.probs[IS_REP0 + *state])? == 0 {
        if rc.bit(&mut model.probs[IS_REP0_LONG + *state * POS_STATES + pos_state])? == 0 {
            *state = after_short_rep(*state);
            return Ok(Symbol::Copy(1));
        }
    } else if rc.bit(&mut model.probs[IS_REP1 + *state])? == 0 {
        reps[..2].rotate_right(1);
    } else if rc.bit(&mut model.probs[IS_REP2 + *state])? == 0 {
        reps[..3].rotate_right(1);
    } else {
        reps.rotate_right(1);
    }
    *state = after_rep(*state);
    Ok(Symbol::Copy(rc.len(&mut model.probs[REP_LEN..], pos_state)?))
}

fn at_distance(before: &[u8], distance: u32) -> Result<u8, Fault> {
    let newer = before.len().checked_sub(distance as usize).ok_or(Fault::Damaged)?;
    newer.checked_sub(1).map(|at| before[at]).ok_or(Fault::Damaged)
}
