//! The last block of a full output: the prefix of a parse that fits, and its codes.

use super::bits::BitWriter;
use super::block::{PRECODE_ORDER, fixed_litlen_lens};
use super::huffman::{CODE_LEN_MAX, code_lens, codes};
use super::symbols::{
    DISTANCE_COUNT, END_OF_BLOCK, LEN_BASES, LEN_EXTRA_BITS, LITLEN_COUNT, Token, distance_base,
    distance_extra_bits, distance_symbol, len_index,
};

/// Length fields of a stored block.
const STORED_LENS_LEN: usize = 4;

/// Assumed cost of a symbol without a code.
const UNKNOWN_CODE_LEN: u32 = 12;

/// Limit of attempts to move a cut; each recomputes the codes.
const MOVES_MAX: usize = 12;

struct Counts {
    litlens: [u32; LITLEN_COUNT],
    distances: [u32; DISTANCE_COUNT],
    extra_bits: usize,
    token_count: usize,
}

impl Counts {
    fn new() -> Counts {
        let mut litlens = [0; LITLEN_COUNT];
        litlens[END_OF_BLOCK] = 1;
        Counts { litlens, distances: [0; DISTANCE_COUNT], extra_bits: 0, token_count: 0 }
    }

    fn move_to(&mut self, tokens: &[Token], token_count: usize) {
        if token_count >= self.token_count {
            tokens[self.token_count..token_count].iter().for_each(|&token| self.add(token, 1, 1));
        } else {
            let (minus_one, minus_bits) = (u32::MAX, usize::MAX);
            tokens[token_count..self.token_count]
                .iter()
                .for_each(|&token| self.add(token, minus_one, minus_bits));
        }
        self.token_count = token_count;
    }

    /// Adds a token `times` times, modulo the integers' size.
    #[inline]
    fn add(&mut self, token: Token, times: u32, bits_times: usize) {
        if token.len == 0 {
            let count = &mut self.litlens[usize::from(token.value) & 255];
            *count = count.wrapping_add(times);
            return;
        }
        let (index, symbol) = (len_index(token.len), distance_symbol(token.value));
        let count = &mut self.litlens[END_OF_BLOCK + 1 + index];
        *count = count.wrapping_add(times);
        self.distances[symbol] = self.distances[symbol].wrapping_add(times);
        let bits = usize::from(LEN_EXTRA_BITS[index]) + distance_extra_bits(symbol) as usize;
        self.extra_bits = self.extra_bits.wrapping_add(bits.wrapping_mul(bits_times));
    }
}

#[derive(Clone)]
struct Codes {
    dynamic: bool,
    litlen_lens: [u8; LITLEN_COUNT],
    distance_lens: [u8; DISTANCE_COUNT],
    /// Length of the block including its header, in bits.
    block_bits: usize,
    header: Header,
}

#[derive(Clone, Default)]
struct Header {
    litlen_count: usize,
    distance_count: usize,
    precode_count: usize,
    precode_lens: [u8; 19],
    /// Symbol of the precode, extra bits.
    items: Vec<(u8, u8)>,
    bits: usize,
}

impl Codes {
    /// Chooses the better of fixed and dynamic codes.
    fn new(counts: &Counts) -> Codes {
        let mut litlen_lens = [0; LITLEN_COUNT];
        let mut distance_lens = [0; DISTANCE_COUNT];
        code_lens(&counts.litlens, CODE_LEN_MAX, &mut litlen_lens);
        code_lens(&counts.distances, CODE_LEN_MAX, &mut distance_lens);
        let header = Header::new(&litlen_lens, &distance_lens);
        let bits = body_bits(counts, &litlen_lens, &distance_lens);
        let fixed_litlen_lens = fixed_litlen_lens();
        let fixed_distance_lens = [5; DISTANCE_COUNT];
        let fixed_bits = 3 + body_bits(counts, &fixed_litlen_lens, &fixed_distance_lens);
        let block_bits = 3 + header.bits + bits;
        if block_bits < fixed_bits {
            return Codes { dynamic: true, litlen_lens, distance_lens, block_bits, header };
        }
        Codes {
            dynamic: false,
            litlen_lens: fixed_litlen_lens,
            distance_lens: fixed_distance_lens,
            block_bits: fixed_bits,
            header,
        }
    }

