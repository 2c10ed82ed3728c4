//! Decides if a slow encoder is worth trying on a block: by the distribution of its values, and if
//! that is unclear, by a fast encoder.
//!
//! Images, audio and encrypted data have slightly uneven values and are incompressible all the
//! same. A slow encoder takes a hundred times as long to find that out as a fast one.

use crate::effort::Effort;
use crate::gain::Gain;
use crate::noise::{self, Estimate};
use packfs_codec::CodecSettings;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};

/// A block of which the fast encoder saves less than 1 / `LEAST_PART` is not tried with the slow
/// one.
const LEAST_PART: usize = 50;

pub(crate) struct Probe {
    gain: Gain,
    /// `None` if the encoder itself is as fast.
    fast: Option<Box<dyn Encoder>>,
    scratch: Vec<u8>,
}

impl Probe {
    pub(crate) fn new(codec: Option<&CodecSettings>, effort: Effort, gain: Gain) -> Result<Self> {
        let is_slow = effort == Effort::Max || codec.is_some_and(CodecSettings::is_slow);
        let is_asked = gain != Gain::ANY && is_slow;
        let fast = is_asked
            .then(|| packfs_codec::encoder(&CodecSettings::PROBE).map_err(Error::usage))
            .transpose()?;
        Ok(Probe { gain, fast, scratch: Vec::new() })
    }

    pub(crate) fn is_worth_trying(&mut self, raw: &[u8]) -> Result<bool> {
        if self.gain == Gain::ANY {
            return Ok(true);
        }
        match (noise::estimate(raw), &mut self.fast) {
            (Estimate::Noise, _) => Ok(false),
            (Estimate::Open, Some(fast)) => {
                self.scratch.resize(raw.len() - raw.len() / LEAST_PART, 0);
                Ok(fast.compress(raw, &mut self.scratch).map_err(Error::failed)?.is_some())
            }
            (Estimate::Open | Estimate::Uneven, _) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::ZstdSettings;
    use packfs_testkit::Random;

    const SLOW: CodecSettings = CodecSettings::Zstd(ZstdSettings { level: 15, window_log_max: None });

    /// Returns random bytes with slightly uneven values: two in five are drawn from half of all
    /// values.
    fn scrambled(len: usize) -> Vec<u8> {
        let bytes = Random::new(5).noise(2 * len);
        bytes.chunks(2).map(|pair| if pair[1] < 105 { pair[0] & 0x7f } else { pair[0] }).collect()
    }

    #[test]
    fn skips_the_slow_encoder_if_the_fast_one_saves_nothing() {
        let block = scrambled(128 << 10);
        assert_eq!(noise::estimate(&block), Estimate::Open);
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
    fn always_tries_with_minimal_gain_or_a_fast_codec() {
        let block = scrambled(128 << 10);
        let every_byte = Probe::new(Some(&SLOW), Effort::Level, Gain::ANY).unwrap().is_worth_trying(&block);
        assert!(every_byte.unwrap());
        let mut fast = Probe::new(Some(&CodecSettings::PROBE), Effort::Level, Gain::default()).unwrap();
        assert!(fast.is_worth_trying(&block).unwrap());
        assert!(!fast.is_worth_trying(&Random::new(2).noise(128 << 10)).unwrap());
    }
}
