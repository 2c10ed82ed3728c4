//! An image in any reader that can seek.

use crate::{Image, Result, ResultExt};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// Image in a reader with one position, such as a `std::io::Cursor` or a member of an archive:
/// threads wait for each other. For a file, [`crate::FileImage`] reads concurrently.
pub struct ReaderImage<R> {
    name: String,
    len: u64,
    reader: Mutex<R>,
}

impl<R: Read + Seek + Send> ReaderImage<R> {
    /// Wraps a reader from its start to its end, whatever its position; `name` appears in messages.
    ///
    /// Errors: `Io` if its end cannot be found.
    pub fn new(name: impl Into<String>, mut reader: R) -> Result<Self> {
        let name = name.into();
        let len = reader.seek(SeekFrom::End(0)).or_io(|| format!("cannot find the end of {name}"))?;
        Ok(ReaderImage { name, len, reader: Mutex::new(reader) })
    }
}

impl<R: Read + Seek + Send> Image for ReaderImage<R> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if offset >= self.len {
            return Ok(0);
        }
        let cannot = || format!("cannot read {} at {offset:#x}", self.name);
        // The position after a panic does not matter: every read begins with a seek.
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset)).or_io(cannot)?;
        let mut filled = 0;
        while filled < buf.len() {
            match reader.read(&mut buf[filled..]) {
                Ok(0) => break,
                Ok(len) => filled = filled.saturating_add(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).or_io(cannot),
            }
        }
        Ok(filled)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Cursor};

    #[test]
    fn reads_anywhere_up_to_its_end() {
        let mut cursor = Cursor::new(vec![1, 2, 3]);
        cursor.set_position(2);
        let image = ReaderImage::new("test", cursor).unwrap();
        let mut buf = [9; 4];
        assert_eq!((image.len(), image.name()), (3, "test".into()));
        assert_eq!(image.read_at(1, &mut buf).unwrap(), 2);
        assert_eq!(buf, [2, 3, 9, 9]);
        assert_eq!(image.read_at(0, &mut buf[..1]).unwrap(), 1);
        assert_eq!(buf[0], 1);
        assert_eq!(image.read_at(3, &mut buf).unwrap(), 0);
        assert_eq!(image.read_at(u64::MAX, &mut buf).unwrap(), 0);
    }

    /// Reads one byte at a time, interrupted in between, and fails at offset 5.
    struct Odd(u64, bool);

    impl Read for Odd {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.0 == 5 {
                return Err(io::Error::other("odd"));
            }
            buf[0] = self.0 as u8;
            self.0 += 1;
            Ok(1)
        }
    }

    impl Seek for Odd {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0 = match to {
                SeekFrom::Start(at) => at,
                _ => 8,
            };
            Ok(self.0)
        }
    }

    #[test]
    fn retries_short_reads_and_interruptions_and_reports_errors() {
        let image = ReaderImage::new("odd", Odd(0, false)).unwrap();
        let mut buf = [0; 5];
        image.read_exact_at(0, &mut buf).unwrap();
        assert_eq!(buf, [0, 1, 2, 3, 4]);
        let error = image.read_exact_at(4, &mut [0; 2]).unwrap_err();
        assert_eq!(error.to_string(), "cannot read odd at 0x4: odd");
    }
}
