//! Copies of a known length.

use std::io::{self, Read, Write};

/// Copies exactly `len` bytes.
///
/// Errors: those of reading and writing; `UnexpectedEof` if the source ends first.
pub fn copy_exactly(from: &mut impl Read, to: &mut impl Write, len: u64) -> io::Result<()> {
    match io::copy(&mut from.take(len), to)? {
        copied if copied == len => Ok(()),
        copied => {
            let fault = format!("the source ends after {copied} of {len} bytes");
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, fault))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_or_an_error() {
        let mut copy = Vec::new();
        copy_exactly(&mut &b"abcd"[..], &mut copy, 3).unwrap();
        assert_eq!(copy, b"abc");
        let error = copy_exactly(&mut &b"ab"[..], &mut copy, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
