//! Vendors' framings of LZMA1 from before formats defined one: Squashfs 2 to 4 on routers, OpenRG's
//! cramfs.
//!
//! Usually they have no end marker, and most state no length: the reader knows the length of a
//! block, or decodes all input. Stated dictionaries are odd or far larger than a block, and do not
//! matter, since the output is the dictionary. [`crate::Algorithm`] describes each.

use super::decode::{Fault, Finish, Properties, RangeDecoder, State, Stop, Window};
use super::{DAMAGED, NO_HEADER, TOO_SHORT, TRAILING, stream_error};
use crate::deflate::zlib_decoder;
use crate::{DecodeError, Decoder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Properties in one byte, a dictionary length in four.
    Props,
    /// A length in four bytes, then as [`Framing::Props`].
    LenProps,
    /// [`Framing::Props`], then a length in four bytes.
    PropsLen,
    /// `pb`, `lc`, `lp`, 0xff.
    PbLcLp,
    /// No header: `lc` 0, `lp` 0, `pb` 2.
    Bare,
    /// The 13 bytes of `.lzma`.
    Alone,
}

struct Block<'a> {
    properties: Properties,
    len: Option<u64>,
    stream: &'a [u8],
}

impl Framing {
    fn take_apart(self, src: &[u8]) -> Option<Block<'_>> {
        let word = |bytes: [u8; 4]| Some(u64::from(u32::from_le_bytes(bytes)));
        Some(match self {
            Framing::Props => {
                let (head, stream) = src.split_first_chunk::<5>()?;
                Block { properties: Properties::new(head[0])?, len: None, stream }
            }
            Framing::LenProps => {
                let (&len, rest) = src.split_first_chunk::<4>()?;
                Block { len: word(len), ..Framing::Props.take_apart(rest)? }
            }
            Framing::PropsLen => {
                let block = Framing::Props.take_apart(src)?;
                let (&len, stream) = block.stream.split_first_chunk::<4>()?;
                Block { len: word(len), stream, ..block }
            }
            Framing::PbLcLp => {
                let (&[pb, lc, lp, mark], stream) = src.split_first_chunk::<4>()?;
                let properties = Properties::of_parts(lc, lp, pb).filter(|_| mark == 0xff)?;
                Block { properties, len: None, stream }
            }
            Framing::Bare => Block { properties: Properties::of_parts(0, 0, 2)?, len: None, stream: src },
            Framing::Alone => {
                let block = Framing::Props.take_apart(src)?;
                let (&len, stream) = block.stream.split_first_chunk::<8>()?;
                let stated = u64::from_le_bytes(len);
                Block { len: (stated != u64::MAX).then_some(stated), stream, ..block }
            }
        })
    }
}

pub(crate) struct Unvendor {
    state: State,
    framing: Framing,
}

impl Unvendor {
    pub(crate) fn new(framing: Framing) -> Unvendor {
        Unvendor { state: State::new(), framing }
    }

