//! Decoding of blocks.
//!
//! Accepts the same blocks as liblz4 (`LZ4_decompress_safe`, the origin of Linux's decoder), except
//! for matches with distance 0, which copy stale output.
//!
//! Most sequences are short and far from both ends. They are copied in pieces of a fixed length;
//! the next sequence overwrites the excess.
//!
//! Source: LZ4 block format, with its end of block restrictions.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    /// A match has distance 0.
    NoDistance,
}

/// Literals at the end of a block: the last match ends at least this many bytes before the end of
/// the output.
const LAST_LITERALS: usize = 5;
/// Literals that end closer to the end of the output are the last ones (`MFLIMIT`).
const LAST_MATCH: usize = 12;
/// Literals followed by fewer bytes of the block are the last ones: others are followed by a
/// distance, a token, and the last literals.
const AFTER_LITERALS: usize = 2 + 1 + LAST_LITERALS;
/// Longest length that fits in a token.
const TOKEN_MAX: usize = 15;
const MATCH_LEN_MIN: usize = 4;
/// A sequence is short if at least this many bytes of the block remain from its token on, it has
/// fewer than [`TOKEN_MAX`] literals, and [`SHORT_ROOM`] remains. For these, liblz4 does not check
/// the literals that follow, and a match may end at the end of the output if its distance is at
/// least 8.
const SHORT_BLOCK: usize = 18;
/// See [`SHORT_BLOCK`].
const SHORT_ROOM: usize = 32;
/// Output for two sequences of the fast path, written in pieces of 16 bytes.
const QUICK_ROOM: usize = 64;

/// Decodes a block; with `prefix`, stops when the output is full, and an early end of the block is
/// not an error. Returns the decoded length; the output after it is overwritten.
pub(super) fn decode(block: &[u8], out: &mut [u8], prefix: bool) -> Result<usize, Fault> {
    if out.is_empty() {
        return if prefix || block == [0] { Ok(0) } else { Err(Fault::Damaged) };
    }
    let mut at = Position { block: 0, out: 0 };
    loop {
        quick(block, out, &mut at)?;
        if sequence(block, out, &mut at, prefix)? {
            return Ok(at.out);
        }
    }
}

struct Position {
    block: usize,
    out: usize,
}

/// Decodes sequences of few literals, as long as both ends are far.
fn quick(block: &[u8], out: &mut [u8], position: &mut Position) -> Result<(), Fault> {
    let Position { block: mut at, out: mut end } = *position;
    while let Some(input) = block.get(at..).and_then(<[u8]>::first_chunk::<SHORT_BLOCK>) {
        let (literals, mut len) = lengths(input[0]);
        if literals == TOKEN_MAX || end + QUICK_ROOM > out.len() {
            break;
        }
        if let (Some(to), Some(literals)) = (out[end..].first_chunk_mut::<16>(), input[1..].first_chunk()) {
            *to = *literals;
        }
        let to = end + literals;
        let distance = usize::from(u16::from_le_bytes([input[literals + 1], input[literals + 2]]));
        let from = source(to, distance)?;
        let mut next = at + literals + 3;
        if len == TOKEN_MAX + MATCH_LEN_MIN {
            len += further(block, &mut next, LAST_LITERALS - 1)?;
            if len > out.len() - to || out.len() - to - len < QUICK_ROOM {
                break;
            }
            copy_long(&mut out[..to + len + QUICK_ROOM], from, to, len);
        } else if distance >= 8 {
            let out = &mut out[..to + 18];
            if distance >= 16 {
                copy::<16>(out, from, to);
            } else {
                copy::<8>(out, from, to);
                copy::<8>(out, from + 8, to + 8);
            }
            copy::<2>(out, from + 16, to + 16);
        } else {
            copy_long(&mut out[..to + QUICK_ROOM / 2], from, to, len);
        }
        (at, end) = (next, to + len);
    }
    *position = Position { block: at, out: end };
    Ok(())
}

