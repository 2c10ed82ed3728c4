//! Encoder of MicroLZMA blocks, described at the decoder in [`crate::lzma`].

use super::ffi::{Outcome, Parameters, Stream};
use super::{PROPERTIES, dict_len_for, encode_error};
use crate::lzma::decode::{Properties, RangeDecoder, State, Window};
use crate::lzma::settings::LZMA_DICT_LEN_MIN;
use crate::{EncodeError, Encoder, Fit, FitEncoder};

/// Shortest destination that the encoder accepts: properties and the five bytes of an empty stream.
const DST_LEN_MIN: usize = 6;

/// Maximum ratio of dictionary to output. Few outputs contain more input, and the encoder clears
/// tables of the length of the dictionary for each of them.
const DICT_FACTOR: usize = 8;

pub(crate) struct Micro {
    stream: Stream,
    parameters: Option<Parameters>,
    dict_len: u32,
    /// Tried in addition to those of the parameters.
    properties: &'static [(u32, u32, u32)],
    other: Vec<u8>,
    shortener: Shortener,
}

/// Decodes a block and ends it within less space.
struct Shortener {
    state: State,
    plain: Vec<u8>,
    stream: Vec<u8>,
}

impl Shortener {
    /// Shortens `whole`, a block that decodes to `plain_len` bytes. A range coder writes from front
    /// to back without look-ahead, so any symbol can become the last one if the stream is
    /// terminated after it.
    fn shorten(&mut self, whole: &[u8], plain_len: usize, dst: &mut [u8]) -> Option<Fit> {
        let (&properties, stream) = whole.split_first()?;
        self.state.reset(Properties::new(!properties)?);
        let mut rc = RangeDecoder::without_zero(&stream[..stream.len().min(dst.len() - 1)]).ok()?;
        self.plain.resize(plain_len, 0);
        let mut window =
            Window { dst: &mut self.plain, len: 0, limit: plain_len, dict_len: usize::MAX, cut: false };
        self.state.decode_within(&mut rc, &mut window).ok()?;
        let consumed = window.len;
        rc.ended_here(&mut self.stream)?;
        let written = 1 + self.stream.len();
        dst[0] = properties;
        dst[1..written].copy_from_slice(&self.stream);
        (consumed > 0).then_some(Fit { consumed, written })
    }
}

impl Micro {
    /// `preset` is 0 to 9, `dict_len` at least [`LZMA_DICT_LEN_MIN`].
    pub(crate) fn new(preset: u8, extreme: bool, dict_len: u32) -> Micro {
        let shortener = Shortener { state: State::new(), plain: Vec::new(), stream: Vec::new() };
        let parameters = Parameters::new(preset, extreme, dict_len);
        Micro { stream: Stream::new(), parameters, dict_len, properties: &[], other: Vec::new(), shortener }
    }

    /// The slowest form: tries several properties for each block, and keeps the ones with the most
    /// input.
    pub(crate) fn thorough(dict_len: u32) -> Micro {
        let parameters = Parameters::thorough(dict_len);
        Micro { parameters, properties: &PROPERTIES[1..], ..Micro::new(9, true, dict_len) }
    }

    fn encode(&mut self, mut parameters: Parameters, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        self.stream.start_micro_encoder(&mut parameters).map_err(encode_error)?;
        let run = self.stream.run(src, dst);
        match run.outcome {
            Outcome::End if run.src_len == 0 => Ok(Fit::default()),
            Outcome::End => Ok(Fit { consumed: run.src_len, written: run.dst_len }),
            outcome => Err(encode_error(outcome)),
        }
    }
}

impl Encoder for Micro {
    fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let fit = self.compress_to_fit(src, dst)?;
        Ok((fit.written > 0 && fit.consumed == src.len()).then_some(fit.written))
    }
}

impl FitEncoder for Micro {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if dst.len() < DST_LEN_MIN {
            return Ok(Fit::default());
        }
        let parameters = self.parameters.ok_or(encode_error(Outcome::Options))?;
        let used = src.len().min(dst.len().saturating_mul(DICT_FACTOR));
        let parameters = parameters.with_dict_len(dict_len_for(used, LZMA_DICT_LEN_MIN, self.dict_len));
        let mut best = self.encode(parameters, src, dst)?;
        let mut other = std::mem::take(&mut self.other);
        for &properties in self.properties {
            other.resize(dst.len(), 0);
            let fit = self.encode(parameters.with_properties(properties), src, &mut other)?;
            // More input, or else less output.
            if (fit.consumed, best.written) > (best.consumed, fit.written) {
                dst[..fit.written].copy_from_slice(&other[..fit.written]);
                best = fit;
            }
        }
        self.other = other;
        Ok(best)
    }

    fn shorten(&mut self, src: &[u8], whole: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        if dst.len() < DST_LEN_MIN {
            return Ok(Fit::default());
        }
        match self.shortener.shorten(whole, src.len(), dst) {
            Some(fit) => Ok(fit),
            None => self.compress_to_fit(src, dst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;
    use crate::lzma::micro::Unmicro;

    /// Decodes a block to `plain_len` bytes with liblzma; None if that refuses it.
    fn reference(src: &[u8], plain_len: usize, exact: bool) -> Option<Vec<u8>> {
        let mut stream = Stream::new();
        stream.start_micro_decoder(src.len() as u64, plain_len as u64, exact, 1 << 20).unwrap();
        let mut dst = vec![0; plain_len];
        let run = stream.run(src, &mut dst);
        (run.outcome == Outcome::End && run.dst_len == plain_len).then_some(dst)
    }

    #[test]
    fn damage_is_taken_where_liblzma_takes_it() {
        let mut state = 1u64;
        let mut below = move |bound: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        let mut taken = 0;
        for len in [1, 50, 500, 4000, 9000] {
            let plain: Vec<u8> =
                (0..len).map(|at| if at % 7 < 4 { b'a' + below(6) as u8 } else { b'z' }).collect();
            let mut packed = vec![0; len * 2 + 20];
            let packed_len = Micro::new(6, false, 1 << 16).compress(&plain, &mut packed).unwrap().unwrap();
            packed.truncate(packed_len);
            let mut decoder = Unmicro::new();
            for round in 0..1500 {
                let mut damaged = packed.clone();
                if round > 0 {
                    let bit = below(packed.len() * 8);
                    damaged[bit / 8] ^= 1 << (bit % 8);
                    damaged.truncate(packed.len() - below(2) * below(3).min(packed.len() - 1));
                }
                let exact = below(3) > 0;
                let plain_len = if exact { len } else { 1 + below(len) };
                let mut dst = vec![0; plain_len];
                let found = if exact {
                    decoder.decompress(&damaged, &mut dst)
                } else {
                    decoder.decompress_prefix(&damaged, &mut dst)
                };
                let found = found.is_ok().then_some(dst);
                assert!(
                    found == reference(&damaged, plain_len, exact),
                    "{len}, round {round}, exact {exact}"
                );
                assert!(round > 0 || found.is_some());
                taken += usize::from(found.is_some());
            }
        }
        assert!(taken > 500, "{taken}");
    }
}
