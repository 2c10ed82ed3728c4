//! The codec `lzo`.

use std::fmt;

use super::sectors::Sectors;
use super::{Compressor, Decompressor};
use crate::codec::{Codec, Decoding, MIB, Settings};
use crate::coders::Coders;
use crate::dictionary::Dictionary;
use crate::options::{Options, name_in};
use crate::{Algorithm, Encoder, SettingsError};

pub(crate) static LZO: Codec = Codec {
    name: "lzo",
    algorithms: &[Algorithm::Lzo],
    levels: Some(1..=9),
    default_level: Some(8),
    options: "variant=1|1_11|1_12|1_15|999 (levels are for 999)",
    description: "LZO1X; reads fast on slow processors",
    for_size: "lzo:9",
    for_build: "lzo,variant=1",
    decoding: &[
        Decoding::new(Algorithm::Lzo, || Box::new(Decompressor)),
        Decoding::new(Algorithm::BtrfsLzo, || Box::new(Sectors)),
    ],
};

/// Settings of LZO1X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LzoSettings {
    /// The encoder's variant.
    pub variant: LzoVariant,
    /// 1 to 9 for [`LzoVariant::X999`]; ignored by the others.
    pub level: u8,
}

/// Variants of the LZO1X encoder; every one decodes with the same decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LzoVariant {
    /// Fastest, least memory (`lzo1x_1_11`).
    X1_11,
    /// `lzo1x_1_12`.
    X1_12,
    /// `lzo1x_1_15`.
    X1_15,
    /// The usual fast encoder (`lzo1x_1`).
    X1,
    /// The slow, dense encoder (`lzo1x_999`).
    X999,
}

/// Names of variants, the short one first; the long ones are those of mksquashfs.
const VARIANTS: [(&str, LzoVariant); 10] = [
    ("1", LzoVariant::X1),
    ("1_11", LzoVariant::X1_11),
    ("1_12", LzoVariant::X1_12),
    ("1_15", LzoVariant::X1_15),
    ("999", LzoVariant::X999),
    ("lzo1x_1", LzoVariant::X1),
    ("lzo1x_1_11", LzoVariant::X1_11),
    ("lzo1x_1_12", LzoVariant::X1_12),
    ("lzo1x_1_15", LzoVariant::X1_15),
    ("lzo1x_999", LzoVariant::X999),
];

impl Settings for LzoSettings {
    fn parse(options: &mut Options<'_>) -> Result<LzoSettings, SettingsError> {
        let variant = options.name("variant", &VARIANTS)?.unwrap_or(LzoVariant::X999);
        match options.typed_level() {
            Some(level) if variant != LzoVariant::X999 => {
                Err(SettingsError::new("lzo level", level, "no level")
                    .with_hint("only variant 999 has levels"))
            }
            _ => Ok(LzoSettings { variant, level: options.small_level() }),
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        match self.variant {
            LzoVariant::X999 => write!(f, "lzo:{}", self.level),
            variant => write!(f, "lzo,variant={}", name_in(&VARIANTS, variant)),
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        match self.variant {
            LzoVariant::X999 => LZO.check_level(self.level.into()),
            _ => Ok(()),
        }
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Lzo
    }

    fn reach(&self) -> Option<u32> {
        Some(48 << 10)
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn memory(&self, _: u64) -> u64 {
        MIB
    }
}

impl Coders for LzoSettings {
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Compressor::new(self.variant, self.level))
    }

    fn thorough_encoder(&self) -> Box<dyn Encoder> {
        Box::new(Compressor::new(LzoVariant::X999, 9))
    }
}
