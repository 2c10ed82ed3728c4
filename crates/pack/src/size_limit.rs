use packfs_core::{Error, Result};
use std::fmt::Display;

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

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub base: u64,
    pub size_limit: SizeLimit,
    /// Upper bound of the length, estimated before packing.
    pub len_bound: u64,
}

impl Place {
    pub(crate) fn may_lack_room_on(&self, device_len: u64) -> bool {
        self.len_bound > self.len_max_on(device_len)
    }

    pub(crate) fn len_max_on(&self, device_len: u64) -> u64 {
        let rest = device_len.saturating_sub(self.base);
        self.size_limit.max_size.map_or(rest, |len_max| len_max.min(rest))
    }
}

/// Errors: `TooLarge`; `name` is the destination.
pub(crate) fn check(len: u64, len_max: Option<u64>, name: &str, is_whole: bool) -> Result<()> {
    let Some(len_max) = len_max.filter(|&len_max| len > len_max) else { return Ok(()) };
    let least = if is_whole { "" } else { "at least " };
    let message =
        format!("cannot write {name}: the image has {least}{len} bytes, at most {len_max} are allowed");
    let error = Error::too_large(message).hint(unwritten(name));
    Err(error.hint("--fit tries denser codecs and larger blocks; --optimize size is the densest"))
}

/// Returns the hint about an output that was refused before anything was written to it. It holds
/// for new files as well as for existing ones.
pub fn unwritten(name: impl Display) -> String {
    format!("nothing was written to {name}")
}
