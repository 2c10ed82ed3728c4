//! The LZO1X decoder.
//!
//! Checked on any input: it neither panics nor writes outside the output, and accepts a stream only
//! if its last three bytes are the end marker. While much input and output is left, it copies in
//! fixed steps that may write past the end of an instruction's output (later instructions overwrite
//! that); near either end it copies exactly.

use super::error::LzoError;
use super::format::{
    DISTANCE_MAX, END_MARKER_LEN, FAR_LEN_MAX, FAR_OPCODE, FIRST_RUN_BIAS, MIDDLE_DISTANCE_MAX,
    MIDDLE_LEN_MAX, MIDDLE_OPCODE, PAIR_LEN, RUN_LEN_MAX, SHORT_DISTANCE_MAX, SHORT_OPCODE, TRIPLE_LEN,
};

/// Input that an instruction without extension bytes may read in the fast loop: 1 byte, 18
/// literals, and some reserve.
const INPUT_MARGIN: usize = 24;
/// Output that an instruction without extension bytes may write in the fast loop: 33 bytes in steps
/// of 16, 4 literals.
const OUTPUT_MARGIN: usize = 64;
/// Bytes copied at a time if there is space.
const STEP: usize = 16;
/// State after a run of four or more literals; states 0 to 3 count the literals of a match.
const AFTER_RUN: usize = 4;

#[derive(Clone, Copy)]
struct Cursor {
    read: usize,
    written: usize,
    /// Preceding literals: 0 to 3, or [`AFTER_RUN`].
    state: usize,
}

struct Match {
    distance: usize,
    len: usize,
    /// Number of literals that follow it.
    carried: usize,
}

/// Decodes one LZO1X stream, which must fill `src`, and returns the decoded length; the rest of
/// `dst` has undefined contents.
///
/// Errors: every possible fault of a stream, see [`LzoError`].
pub fn decompress(src: &[u8], dst: &mut [u8]) -> Result<usize, LzoError> {
    let mut cursor = first_instruction(src, dst, Excess::Fails)?;
    loop {
        cursor = decode_with_room(src, dst, cursor)?;
        match decode_exactly(src, dst, cursor, Excess::Fails)? {
            Some(next) => cursor = next,
            None => return Ok(cursor.written),
        }
    }
}

