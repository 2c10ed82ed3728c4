//! The length that an image may have.

use packfs_core::{Error, Result};

/// Most bytes of an image, and what happens to a longer one. The default takes what its place has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Most bytes from the start of the image to its end, padding included; `None`: no other limit
    /// than its place.
    pub len_max: Option<u64>,
    /// True if packing ends as soon as the image is longer; else it goes on without writing, to
    /// tell how long it would be.
    pub gives_up: bool,
}

/// Place of an image, and its greatest length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Bytes before it in its file or on its device.
    pub base: u64,
    pub room: Room,
    /// More than it can have, as far as that is known before it is made.
    pub len_bound: u64,
}

impl Place {
    /// True if the image may turn out too long for a device of so many bytes.
    pub(crate) fn may_lack_room_on(&self, device_len: u64) -> bool {
        self.len_bound > self.len_max_on(device_len)
    }

    /// Most bytes of the image on a device of so many.
    pub(crate) fn len_max_on(&self, device_len: u64) -> u64 {
        let rest = device_len.saturating_sub(self.base);
        self.room.len_max.map_or(rest, |len_max| len_max.min(rest))
    }
}

/// Errors: `TooLarge` for an image that is longer than it may be; `name` is where it was to go.
pub(crate) fn check(len: u64, len_max: Option<u64>, name: &str, is_whole: bool) -> Result<()> {
    let Some(len_max) = len_max.filter(|&len_max| len > len_max) else { return Ok(()) };
    let least = if is_whole { "" } else { "at least " };
    let message = format!("the image for {name} has {least}{len} bytes, at most {len_max} are allowed");
    let error = Error::too_large(message).hint(format!("{name} stays as it was"));
    Err(error.hint("--fit tries denser codecs and larger blocks; --optimize size is the densest"))
}
