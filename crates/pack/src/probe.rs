//! Whether a block is worth a slow encoder: told by its values first, and where those leave it
//! open, by a fast encoder.
//!
//! Pictures, music and what is scrambled have values that are not quite even, and yet nothing comes
//! off them. A slow encoder takes a hundred times as long to find that out as a fast one, which
//! finds hardly less where anything is to be found.

use crate::effort::Effort;
use crate::gain::Gain;
use crate::noise::{self, Look};
use packfs_codec::CodecSettings;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};

/// A block of which the fast encoder takes less than one part in so many is not worth a slow one.
const LEAST_PART: usize = 50;

/// One worker's fast encoder.
pub(crate) struct Probe {
    gain: Gain,
    /// `None`: the encoder itself is as fast.
    fast: Option<Box<dyn Encoder>>,
    scratch: Vec<u8>,
}

impl Probe {
    /// For blocks that such an encoder is to compress.
    pub(crate) fn new(codec: Option<&CodecSettings>, effort: Effort, gain: Gain) -> Result<Self> {
        let is_slow = effort == Effort::Max || codec.is_some_and(CodecSettings::is_slow);
        let is_asked = gain != Gain::ANY && is_slow;
        let fast = is_asked
            .then(|| packfs_codec::encoder(&CodecSettings::PROBE).map_err(Error::usage))
            .transpose()?;
        Ok(Probe { gain, fast, scratch: Vec::new() })
    }

    /// Whether to try the encoder.
    pub(crate) fn is_worth_trying(&mut self, raw: &[u8]) -> Result<bool> {
        if self.gain == Gain::ANY {
            return Ok(true);
        }
        match (noise::look(raw), &mut self.fast) {
            (Look::Noise, _) => Ok(false),
            (Look::Open, Some(fast)) => {
                self.scratch.resize(raw.len() - raw.len() / LEAST_PART, 0);
                Ok(fast.compress(raw, &mut self.scratch).map_err(Error::failed)?.is_some())
            }
            (Look::Open | Look::Uneven, _) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::ZstdSettings;
    use packfs_testkit::Random;

    const SLOW: CodecSettings = CodecSettings::Zstd(ZstdSettings { level: 15, window_log_max: None });

    /// Bytes that are not quite even, and in no order: two in five are drawn from half of all
    /// values.
    fn scrambled(len: usize) -> Vec<u8> {
        let bytes = Random::new(5).noise(2 * len);
        bytes.chunks(2).map(|pair| if pair[1] < 105 { pair[0] & 0x7f } else { pair[0] }).collect()
    }

    #[test]
    fn what_a_fast_encoder_finds_nothing_in_is_left_to_it() {
        let block = scrambled(128 << 10);
        assert_eq!(noise::look(&block), Look::Open);
        let mut probe = Probe::new(Some(&SLOW), Effort::Level, Gain::default()).unwrap();
        let worth = probe.is_worth_trying(&block).unwrap();
        let mut room = vec![0; block.len()];
        let mut slow = packfs_codec::encoder(&SLOW).unwrap();
        let gained =
            slow.compress(&block, &mut room).unwrap().is_some_and(|len| len <= block.len() * 97 / 100);
        assert_eq!(worth, gained, "the fast encoder is to foresee the slow one here");
        assert!(probe.is_worth_trying(&Random::new(1).text(128 << 10)).unwrap());
    }

    #[test]
    fn who_wants_every_byte_or_is_fast_tries_for_himself() {
        let block = scrambled(128 << 10);
        let every_byte = Probe::new(Some(&SLOW), Effort::Level, Gain::ANY).unwrap().is_worth_trying(&block);
        assert!(every_byte.unwrap());
        let mut fast = Probe::new(Some(&CodecSettings::PROBE), Effort::Level, Gain::default()).unwrap();
        assert!(fast.is_worth_trying(&block).unwrap());
        assert!(!fast.is_worth_trying(&Random::new(2).noise(128 << 10)).unwrap());
    }
}