/// Decodes one sequence of any kind. Returns true if it is the last one.
#[inline(never)]
fn sequence(block: &[u8], out: &mut [u8], position: &mut Position, prefix: bool) -> Result<bool, Fault> {
    let Position { block: mut at, out: end } = *position;
    let token = *block.get(at).ok_or(Fault::Damaged)?;
    at += 1;
    let (mut literals, mut len) = lengths(token);
    if literals == TOKEN_MAX {
        if at + TOKEN_MAX >= block.len() {
            return Err(Fault::Damaged);
        }
        literals += further(block, &mut at, TOKEN_MAX)?;
    }
    let (left, room) = (block.len() - at, out.len() - end);
    let is_short = literals < TOKEN_MAX && left + 1 >= SHORT_BLOCK && room >= SHORT_ROOM;
    let is_last =
        literals.saturating_add(LAST_MATCH) > room || literals.saturating_add(AFTER_LITERALS) > left;
    if is_last && !is_short {
        if !prefix && (literals != left || literals > room) {
            return Err(Fault::Damaged);
        }
        literals = literals.min(left).min(room);
        let (here, after) = (end + literals, at + literals);
        out[end..here].copy_from_slice(&block[at..after]);
        (position.block, position.out) = (after, here);
        if !prefix || here == out.len() || after + 2 >= block.len() {
            return Ok(true);
        }
    } else {
        out[end..end + literals].copy_from_slice(&block[at..at + literals]);
        (position.block, position.out) = (at + literals, end + literals);
    }
    let Position { block: mut at, out: to } = *position;
    let distance = usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
    at += 2;
    let from = source(to, distance)?;
    let may_end = is_short && distance >= 8 && len < TOKEN_MAX + MATCH_LEN_MIN;
    if len == TOKEN_MAX + MATCH_LEN_MIN {
        len += further(block, &mut at, LAST_LITERALS - 1)?;
    }
    let room = out.len() - to;
    if prefix {
        len = len.min(room);
    } else if len + LAST_LITERALS > room && !may_end {
        return Err(Fault::Damaged);
    }
    let long = len.min(room.saturating_sub(QUICK_ROOM));
    if long > 0 {
        copy_long(&mut out[..to + long + QUICK_ROOM], from, to, long);
    }
    for index in long..len {
        out[to + index] = out[from + index];
    }
    *position = Position { block: at, out: to + len };
    Ok(prefix && len == room)
}

/// Returns the number of literals and the length of the match in a token.
fn lengths(token: u8) -> (usize, usize) {
    (usize::from(token >> 4), usize::from(token & 15) + MATCH_LEN_MIN)
}

fn source(to: usize, distance: usize) -> Result<usize, Fault> {
    match to.checked_sub(distance) {
        Some(from) if distance > 0 => Ok(from),
        Some(_) => Err(Fault::NoDistance),
        None => Err(Fault::Damaged),
    }
}

/// Sums the further bytes of a length, up to the first that is not 255; at least `left` bytes of
/// the block must follow.
fn further(block: &[u8], at: &mut usize, left: usize) -> Result<usize, Fault> {
    let mut sum = 0_usize;
    loop {
        let byte = *block.get(*at).ok_or(Fault::Damaged)?;
        *at += 1;
        sum = sum.checked_add(usize::from(byte)).ok_or(Fault::Damaged)?;
        if *at + left > block.len() {
            return Err(Fault::Damaged);
        }
        if byte < 255 {
            return Ok(sum);
        }
    }
}

/// Copies non-overlapping bytes in a few instructions.
#[inline(always)]
fn copy<const LEN: usize>(out: &mut [u8], from: usize, to: usize) {
    if let Some(&piece) = out[from..].first_chunk::<LEN>()
        && let Some(to) = out[to..].first_chunk_mut()
    {
        *to = piece;
    }
}

