//! Parsing of a stream that libdeflate has just written.
//!
//! The input is trusted to be a valid stream; otherwise, reading ends at its end.

use super::bits::BitReader;
use super::huffman::DecodeTable;
use super::symbols::{
    DISTANCE_COUNT, END_OF_BLOCK, LEN_BASES, LEN_EXTRA_BITS, LITLEN_COUNT, Token, distance_base,
    distance_extra_bits,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start_bit: usize,
    pub(super) end_bit: usize,
    pub(super) plain_start: usize,
    pub(super) plain_len: usize,
    pub(super) body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Stored,
    Tokens,
}

#[derive(Default)]
pub(super) struct BlockReader {
    litlens: DecodeTable,
    distances: DecodeTable,
    precode: DecodeTable,
    tokens: Vec<Token>,
    at_bit: usize,
    plain_at: usize,
    ended: bool,
}

/// Order of the precode's lengths (RFC 1951, 3.2.7).
pub(super) const PRECODE_ORDER: [usize; 19] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Code lengths of fixed blocks (RFC 1951, 3.2.6).
pub(super) fn fixed_litlen_lens() -> [u8; LITLEN_COUNT] {
    std::array::from_fn(|symbol| match symbol {
        0..144 => 8,
        144..256 => 9,
        256..280 => 7,
        _ => 8,
    })
}

impl BlockReader {
    pub(super) fn begin(&mut self) {
        (self.at_bit, self.plain_at, self.ended) = (0, 0, false);
    }

    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Reads the next block; `None` after the last one.
    pub(super) fn next(&mut self, stream: &[u8]) -> Option<Block> {
        if self.ended || self.at_bit >= stream.len() * 8 {
            return None;
        }
        let start_bit = self.at_bit;
        let mut reader = BitReader::new(stream, start_bit);
        reader.fill();
        self.ended = reader.take(1) == 1;
        self.tokens.clear();
        let (body, plain_len) = match reader.take(2) {
            0 => (Body::Stored, self.skip_stored(&mut reader, stream)?),
            1 => {
                self.litlens.build(&fixed_litlen_lens());
                self.distances.build(&[5; DISTANCE_COUNT + 2]);
                (Body::Tokens, self.read_tokens(&mut reader, stream.len() * 8)?)
            }
            _ => {
                self.read_codes(&mut reader)?;
                (Body::Tokens, self.read_tokens(&mut reader, stream.len() * 8)?)
            }
        };
        if body == Body::Tokens {
            self.at_bit = reader.position();
        }
        let block = Block { start_bit, end_bit: self.at_bit, plain_start: self.plain_at, plain_len, body };
        self.plain_at += plain_len;
        Some(block)
    }

    fn skip_stored(&mut self, reader: &mut BitReader<'_>, stream: &[u8]) -> Option<usize> {
        let at = reader.position().div_ceil(8);
        let len: &[u8; 2] = stream.get(at..)?.first_chunk()?;
        let len = usize::from(u16::from_le_bytes(*len));
        self.at_bit = (at + 4 + len) * 8;
        Some(len)
    }

    fn read_codes(&mut self, reader: &mut BitReader<'_>) -> Option<()> {
        let litlen_count = 257 + reader.take(5) as usize;
        let distance_count = 1 + reader.take(5) as usize;
        let precode_count = 4 + reader.take(4) as usize;
        let mut precode_lens = [0u8; 19];
        for &symbol in &PRECODE_ORDER[..precode_count] {
            reader.fill();
            precode_lens[symbol] = reader.take(3) as u8;
        }
        self.precode.build(&precode_lens);
        let mut lens = [0u8; LITLEN_COUNT + 32];
        let mut done = 0;
        while done < litlen_count + distance_count {
            reader.fill();
            let (symbol, code_len) = self.precode.find(reader.peek(self.precode.bits()));
            reader.skip(code_len);
            let (len, repeats) = match symbol {
                0..16 => (symbol as u8, 1),
                16 => (*lens.get(done.checked_sub(1)?)?, 3 + reader.take(2) as usize),
                17 => (0, 3 + reader.take(3) as usize),
                _ => (0, 11 + reader.take(7) as usize),
            };
            lens.get_mut(done..done + repeats)?.fill(len);
            done += repeats;
        }
        self.litlens.build(lens.get(..litlen_count)?);
        self.distances.build(lens.get(litlen_count..litlen_count + distance_count)?);
        Some(())
    }

    /// Reads tokens up to the end of the block; returns their decoded length.
    fn read_tokens(&mut self, reader: &mut BitReader<'_>, end_bit: usize) -> Option<usize> {
        let mut plain_len = 0;
        loop {
            reader.fill();
            let (symbol, code_len) = self.litlens.find(reader.peek(self.litlens.bits()));
            if code_len == 0 || reader.position() > end_bit {
                return None;
            }
            reader.skip(code_len);
            if symbol < END_OF_BLOCK {
                self.tokens.push(Token { len: 0, value: symbol as u16 });
                plain_len += 1;
                continue;
            }
            let Some(index) = symbol.checked_sub(END_OF_BLOCK + 1) else { return Some(plain_len) };
            let len = LEN_BASES.get(index)? + reader.take(u32::from(*LEN_EXTRA_BITS.get(index)?)) as u16;
            let (symbol, code_len) = self.distances.find(reader.peek(self.distances.bits()));
            reader.skip(code_len);
            let value = distance_base(symbol) + reader.take(distance_extra_bits(symbol)) as u16;
            self.tokens.push(Token { len, value });
            plain_len += usize::from(len);
        }
    }
}
