//! The codec `xz`.

use std::fmt;

use super::XZ;
use crate::codec::Settings;
use crate::dictionary::{DictLens, Dictionary, PROVISIONAL_DICT_LEN, check_dict_len};
use crate::lzma::{encoder_memory, print_preset};
use crate::options::{Options, names, print_names};
use crate::{Algorithm, BranchFilter, SettingsError};

/// The smallest dictionary: readers prepare `max(block, 8 KiB)`, and mksquashfs writes none below
/// it.
pub(super) const XZ_DICT_LEN_MIN: u32 = 8192;

/// Settings of XZ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XzSettings {
    /// Preset 0 to 9.
    pub preset: u8,
    /// liblzma's "extreme" flag: slower variant of the preset.
    pub extreme: bool,
    /// Dictionary in bytes.
    pub dict_len: u32,
    /// Branch filters to try besides none, smallest result kept.
    pub filters: Vec<BranchFilter>,
}

impl Settings for XzSettings {
    fn parse(options: &mut Options<'_>) -> Result<XzSettings, SettingsError> {
        options.read_dictionary()?;
        Ok(XzSettings {
            preset: options.small_level(),
            extreme: options.flag("extreme")?,
            dict_len: PROVISIONAL_DICT_LEN,
            filters: options.value("bcj", parse_filters)?.unwrap_or_default(),
        })
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, dict: Dictionary) -> fmt::Result {
        print_preset(f, &XZ, self.preset, self.extreme)?;
        write!(f, "{dict}")?;
        match self.filters.strip_prefix(BranchFilter::OLD) {
            None => print_names(f, ",bcj=", self.filters.iter().map(|filter| filter.name())),
            Some(more) => {
                let more = more.iter().map(|filter| filter.name());
                print_names(f, ",bcj=", std::iter::once("auto").chain(more))
            }
        }
    }

    fn resolve(
        &mut self,
        _: &[Algorithm],
        dict: Dictionary,
        dict_lens: DictLens,
    ) -> Result<(), SettingsError> {
        self.dict_len = dict.resolve(XZ.name, dict_lens, XZ_DICT_LEN_MIN)?;
        Ok(())
    }

    fn check(&self) -> Result<(), SettingsError> {
        XZ.check_level(self.preset.into())?;
        check_dict_len(XZ.name, self.dict_len, XZ_DICT_LEN_MIN)
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::Xz
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn memory(&self, _: u64) -> u64 {
        encoder_memory(self.preset, self.extreme, self.dict_len)
    }
}

/// Parses filters: `auto` means all that every kernel decodes.
fn parse_filters(what: &str, text: &str) -> Result<Vec<BranchFilter>, SettingsError> {
    let known = BranchFilter::ALL.map(|filter| (filter.name(), filter));
    match text.strip_prefix("auto") {
        None => names(what, text, &known),
        Some("") => Ok(BranchFilter::OLD.to_vec()),
        Some(more) => {
            let more = names(what, more.strip_prefix('+').unwrap_or(more), &known)?;
            let new = more.into_iter().filter(|filter| !BranchFilter::OLD.contains(filter));
            Ok(BranchFilter::OLD.iter().copied().chain(new).collect())
        }
    }
}
