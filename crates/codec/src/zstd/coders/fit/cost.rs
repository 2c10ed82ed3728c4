//! Estimated costs of sequences: order-0 entropies of one block, as for its tables.

use super::ffi::{Sequence, is_block_end};

/// Costs are in 1/256 bit.
pub(super) const BIT: u64 = 256;

/// Headers of a block, of its literals, and of its sequences.
const HEADERS_LEN: u64 = 3 + 4 + 4;

/// Approximate cost of one symbol in the description of a table, in 1/256 bit.
const LITERAL_IN_TABLE: u64 = 3 * BIT;
const CODE_IN_TABLE: u64 = 5 * BIT;

/// Fewer literals are stored uncompressed (`COMPRESS_LITERALS_SIZE_MIN`).
const CODED_LITERALS_MIN: u32 = 64;

/// Upper bound of symbols of lengths and offsets.
const CODE_COUNT: usize = 64;

pub(super) struct Costs {
    literals: [u32; 256],
    literal_lens: [u32; CODE_COUNT],
    match_lens: [u32; CODE_COUNT],
    offsets: [u32; CODE_COUNT],
    pub(super) fixed: u64,
    body: u64,
}

pub(super) struct Counts {
    literals: [u32; 256],
    literal_lens: [u32; CODE_COUNT],
    match_lens: [u32; CODE_COUNT],
    offsets: [u32; CODE_COUNT],
    extra_bits: u64,
}

impl Counts {
    pub(super) fn new() -> Counts {
        Counts {
            literals: [0; 256],
            literal_lens: [0; CODE_COUNT],
            match_lens: [0; CODE_COUNT],
            offsets: [0; CODE_COUNT],
            extra_bits: 0,
        }
    }

    pub(super) fn add(&mut self, sequence: &Sequence, literals: &[u8]) {
        for &byte in literals {
            self.literals[usize::from(byte)] += 1;
        }
        if is_block_end(sequence) {
            return;
        }
        let (len_code, len_bits) = literal_len_code(sequence);
        let (match_code, match_bits) = match_len_code(sequence);
        let (offset_code, offset_bits) = offset_code(sequence);
        self.literal_lens[len_code] += 1;
        self.match_lens[match_code] += 1;
        self.offsets[offset_code] += 1;
        self.extra_bits += u64::from(len_bits + match_bits + offset_bits);
    }
}

impl Costs {
    pub(super) fn new(block: &[Sequence], plain: &[u8], literals_stored: bool) -> Costs {
        let mut counts = Counts::new();
        for (sequence, own_literals) in with_literals(block, plain) {
            counts.add(sequence, own_literals);
        }
        Costs::of(&counts, literals_stored)
    }

    pub(super) fn of(counts: &Counts, literals_stored: bool) -> Costs {
        let Counts { literals, literal_lens, match_lens, offsets, extra_bits } = counts;
        let literal_count: u32 = literals.iter().sum();
        let literal_costs = if literals_stored || literal_count < CODED_LITERALS_MIN {
            [8 * BIT as u32; 256]
        } else {
            entropies(literals)
        };
        let used = |counts: &[u32]| counts.iter().filter(|&&count| count > 0).count() as u64;
        let code_count = used(literal_lens) + used(match_lens) + used(offsets);
        let (len_costs, match_costs, offset_costs) =
            (entropies(literal_lens), entropies(match_lens), entropies(offsets));
        let body = extra_bits * BIT
            + sum(literals, &literal_costs)
            + sum(literal_lens, &len_costs)
            + sum(match_lens, &match_costs)
            + sum(offsets, &offset_costs);
        Costs {
            body,
            fixed: HEADERS_LEN * 8 * BIT + used(literals) * LITERAL_IN_TABLE + code_count * CODE_IN_TABLE,
            literals: literal_costs,
            literal_lens: len_costs,
            match_lens: match_costs,
            offsets: offset_costs,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.fixed + self.body
    }

    pub(super) fn body(&self) -> u64 {
        self.body
    }

    pub(super) fn literal(&self, byte: u8) -> u64 {
        self.literals[usize::from(byte)].into()
    }

    /// Cost of a sequence without its literals; 0 for an end of block.
    pub(super) fn without_literals(&self, sequence: &Sequence) -> u64 {
        if is_block_end(sequence) {
            return 0;
        }
        let of = |costs: &[u32; CODE_COUNT], (code, extra_bits): (usize, u32)| {
            u64::from(costs[code]) + u64::from(extra_bits) * BIT
        };
        of(&self.literal_lens, literal_len_code(sequence))
            + of(&self.match_lens, match_len_code(sequence))
            + of(&self.offsets, offset_code(sequence))
    }
}

fn with_literals<'a>(
    block: &'a [Sequence],
    plain: &'a [u8],
) -> impl Iterator<Item = (&'a Sequence, &'a [u8])> {
    let mut at = 0;
    block.iter().map(move |sequence| {
        let end = at + sequence.litLength as usize;
        let literals = &plain[at..end];
        at = end + sequence.matchLength as usize;
        (sequence, literals)
    })
}

