//! Memory as direct I/O wants it: from a multiple of a page on.

/// Alignment that suits every block length.
const ALIGNMENT: usize = 4096;

/// Bytes that begin at a multiple of a page.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGNMENT];
        let start =
            Some(bytes.as_ptr().align_offset(ALIGNMENT)).filter(|&start| start < ALIGNMENT).unwrap_or(0);
        Aligned { bytes, start, len }
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
