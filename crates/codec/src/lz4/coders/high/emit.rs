//! Output of sequences: literals and the match after them.

use super::format::{EXTENSION, MATCH_LEN_MIN, MATCH_LEN_SHORT, RUN_LEN_SHORT};

/// The output, which is long enough: the caller has counted.
pub(super) struct Emitter<'d> {
    dst: &'d mut [u8],
    len: usize,
}

impl<'d> Emitter<'d> {
    pub(super) fn new(dst: &'d mut [u8]) -> Emitter<'d> {
        Emitter { dst, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn sequence(&mut self, literals: &[u8], distance: u16, len: usize) {
        let long = len > MATCH_LEN_SHORT;
        self.literals(literals, if long { 15 } else { (len - MATCH_LEN_MIN) as u8 });
        self.push(&distance.to_le_bytes());
        if long {
            self.extension(len - MATCH_LEN_SHORT - 1);
        }
    }

    /// Writes the literals at the end of a block.
    pub(super) fn last_literals(&mut self, literals: &[u8]) {
        self.literals(literals, 0);
    }

    #[inline]
    fn literals(&mut self, literals: &[u8], low: u8) {
        if literals.len() > RUN_LEN_SHORT {
            self.push(&[15 << 4 | low]);
            self.extension(literals.len() - RUN_LEN_SHORT - 1);
        } else {
            self.push(&[(literals.len() as u8) << 4 | low]);
        }
        self.push(literals);
    }

    fn extension(&mut self, mut rest: usize) {
        while rest >= EXTENSION {
            self.push(&[EXTENSION as u8]);
            rest -= EXTENSION;
        }
        self.push(&[rest as u8]);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.dst[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
