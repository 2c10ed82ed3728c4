//! Lengths of LZMA dictionaries: as given, as permitted by a format, and as representable in
//! headers.

use std::fmt;

use crate::SettingsError;

/// Largest dictionary that a decoder accepts, in bytes. Blocks gain nothing from a dictionary above
/// their own length, which no format lets grow anywhere near this.
pub const DICT_LEN_MAX: u32 = 64 << 20;

/// Dictionary that every codec and block length permits, for settings whose format is not known
/// yet.
pub(crate) const PROVISIONAL_DICT_LEN: u32 = 1 << 17;

/// Bounds that a format sets for dictionaries. A codec's own minimum has priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictLens {
    /// Default length in bytes, and base of percentages.
    pub usual: u32,
    /// Maximum length in bytes.
    pub max: u32,
}

impl DictLens {
    /// Returns the bounds for blocks that decode to at most `block_len` bytes: a dictionary never
    /// reaches further.
    pub fn of_block(block_len: u32) -> DictLens {
        DictLens { usual: block_len, max: block_len }
    }
}

/// A dictionary as given. Displays as an option that follows others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dictionary {
    /// The format's default length.
    Usual,
    Bytes(u32),
    /// Percentage of the default length, but at least the codec's minimum.
    PercentOfUsual(u8),
}

impl Dictionary {
    /// Parses `BYTES`, `NK`, `NM`, or `N%` of the format's default length.
    pub(crate) fn parse(what: &str, text: &str) -> Result<Dictionary, SettingsError> {
        let allowed = "a length such as 131072, 128K or 1M, or 1% to 100%";
        let refused = || SettingsError::new(what, format!("`{text}`"), allowed);
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Dictionary::PercentOfUsual).ok_or_else(refused);
        }
        let (digits, unit) = match text.strip_suffix(['K', 'k']) {
            Some(digits) => (digits, 1 << 10),
            None => match text.strip_suffix(['M', 'm']) {
                Some(digits) => (digits, 1 << 20),
                None => (text, 1u32),
            },
        };
        let count: u32 = digits.parse().map_err(|_| refused())?;
        count.checked_mul(unit).map(Dictionary::Bytes).ok_or_else(refused)
    }

    /// Returns the length for a format, and a codec with this name and minimum.
    pub(crate) fn resolve(
        self,
        codec: &str,
        lens: DictLens,
        dict_len_min: u32,
    ) -> Result<u32, SettingsError> {
        let usual = lens.usual.max(dict_len_min);
        let dict_len = match self {
            Dictionary::Usual => return Ok(usual),
            Dictionary::Bytes(dict_len) => dict_len,
            Dictionary::PercentOfUsual(percent) => {
                let share = u64::from(lens.usual) * u64::from(percent) / 100;
                u32::try_from(share).unwrap_or(u32::MAX).max(dict_len_min)
            }
        };
        let dict_len_max = lens.max.max(usual);
        if dict_len > dict_len_max {
            let allowed = format!("at most {}", display_len(dict_len_max));
            return Err(SettingsError::new(format!("{codec} dictionary"), display_len(dict_len), allowed)
                .with_hint("more than a block, or than the format knows, is of no use"));
        }
        Ok(dict_len)
    }
}

impl fmt::Display for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Dictionary::Usual => Ok(()),
            Dictionary::Bytes(dict_len) => write!(f, ",dict={}", display_len(dict_len)),
            Dictionary::PercentOfUsual(percent) => write!(f, ",dict={percent}%"),
        }
    }
}

/// Errors: a dictionary that headers cannot represent, or decoders do not accept.
pub(crate) fn check_dict_len(codec: &str, dict_len: u32, dict_len_min: u32) -> Result<(), SettingsError> {
    if is_dict_len(dict_len) && (dict_len_min..=DICT_LEN_MAX).contains(&dict_len) {
        return Ok(());
    }
    let allowed = format!(
        "2^n or 2^n + 2^(n-1) bytes from {} to {}",
        display_len(dict_len_min),
        display_len(DICT_LEN_MAX)
    );
    Err(SettingsError::new(format!("{codec} dictionary"), display_len(dict_len), allowed))
}

/// True if the headers of xz and strict `.lzma` readers can represent the length: 2^n or 2^n +
/// 2^(n-1).
fn is_dict_len(dict_len: u32) -> bool {
    let high_bit = 1u32.checked_shl(31 - dict_len.leading_zeros().min(31)).unwrap_or(0);
    dict_len != 0 && (dict_len == high_bit || dict_len == high_bit | high_bit >> 1)
}

/// Prints a length with the largest unit that leaves no remainder: `1M`, `96K`, `1000`.
fn display_len(len: u32) -> String {
    match len {
        0 => "0".into(),
        _ if len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        _ if len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        _ => len.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_lengths_are_a_power_of_two_or_one_and_a_half_of_it() {
        for dict_len in [1, 2, 3, 4096, 6144, 8192, 12288, 1 << 20, 3 << 19, 1 << 31, 3 << 30] {
            assert!(is_dict_len(dict_len), "{dict_len}");
        }
        for dict_len in [0, 5, 7, 10240, 100_000, 5 << 18, u32::MAX] {
            assert!(!is_dict_len(dict_len), "{dict_len}");
        }
    }
}
