//! The probabilities of LZMA: their positions in one array of fixed layout, and the contexts that
//! choose them.
//!
//! Names and figures are those of the LZMA specification (lzma-specification.txt of the LZMA SDK,
//! public domain).

/// Half, of 2048.
const PROB_INIT: u16 = 1024;

pub(super) const IS_MATCH: usize = 0;
pub(super) const IS_REP0_LONG: usize = IS_MATCH + STATES * POS_STATES;
pub(super) const IS_REP: usize = IS_REP0_LONG + STATES * POS_STATES;
pub(super) const IS_REP0: usize = IS_REP + 16;
pub(super) const IS_REP1: usize = IS_REP0 + 16;
pub(super) const IS_REP2: usize = IS_REP1 + 16;
/// Four trees of 6 bits, for matches of length 2, 3, 4, and more.
pub(super) const DIST_SLOT: usize = IS_REP2 + 16;
/// Reverse trees for distances of 4 to 127; see [`special_tree`].
const DIST_SPECIAL: usize = DIST_SLOT + 4 * 64;
/// One reverse tree of 4 bits.
pub(super) const DIST_ALIGN: usize = DIST_SPECIAL + 128;
pub(super) const MATCH_LEN: usize = DIST_ALIGN + 16;
pub(super) const REP_LEN: usize = MATCH_LEN + LEN_COUNT;
const LITERAL: usize = (REP_LEN + LEN_COUNT).next_multiple_of(32);
pub(super) const PROB_COUNT: usize = LITERAL + (LITERAL_COUNT << LITERAL_CONTEXT_BITS_MAX);

/// Layout of a length's probabilities: two choices, 16 trees of 3 bits, another 16, and a tree of 8
/// bits.
pub(super) const LEN_CHOICE: usize = 0;
pub(super) const LEN_CHOICE2: usize = 1;
pub(super) const LEN_LOW: usize = 16;
pub(super) const LEN_MID: usize = LEN_LOW + 16 * 8;
pub(super) const LEN_HIGH: usize = LEN_MID + 16 * 8;
const LEN_COUNT: usize = LEN_HIGH + 256;

/// Shortest length of each of the three kinds of tree.
pub(super) const LEN_LOW_MIN: u32 = 2;
pub(super) const LEN_MID_MIN: u32 = LEN_LOW_MIN + 8;
pub(super) const LEN_HIGH_MIN: u32 = LEN_MID_MIN + 8;

pub(super) const STATES: usize = 12;
pub(super) const POS_STATES: usize = 16;
/// States below follow a literal.
pub(super) const LITERAL_STATES: usize = 7;

/// One literal context: a tree of 8 bits for literals after literals, and one each for those after
/// a match, where the byte at the match's distance has a bit of 0 or 1.
pub(super) const LITERAL_COUNT: usize = 0x300;
/// Limit of `lc + lp` in xz, in MicroLZMA, and in all Linux filesystems.
const LITERAL_CONTEXT_BITS_MAX: u32 = 4;

/// State after a literal, by the previous state.
pub(super) const AFTER_LITERAL: [u8; 16] = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5, 0, 0, 0, 0];

pub(super) fn after_match(state: usize) -> usize {
    if state < LITERAL_STATES { 7 } else { 10 }
}

/// State after a match with an earlier distance.
pub(super) fn after_rep(state: usize) -> usize {
    if state < LITERAL_STATES { 8 } else { 11 }
}

pub(super) fn after_short_rep(state: usize) -> usize {
    if state < LITERAL_STATES { 9 } else { 11 }
}

/// Returns the start of the reverse tree (its root is one further) that yields the low bits of a
/// distance of slot 4 to 13; `high` is the distance with all those bits 0.
pub(super) fn special_tree(slot: u32, high: u32) -> usize {
    DIST_SPECIAL + high as usize - slot as usize - 1
}

/// Tree for the slot of a distance, by the length of the match.
pub(super) fn slot_tree(len: u32) -> usize {
    DIST_SLOT + (len.clamp(2, 5) - 2) as usize * 64
}

/// Choice of probabilities by literals and positions: `lc`, `lp`, and `pb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    lc: u8,
    lp: u8,
    pb: u8,
}