fn sum(counts: &[u32], costs: &[u32]) -> u64 {
    counts.iter().zip(costs).map(|(&count, &cost)| u64::from(count) * u64::from(cost)).sum()
}

/// `log2(total / count)` for every count.
fn entropies<const N: usize>(counts: &[u32; N]) -> [u32; N] {
    let total_log = log2(counts.iter().sum());
    counts.map(|count| total_log - log2(count))
}

/// Binary logarithm in 1/256 bit, rounded down; `log2(0)` is that of 1.
fn log2(number: u32) -> u32 {
    let log = number.max(1).ilog2();
    let fraction = (u64::from(number.max(1)) << FRACTION_LOG >> log) as usize % FRACTIONS.len();
    log * BIT as u32 + u32::from(FRACTIONS[fraction])
}

const FRACTION_LOG: u32 = 10;
/// Logarithms of numbers from 1 to 2.
static FRACTIONS: [u8; 1 << FRACTION_LOG] = fractions();

/// Digit by digit: squaring a number doubles its logarithm.
const fn fractions() -> [u8; 1 << FRACTION_LOG] {
    const ONE: u64 = 1 << 31;
    let mut fractions = [0; 1 << FRACTION_LOG];
    let mut at = 0;
    while at < fractions.len() {
        let mut number = ONE + at as u64 * (ONE >> FRACTION_LOG);
        let mut digits = 0;
        while digits < 8 {
            number = number * number / ONE;
            let is_over = number >= 2 * ONE;
            fractions[at] = fractions[at] << 1 | is_over as u8;
            if is_over {
                number /= 2;
            }
            digits += 1;
        }
        at += 1;
    }
    fractions
}

/// Approximates the code of a length and its extra bits: powers of two with `direct` steps, as in
/// RFC 8878, 3.1.1.3.2.1.
fn len_code(len: u32, direct: u32) -> (usize, u32) {
    if len < direct {
        return (len as usize, 0);
    }
    let log = len.ilog2();
    ((direct + log - direct.ilog2()) as usize, log)
}

fn literal_len_code(sequence: &Sequence) -> (usize, u32) {
    len_code(sequence.litLength, 16)
}

fn match_len_code(sequence: &Sequence) -> (usize, u32) {
    len_code(sequence.matchLength.saturating_sub(3), 32)
}

fn offset_code(sequence: &Sequence) -> (usize, u32) {
    match sequence.rep {
        0 => {
            let log = (sequence.offset.saturating_add(3)).max(1).ilog2();
            (log as usize, log)
        }
        1 => (0, 0),
        _ => (1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_nearly_true() {
        for number in (1..3000).chain([65_535, 65_536, 131_072, 1 << 20, u32::MAX]) {
            let exact = f64::from(number).log2() * BIT as f64;
            let off = exact - f64::from(log2(number));
            assert!((-0.01..1.5).contains(&off), "{number}: {off}");
        }
        assert_eq!(log2(0), 0);
    }
}