    /// With `prefix`, stops as soon as `dst` is full.
    fn decode(&mut self, src: &[u8], dst: &mut [u8], prefix: bool) -> Result<usize, DecodeError> {
        if src.is_empty() {
            return Err(TOO_SHORT);
        }
        let block = self.framing.take_apart(src).ok_or(NO_HEADER)?;
        let room = dst.len();
        if !prefix && block.len.is_some_and(|len| len > room as u64) {
            return Err(DecodeError::TooLong);
        }
        self.state.reset(block.properties);
        let limit = block.len.map_or(room, |len| usize::try_from(len).map_or(room, |len| len.min(room)));
        let cut = prefix && limit == room;
        let mut window = Window { dst, len: 0, limit, dict_len: usize::MAX, cut };
        let mut rc = RangeDecoder::new(block.stream).map_err(stream_error)?;
        let stop = match block.len {
            Some(_) => self.state.decode(&mut rc, &mut window).map(Some),
            None => self.state.decode_to_end(&mut rc, &mut window),
        };
        let stop = stop.map_err(|fault| match fault {
            // A copy beyond the end of a destination without a stated length.
            Fault::Overlong if block.len.is_none() => DecodeError::TooLong,
            fault => stream_error(fault),
        })?;
        let mut end = rc;
        match stop {
            None => return Ok(window.len),
            Some(Stop::Limit) if cut => return Ok(limit),
            Some(Stop::Marker) if block.len.is_some() => return Err(DAMAGED),
            Some(Stop::Marker) => {}
            Some(Stop::Limit) => match end.finish() {
                Ok(Finish::AtEnd) => return Ok(limit),
                // 7-Zip's encoder of that time ended with any number of its last range, and a byte
                // or two that decoders ignore.
                Ok(Finish::No) if self.framing == Framing::LenProps && (1..=4).contains(&end.left()) => {
                    return Ok(limit);
                }
                Ok(Finish::Before) => return Err(TRAILING),
                Ok(Finish::No) if self.state.decode_marker(&mut rc, &window).map_err(stream_error)? => {}
                _ if block.len.is_some() => return Err(DAMAGED),
                _ => return Err(DecodeError::TooLong),
            },
        }
        match rc.finish().map_err(stream_error)? {
            Finish::AtEnd => Ok(window.len),
            Finish::Before => Err(TRAILING),
            Finish::No => Err(DAMAGED),
        }
    }
}

impl Decoder for Unvendor {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.decode(src, dst, false)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        if dst.is_empty() {
            return Ok(0);
        }
        self.decode(src, dst, true)
    }
}

/// First byte of a zlib stream with a window of 32 KiB. As properties of LZMA it would have an `lc
/// + lp` of 6.
const ZLIB_FIRST: u8 = 0x78;

/// Decodes sqlzma's blocks: `.lzma` or zlib, by their first byte.
pub(crate) struct Unsqlzma {
    lzma: Unvendor,
    zlib: Box<dyn Decoder>,
}

impl Unsqlzma {
    pub(crate) fn new() -> Unsqlzma {
        Unsqlzma { lzma: Unvendor::new(Framing::Alone), zlib: zlib_decoder() }
    }

    fn of(&mut self, src: &[u8]) -> &mut dyn Decoder {
        if src.first() == Some(&ZLIB_FIRST) { &mut *self.zlib } else { &mut self.lzma }
    }
}

impl Decoder for Unsqlzma {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.of(src).decompress(src, dst)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.of(src).decompress_prefix(src, dst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoder;
    use crate::lzma::HEADER_LEN;
    use crate::lzma::coders::Alone;

    const FRAMINGS: [Framing; 6] = [
        Framing::Props,
        Framing::LenProps,
        Framing::PropsLen,
        Framing::PbLcLp,
        Framing::Bare,
        Framing::Alone,
    ];

    fn text(len: usize, mut seed: u64) -> Vec<u8> {
        let mut next = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize
        };
        (0..len).map(|at| if at % 9 < 6 { b'a' + (next() % 7) as u8 } else { b' ' }).collect()
    }

    /// A block of `plain` in a framing, made of what liblzma encodes.
    fn packed(framing: Framing, plain: &[u8]) -> Vec<u8> {
        let (lc, lp, pb) = if framing == Framing::Bare { (0, 0, 2) } else { (3, 0, 2) };
        let mut alone = vec![0; plain.len() * 2 + 100];
        let len = Alone::thorough(1 << 20, (lc, lp, pb)).compress(plain, &mut alone).unwrap().unwrap();
        let (head, stream) = alone[..len].split_at(HEADER_LEN);
        let (props, len) = (&head[..5], &(plain.len() as u32).to_le_bytes()[..]);
        // The dictionary must not limit any match.
        let odd = [&props[..1], &[0xb3, 0xfb, 0, 0]].concat();
        match framing {
            Framing::Props => [&odd, stream].concat(),
            Framing::LenProps => [len, &odd, stream].concat(),
            Framing::PropsLen => [&odd, len, stream].concat(),
            Framing::PbLcLp => [&[2, 3, 0, 0xff], stream].concat(),
            Framing::Bare => stream.to_vec(),
            Framing::Alone => [&odd, &head[5..], stream].concat(),
        }
    }

