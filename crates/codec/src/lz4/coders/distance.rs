//! Refuses what liblz4 takes: a match with the distance 0, which copies what was in the room before
//! the block was decoded.
//!
//! Source: LZ4 block format, "offset value 0 is invalid".

/// True if a match that adds to the first `wanted` decoded bytes has the distance 0. False for a
/// damaged block, for the decoder to refuse.
pub(super) fn is_zero_within(block: &[u8], wanted: usize) -> bool {
    first_zero(block, wanted).is_some()
}

/// Returns the decoded length at which that match begins.
fn first_zero(block: &[u8], wanted: usize) -> Option<usize> {
    let (mut at, mut decoded) = (0_usize, 0_usize);
    while decoded < wanted {
        let token = *block.get(at)?;
        at += 1;
        let literals = length(block, &mut at, token >> 4)?;
        at = at.checked_add(literals)?;
        decoded = decoded.checked_add(literals)?;
        let &[low, high] = block.get(at..at.checked_add(2)?)? else { return None };
        if low | high == 0 {
            return (decoded < wanted).then_some(decoded);
        }
        at += 2;
        decoded = decoded.checked_add(length(block, &mut at, token & 15)?)?.checked_add(4)?;
    }
    None
}

/// The length that four bits of a token begin, and moves after the bytes that go on with it.
fn length(block: &[u8], at: &mut usize, begun: u8) -> Option<usize> {
    let mut length = usize::from(begun);
    if begun == 15 {
        loop {
            let byte = *block.get(*at)?;
            *at += 1;
            length = length.checked_add(usize::from(byte))?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    /// "abcd", then a match of four bytes at the distance, then as many literals as liblz4 wants
    /// after the last match.
    fn block(distance: u16) -> Vec<u8> {
        let [low, high] = distance.to_le_bytes();
        [&[0x40, b'a', b'b', b'c', b'd', low, high, 0xd0][..], b"nopqrstuvwxyz"].concat()
    }

    #[test]
    fn a_match_at_distance_zero_is_refused_where_it_counts() {
        let decode =
            |distance, len| crate::lz4::coders::Block.decompress(&block(distance), &mut vec![0x5a; len]);
        let prefix = |distance, len| {
            crate::lz4::coders::Block.decompress_prefix(&block(distance), &mut vec![0x5a; len])
        };
        assert_eq!(decode(4, 21).unwrap(), 21);
        assert!(decode(0, 21).is_err() && decode(0, 1000).is_err());
        assert_eq!(prefix(0, 4).unwrap(), 4);
        assert!(prefix(0, 5).is_err() && prefix(0, 21).is_err());
    }

    #[test]
    fn long_lengths_are_followed() {
        let literals = vec![7; 15 + 255 + 3];
        let block = |distance: u8| {
            let head = [0xff, 255, 3];
            [&head[..], &literals, &[distance, 0, 255, 0], &[0x50], b"vwxyz"].concat()
        };
        assert!(!is_zero_within(&block(1), usize::MAX));
        assert_eq!(first_zero(&block(0), usize::MAX), Some(literals.len()));
        for cut in 0..block(1).len() {
            assert!(!is_zero_within(&block(1)[..cut], usize::MAX));
        }
    }
}
