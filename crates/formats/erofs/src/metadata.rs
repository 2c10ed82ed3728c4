//! Reads of metadata through cached windows of the address space, so that adjacent inodes and names
//! are read together.
//!
//! Owns a bounded cache of windows. Sequential reads fetch several windows at once. Knows no
//! structure: callers name it for messages.

use crate::corruption::Place;
use crate::reader::Reader;
use crate::windows::WINDOW_LEN;
use packfs_core::{Result, len_of, usize_of};
use packfs_format::{OnDisk, filled, units::*};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

impl Reader {
    /// Returns the window that contains `at`, and its start. It may be short at the end of the
    /// address space.
    pub(crate) fn window(&self, at: u64) -> Result<(u64, Arc<Vec<u8>>)> {
        let number = at / WINDOW_LEN;
        let start = at & !(WINDOW_LEN - 1);
        if let Some(bytes) = self.windows.get(number) {
            return Ok((start, bytes));
        }
        let run = match self.windows.run_at(number) {
            1 => None,
            // Data after the requested window may be damaged, or the metabox; its own reader
            // reports that.
            run => self.read_windows(start, run).ok(),
        };
        let bytes = match run {
            Some(bytes) => bytes,
            None => self.read_windows(start, 1)?,
        };
        if bytes.len() <= usize_of(WINDOW_LEN) {
            let only = Arc::new(bytes);
            self.windows.put(number, &only);
            return Ok((start, only));
        }
        let mut first = None;
        for (number, window) in (number..).zip(bytes.chunks(usize_of(WINDOW_LEN))) {
            let window = Arc::new(window.to_vec());
            self.windows.put(number, &window);
            first.get_or_insert(window);
        }
        Ok((start, first.unwrap_or_default()))
    }

    /// Reads up to `count` windows; fewer bytes only at the end.
    fn read_windows(&self, start: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize_of(count.times(WINDOW_LEN))];
        let len = self.read_space(start, &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Errors: `Corrupt` if fewer bytes exist.
    pub(crate) fn read_metadata(&self, at: u64, out: &mut [u8], place: Place) -> Result<()> {
        let out_len = out.len() as u64;
        let (mut from, mut missing) = (at, out);
        while !missing.is_empty() {
            let (start, window) = self.window(from)?;
            let found = window.get(usize_of(len_of(&(start..from)))..).filter(|found| !found.is_empty());
            let found = found.ok_or_else(|| place.outside("the image", at, out_len, self.space_end()))?;
            let len = found.len().min(missing.len());
            let (target, rest) = missing.split_at_mut(len);
            target.copy_from_slice(found.split_at(len).0);
            (from, missing) = (from.plus(len as u64), rest);
        }
        Ok(())
    }

    pub(crate) fn read_struct<T: OnDisk + FromBytes + IntoBytes>(&self, at: u64, place: Place) -> Result<T> {
        filled(|bytes| self.read_metadata(at, bytes, place))
    }
}
