//! LZ4 frames (`lz4_Frame_format.md`), and the legacy format of the first lz4 programs.

use super::source::Source;
use std::io::{self, Read};
use xxhash_rust::xxh32::{Xxh32, xxh32};

pub(super) const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
pub(super) const LEGACY_MAGIC: [u8; 4] = 0x184c_2102_u32.to_le_bytes();

/// Greatest distance of a match, which may refer to earlier blocks.
const WINDOW_LEN: usize = 64 << 10;
/// Decoded length of a legacy block.
const LEGACY_BLOCK_LEN: usize = 8 << 20;
const STORED: u32 = 1 << 31;

pub(super) struct Decoder {
    source: Source,
    frame: Frame,
    /// The window, followed by the current block.
    decoded: Vec<u8>,
    read: usize,
    packed: Vec<u8>,
    hash: Xxh32,
    len: u64,
    ended: bool,
}

struct Frame {
    legacy: bool,
    linked: bool,
    block_checksums: bool,
    content_checksum: bool,
    content_len: Option<u64>,
    block_len_max: usize,
}

impl Decoder {
    /// Errors: `Unsupported` if a dictionary is required.
    pub(super) fn new(mut source: Source) -> io::Result<Self> {
        let frame = Frame::read(&mut source)?;
        let (decoded, packed) = (Vec::new(), Vec::new());
        Ok(Decoder { source, frame, decoded, read: 0, packed, hash: Xxh32::new(0), len: 0, ended: false })
    }

    pub(super) fn into_source(self) -> Source {
        self.source
    }

    /// Leaves no block at the end.
    fn block(&mut self) -> io::Result<()> {
        let Some(word) = self.block_word()? else {
            self.ended = true;
            return if self.frame.legacy { Ok(()) } else { self.check_end() };
        };
        let (stored, len) = if self.frame.legacy {
            (false, word as usize)
        } else {
            (word & STORED != 0, (word & !STORED) as usize)
        };
        let len_max = self.frame.block_len_max;
        // Incompressible legacy blocks are slightly longer.
        let packed_len_max = if self.frame.legacy { len_max + len_max / 255 + 16 } else { len_max };
        if len > packed_len_max {
            return Err(invalid(format!("block of {len} bytes: at most {packed_len_max} allowed")));
        }
        self.packed.clear();
        self.source.by_ref().take(len as u64).read_to_end(&mut self.packed)?;
        if self.packed.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.frame.block_checksums && number(&mut self.source)? != xxh32(&self.packed, 0) {
            return Err(invalid("wrong checksum of a block".into()));
        }
        let kept = if self.frame.linked { self.decoded.len().min(WINDOW_LEN) } else { 0 };
        self.decoded.drain(..self.decoded.len() - kept);
        if stored {
            self.decoded.extend_from_slice(&self.packed);
        } else {
            decode(&self.packed, &mut self.decoded, kept + len_max)
                .ok_or_else(|| invalid("a block is invalid".into()))?;
        }
        self.read = kept;
        self.len += (self.decoded.len() - kept) as u64;
        if self.frame.content_checksum {
            self.hash.update(&self.decoded[kept..]);
        }
        Ok(())
    }

    /// `None` at the end of the frame.
    fn block_word(&mut self) -> io::Result<Option<u32>> {
        if !self.frame.legacy {
            return Ok(Some(number(&mut self.source)?).filter(|&word| word != 0));
        }
        // A legacy frame ends at the end of the file, at another frame, or before padding.
        let next = self.source.peek(4)?;
        let ends = next.is_empty() || next == MAGIC || next == LEGACY_MAGIC || next.iter().all(|&b| b == 0);
        if ends { Ok(None) } else { number(&mut self.source).map(Some) }
    }

    fn check_end(&mut self) -> io::Result<()> {
        if self.frame.content_checksum && number(&mut self.source)? != self.hash.digest() {
            return Err(invalid("wrong checksum".into()));
        }
        match self.frame.content_len {
            Some(len) if len != self.len => Err(invalid(format!("{} bytes, but {len} were said", self.len))),
            _ => Ok(()),
        }
    }
}

impl Frame {
    fn read(source: &mut Source) -> io::Result<Self> {
        if number(source)?.to_le_bytes() == LEGACY_MAGIC {
            return Ok(Frame {
                legacy: true,
                linked: false,
                block_checksums: false,
                content_checksum: false,
                content_len: None,
                block_len_max: LEGACY_BLOCK_LEN,
            });
        }
        let mut header = vec![0; 2];
        source.read_exact(&mut header)?;
        let (flags, sizes) = (header[0], header[1]);
        if flags >> 6 != 1 || flags & 0x02 != 0 || sizes & 0x8f != 0 {
            return Err(invalid("a frame of an unknown version".into()));
        }
        let (has_len, has_dictionary) = (flags & 0x08 != 0, flags & 0x01 != 0);
        let more = if has_len { 8 } else { 0 } + if has_dictionary { 4 } else { 0 };
        header.resize(2 + more, 0);
        source.read_exact(&mut header[2..])?;
        let mut checksum = [0];
        source.read_exact(&mut checksum)?;
        if checksum[0] != (xxh32(&header, 0) >> 8) as u8 {
            return Err(invalid("wrong checksum of a frame's header".into()));
        }
        if has_dictionary {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a frame that needs a dictionary"));
        }
        let block_len_max = match sizes >> 4 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            size => return Err(invalid(format!("blocks of size {size}: 4 to 7 allowed"))),
        };
        Ok(Frame {
            legacy: false,
            linked: flags & 0x20 == 0,
            block_checksums: flags & 0x10 != 0,
            content_checksum: flags & 0x04 != 0,
            content_len: header[2..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
            block_len_max,
        })
    }
}

impl Read for Decoder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.read == self.decoded.len() && !self.ended {
            self.block()?;
        }
        let len = (&self.decoded[self.read..]).read(buf)?;
        self.read += len;
        Ok(len)
    }
}

/// `len_max` includes the window. `None` for an invalid block.
fn decode(mut packed: &[u8], decoded: &mut Vec<u8>, len_max: usize) -> Option<()> {
    loop {
        let (&token, rest) = packed.split_first()?;
        packed = rest;
        let literals = length(usize::from(token >> 4), &mut packed)?;
        if literals > packed.len() || literals > len_max - decoded.len() {
            return None;
        }
        decoded.extend_from_slice(&packed[..literals]);
        packed = &packed[literals..];
        if packed.is_empty() {
            return Some(());
        }
        let (distance, rest) = packed.split_first_chunk()?;
        packed = rest;
        let len = length(usize::from(token & 15), &mut packed)?.checked_add(4)?;
        let start = decoded.len().checked_sub(usize::from(u16::from_le_bytes(*distance)))?;
        if start == decoded.len() || len > len_max - decoded.len() {
            return None;
        }
        // A match may overlap its own output.
        let mut left = len;
        while left > 0 {
            let part = left.min(decoded.len() - start);
            decoded.extend_from_within(start..start + part);
            left -= part;
        }
    }
}

/// The length starts in a token and continues in bytes of 255.
fn length(start: usize, packed: &mut &[u8]) -> Option<usize> {
    let mut len = start;
    if start == 15 {
        loop {
            let (&byte, rest) = packed.split_first()?;
            *packed = rest;
            len = len.checked_add(usize::from(byte))?;
            if byte < 255 {
                break;
            }
        }
    }
    Some(len)
}

fn number(source: &mut Source) -> io::Result<u32> {
    let mut bytes = [0; 4];
    source.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