    fn token_bits(&self, token: Token) -> usize {
        let known = |len: u8| if len == 0 { UNKNOWN_CODE_LEN } else { len.into() };
        if token.len == 0 {
            return known(self.litlen_lens[usize::from(token.value) & 255]) as usize;
        }
        let (index, symbol) = (len_index(token.len), distance_symbol(token.value));
        let code_bits = known(self.litlen_lens[END_OF_BLOCK + 1 + index]) + known(self.distance_lens[symbol]);
        (code_bits + u32::from(LEN_EXTRA_BITS[index]) + distance_extra_bits(symbol)) as usize
    }
}

fn body_bits(counts: &Counts, litlen_lens: &[u8], distance_lens: &[u8]) -> usize {
    let sum = |counts: &[u32], lens: &[u8]| -> usize {
        counts.iter().zip(lens).map(|(&count, &len)| count as usize * usize::from(len)).sum()
    };
    counts.extra_bits + sum(&counts.litlens, litlen_lens) + sum(&counts.distances, distance_lens)
}

impl Header {
    fn new(litlen_lens: &[u8], distance_lens: &[u8]) -> Header {
        let used = |lens: &[u8]| lens.iter().rposition(|&len| len > 0).map_or(0, |last| last + 1);
        let litlen_count = used(litlen_lens).max(END_OF_BLOCK + 1);
        let distance_count = used(distance_lens).max(1);
        let lens = [&litlen_lens[..litlen_count], &distance_lens[..distance_count]].concat();
        let items = run_lengths(&lens);
        let mut counts = [0; 19];
        items.iter().for_each(|&(symbol, _)| counts[usize::from(symbol)] += 1);
        let mut precode_lens = [0; 19];
        code_lens(&counts, 7, &mut precode_lens);
        let precode_count = PRECODE_ORDER
            .iter()
            .rposition(|&symbol| precode_lens[symbol] > 0)
            .map_or(4, |last| last + 1)
            .max(4);
        let items_bits: usize = items
            .iter()
            .map(|&(symbol, _)| {
                usize::from(precode_lens[usize::from(symbol)]) + precode_extra_bits(symbol) as usize
            })
            .sum();
        let bits = 14 + 3 * precode_count + items_bits;
        Header { litlen_count, distance_count, precode_count, precode_lens, items, bits }
    }

    fn write(&self, writer: &mut BitWriter<'_>) {
        writer.put((self.litlen_count - 257) as u32, 5);
        writer.put((self.distance_count - 1) as u32, 5);
        writer.put((self.precode_count - 4) as u32, 4);
        for &symbol in &PRECODE_ORDER[..self.precode_count] {
            writer.put(self.precode_lens[symbol].into(), 3);
        }
        let mut all = [0; 19];
        codes(&self.precode_lens, &mut all);
        for &(symbol, extra) in &self.items {
            let index = usize::from(symbol);
            writer.put(all[index].into(), self.precode_lens[index].into());
            writer.put(extra.into(), precode_extra_bits(symbol));
        }
    }
}