/// Decodes a prefix of one LZO1X stream until `dst` is full or the stream ends, and returns its
/// length. The rest is neither decoded nor checked.
///
/// Errors: as [`decompress`], for the decoded part.
pub fn decompress_prefix(src: &[u8], dst: &mut [u8]) -> Result<usize, LzoError> {
    let mut cursor = first_instruction(src, dst, Excess::IsCut)?;
    while cursor.written < dst.len() {
        cursor = decode_with_room(src, dst, cursor)?;
        match decode_exactly(src, dst, cursor, Excess::IsCut)? {
            Some(next) => cursor = next,
            None => break,
        }
    }
    Ok(cursor.written)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Excess {
    Fails,
    IsCut,
}

impl Excess {
    /// Returns the number of bytes, of `wanted`, that the instruction at `at` writes.
    fn within(self, room: usize, wanted: usize, at: usize) -> Result<usize, LzoError> {
        match self {
            Excess::Fails if wanted > room => Err(LzoError::OutputOverrun { at, wanted, room }),
            _ => Ok(wanted.min(room)),
        }
    }
}

/// Reads the literal run that the first byte may announce.
fn first_instruction(src: &[u8], dst: &mut [u8], excess: Excess) -> Result<Cursor, LzoError> {
    let start = Cursor { read: 0, written: 0, state: 0 };
    match src {
        [FIRST_RUN_BIAS, 1, _, _, _, ..] => Err(LzoError::RunLengthStream),
        [first, ..] if *first > FIRST_RUN_BIAS => {
            let len = usize::from(first - FIRST_RUN_BIAS);
            let written = copy_literals(src, dst, 0, 1, 0, len, excess)?;
            Ok(Cursor { read: 1 + len, written, state: len.min(AFTER_RUN) })
        }
        _ => Ok(start),
    }
}

/// Decodes instructions of usual length while they can exhaust neither input nor output.
///
/// Stops before an instruction that [`decode_exactly`] must decode: the end marker, or any without
/// enough space.
#[inline]
fn decode_with_room(src: &[u8], dst: &mut [u8], cursor: Cursor) -> Result<Cursor, LzoError> {
    let Cursor { mut read, mut written, mut state } = cursor;
    while let Some(head) = src.get(read..).and_then(|rest| rest.first_chunk::<INPUT_MARGIN>()) {
        if dst.len() - written < OUTPUT_MARGIN {
            break;
        }
        let opcode = usize::from(head[0]);
        let (distance, len, carried, after);
        if head[0] >= SHORT_OPCODE {
            distance = (usize::from(head[1]) << 3) + ((opcode >> 2) & 7) + 1;
            len = (opcode >> 5) + 1;
            carried = opcode & 3;
            after = read + 2;
        } else if head[0] >= FAR_OPCODE {
            let far = head[0] < MIDDLE_OPCODE;
            let len_mask = if far { 7 } else { 31 };
            let mut at = read + 1;
            let mut count = opcode & len_mask;
            if count == 0 {
                let Some((excess, end)) = extension(src, at) else { break };
                count = len_mask.saturating_add(excess);
                at = end;
            }
            let Some(operand) = src.get(at..at + 2) else { break };
            let operand = usize::from(operand[0]) | usize::from(operand[1]) << 8;
            distance = if far {
                MIDDLE_DISTANCE_MAX + ((opcode & 8) << 11) + (operand >> 2)
            } else {
                (operand >> 2) + 1
            };
            len = count.saturating_add(2);
            carried = operand & 3;
            after = at + 2;
            if far && distance == MIDDLE_DISTANCE_MAX {
                break;
            }
            if src.len() - after < 4 || dst.len() - written < len.saturating_add(STEP + 4) {
                break;
            }
        } else if state == 0 {
            let Some((from, len)) = copy_run_with_room(src, dst, read, written) else { break };
            read = from + len;
            written += len;
            state = AFTER_RUN;
            continue;
        } else {
            distance = (usize::from(head[1]) << 2)
                + (opcode >> 2)
                + if state == AFTER_RUN { SHORT_DISTANCE_MAX + 1 } else { 1 };
            len = if state == AFTER_RUN { TRIPLE_LEN } else { PAIR_LEN };
            carried = opcode & 3;
            after = read + 2;
        }
        if distance > written {
            return Err(LzoError::LookbehindOverrun { at: read, distance, decoded: written });
        }
        copy_match_with_room(dst, written, distance, len);
        written += len;
        dst[written..written + 4].copy_from_slice(&src[after..after + 4]);
        written += carried;
        read = after + carried;
        state = carried;
    }
    Ok(Cursor { read, written, state })
}

/// Copies the run of literals of the instruction at `read`, which is followed by [`INPUT_MARGIN`]
/// bytes. Returns the start of the run in `src` and its length; `None` without enough space.
#[inline(always)]
fn copy_run_with_room(src: &[u8], dst: &mut [u8], read: usize, written: usize) -> Option<(usize, usize)> {
    let head = src[read..].first_chunk::<INPUT_MARGIN>()?;
    let opcode = usize::from(head[0]);
    if opcode != 0 {
        let out = dst.get_mut(written..written + 24)?;
        out[..16].copy_from_slice(&head[1..17]);
        out[16..23].copy_from_slice(&head[17..24]);
        return Some((read + 1, opcode + 3));
    }
    let (excess, from) = extension(src, read + 1)?;
    let len = excess.saturating_add(RUN_LEN_MAX);
    if src.len() - from < len || dst.len() - written < len {
        return None;
    }
    dst[written..written + len].copy_from_slice(&src[from..from + len]);
    Some((from, len))
}

/// Copies a match; may write up to [`STEP`] bytes past its end, for which the caller ensures the
/// space.
#[inline]
fn copy_match_with_room(dst: &mut [u8], at: usize, distance: usize, len: usize) {
    let from = at - distance;
    if distance >= STEP {
        dst.copy_within(from..from + STEP, at);
        let mut done = STEP;
        while done < len {
            dst.copy_within(from + done..from + done + STEP, at + done);
            done += STEP;
        }
    } else if distance >= 8 {
        let mut done = 0;
        while done < len {
            dst.copy_within(from + done..from + done + 8, at + done);
            done += 8;
        }
    } else {
        copy_match(dst, at, distance, len);
    }
}

/// Copies a match exactly, including overlapping ones.
#[inline]
fn copy_match(dst: &mut [u8], at: usize, distance: usize, len: usize) {
    let from = at - distance;
    if distance >= len {
        dst.copy_within(from..from + len, at);
    } else if distance == 1 {
        let byte = dst[from];
        dst[at..at + len].fill(byte);
    } else if len <= STEP {
        for i in 0..len {
            dst[at + i] = dst[from + i];
        }
    } else {
        // The bytes between `from` and the end of the copy are periodic: copy ever longer pieces of
        // them.
        let mut done = 0;
        while done < len {
            let piece = (distance + done).min(len - done);
            dst.copy_within(from..from + piece, at + done);
            done += piece;
        }
    }
}

/// Decodes one instruction with every access checked; `None` after the end marker.
#[cold]
#[inline(never)]
fn decode_exactly(
    src: &[u8],
    dst: &mut [u8],
    cursor: Cursor,
    excess: Excess,
) -> Result<Option<Cursor>, LzoError> {
    let Cursor { read: at, written, state } = cursor;
    let cut_short = LzoError::InputOverrun { at };
    let Some(&opcode) = src.get(at) else {
        return Err(LzoError::MissingEndMarker { at });
    };
    if opcode < FAR_OPCODE && state == 0 {
        let (len, start) = match opcode {
            0 => {
                let (more, start) = extension(src, at + 1).ok_or(cut_short)?;
                (more.saturating_add(RUN_LEN_MAX), start)
            }
            _ => (usize::from(opcode) + 3, at + 1),
        };
        let written = copy_literals(src, dst, at, start, written, len, excess)?;
        return Ok(Some(Cursor { read: start.saturating_add(len), written, state: AFTER_RUN }));
    }
    let (found, after) = read_match(src, at, opcode, state).ok_or(cut_short)?;
    let Match { distance, len, carried } = found;
    if opcode & !15 == FAR_OPCODE && distance == MIDDLE_DISTANCE_MAX {
        return match src.len() - after {
            _ if len != END_MARKER_LEN => Err(LzoError::BadEndMarker { at, len }),
            0 => Ok(None),
            count => Err(LzoError::TrailingBytes { at: after, count }),
        };
    }
    if distance > written {
        return Err(LzoError::LookbehindOverrun { at, distance, decoded: written });
    }
    let len = excess.within(dst.len() - written, len, at)?;
    copy_match(dst, written, distance, len);
    let written = copy_literals(src, dst, at, after, written + len, carried, excess)?;
    Ok(Some(Cursor { read: after + carried, written, state: carried }))
}

/// Reads the match instruction at `at` and the offset after it; `None` if the input ends inside it.
fn read_match(src: &[u8], at: usize, opcode: u8, state: usize) -> Option<(Match, usize)> {
    let bits = usize::from(opcode);
    if !(FAR_OPCODE..SHORT_OPCODE).contains(&opcode) {
        let operand = usize::from(*src.get(at + 1)?);
        let (distance, len) = match (opcode >= SHORT_OPCODE, state) {
            (true, _) => ((operand << 3) + ((bits >> 2) & 7) + 1, (bits >> 5) + 1),
            (false, AFTER_RUN) => ((operand << 2) + (bits >> 2) + SHORT_DISTANCE_MAX + 1, TRIPLE_LEN),
            (false, _) => ((operand << 2) + (bits >> 2) + 1, PAIR_LEN),
        };
        return Some((Match { distance, len, carried: bits & 3 }, at + 2));
    }
    let far = opcode < MIDDLE_OPCODE;
    let (len_mask, len_max) = if far { (7, FAR_LEN_MAX) } else { (31, MIDDLE_LEN_MAX) };
    let (len, start) = match bits & len_mask {
        0 => {
            let (excess, start) = extension(src, at + 1)?;
            (excess.saturating_add(len_max), start)
        }
        count => (count + 2, at + 1),
    };
    let operand = src.get(start..)?.first_chunk::<2>()?;
    let operand = usize::from(u16::from_le_bytes(*operand));
    let distance =
        if far { MIDDLE_DISTANCE_MAX + ((bits & 8) << 11) + (operand >> 2) } else { (operand >> 2) + 1 };
    debug_assert!(distance <= DISTANCE_MAX);
    Some((Match { distance, len, carried: operand & 3 }, start + 2))
}

/// Reads the extension bytes of a length: its excess over the maximum of the instruction, and the
/// offset after them; `None` if the input ends first.
fn extension(src: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = src.get(at..)?;
    let zeros = rest.iter().position(|&byte| byte != 0)?;
    Some((zeros.saturating_mul(255).saturating_add(usize::from(rest[zeros])), at + zeros + 1))
}

/// Copies `len` literals from `src[start..]` for the instruction at `at` and returns the new length
/// of the output.
fn copy_literals(
    src: &[u8],
    dst: &mut [u8],
    at: usize,
    start: usize,
    written: usize,
    len: usize,
    excess: Excess,
) -> Result<usize, LzoError> {
    let len = excess.within(dst.len() - written, len, at)?;
    let literals = src.get(start..).and_then(|rest| rest.get(..len)).ok_or(LzoError::InputOverrun { at })?;
    dst[written..written + len].copy_from_slice(literals);
    Ok(written + len)
}
