//! Bytes of metadata by place: windows of the address space, kept for a while, so that inodes and names that lie together
//! are read together.
//!
//! Owns a bounded cache of windows. Knows no structure; whoever reads says what it reads for messages.

use crate::corruption::{Corruption, Place};
use crate::reader::Reader;
use packfs_core::Result;
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a window.
const WINDOW_LEN: u64 = 16 << 10;
/// 256 windows of 16 KiB make 4 MiB.
const WINDOW_COUNT: u64 = 256;

type Slot = Option<(u64, Arc<Vec<u8>>)>;

/// Windows by number; each has one slot that it shares with others.
pub(crate) struct Windows(Vec<Mutex<Slot>>);

impl Default for Windows {
    fn default() -> Self {
        Windows((0..WINDOW_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl Windows {
    fn slot(&self, number: u64) -> Option<&Mutex<Slot>> {
        self.0.get((number % WINDOW_COUNT) as usize)
    }

    fn get(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let slot = self.slot(number)?.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().filter(|(found, _)| *found == number).map(|(_, bytes)| Arc::clone(bytes))
    }

    fn put(&self, number: u64, bytes: &Arc<Vec<u8>>) {
        if let Some(slot) = self.slot(number) {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, Arc::clone(bytes)));
        }
    }
}

impl Reader {
    /// The window that holds `at`, and where it starts. It may end early, at the end of what there is.
    pub(crate) fn window(&self, at: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let number = at / WINDOW_LEN;
        let start = number * WINDOW_LEN;
        if let Some(bytes) = self.windows.get(number) {
            return Ok((start, bytes));
        }
        let mut bytes = vec![0; WINDOW_LEN as usize];
        let len = self.read_space(start, &mut bytes)?;
        bytes.truncate(len);
        let bytes = Arc::new(bytes);
        self.windows.put(number, &bytes);
        Ok((start, bytes))
    }

    /// Fills `out` from a place of the address space.
    ///
    /// Errors: `Corrupt` if there are not so many bytes.
    pub(crate) fn read_metadata(&self, at: u64, out: &mut [u8], place: Place) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let from = at.saturating_add(done as u64);
            let (start, window) = self.window(from)?;
            let rest = window.get((from - start) as usize..).unwrap_or_default();
            let len = rest.len().min(out.len() - done);
            let (Some(source), Some(target)) = (rest.get(..len), out.get_mut(done..done + len)) else {
                break;
            };
            if len == 0 {
                let (len, end) = (out.len() as u64, self.space_end());
                return Err(Corruption::Outside { place, what: "the image", start: at, len, end }.into());
            }
            target.copy_from_slice(source);
            done += len;
        }
        Ok(())
    }

    /// Reads one structure.
    pub(crate) fn read_struct<T: FromBytes + IntoBytes>(&self, at: u64, place: Place) -> Result<T> {
        let mut value = T::new_zeroed();
        self.read_metadata(at, value.as_mut_bytes(), place)?;
        Ok(value)
    }
}
