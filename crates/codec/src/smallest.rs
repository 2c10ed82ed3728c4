//! Trial of several encoders on one block, keeping the smallest result.
//!
//! The first of equal results is kept, so the result depends only on the order of the attempts.
//! Every attempt after a success gets only the space in which it would be better, so that others
//! stop early.

use crate::{BranchSet, EncodeError, Encoder};

/// Scratch buffer for all rounds of one encoder.
#[derive(Default)]
pub(crate) struct Smallest {
    scratch: Vec<u8>,
}

impl Smallest {
    /// Starts a round whose result is written to `dst`.
    pub(crate) fn begin<'a>(&'a mut self, dst: &'a mut [u8]) -> Round<'a> {
        Round { scratch: &mut self.scratch, dst, best: None }
    }
}

pub(crate) struct Round<'a> {
    scratch: &'a mut Vec<u8>,
    dst: &'a mut [u8],
    best: Option<usize>,
}

impl Round<'_> {
    /// Runs one encoder, which writes to the given slice and returns the length, or `None` if it
    /// did not fit. Returns true if its result is the smallest so far.
    pub(crate) fn attempt(
        &mut self,
        encode: impl FnOnce(&mut [u8]) -> Result<Option<usize>, EncodeError>,
    ) -> Result<bool, EncodeError> {
        let Some(best) = self.best else {
            self.best = encode(self.dst)?;
            return Ok(self.best.is_some());
        };
        let room = best.saturating_sub(1);
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        if let Some(len) = encode(&mut self.scratch[..room])? {
            self.dst[..len].copy_from_slice(&self.scratch[..len]);
            self.best = Some(len);
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the length of the smallest result, now in the destination; `None` if no attempt
    /// fitted.
    pub(crate) fn finish(self) -> Option<usize> {
        self.best
    }
}

/// Returns an encoder that tries each of these on every block.
pub(crate) fn several<const N: usize>(encoders: [Box<dyn Encoder>; N]) -> Box<dyn Encoder> {
    Box::new(Several { encoders: encoders.into(), smallest: Smallest::default() })
}

struct Several {
    encoders: Vec<Box<dyn Encoder>>,
    smallest: Smallest,
}

impl Encoder for Several {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let mut round = self.smallest.begin(dst);
        for encoder in &mut self.encoders {
            round.attempt(|out| encoder.compress(src, out))?;
        }
        Ok(round.finish())
    }

    fn expect_code(&mut self, branches: BranchSet) {
        self.encoders.iter_mut().for_each(|encoder| encoder.expect_code(branches));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(bytes: &'static [u8]) -> impl FnOnce(&mut [u8]) -> Result<Option<usize>, EncodeError> {
        move |out| {
            Ok(out.get_mut(..bytes.len()).map(|out| {
                out.copy_from_slice(bytes);
                bytes.len()
            }))
        }
    }

    #[test]
    fn keeps_the_smallest_and_the_first_of_equals() {
        let mut smallest = Smallest::default();
        let mut dst = [0; 4];
        let mut round = smallest.begin(&mut dst);
        for bytes in [b"12345".as_slice(), b"123", b"ab", b"cd", b"xyz"] {
            round.attempt(writes(bytes)).unwrap();
        }
        assert_eq!(round.finish(), Some(2));
        assert_eq!(&dst[..2], b"ab");
    }

    #[test]
    fn answers_none_when_nothing_fits() {
        let mut dst = [0; 1];
        let mut smallest = Smallest::default();
        let mut round = smallest.begin(&mut dst);
        round.attempt(writes(b"12")).unwrap();
        assert_eq!(round.finish(), None);
    }
}
