//! Sizes with units.

/// Parses `4096`, `128K`, `1M`, `2G`, `1MiB` or `0x1000`. Units are powers of 1024.
///
/// For value parsers of the command line, which add the name of the option to the message.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refuse = || "not a size; use 4096, 128K, 1M or 0x1000".to_owned();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|_| refuse());
    }
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(refuse()),
    };
    let number: u64 = digits.parse().map_err(|_| refuse())?;
    number.checked_mul(1 << shift).ok_or_else(refuse)
}
