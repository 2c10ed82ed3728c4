//! Output of LZO1X instructions: encodes them and detects a full output, independent of the choice
//! of matches.

use super::format::{
    CARRIED_MAX, END_MARKER, FAR_LEN_MAX, FAR_OPCODE, FIRST_RUN_BIAS, FIRST_RUN_MAX, MIDDLE_DISTANCE_MAX,
    MIDDLE_LEN_MAX, MIDDLE_OPCODE, PAIR_LEN, RUN_LEN_MAX, SHORT_DISTANCE_MAX, SHORT_LEN_MAX,
    TRIPLE_DISTANCE_MAX, TRIPLE_LEN, extension_len,
};

/// Literals copied in one step if there is space.
const STEP: usize = 16;

/// An output being filled. Every method returns `None` if the output is too small, after which it
/// is invalid.
pub(super) struct Emitter<'a> {
    dst: &'a mut [u8],
    written: usize,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(dst: &'a mut [u8]) -> Self {
        Emitter { dst, written: 0 }
    }

    /// Writes the literal run `src[start..start + len]`; it must not follow another run.
    #[inline(always)]
    pub(super) fn literals(&mut self, src: &[u8], start: usize, len: usize) -> Option<()> {
        if self.written == 0 {
            self.first_run_header(len)?;
        } else if len <= CARRIED_MAX {
            // The first of the last two bytes of every match instruction has bits for this.
            self.dst[self.written - 2] |= len as u8;
        } else {
            self.run_header(len)?;
        }
        let padded = src.get(start..).and_then(|rest| rest.first_chunk::<STEP>());
        let room = self.dst.get_mut(self.written..).and_then(|rest| rest.first_chunk_mut::<STEP>());
        match (padded, room) {
            (Some(padded), Some(room)) if len <= STEP => *room = *padded,
            _ => {
                self.dst.get_mut(self.written..self.written + len)?.copy_from_slice(&src[start..start + len])
            }
        }
        self.written += len;
        Some(())
    }

    /// Writes a match preceded by `run` literals since the last one; `len` 2 is only permitted
    /// within [`super::format::PAIR_DISTANCE_MAX`] and after 1 to 3 literals.
    #[inline(always)]
    pub(super) fn matched(&mut self, distance: usize, len: usize, run: usize) -> Option<()> {
        let back = distance - 1;
        if len <= SHORT_LEN_MAX && distance <= SHORT_DISTANCE_MAX {
            if len == PAIR_LEN {
                debug_assert!((1..=CARRIED_MAX).contains(&run));
                return self.put([(back as u8 & 3) << 2, (back >> 2) as u8]);
            }
            return self.put([((len - 1) << 5) as u8 | (back as u8 & 7) << 2, (back >> 3) as u8]);
        }
        if len == TRIPLE_LEN && run > CARRIED_MAX && distance <= TRIPLE_DISTANCE_MAX {
            let back = back - SHORT_DISTANCE_MAX;
            return self.put([(back as u8 & 3) << 2, (back >> 2) as u8]);
        }
        let (opcode, len_max, operand) = if distance <= MIDDLE_DISTANCE_MAX {
            (MIDDLE_OPCODE, MIDDLE_LEN_MAX, back)
        } else {
            let beyond = distance - MIDDLE_DISTANCE_MAX;
            (FAR_OPCODE | (beyond >> 11) as u8 & 8, FAR_LEN_MAX, beyond & (MIDDLE_DISTANCE_MAX - 1))
        };
        let [low, high] = ((operand << 2) as u16).to_le_bytes();
        if len <= len_max {
            return self.put([opcode | (len - 2) as u8, low, high]);
        }
        self.put([opcode])?;
        self.extension(len - len_max)?;
        self.put([low, high])
    }

    pub(super) fn finish(mut self) -> Option<usize> {
        self.put(END_MARKER)?;
        Some(self.written)
    }

    #[cold]
    #[inline(never)]
    fn first_run_header(&mut self, len: usize) -> Option<()> {
        match len {
            0 => Some(()),
            1..=FIRST_RUN_MAX => self.put([len as u8 + FIRST_RUN_BIAS]),
            _ => self.run_header(len),
        }
    }

    #[inline(always)]
    fn run_header(&mut self, len: usize) -> Option<()> {
        if len <= RUN_LEN_MAX {
            return self.put([(len - 3) as u8]);
        }
        self.put([0])?;
        self.extension(len - RUN_LEN_MAX)
    }

    /// Writes the extension bytes of a length that exceeds its maximum by `excess`, 1 or more.
    #[cold]
    #[inline(never)]
    fn extension(&mut self, excess: usize) -> Option<()> {
        let end = self.written.checked_add(extension_len(excess))?;
        let (last, zeros) = self.dst.get_mut(self.written..end)?.split_last_mut()?;
        zeros.fill(0);
        *last = (excess - 255 * zeros.len()) as u8;
        self.written = end;
        Some(())
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        *self.dst.get_mut(self.written..)?.first_chunk_mut::<N>()? = bytes;
        self.written += N;
        Some(())
    }
}
