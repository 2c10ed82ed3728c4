//! Coders of XZ: encoders by liblzma, a decoder of our own.

mod branch;
mod check;
mod container;
mod lzma2;
mod unfilter;

use crate::{BranchFilter, BranchSet};

use crate::lzma::coders::ffi::{Outcome, Parameters, Stream};
use crate::lzma::coders::{PROPERTIES, dict_len_for, encode, encode_error};
use crate::smallest::Smallest;
use crate::{DecodeError, Decoder, EncodeError, Encoder};

use super::XzSettings;
use super::settings::XZ_DICT_LEN_MIN;
use crate::coders::Coders;

/// Encodes .xz blocks without filter and with each chosen one, keeping the smallest result.
struct Xz {
    stream: Stream,
    parameters: Option<Parameters>,
    dict_len: u32,
    filters: Vec<BranchFilter>,
    branches: Option<BranchSet>,
    /// Properties that are tried in addition to those of the parameters.
    properties: &'static [(u32, u32, u32)],
    smallest: Smallest,
}

impl Xz {
    /// `preset` is 0 to 9; headers must be able to represent `dict_len`.
    fn new(preset: u8, extreme: bool, dict_len: u32, filters: &[BranchFilter]) -> Xz {
        Xz {
            stream: Stream::new(),
            parameters: Parameters::new(preset, extreme, dict_len),
            dict_len,
            filters: filters.to_vec(),
            branches: None,
            properties: &[],
            smallest: Smallest::default(),
        }
    }

    /// The slowest form, with the properties that suit each block best.
    fn thorough(dict_len: u32, filters: &[BranchFilter]) -> Xz {
        let parameters = Parameters::thorough(dict_len);
        Xz { parameters, properties: &PROPERTIES[1..], ..Xz::new(9, true, dict_len, filters) }
    }
}

impl Encoder for Xz {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let parameters = self.parameters.ok_or(encode_error(Outcome::Options))?;
        let parameters = parameters.with_dict_len(dict_len_for(src.len(), XZ_DICT_LEN_MIN, self.dict_len));
        let mut round = self.smallest.begin(dst);
        let stream = &mut self.stream;
        let mut attempt = |mut parameters: Parameters, filter| {
            stream.start_xz_encoder(&mut parameters, filter).map_err(encode_error)?;
            round.attempt(|out| encode(stream, src, out))
        };
        attempt(parameters, None)?;
        let mut best_filter = None;
        let count = self.filters.len();
        for &filter in &self.filters {
            // A filter that converts nothing yields the unfiltered stream with a longer header.
            let suits = self.branches.is_none_or(|branches| branches.suits(filter, count));
            if suits && branch::may_convert(filter, src) && attempt(parameters, Some(filter))? {
                best_filter = Some(filter);
            }
        }
        for &properties in self.properties {
            attempt(parameters.with_properties(properties), best_filter)?;
        }
        Ok(round.finish())
    }

    fn expect_code(&mut self, branches: BranchSet) {
        self.branches = Some(branches);
    }
}

struct Unxz(container::Container);

impl Unxz {
    fn new() -> Unxz {
        Unxz(container::Container::new())
    }
}

impl Decoder for Unxz {
    fn decompress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.0.decode(src, dst)
    }

    fn decompress_prefix(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        self.0.decode_prefix(src, dst)
    }
}

pub(super) fn decoder() -> Box<dyn Decoder> {
    Box::new(Unxz::new())
}

impl Coders for XzSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Xz::new(self.preset, self.extreme, self.dict_len, &self.filters))
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        Box::new(Xz::thorough(self.dict_len, &self.filters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes with exactly this filter, whether it is worth it or not.
    fn with_filter(filter: Option<BranchFilter>, src: &[u8]) -> Vec<u8> {
        let mut stream = Stream::new();
        let mut parameters = Parameters::new(1, false, 1 << 17).unwrap();
        stream.start_xz_encoder(&mut parameters, filter).unwrap();
        let mut dst = vec![0; src.len() * 2 + 256];
        let len = encode(&mut stream, src, &mut dst).unwrap().unwrap();
        dst.truncate(len);
        dst
    }

    /// The LZMA2 stream: what follows the 12-byte stream header and the block header.
    fn lzma2(xz: &[u8]) -> &[u8] {
        let block = &xz[12..];
        &block[(usize::from(block[0]) + 1) * 4..]
    }

    #[test]
    fn a_filter_left_out_would_have_changed_nothing() {
        let mut passed = 0;
        let mut state = 1u64;
        for round in 0..400 {
            let src: Vec<u8> = (0..64 + round % 7)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 56) as u8
                })
                .collect();
            for filter in BranchFilter::ALL {
                if !branch::may_convert(filter, &src) {
                    passed += 1;
                    let (plain, filtered) = (with_filter(None, &src), with_filter(Some(filter), &src));
                    let data_len = src.len();
                    assert_eq!(lzma2(&plain)[..data_len], lzma2(&filtered)[..data_len], "{}", filter.name());
                    assert!(plain.len() <= filtered.len());
                }
            }
        }
        assert!(passed > 400, "only {passed} filters were left out");
    }

    #[test]
    fn every_filter_that_converts_is_tried() {
        let samples: [(BranchFilter, &[u8]); 8] = [
            (BranchFilter::X86, &[0xE8, 0x10, 0, 0, 0, 0, 0, 0]),
            (BranchFilter::PowerPc, &[0x48, 0, 0, 0x21]),
            (BranchFilter::Ia64, &[0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0x50]),
            (BranchFilter::Arm, &[0x10, 0, 0, 0xEB]),
            (BranchFilter::ArmThumb, &[0, 0xF0, 0x20, 0xF8]),
            (BranchFilter::Sparc, &[0x40, 0, 0, 0x20]),
            (BranchFilter::Arm64, &[0x10, 0, 0, 0x94]),
            (BranchFilter::RiscV, &[0xEF, 0x00, 0x00, 0x10]),
        ];
        for (filter, instruction) in samples {
            let mut src = vec![0; 64];
            src[32..32 + instruction.len()].copy_from_slice(instruction);
            assert!(branch::may_convert(filter, &src), "{}", filter.name());
        }
    }
}
