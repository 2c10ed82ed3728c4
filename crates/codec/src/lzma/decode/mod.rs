//! LZMA decoding: whole streams from memory to memory.
//!
//! All input is in one slice, and the output is its own dictionary: nothing is copied twice, and
//! decoding never resumes within a symbol. Two loops yield the same bytes: `fast` while a symbol's
//! input certainly exists, `careful` for the rest. Containers (.lzma, MicroLZMA, LZMA2) are not
//! known here.

mod careful;
#[cfg(any(test, feature = "compare"))]
pub(crate) mod compare;
#[allow(unsafe_code)]
mod fast;
mod model;

pub(crate) use careful::{Finish, RangeDecoder};
pub(crate) use model::Properties;

use careful::Symbol;
use model::Model;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Exhausted,
    Damaged,
    /// A copy exceeds the window's limit.
    Overlong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Limit,
    Marker,
}

pub(crate) struct Window<'a> {
    /// Starts at the last reset of the dictionary.
    pub(crate) dst: &'a mut [u8],
    pub(crate) len: usize,
    /// Position at which to stop, at most the length of `dst`.
    pub(crate) limit: usize,
    pub(crate) dict_len: usize,
    /// Set if a copy beyond the limit is cut there; otherwise it is damage.
    pub(crate) cut: bool,
}

/// Returns the maximum distance that liblzma accepts for a stated dictionary.
pub(crate) fn reach(dict_len: u32) -> usize {
    (dict_len.max(4096) as usize).next_multiple_of(16)
}

/// State of an LZMA decoder between two symbols, without the range decoder.
pub(crate) struct State {
    model: Model,
    /// Below [`model::STATES`].
    state: usize,
    /// The last four distances, each minus 1.
    reps: [u32; 4],
}

impl State {
    pub(crate) fn new() -> State {
        State { model: Model::new(), state: 0, reps: [0; 4] }
    }

    pub(crate) fn reset(&mut self, properties: Properties) {
        self.model.reset(properties);
        self.state = 0;
        self.reps = [0; 4];
    }

    pub(crate) fn decode(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &mut Window<'_>,
    ) -> Result<Stop, Fault> {
        self.decode_by::<fast::Native>(rc, window)
    }

    fn decode_by<S: fast::Steps>(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &mut Window<'_>,
    ) -> Result<Stop, Fault> {
        window.limit = window.limit.min(window.dst.len());
        match fast::decode::<S>(self, rc, window)? {
            fast::Left::Marker => Ok(Stop::Marker),
            fast::Left::Rest => self.decode_carefully(rc, window),
        }
    }

    /// Decodes as many symbols as are complete in the input; `rc` and the window end after the last
    /// of them. The rest of the state is invalid: decoding cannot continue.
    #[cfg(feature = "xz")]
    pub(crate) fn decode_within(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &mut Window<'_>,
    ) -> Result<(), Fault> {
        window.limit = window.limit.min(window.dst.len());
        if fast::decode::<fast::Native>(self, rc, window)? == fast::Left::Marker {
            return Err(Fault::Damaged);
        }
        let mut sound = (*rc, window.len);
        while window.len < window.limit {
            match careful::symbol(self, rc, &window.dst[..window.len]) {
                Ok(Symbol::Literal(byte)) => {
                    window.dst[window.len] = byte;
                    window.len += 1;
                }
                Ok(Symbol::Copy(len)) => window.copy(self.reps[0], len)?,
                Ok(Symbol::Marker) => return Err(Fault::Damaged),
                Err(Fault::Exhausted) => break,
                Err(fault) => return Err(fault),
            }
            if rc.may_end() {
                sound = (*rc, window.len);
            }
        }
        (*rc, window.len) = sound;
        Ok(())
    }

    fn decode_carefully(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &mut Window<'_>,
    ) -> Result<Stop, Fault> {
        while window.len < window.limit {
            match careful::symbol(self, rc, &window.dst[..window.len])? {
                Symbol::Literal(byte) => {
                    window.dst[window.len] = byte;
                    window.len += 1;
                }
                Symbol::Copy(len) => window.copy(self.reps[0], len)?,
                Symbol::Marker => return Ok(Stop::Marker),
            }
        }
        Ok(Stop::Limit)
    }

    /// Decodes a stream that ends with the input, at an unknown position of the output. `None` if
    /// it ended before the window's limit.
    ///
    /// An encoder ends with the lower end of its range, so a code of zero without remaining input
    /// is the end. Symbols of zero bits alone may follow without consuming input: literals of zero,
    /// which no reader can distinguish from the last ones of the stream.
    pub(crate) fn decode_to_end(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &mut Window<'_>,
    ) -> Result<Option<Stop>, Fault> {
        window.limit = window.limit.min(window.dst.len());
        if fast::decode::<fast::Native>(self, rc, window)? == fast::Left::Marker {
            return Ok(Some(Stop::Marker));
        }
        let mut ended = false;
        while window.len < window.limit {
            ended |= rc.ends_here();
            match careful::symbol(self, rc, &window.dst[..window.len]) {
                Ok(Symbol::Literal(byte)) => {
                    window.dst[window.len] = byte;
                    window.len += 1;
                }
                Ok(Symbol::Copy(len)) => window.copy(self.reps[0], len)?,
                Ok(Symbol::Marker) => return Ok(Some(Stop::Marker)),
                Err(Fault::Exhausted) if ended => return Ok(None),
                Err(fault) => return Err(fault),
            }
        }
        Ok(Some(Stop::Limit))
    }

    /// True if only an end marker follows.
    pub(crate) fn decode_marker(
        &mut self,
        rc: &mut RangeDecoder<'_>,
        window: &Window<'_>,
    ) -> Result<bool, Fault> {
        Ok(careful::symbol(self, rc, &window.dst[..window.len])? == Symbol::Marker)
    }
}

impl Window<'_> {
    /// `distance` is minus 1, as in LZMA.
    fn copy(&mut self, distance: u32, len: u32) -> Result<(), Fault> {
        let (distance, mut len) = (distance as usize, len as usize);
        if distance >= self.len.min(self.dict_len) {
            return Err(Fault::Damaged);
        }
        let room = self.limit - self.len;
        if len > room {
            if !self.cut {
                return Err(Fault::Overlong);
            }
            len = room;
        }
        let from = self.len - distance - 1;
        for at in from..from + len {
            self.dst[at + distance + 1] = self.dst[at];
        }
        self.len += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
