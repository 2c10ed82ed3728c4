//! The disk: places of clusters turned into extents.

use crate::corruption::Corruption;
use packfs_core::{Error, len_of};
use packfs_format::{Extent, ExtentFrom, Extents};
use std::ops::{ControlFlow, Range};

/// Takes stretches of the disk in order and hands them out as extents.
pub(crate) struct Extending<'a>(Extents<'a>);

impl<'a> Extending<'a> {
    /// Hands out to `visit` what lies in `range` of the disk.
    pub(crate) fn new(range: Range<u64>, visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>) -> Self {
        Extending(Extents::new(range, visit))
    }

    /// Takes the next extent; false if no more is wanted.
    pub(crate) fn push(&mut self, extent: Extent) -> bool {
        self.0.push(extent).is_continue()
    }

    /// Takes a stretch of zeros.
    pub(crate) fn hole(&mut self, range: Range<u64>) -> bool {
        self.push(Extent { offset: range.start, len: len_of(&range), from: ExtentFrom::Hole })
    }

    /// Takes a stretch that is stored as it is.
    pub(crate) fn stored(&mut self, range: Range<u64>, at: u64) -> bool {
        self.push(Extent { offset: range.start, len: len_of(&range), from: ExtentFrom::Stored(at) })
    }

    /// Hands out what was taken before a fault, and returns that as an error.
    pub(crate) fn fail(&mut self, fault: Corruption) -> Error {
        self.0.finish();
        fault.into()
    }

    /// Hands out the last extent.
    pub(crate) fn finish(mut self) {
        self.0.finish();
    }
}