impl Properties {
    pub(crate) fn of_parts(lc: u8, lp: u8, pb: u8) -> Option<Properties> {
        if lc > 8 || lp > 4 || pb > 4 {
            return None;
        }
        Properties::new((pb * 5 + lp) * 9 + lc)
    }

    /// Decodes `(pb * 5 + lp) * 9 + lc`. `None` for an invalid byte, or if `lc + lp` is above 4,
    /// which liblzma refuses, too.
    pub(crate) fn new(byte: u8) -> Option<Properties> {
        let properties = Properties { lc: byte % 9, lp: byte / 9 % 5, pb: byte / 45 };
        let context_bits = u32::from(properties.lc + properties.lp);
        (properties.pb <= 4 && context_bits <= LITERAL_CONTEXT_BITS_MAX).then_some(properties)
    }
}

/// All probabilities, and the masks that choose among them.
pub(super) struct Model {
    pub(super) probs: Box<[u16; PROB_COUNT]>,
    pub(super) contexts: Contexts,
}

impl Model {
    pub(super) fn new() -> Model {
        let contexts = Contexts { lc: 0, literal_mask: 0, pos_mask: 0 };
        Model { probs: Box::new([PROB_INIT; PROB_COUNT]), contexts }
    }

    pub(super) fn reset(&mut self, properties: Properties) {
        let Properties { lc, lp, pb } = properties;
        self.contexts = Contexts {
            lc: u32::from(lc),
            literal_mask: (0x100 << lp) - (0x100 >> lc),
            pos_mask: (1 << pb) - 1,
        };
        self.probs[..LITERAL + (LITERAL_COUNT << (lc + lp))].fill(PROB_INIT);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Contexts {
    lc: u32,
    literal_mask: usize,
    pos_mask: usize,
}

impl Contexts {
    /// Part of the position that is a context; below [`POS_STATES`].
    #[inline(always)]
    pub(super) fn pos_state(self, pos: usize) -> usize {
        pos & self.pos_mask
    }

    /// Returns the start of the literal context for a byte at `pos` after `before`, which has
    /// [`LITERAL_COUNT`] probabilities.
    ///
    /// `literal_mask` selects the low `lp` bits of the position and the high `lc` bits of the byte,
    /// as one number whose lowest bit is bit `8 - lc`: shifted by `lc`, it is 0x100 times a number
    /// below `2^(lc + lp)`, at most 16.
    #[inline(always)]
    pub(super) fn literal(self, pos: usize, before: u8) -> usize {
        LITERAL + 3 * (((pos.wrapping_mul(0x100) + usize::from(before)) & self.literal_mask) << self.lc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_context_lies_within_the_array() {
        for byte in 0..=u8::MAX {
            let Some(properties) = Properties::new(byte) else { continue };
            let mut model = Model::new();
            model.reset(properties);
            for pos in 0..32 {
                assert!(model.contexts.pos_state(pos) < POS_STATES);
                for before in 0..=u8::MAX {
                    assert!(model.contexts.literal(pos, before) + LITERAL_COUNT <= PROB_COUNT);
                }
            }
        }
    }

    #[test]
    fn properties_beyond_their_ranges_are_refused() {
        assert_eq!(Properties::new(0x5D), Some(Properties { lc: 3, lp: 0, pb: 2 }));
        assert_eq!(Properties::new(4 * 45), Some(Properties { lc: 0, lp: 0, pb: 4 }));
        assert_eq!(Properties::new(225), None);
        assert_eq!(Properties::new(5), None, "lc 5");
        assert_eq!(Properties::new(9 * 2 + 3), None, "lc 3 and lp 2");
    }

    #[test]
    fn trees_of_distances_do_not_overlap() {
        let mut used = vec![0; PROB_COUNT];
        for slot in 4..14 {
            let bits = (slot >> 1) - 1;
            let tree = special_tree(slot, (2 | (slot & 1)) << bits);
            for node in 1..1 << bits {
                used[tree + node] += 1;
            }
        }
        assert!(used.iter().all(|&count| count <= 1));
        assert!(used[..DIST_SPECIAL].iter().chain(&used[DIST_ALIGN..]).all(|&count| count == 0));
    }
}
