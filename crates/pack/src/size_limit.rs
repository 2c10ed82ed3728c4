//! Limits of an image's length.

use packfs_core::{Error, Result};

/// Greatest length of an image, and the treatment of a longer one. By default, its destination
/// limits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLimit {
    /// Most bytes from the start of the image to its end, padding included; `None` means only the
    /// destination limits it.
    pub max_size: Option<u64>,
    /// True to stop as soon as the image is longer; else packing continues without writing, to
    /// determine the length.
    pub stops_early: bool,
}

/// Offset of an image, and its greatest length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Bytes before the image in its file or on its device.
    pub base: u64,
    pub size_limit: SizeLimit,
    /// Upper bound of the length, estimated before packing.
    pub len_bound: u64,
}

impl Place {
    /// Returns true if the image may not fit on a device of `device_len` bytes.
    pub(crate) fn may_lack_room_on(&self, device_len: u64) -> bool {
        self.len_bound > self.len_max_on(device_len)
    }

    /// Returns the most bytes of the image on a device of `device_len` bytes.
    pub(crate) fn len_max_on(&self, device_len: u64) -> u64 {
        let rest = device_len.saturating_sub(self.base);
        self.size_limit.max_size.map_or(rest, |len_max| len_max.min(rest))
    }
}

/// Errors: `TooLarge` for an image longer than `len_max`; `name` is its destination.
pub(crate) fn check(len: u64, len_max: Option<u64>, name: &str, is_whole: bool) -> Result<()> {
    let Some(len_max) = len_max.filter(|&len_max| len > len_max) else { return Ok(()) };
    let least = if is_whole { "" } else { "at least " };
    let message =
        format!("cannot write {name}: the image has {least}{len} bytes, at most {len_max} are allowed");
    let error = Error::too_large(message).hint(format!("{name} is unchanged"));
    Err(error.hint("--fit tries denser codecs and larger blocks; --optimize size is the densest"))
}