fn precode_extra_bits(symbol: u8) -> u32 {
    match symbol {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}

/// Encodes code lengths as symbols of the precode with their extra bits.
fn run_lengths(lens: &[u8]) -> Vec<(u8, u8)> {
    let mut items = Vec::with_capacity(lens.len());
    for run in lens.chunk_by(|a, b| a == b) {
        let (len, mut left) = (run[0], run.len());
        if len == 0 {
            while left >= 11 {
                let repeats = left.min(138);
                items.push((18, (repeats - 11) as u8));
                left -= repeats;
            }
            if left >= 3 {
                items.push((17, (left - 3) as u8));
                left = 0;
            }
        } else {
            items.push((len, 0));
            left -= 1;
            while left >= 3 {
                let repeats = left.min(6);
                items.push((16, (repeats - 3) as u8));
                left -= repeats;
            }
        }
        items.extend(std::iter::repeat_n((len, 0), left));
    }
    items
}

#[derive(Default)]
pub(super) struct Tail {
    found: Option<(usize, Codes)>,
}

impl Tail {
    /// Returns the number of bytes that fit as a stored block at a bit position; `None` if none do.
    pub(super) fn fit_stored(
        &self,
        plain: &[u8],
        plain_len: usize,
        start_bit: usize,
        room_bits: usize,
    ) -> Option<usize> {
        let room = (room_bits / 8).checked_sub((start_bit + 3).div_ceil(8) + STORED_LENS_LEN)?;
        Some(room.min(plain_len).min(plain.len())).filter(|&len| len > 0)
    }

    /// Returns the decoded length of the longest prefix of a parse that fits into a block at a bit
    /// position; `None` if none does.
    pub(super) fn fit_tokens(
        &mut self,
        tokens: &[Token],
        start_bit: usize,
        room_bits: usize,
    ) -> Option<usize> {
        self.found = longest(tokens, room_bits.checked_sub(start_bit)?);
        let (token_count, _) = self.found.as_ref()?;
        Some(tokens[..*token_count].iter().map(|token| token.plain_len()).sum())
    }

    /// Writes the block that `fit_tokens` found, and returns the total length.
    pub(super) fn write_tokens(&self, tokens: &[Token], start_bit: usize, dst: &mut [u8]) -> usize {
        let mut writer = BitWriter::new(dst, start_bit);
        let Some((token_count, found)) = &self.found else { return writer.finish() };
        writer.put(1, 1);
        writer.put(if found.dynamic { 2 } else { 1 }, 2);
        if found.dynamic {
            found.header.write(&mut writer);
        }
        let mut litlen_codes = [0; LITLEN_COUNT];
        let mut distance_codes = [0; DISTANCE_COUNT];
        codes(&found.litlen_lens, &mut litlen_codes);
        codes(&found.distance_lens, &mut distance_codes);
        let put_litlen = |writer: &mut BitWriter<'_>, symbol: usize| {
            writer.put(litlen_codes[symbol].into(), found.litlen_lens[symbol].into());
        };
        for &token in &tokens[..*token_count] {
            if token.len == 0 {
                put_litlen(&mut writer, usize::from(token.value) & 255);
                continue;
            }
            let (index, symbol) = (len_index(token.len), distance_symbol(token.value));
            put_litlen(&mut writer, END_OF_BLOCK + 1 + index);
            writer.put(u32::from(token.len - LEN_BASES[index]), LEN_EXTRA_BITS[index].into());
            writer.put(distance_codes[symbol].into(), found.distance_lens[symbol].into());
            writer.put(u32::from(token.value - distance_base(symbol)), distance_extra_bits(symbol));
        }
        put_litlen(&mut writer, END_OF_BLOCK);
        writer.finish()
    }
}

pub(super) fn write_stored(plain: &[u8], start_bit: usize, dst: &mut [u8]) -> usize {
    let mut writer = BitWriter::new(dst, start_bit);
    writer.put(1, 3);
    let at = writer.finish();
    let len = plain.len() as u16;
    let (lens, bytes) = dst[at..].split_at_mut(STORED_LENS_LEN);
    lens[..2].copy_from_slice(&len.to_le_bytes());
    lens[2..].copy_from_slice(&(!len).to_le_bytes());
    bytes[..plain.len()].copy_from_slice(plain);
    at + STORED_LENS_LEN + plain.len()
}

/// Returns the maximum number of tokens that fit, and their codes. Costs are exact; the next number
/// to try is estimated by the codes of the best one so far.
fn longest(tokens: &[Token], room_bits: usize) -> Option<(usize, Codes)> {
    let mut counts = Counts::new();
    let mut best: Option<(usize, Codes)> = None;
    let mut too_many = tokens.len() + 1;
    let mut next = tokens.len().min(room_bits / 8 + 1);
    for _ in 0..MOVES_MAX {
        counts.move_to(tokens, next);
        let codes = Codes::new(&counts);
        let fits = codes.block_bits <= room_bits;
        let proposed = if fits {
            next + tokens_within(&tokens[next..], &codes, room_bits - codes.block_bits)
        } else {
            next - tokens_beyond(&tokens[..next], &codes, codes.block_bits - room_bits)
        };
        if fits {
            best = Some((next, codes));
        } else {
            too_many = next;
        }
        let fewest = best.as_ref().map_or(0, |best| best.0);
        if too_many - fewest <= 1 || (fits && proposed == next) {
            break;
        }
        next = proposed.clamp(fewest + 1, too_many - 1);
    }
    best.filter(|best| best.0 > 0)
}

/// Counts the following tokens that take this many bits.
fn tokens_within(tokens: &[Token], codes: &Codes, bits: usize) -> usize {
    let mut left = bits;
    tokens
        .iter()
        .take_while(|&&token| match left.checked_sub(codes.token_bits(token)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count()
}

/// Counts the last tokens that take at least this many bits.
fn tokens_beyond(tokens: &[Token], codes: &Codes, bits: usize) -> usize {
    let mut left = bits;
    tokens
        .iter()
        .rev()
        .take_while(|&&token| {
            let goes_on = left > 0;
            left = left.saturating_sub(codes.token_bits(token));
            goes_on
        })
        .count()
}
