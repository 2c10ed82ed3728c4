//! Figures in bytes. Those that lie outside of the bytes are 0: callers check lengths first.

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Returns a byte.
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    u8::from_le_bytes(array_at(bytes, at))
}

/// Returns a little-endian figure of 16 bits.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// Returns a little-endian figure of 32 bits.
pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Returns a little-endian figure of 64 bits.
pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Returns a big-endian figure of 16 bits.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array_at(bytes, at))
}

/// Returns a big-endian figure of 32 bits.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

/// Returns a big-endian figure of 64 bits.
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

/// Joins the halves of a figure.
pub(crate) fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns the bytes of a field.
pub(crate) fn field(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    bytes.get(at..at.saturating_add(len)).unwrap_or_default()
}

/// Puts bytes in place of others, if those reach so far.
pub(crate) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(old) = bytes.get_mut(at..at.saturating_add(new.len())) {
        old.copy_from_slice(new);
    }
}
