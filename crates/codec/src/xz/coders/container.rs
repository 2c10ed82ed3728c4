//! The .xz container around LZMA2: headers, filters, checks, and index, all verified as in liblzma.
//!
//! Names are those of the format's specification (xz-file-format.txt, public domain).

use super::check::Check;
use super::lzma2::{self, End};
use super::unfilter::{self, Filter};
use crate::DICT_LEN_MAX;
use crate::DecodeError;
use crate::lzma::decode::State;
use crate::lzma::{DAMAGED, NO_HEADER, TOO_SHORT, TRAILING, UNKNOWN_OPTIONS};

const HEADER_MAGIC: &[u8] = b"\xFD7zXZ\0";
const FOOTER_MAGIC: &[u8] = b"YZ";
const STREAM_HEADER_LEN: usize = 12;
const FILTER_LZMA2: u64 = 0x21;
/// First filter id reserved for implementation-specific use, invalid in files.
const FILTER_RESERVED: u64 = 1 << 62;

pub(super) struct Container {
    state: State,
    records: Vec<Record>,
    /// Buffer for prefixes of blocks, before their filters are undone.
    filtered: Vec<u8>,
}

/// Lengths of a block, which the index repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    unpadded_len: u64,
    plain_len: u64,
}

struct Block {
    src_len: Option<u64>,
    plain_len: Option<u64>,
    dict_len: u32,
    /// In the order in which an encoder applied them.
    filters: [Option<Filter>; 3],
}

impl Container {
    pub(super) fn new() -> Container {
        Container { state: State::new(), records: Vec::new(), filtered: Vec::new() }
    }

    /// Decodes the one stream that fills `src`.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let mut input = Input { src, at: 0 };
        let len = self.stream(&mut input, dst, false)?;
        if input.at < src.len() { Err(TRAILING) } else { Ok(len) }
    }

    /// Decodes until `dst` is full or the stream ends.
    pub(super) fn decode_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.is_empty() {
            return Ok(0);
        }
        self.stream(&mut Input { src, at: 0 }, dst, true)
    }

    fn stream(&mut self, input: &mut Input<'_>, dst: &mut [u8], prefix: bool) -> Result<usize, DecodeError> {
        let header = input.take(STREAM_HEADER_LEN)?;
        let (magic, rest) = header.split_at(HEADER_MAGIC.len());
        if magic != HEADER_MAGIC {
            return Err(NO_HEADER);
        }
        let flags = crc32_checked(rest)?;
        let check = stream_flags(flags)?;
        self.records.clear();
        let mut len = 0;
        while input.peek()? != 0 {
            match self.block(input, &mut dst[len..], check, prefix)? {
                Some(plain_len) => len += plain_len,
                None => return Ok(dst.len()),
            }
            if prefix && len == dst.len() {
                return Ok(len);
            }
        }
        let index_len = self.index(input)?;
        footer(input.take(STREAM_HEADER_LEN)?, flags, index_len)?;
        Ok(len)
    }

    /// Decodes a block; `None` if only a prefix was requested and `dst` is full.
    fn block(
        &mut self,
        input: &mut Input<'_>,
        dst: &mut [u8],
        check: Check,
        prefix: bool,
    ) -> Result<Option<usize>, DecodeError> {
        let start = input.at;
        let header_len = (usize::from(input.peek()?) + 1) * 4;
        let block = Block::new(crc32_checked(input.take(header_len)?)?)?;
        let Some(plain_len) = self.block_data(input, dst, &block, prefix)? else { return Ok(None) };
        if block.plain_len.is_some_and(|stated| stated != plain_len as u64) {
            return Err(DAMAGED);
        }
        let unpadded_len = (input.at - start + check.len()) as u64;
        if input.take((start.wrapping_sub(input.at)) & 3)?.iter().any(|&byte| byte != 0) {
            return Err(DAMAGED);
        }
        if !check.holds(input.take(check.len())?, &dst[..plain_len]) {
            return Err(DAMAGED);
        }
        self.records.push(Record { unpadded_len, plain_len: plain_len as u64 });
        Ok(Some(plain_len))
    }

    /// Decodes the data between the block's header and its padding, and undoes the filters.
    fn block_data(
        &mut self,
        input: &mut Input<'_>,
        dst: &mut [u8],
        block: &Block,
        prefix: bool,
    ) -> Result<Option<usize>, DecodeError> {
        let rest = &input.src[input.at..];
        let src = match block.src_len.and_then(|len| usize::try_from(len).ok()) {
            Some(len) if len <= rest.len() => &rest[..len],
            _ => rest,
        };
        let filtered = block.filters[0].is_some();
        if prefix && filtered {
            return self.filtered_prefix(input, src, dst, block);
        }
        match lzma2::decode(&mut self.state, src, dst, block.dict_len, prefix)? {
            End::Full => Ok(None),
            End::Complete { src_len, dst_len } => {
                input.at += block.checked_src_len(src_len)?;
                unfilter::undo(&block.filters, &mut dst[..dst_len]);
                Ok(Some(dst_len))
            }
        }
    }

    /// Does the same as `block_data` for a prefix of a filtered block: the effect of filters on a
    /// byte depends on later ones.
    fn filtered_prefix(
        &mut self,
        input: &mut Input<'_>,
        src: &[u8],
        dst: &mut [u8],
        block: &Block,
    ) -> Result<Option<usize>, DecodeError> {
        self.filtered.resize(dst.len() + unfilter::LOOK_AHEAD, 0);
        let (len, complete) =
            match lzma2::decode(&mut self.state, src, &mut self.filtered, block.dict_len, true)? {
                End::Full => (self.filtered.len(), None),
                End::Complete { src_len, dst_len } => (dst_len, Some(src_len)),
            };
        unfilter::undo(&block.filters, &mut self.filtered[..len]);
        let wanted = len.min(dst.len());
        dst[..wanted].copy_from_slice(&self.filtered[..wanted]);
        match complete {
            Some(src_len) if len <= dst.len() => {
                input.at += block.checked_src_len(src_len)?;
                Ok(Some(len))
            }
            _ => Ok(None),
        }
    }

    /// Reads the index, which must repeat the records; returns its length.
    fn index(&self, input: &mut Input<'_>) -> Result<usize, DecodeError> {
        let start = input.at;
        input.take(1)?;
        if input.number(TOO_SHORT)? != self.records.len() as u64 {
            return Err(DAMAGED);
        }
        for &record in &self.records {
            let unpadded_len = input.number(TOO_SHORT)?;
            let plain_len = input.number(TOO_SHORT)?;
            if record != (Record { unpadded_len, plain_len }) {
                return Err(DAMAGED);
            }
        }
        if input.take(start.wrapping_sub(input.at) & 3)?.iter().any(|&byte| byte != 0) {
            return Err(DAMAGED);
        }
        input.take(4)?;
        crc32_checked(&input.src[start..input.at])?;
        Ok(input.at - start)
    }
}

