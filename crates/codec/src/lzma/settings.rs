//! The codec `lzma`: LZMA1 in the two framings that formats write, and in those that are only read.

use std::fmt;

use super::{Framing, Unalone, Unmicro, Unsqlzma, Unvendor};
use crate::codec::{Codec, Decoding, MIB, Settings};
use crate::dictionary::{DictLens, Dictionary, PROVISIONAL_DICT_LEN, check_dict_len};
use crate::options::Options;
use crate::{Algorithm, SettingsError};

pub(crate) static LZMA: Codec = Codec {
    name: "lzma",
    algorithms: &[Algorithm::LzmaAlone, Algorithm::MicroLzma],
    levels: Some(0..=9),
    default_level: Some(5),
    options: "extreme, dict=SIZE|PERCENT%",
    description: "LZMA1; smallest in erofs; in squashfs only for old vendor kernels",
    for_size: "lzma:9,extreme",
    for_build: "lzma:1",
    decoding: &[
        Decoding::new(Algorithm::LzmaAlone, || Box::new(Unalone::new())),
        Decoding { tells_end: false, ..Decoding::new(Algorithm::MicroLzma, || Box::new(Unmicro::new())) },
        Decoding::new(Algorithm::LzmaProps, || Box::new(Unvendor::new(Framing::Props))),
        Decoding::new(Algorithm::LzmaLenProps, || Box::new(Unvendor::new(Framing::LenProps))),
        Decoding::new(Algorithm::LzmaPropsLen, || Box::new(Unvendor::new(Framing::PropsLen))),
        Decoding::new(Algorithm::LzmaPbLcLp, || Box::new(Unvendor::new(Framing::PbLcLp))),
        Decoding::new(Algorithm::LzmaBare, || Box::new(Unvendor::new(Framing::Bare))),
        Decoding::new(Algorithm::Sqlzma, || Box::new(Unsqlzma::new())),
    ],
};

/// `LZMA_DICT_SIZE_MIN`.
pub(super) const LZMA_DICT_LEN_MIN: u32 = 4096;

/// Settings of LZMA1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LzmaSettings {
    /// Framing of the stream.
    pub framing: LzmaFraming,
    /// Preset 0 to 9.
    pub preset: u8,
    /// liblzma's "extreme" flag: slower variant of the preset.
    pub extreme: bool,
    /// Dictionary in bytes.
    pub dict_len: u32,
}

/// Framings of LZMA1 that encoders write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LzmaFraming {
    /// [`Algorithm::LzmaAlone`].
    Alone,
    /// [`Algorithm::MicroLzma`].
    Micro,
}

/// Longest default dictionary of levels 0 to 6: an encoder needs twelve times as much memory.
const LOW_DICT_LEN_MAX: u32 = 2 << 20;

impl LzmaSettings {
    /// Returns the default dictionary of a level. Blocks of a fixed stored length may contain more
    /// input than usual, which only the highest level uses.
    fn usual_dict_len(&self, lens: DictLens) -> u32 {
        match (self.preset, self.extreme) {
            (..=6, false) => lens.usual.min(LOW_DICT_LEN_MAX),
            (9, true) => lens.usual.saturating_mul(2).min(lens.max),
            _ => lens.usual,
        }
    }
}

impl Settings for LzmaSettings {
    fn parse(options: &mut Options<'_>) -> Result<LzmaSettings, SettingsError> {
        options.read_dictionary()?;
        Ok(LzmaSettings {
            framing: LzmaFraming::Alone,
            preset: options.small_level(),
            extreme: options.flag("extreme")?,
            dict_len: PROVISIONAL_DICT_LEN,
        })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, dict: Dictionary) -> fmt::Result {
        print_preset(f, &LZMA, self.preset, self.extreme)?;
        write!(f, "{dict}")
    }

    fn resolve(
        &mut self,
        algorithms: &[Algorithm],
        dict: Dictionary,
        dict_lens: DictLens,
    ) -> Result<(), SettingsError> {
        self.framing =
            if algorithms.contains(&Algorithm::MicroLzma) { LzmaFraming::Micro } else { LzmaFraming::Alone };
        let dict_lens = match self.framing {
            LzmaFraming::Micro => DictLens { usual: self.usual_dict_len(dict_lens), ..dict_lens },
            LzmaFraming::Alone => dict_lens,
        };
        self.dict_len = dict.resolve(LZMA.name, dict_lens, LZMA_DICT_LEN_MIN)?;
        Ok(())
    }

    fn check(&self) -> Result<(), SettingsError> {
        LZMA.check_level(self.preset.into())?;
        check_dict_len(LZMA.name, self.dict_len, LZMA_DICT_LEN_MIN)
    }

    fn algorithm(&self) -> Algorithm {
        match self.framing {
            LzmaFraming::Alone => Algorithm::LzmaAlone,
            LzmaFraming::Micro => Algorithm::MicroLzma,
        }
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn memory(&self, _: u64) -> u64 {
        encoder_memory(self.preset, self.extreme, self.dict_len)
    }
}

pub(crate) fn print_preset(
    f: &mut fmt::Formatter<'_>,
    codec: &Codec,
    preset: u8,
    extreme: bool,
) -> fmt::Result {
    write!(f, "{}:{preset}{}", codec.name, if extreme { ",extreme" } else { "" })
}

/// Memory of liblzma's encoder: 7.5 (hash chains, presets 0 to 3) or 11.5 (binary trees) times the
/// dictionary, according to xz(1).
pub(crate) fn encoder_memory(preset: u8, extreme: bool, dict_len: u32) -> u64 {
    let dict_len = u64::from(dict_len);
    let tables = if preset <= 3 && !extreme { dict_len * 15 / 2 } else { dict_len * 23 / 2 };
    tables + 4 * MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_dictionaries_need_more_memory() {
        assert_eq!(encoder_memory(6, false, 8 << 20), 96 * MIB);
        assert!(encoder_memory(6, false, 1 << 20) < 16 * MIB);
    }
}
