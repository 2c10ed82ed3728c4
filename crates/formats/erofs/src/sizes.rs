//! Sizes on the command line and in messages.

use packfs_core::parse_size;

pub(crate) fn len(value: &str) -> Option<u64> {
    parse_size(value).ok()
}

/// Parses a length below 4 GiB; otherwise as [`len`].
pub(crate) fn len_32(value: &str) -> Option<u32> {
    len(value).and_then(|len| u32::try_from(len).ok())
}

/// Returns the shortest form, such as `4096`, `64K`, or `1M`.
pub(crate) fn display_len(len: u32) -> String {
    match len {
        len if len >= 1 << 20 && len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        len if len >= 1 << 10 && len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        len => len.to_string(),
    }
}