impl Block {
    /// `header` does not include its CRC32.
    fn new(header: &[u8]) -> Result<Block, DecodeError> {
        let mut input = Input { src: header, at: 1 };
        let flags = input.take(1)?[0];
        if flags & 0x3C != 0 {
            return Err(UNKNOWN_OPTIONS);
        }
        let src_len = if flags & 0x40 != 0 { Some(input.number(DAMAGED)?) } else { None };
        let plain_len = if flags & 0x80 != 0 { Some(input.number(DAMAGED)?) } else { None };
        if src_len == Some(0) {
            return Err(DAMAGED);
        }
        let mut filters = [None; 3];
        let filter_count = usize::from(flags & 3);
        for filter in &mut filters[..filter_count] {
            let (id, properties) = input.filter()?;
            *filter = Some(Filter::new(id, properties).ok_or(UNKNOWN_OPTIONS)?);
        }
        let (FILTER_LZMA2, &[dict_len]) = input.filter()? else { return Err(UNKNOWN_OPTIONS) };
        let dict_len = match dict_len {
            0..40 => (2 | u64::from(dict_len & 1)) << (dict_len / 2 + 11),
            40 => u64::from(u32::MAX),
            _ => return Err(UNKNOWN_OPTIONS),
        };
        if header[input.at..].iter().any(|&byte| byte != 0) {
            return Err(UNKNOWN_OPTIONS);
        }
        match u32::try_from(dict_len) {
            Ok(dict_len) if dict_len <= DICT_LEN_MAX => Ok(Block { src_len, plain_len, dict_len, filters }),
            _ => Err(DecodeError::DictionaryTooLarge),
        }
    }

    fn checked_src_len(&self, src_len: usize) -> Result<usize, DecodeError> {
        match self.src_len {
            Some(stated) if stated != src_len as u64 => Err(DAMAGED),
            _ => Ok(src_len),
        }
    }
}

fn stream_flags(flags: &[u8]) -> Result<Check, DecodeError> {
    match *flags {
        [0, check] => Check::new(check).ok_or(UNKNOWN_OPTIONS),
        _ => Err(UNKNOWN_OPTIONS),
    }
}

fn footer(footer: &[u8], header_flags: &[u8], index_len: usize) -> Result<(), DecodeError> {
    let (crc, rest) = footer.split_at(4);
    let (fields, magic) = rest.split_at(6);
    if magic != FOOTER_MAGIC || crc != super::check::crc32(fields).to_le_bytes() {
        return Err(DAMAGED);
    }
    let (backward_len, flags) = fields.split_at(4);
    stream_flags(flags)?;
    let stated = backward_len.iter().rev().fold(0, |len, &byte| len << 8 | u64::from(byte));
    if flags != header_flags || (stated + 1) * 4 != index_len as u64 {
        return Err(DAMAGED);
    }
    Ok(())
}

/// Returns the bytes before the CRC32 at the end, if that is right.
fn crc32_checked(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let (content, crc) = bytes.split_last_chunk().ok_or(DAMAGED)?;
    if super::check::crc32(content) == u32::from_le_bytes(*crc) { Ok(content) } else { Err(DAMAGED) }
}

struct Input<'a> {
    src: &'a [u8],
    /// At most the length of `src`.
    at: usize,
}

impl<'a> Input<'a> {
    fn peek(&self) -> Result<u8, DecodeError> {
        self.src.get(self.at).copied().ok_or(TOO_SHORT)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.src[self.at..].get(..len).ok_or(TOO_SHORT)?;
        self.at += len;
        Ok(taken)
    }

    /// Reads an integer of 7 bits per byte, lowest first, at most 63 bits; `end` is the error if
    /// the input ends in it.
    fn number(&mut self, end: DecodeError) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.peek().map_err(|_| end)?;
            self.at += 1;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                // The shortest form is mandatory.
                return if byte == 0 && shift > 0 { Err(DAMAGED) } else { Ok(number) };
            }
        }
        Err(DAMAGED)
    }

    fn filter(&mut self) -> Result<(u64, &'a [u8]), DecodeError> {
        let id = self.number(DAMAGED)?;
        if id >= FILTER_RESERVED {
            return Err(DAMAGED);
        }
        let len = usize::try_from(self.number(DAMAGED)?).map_err(|_| DAMAGED)?;
        Ok((id, self.take(len).map_err(|_| DAMAGED)?))
    }
}