    #[test]
    fn blocks_decode_to_their_exact_length() {
        for framing in FRAMINGS {
            let mut decoder = Unvendor::new(framing);
            for len in [1, 2, 40, 700, 8192, 100_000] {
                let plain = text(len, len as u64);
                let block = packed(framing, &plain);
                let mut dst = vec![0; len];
                assert_eq!(decoder.decompress(&block, &mut dst), Ok(len), "{framing:?} {len}");
                assert!(dst == plain, "{framing:?} {len}");
                for part in [0, 1, len / 2, len] {
                    let mut dst = vec![0; part];
                    assert_eq!(decoder.decompress_prefix(&block, &mut dst), Ok(part), "{framing:?} {len}");
                    assert!(dst == plain[..part]);
                }
                let mut short = vec![0; len - 1];
                assert!(decoder.decompress(&block, &mut short).is_err(), "{framing:?} {len}");
            }
        }
    }

    #[test]
    fn a_larger_room_gets_the_block_and_zeros_at_most() {
        for framing in FRAMINGS {
            let mut decoder = Unvendor::new(framing);
            for seed in 0..60 {
                let plain = text(3000 + seed as usize, seed);
                let block = packed(framing, &plain);
                let mut dst = vec![0xee; 8192];
                let len = decoder.decompress(&block, &mut dst).unwrap();
                assert!((plain.len()..plain.len() + 64).contains(&len), "{framing:?} {seed}: {len}");
                assert!(dst[..plain.len()] == plain && dst[plain.len()..len].iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn refuses_truncated_and_longer_blocks() {
        for framing in FRAMINGS {
            let mut decoder = Unvendor::new(framing);
            let plain = text(5000, 9);
            let block = packed(framing, &plain);
            for cut in [0, 1, 4, 12, 13, block.len() / 2, block.len() - 1] {
                let mut dst = vec![0; 8192];
                assert!(decoder.decompress(&block[..cut], &mut dst).is_err(), "{framing:?} {cut}");
            }
            let longer = [&block[..], &[7; 40]].concat();
            assert!(decoder.decompress(&longer, &mut vec![0; 5000]).is_err(), "{framing:?}");
        }
    }

    #[test]
    fn headers_that_no_encoder_writes_are_refused() {
        let block = packed(Framing::PbLcLp, b"some bytes of no length worth a mention");
        for (at, byte) in [(0, 5), (1, 9), (1, 4), (2, 2), (2, 5), (3, 0xfe)] {
            let mut wrong = block.clone();
            wrong[at] = byte;
            let mut dst = [0; 39];
            let outcome = Unvendor::new(Framing::PbLcLp).decompress(&wrong, &mut dst);
            // Other figures that are in range are other probabilities.
            let same = outcome == Ok(39) && dst == *b"some bytes of no length worth a mention";
            assert!(!same, "{at} {byte}");
        }
        for byte in [225, 0x78, 0xff] {
            let wrong = [&[byte, 0, 0, 1, 0][..], &block[4..]].concat();
            let outcome = Unvendor::new(Framing::Props).decompress(&wrong, &mut [0; 39]);
            assert_eq!(outcome, Err(NO_HEADER));
        }
    }

    #[test]
    fn sqlzma_takes_both_kinds_of_blocks() {
        let plain = text(4000, 4);
        let mut decoder = Unsqlzma::new();
        let mut zlib = vec![0; 8000];
        let len = crate::coders::Coders::encoder(&crate::ZlibSettings::default())
            .compress(&plain, &mut zlib)
            .unwrap()
            .unwrap();
        for block in [packed(Framing::Alone, &plain), zlib[..len].to_vec()] {
            let mut dst = vec![0; 4000];
            assert_eq!(decoder.decompress(&block, &mut dst), Ok(4000));
            assert!(dst == plain);
        }
    }
}
