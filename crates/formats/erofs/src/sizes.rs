//! Sizes as users type and read them.

/// Reads `131072`, `128K`, `1M` or `2G`.
pub(crate) fn len(value: &str) -> Option<u64> {
    let shift = match value.as_bytes().last()? {
        b'K' | b'k' => 10,
        b'M' | b'm' => 20,
        b'G' | b'g' => 30,
        _ => 0,
    };
    let digits = value.strip_suffix(['K', 'k', 'M', 'm', 'G', 'g']).unwrap_or(value);
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

/// Reads a length below 4 GiB; otherwise as [`len`].
pub(crate) fn len_32(value: &str) -> Option<u32> {
    len(value).and_then(|len| u32::try_from(len).ok())
}

/// The shortest of `4096`, `64K` and `1M`.
pub(crate) fn display_len(len: u32) -> String {
    match len {
        len if len >= 1 << 20 && len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        len if len >= 1 << 10 && len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        len => len.to_string(),
    }
}