/// Copies a match in pieces of 16 bytes, and up to 15 bytes in excess.
fn copy_long(out: &mut [u8], from: usize, to: usize, len: usize) {
    /// Smallest multiple of each distance that is at least 16.
    const MULTIPLES: [u8; 16] = [16, 16, 16, 18, 16, 20, 18, 21, 16, 18, 20, 22, 24, 26, 28, 30];
    let (mut distance, mut done) = (to - from, 0);
    if distance < 16 {
        // Pieces must not overlap their source: the first one is copied byte by byte.
        for index in 0..16 {
            out[to + index] = out[from + index];
        }
        (distance, done) = (usize::from(MULTIPLES[distance]), 16);
    }
    while done < len {
        copy::<16>(out, to + done - distance, to + done);
        done += 16;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, ffi};
    use super::*;
    use crate::Decoder;
    use packfs_testkit::Random;

    /// "abcd", then a match of four bytes at the distance, then the least literals after a match.
    fn block(distance: u16) -> Vec<u8> {
        let [low, high] = distance.to_le_bytes();
        [&[0x40, b'a', b'b', b'c', b'd', low, high, 0xd0][..], b"nopqrstuvwxyz"].concat()
    }

    #[test]
    fn a_match_at_distance_zero_is_refused_where_it_counts() {
        let decode = |distance, len| Block.decompress(&block(distance), &mut vec![0x5a; len]);
        let prefix = |distance, len| Block.decompress_prefix(&block(distance), &mut vec![0x5a; len]);
        assert_eq!(decode(4, 21).unwrap(), 21);
        assert!(decode(0, 21).is_err() && decode(0, 1000).is_err());
        assert_eq!(prefix(0, 4).unwrap(), 4);
        assert!(prefix(0, 5).is_err() && prefix(0, 21).is_err());
    }

    /// A number below `end`; 0 if that is 0.
    fn below(random: &mut Random, end: usize) -> usize {
        random.below(end.max(1) as u64) as usize
    }

    /// Literals and matches of all distances and lengths.
    fn mixture(random: &mut Random, len: usize) -> Vec<u8> {
        let mut bytes = random.noise(4);
        while bytes.len() < len {
            let longest = [3, 20, 600][below(random, 3)];
            let count = 1 + below(random, longest);
            if below(random, 3) == 0 {
                bytes.extend(random.noise(count));
                continue;
            }
            let farthest = [4, 40, 70_000][below(random, 3)].min(bytes.len());
            let distance = 1 + below(random, farthest);
            for _ in 0..count {
                bytes.push(bytes[bytes.len() - distance]);
            }
        }
        bytes.truncate(len);
        bytes
    }

    /// Compares with liblz4, whole and as a prefix.
    fn compare(block: &[u8], room: usize) {
        for prefix in [false, true] {
            let (mut ours, mut theirs) = (vec![0x5a; room], vec![0x5a; room]);
            let len = match decode(block, &mut ours, prefix) {
                Err(Fault::NoDistance) => continue,
                len => len.ok(),
            };
            let expected = if prefix {
                ffi::decompress_prefix(block, &mut theirs)
            } else {
                ffi::decompress(block, &mut theirs)
            };
            assert_eq!(len, expected, "{prefix} {room} {block:02x?}");
            assert_eq!(ours[..len.unwrap_or(0)], theirs[..len.unwrap_or(0)]);
        }
    }

    #[test]
    fn whole_cut_and_damaged_blocks_are_decoded_and_refused_as_by_liblz4() {
        let mut random = Random::new(1);
        let random = &mut random;
        let mut state = ffi::FastState::new();
        for round in 0..3000 {
            let len = below(random, [40, 300, 100_000][round % 3]);
            let bytes = mixture(random, len);
            let mut block = vec![0; len + len / 100 + 64];
            let block_len = state.compress(&bytes, &mut block, 1).unwrap();
            block.truncate(block_len);
            let mut out = vec![0; len];
            assert_eq!(decode(&block, &mut out, false), Ok(len));
            assert_eq!(out, bytes);
            for room in [len, len + 1, len + 100, len.saturating_sub(1), below(random, len)] {
                compare(&block, room);
            }
            for _ in 0..4 {
                let mut damaged = block.clone();
                for _ in 0..=below(random, 3) {
                    let at = below(random, damaged.len().min(200));
                    damaged[at] = [0, 255, random.next() as u8][below(random, 3)];
                }
                damaged.truncate(damaged.len() - below(random, damaged.len().min(12)));
                compare(&damaged, [len, len + 70][below(random, 2)]);
            }
        }
    }
}
