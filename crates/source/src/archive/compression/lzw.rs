//! Files of `compress`: LZW with codes of 9 to 16 bits, without checksum or end marker.

use super::source::Source;
use std::io::{self, Read};

/// Code that resets the table, in files that use it.
const CLEAR: usize = 256;
const CODE_BITS_MIN: u32 = 9;
const CODE_BITS_MAX: u32 = 16;

pub(super) struct Decoder {
    source: Source,
    bits_max: u32,
    /// True if [`CLEAR`] is a code.
    clears: bool,
    bits: u32,
    /// A group of eight codes; the rest of a group is skipped when the width of codes changes.
    group: Vec<u8>,
    taken: u32,
    table: Vec<(u16, u8)>,
    known: usize,
    last: Option<usize>,
    /// Decoded bytes in reverse order.
    pending: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(mut source: Source) -> io::Result<Self> {
        let mut header = [0; 3];
        source.read_exact(&mut header)?;
        let (bits_max, clears) = (u32::from(header[2] & 0x1f), header[2] & 0x80 != 0);
        if !(CODE_BITS_MIN..=CODE_BITS_MAX).contains(&bits_max) {
            return Err(invalid(format!("codes of {bits_max} bits: 9 to 16 allowed")));
        }
        let table = (0..1_usize << bits_max).map(|code| (0, code as u8)).collect();
        let known = if clears { CLEAR + 1 } else { CLEAR };
        Ok(Decoder {
            source,
            bits_max,
            clears,
            bits: CODE_BITS_MIN,
            group: Vec::new(),
            taken: 0,
            table,
            known,
            last: None,
            pending: Vec::new(),
        })
    }

    pub(super) fn into_source(self) -> Source {
        self.source
    }

    /// `None` at the end.
    fn code(&mut self) -> io::Result<Option<usize>> {
        if self.bits < self.bits_max && self.known > (1 << self.bits) - 1 {
            self.bits += 1;
            self.group.clear();
        }
        if self.taken + self.bits > self.group.len() as u32 * 8 {
            self.group.clear();
            self.taken = 0;
            self.source.by_ref().take(u64::from(self.bits)).read_to_end(&mut self.group)?;
            if (self.group.len() as u32 * 8) < self.bits {
                return Ok(None);
            }
        }
        let at = (self.taken / 8) as usize;
        let bytes = self.group[at..].iter().take(3).rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let code = bytes >> (self.taken % 8) & ((1 << self.bits) - 1);
        self.taken += self.bits;
        Ok(Some(code))
    }

    /// Returns false at the end.
    fn step(&mut self) -> io::Result<bool> {
        let Some(code) = self.code()? else { return Ok(false) };
        if self.clears && code == CLEAR {
            (self.bits, self.known, self.last) = (CODE_BITS_MIN, CLEAR + 1, None);
            self.group.clear();
            return Ok(true);
        }
        let Some(last) = self.last else {
            if code >= CLEAR {
                return Err(invalid(format!("code {code} where none was learnt")));
            }
            self.pending.push(code as u8);
            self.last = Some(code);
            return Ok(true);
        };
        // A code may be used by the very step that defines it: the previous code, and its own first
        // byte.
        let own = code == self.known && self.known < self.table.len();
        if code > self.known || code == self.known && !own {
            return Err(invalid(format!("code {code} where {} are known", self.known)));
        }
        let mut prefix = if own { last } else { code };
        if own {
            self.pending.push(0);
        }
        while prefix >= CLEAR {
            let (before, byte) = self.table[prefix];
            self.pending.push(byte);
            prefix = usize::from(before);
        }
        let first = prefix as u8;
        self.pending.push(first);
        if own {
            self.pending[0] = first;
        }
        if self.known < self.table.len() {
            self.table[self.known] = (last as u16, first);
            self.known += 1;
        }
        self.last = Some(code);
        Ok(true)
    }
}

impl Read for Decoder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.pending.pop() {
                Some(byte) => {
                    buf[filled] = byte;
                    filled += 1;
                }
                None if !self.step()? => break,
                None => {}
            }
        }
        Ok(filled)
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
