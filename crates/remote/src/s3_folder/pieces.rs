//! The parts of an object: what is sent, and what the store copies from other objects.

use packfs_core::{Error, Result};
use std::ops::Range;

/// Most bytes of an object (Amazon S3, limits of multipart uploads; as those below).
const OBJECT_LEN_MAX: u64 = 5 << 40;
/// Most parts of an object.
const PARTS_MAX: u64 = 10_000;
/// Least bytes of every part but the last.
const PART_LEN_MIN: u64 = 5 << 20;
/// Most bytes of a part that the store copies.
const COPY_LEN_MAX: u64 = 5 << 30;
/// Most bytes of an object that is sent in one request; longer ones are sent in parts of this
/// length, or of a greater one if there would be too many.
pub(super) const SENT_LEN: u64 = 16 << 20;

/// Part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its range in the object.
    pub range: Range<u64>,
    /// Index of the range that it is copied from.
    pub copied: Option<usize>,
}

impl Piece {
    pub(super) fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// Divides an object of `len` bytes, of which `copied` ranges lie in others. The beginning of a
/// copied range is sent where the part before it would be too short.
///
/// Errors: `Limit` for an object that is too long.
pub(super) fn pieces(len: u64, copied: &[Range<u64>], shown: &str) -> Result<Vec<Piece>> {
    if len > OBJECT_LEN_MAX {
        let fault = format!("{len} bytes; stores take objects of at most {OBJECT_LEN_MAX} bytes");
        return Err(Error::limit(shown, fault));
    }
    let sent_len = SENT_LEN.max(len.div_ceil(PARTS_MAX / 2));
    let mut least = PART_LEN_MIN;
    loop {
        let pieces = divided(len, copied, least, sent_len);
        if pieces.len() as u64 <= PARTS_MAX {
            return Ok(pieces);
        }
        // Short ranges are sent with what lies between them.
        least = least.saturating_mul(2);
    }
}

fn divided(len: u64, copied: &[Range<u64>], least: u64, sent_len: u64) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0_u64);
    for (index, range) in copied.iter().enumerate() {
        let gap = range.start.saturating_sub(at);
        let start =
            if gap == 0 { at.max(range.start) } else { range.start.max(at.saturating_add(PART_LEN_MIN)) };
        if range.end.saturating_sub(start) < least || range.end > len {
            continue;
        }
        divide(at..start, sent_len, None, &mut pieces);
        divide(start..range.end, COPY_LEN_MAX, Some(index), &mut pieces);
        at = range.end;
    }
    divide(at..len, sent_len, None, &mut pieces);
    pieces
}

/// Divides a range into equal parts of at most `len_max` bytes.
fn divide(range: Range<u64>, len_max: u64, copied: Option<usize>, pieces: &mut Vec<Piece>) {
    let len = range.end.saturating_sub(range.start);
    let count = len.div_ceil(len_max).max(1);
    let part_len = len.div_ceil(count);
    let mut start = range.start;
    while start < range.end {
        let end = start.saturating_add(part_len).min(range.end);
        pieces.push(Piece { range: start..end, copied });
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    const MIB: u64 = 1 << 20;

    /// Checks that the parts make the object, and are as long as stores demand.
    fn divided(len: u64, copied: &[Range<u64>]) -> Vec<Piece> {
        let found = pieces(len, copied, "a").unwrap();
        let mut at = 0;
        for (index, piece) in found.iter().enumerate() {
            assert_eq!(piece.range.start, at);
            at = piece.range.end;
            let part_len = at - piece.range.start;
            assert!(part_len >= PART_LEN_MIN || index + 1 == found.len(), "{piece:?}");
            if let Some(copied) = piece.copied.map(|index| &copied[index]) {
                assert!(copied.start <= piece.range.start && at <= copied.end && part_len <= COPY_LEN_MAX);
            }
        }
        assert!(at == len && found.len() as u64 <= PARTS_MAX);
        found
    }

    fn sent(pieces: &[Piece]) -> u64 {
        let sent = pieces.iter().filter(|piece| piece.copied.is_none());
        sent.map(|piece| piece.range.end - piece.range.start).sum()
    }

    #[test]
    fn long_ranges_are_copied_and_the_rest_is_sent() {
        assert_eq!(sent(&divided(100 * MIB, &[])), 100 * MIB);
        let copied = [MIB..50 * MIB, 50 * MIB..52 * MIB, 52 * MIB..(20 << 30)];
        let found = divided((20 << 30) + 1, &copied);
        assert_eq!(
            sent(&found),
            5 * MIB + 5 * MIB + 1,
            "the second range is too short, and the third lends 3 MiB"
        );
        assert_eq!(found.last().unwrap().copied, None);
    }

    #[test]
    fn a_short_part_before_a_copied_range_is_sent_with_its_beginning() {
        let found = divided(40 * MIB, from_ref(&(100..40 * MIB)));
        assert_eq!((found.len(), found[0].range.clone()), (2, 0..5 * MIB));
        assert_eq!(
            sent(&divided(9 * MIB, from_ref(&(100..9 * MIB)))),
            9 * MIB,
            "the rest would be too short"
        );
    }

    #[test]
    fn there_are_never_too_many_parts() {
        let step = 6 * MIB;
        let copied: Vec<Range<u64>> = (0..30_000).map(|index| index * step..(index + 1) * step - 1).collect();
        divided(30_000 * step, &copied);
        divided(OBJECT_LEN_MAX, &[]);
        divided(OBJECT_LEN_MAX, from_ref(&(0..OBJECT_LEN_MAX)));
        assert!(pieces(OBJECT_LEN_MAX + 1, &[], "a").is_err());
    }
}
