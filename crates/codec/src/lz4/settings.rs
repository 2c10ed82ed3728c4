//! The two codecs of LZ4: `lz4`, the fast encoder, and `lz4hc`, the dense one.

use std::fmt;

use super::LZ4HC;
use crate::codec::{MIB, Settings};
use crate::dictionary::Dictionary;
use crate::options::{Options, in_range};
use crate::{Algorithm, SettingsError};

pub(super) const LEVEL_MAX: u8 = 12;

/// Distances are 16 bits.
const REACH: u32 = 64 << 10;

/// Settings of LZ4's fast encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lz4Settings {
    /// 1 (default) to 65,537: higher is faster and larger.
    pub acceleration: u32,
}

impl Settings for Lz4Settings {
    fn parse(options: &mut Options<'_>) -> Result<Lz4Settings, SettingsError> {
        Ok(Lz4Settings { acceleration: options.number("acceleration", "1 to 65537")?.unwrap_or(1) })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        match self.acceleration {
            1 => f.write_str("lz4"),
            acceleration => write!(f, "lz4,acceleration={acceleration}"),
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        in_range("lz4 acceleration", self.acceleration, 1..=65_537)
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Lz4
    }

    fn reach(&self) -> Option<u32> {
        Some(REACH)
    }

    fn is_slow(&self) -> bool {
        false
    }

    fn memory(&self, _: u64) -> u64 {
        MIB
    }
}

/// Settings of LZ4's high compression encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lz4HcSettings {
    /// 0 to 12; 0 is the library's own choice, 9.
    pub level: u8,
}

impl Settings for Lz4HcSettings {
    fn parse(options: &mut Options<'_>) -> Result<Lz4HcSettings, SettingsError> {
        Ok(Lz4HcSettings { level: options.small_level() })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, _: Dictionary) -> fmt::Result {
        write!(f, "lz4hc:{}", self.level)
    }

    fn check(&self) -> Result<(), SettingsError> {
        LZ4HC.check_level(self.level.into())
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Lz4
    }

    fn reach(&self) -> Option<u32> {
        Some(REACH)
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn memory(&self, _: u64) -> u64 {
        4 * MIB
    }
}
