//! GUIDs, whose first three numbers are little-endian.

/// Returns the bytes of a GUID as stored by VHDX, from the numbers of its text.
pub(crate) const fn guid(a: u32, b: u16, c: u16, rest: [u8; 8]) -> [u8; 16] {
    let ([a, b1, c1, d], [e, f], [g, h]) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
    let [i, j, k, l, m, n, o, p] = rest;
    [a, b1, c1, d, e, f, g, h, i, j, k, l, m, n, o, p]
}
