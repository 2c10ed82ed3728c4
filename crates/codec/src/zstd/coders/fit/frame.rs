//! The framing of RFC 8878, 3.1.1: a frame assembled from separately coded blocks.

/// `Magic_Number`, as stored.
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// End of magic number and descriptor.
const DESCRIPTOR_END: usize = 5;
/// `Single_Segment_flag`: the window has the length of the content, and is not stored.
const SINGLE_SEGMENT: u8 = 1 << 5;
const WINDOW_LOG_MIN: u32 = 10;

/// Header of a block: type, length, and flag of the last one.
const BLOCK_HEADER_LEN: usize = 3;
const LAST_BLOCK: u8 = 1;
/// `RLE_Block`: one byte, whatever the length.
const RUN_OF_ONE_BYTE: u32 = 1;

/// Starts a frame with this content length, whose window is at most `1 << window_log`.
pub(super) fn begin(content_len: usize, window_log: u32, frame: &mut Vec<u8>) {
    frame.clear();
    frame.extend_from_slice(&MAGIC);
    let len = content_len as u64;
    let (len_flag, len_bytes, written): (u8, usize, u64) = match len {
        0..256 => (0, 1, len),
        256..65_792 => (1, 2, len - 256),
        65_792..=0xFFFF_FFFF => (2, 4, len),
        _ => (3, 8, len),
    };
    let single = len <= 1 << window_log;
    frame.push(len_flag << 6 | if single { SINGLE_SEGMENT } else { 0 });
    if !single {
        frame.push((window_log.saturating_sub(WINDOW_LOG_MIN) << 3) as u8);
    }
    frame.extend_from_slice(&written.to_le_bytes()[..len_bytes]);
}

/// Returns the blocks of a frame without checksum and dictionary; `None` if it is not a frame.
pub(super) fn blocks(frame: &[u8]) -> Option<&[u8]> {
    let descriptor = *frame.strip_prefix(&MAGIC)?.first()?;
    let single = descriptor & SINGLE_SEGMENT != 0;
    let len_bytes = match descriptor >> 6 {
        0 => usize::from(single),
        flag => 1 << flag,
    };
    frame.get(DESCRIPTOR_END + usize::from(!single) + len_bytes..)
}

/// Clears the flag of the last block; `None` if it does not exist.
pub(super) fn go_on(blocks: &mut [u8]) -> Option<()> {
    let mut at = 0;
    loop {
        let header: &mut [u8; BLOCK_HEADER_LEN] = blocks.get_mut(at..)?.first_chunk_mut()?;
        let figures = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        if header[0] & LAST_BLOCK != 0 {
            header[0] &= !LAST_BLOCK;
            return Some(());
        }
        let len = if figures >> 1 & 3 == RUN_OF_ONE_BYTE { 1 } else { figures >> 3 };
        at += BLOCK_HEADER_LEN + len as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zstd::coders::{Frame, Unframe};
    use crate::{Decoder, Encoder};

    fn encoded(plain: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; plain.len() + 1000];
        let len = Frame::new(3, None).compress(plain, &mut frame).unwrap().unwrap();
        frame.truncate(len);
        frame
    }

    #[test]
    fn blocks_of_two_frames_make_one_frame() {
        for (first_len, second_len) in
            [(1, 1), (100, 155), (100, 156), (300, 65_491), (300, 65_492), (200_000, 9)]
        {
            let plain: Vec<u8> = (0..first_len + second_len).map(|i: u64| ((i * i) >> 7) as u8).collect();
            let (first, second) = plain.split_at(first_len as usize);
            let (first, second) = (encoded(first), encoded(second));
            let mut frame = Vec::new();
            begin(plain.len(), 27, &mut frame);
            let start = frame.len();
            frame.extend_from_slice(blocks(&first).unwrap());
            go_on(&mut frame[start..]).unwrap();
            frame.extend_from_slice(blocks(&second).unwrap());
            let mut decoded = vec![0; plain.len()];
            // Matches of one frame's beginning may repeat offsets that the other one set; these
            // inputs have none.
            assert_eq!(Unframe::new().decompress(&frame, &mut decoded), Ok(plain.len()), "{first_len}");
            assert!(decoded == plain);
        }
    }

    #[test]
    fn headers_are_those_that_zstd_writes() {
        for len in [1, 255, 256, 65_791, 65_792, 1 << 20] {
            let mut header = Vec::new();
            begin(len, 27, &mut header);
            assert!(encoded(&vec![7; len]).starts_with(&header), "{len}");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_have_no_blocks() {
        assert!(blocks(&[]).is_none() && blocks(&MAGIC).is_none() && blocks(b"PK\x03\x04,").is_none());
        assert!(go_on(&mut []).is_none() && go_on(&mut [0, 0, 0]).is_none());
    }
}
