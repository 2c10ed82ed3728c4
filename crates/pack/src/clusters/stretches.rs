//! Cuts a piece of a file between what is not cut: long runs of zeros, and clusters shared with
//! other files.

use super::coder::Coder;
use super::segment::{self, Encoders, Measures, Rest};
use super::shape::End;
use super::stored::Stored;
use crate::context::is_zero;
use packfs_core::Result;
use std::ops::Range;
use std::sync::Arc;

/// See the module. Positions are bytes from the start of the piece, which is a multiple of the
/// block.
pub(super) struct Stretches<'s> {
    pub measures: Measures,
    pub coder: &'s mut Coder,
    pub second: Option<&'s mut Coder>,
    /// Runs of zeros are taken out in steps of this length, if at all.
    pub zeros_len: Option<usize>,
    pub scratch: &'s mut Vec<u8>,
    pub stored: &'s mut Stored,
    /// The cluster that zeros share, if there were any.
    pub zeros: Option<Arc<[u8]>>,
}

impl Stretches<'_> {
    /// Cuts a part of the piece; returns what is left, and what that counts from.
    pub(super) fn cut(&mut self, input: &[u8], range: Range<usize>, end: End) -> Result<(usize, Rest)> {
        let Measures { block_len, byte_aligned, .. } = self.measures;
        let mut start = range.start;
        if let Some(zeros_len) = self.zeros_len {
            let unit = if byte_aligned { 1 } else { block_len };
            let mut at = start.next_multiple_of(unit);
            while at + zeros_len <= range.end {
                if !is_zero(&input[at..at + zeros_len]) {
                    at += zeros_len;
                    continue;
                }
                if !byte_aligned && self.zeros.is_none() {
                    self.zeros = self.coder.zeros(zeros_len, block_len)?;
                    if self.zeros.is_none() {
                        break;
                    }
                }
                self.cut_stretch(&input[start..at], End::Own)?;
                segment::push_zeros(byte_aligned, zeros_len, self.stored);
                at += zeros_len;
                start = at;
            }
        }
        Ok((start, self.cut_stretch(&input[start..range.end], end)?))
    }

    fn cut_stretch(&mut self, input: &[u8], end: End) -> Result<Rest> {
        let encoders = Encoders::of(self.coder, self.second.as_deref_mut());
        segment::cut(self.measures, input, end, encoders, self.scratch, self.stored)
    }

    /// Cuts what lies before a shared cluster. False, and nothing is cut, if the last cluster
    /// before it would start in the same block of input, which an index of blocks cannot tell: so
    /// it is where a short rest is left over, and always in incompressible data, unless what is
    /// shared lies at a multiple of the block.
    pub(super) fn cut_before_shared(&mut self, input: &[u8], range: Range<usize>) -> Result<bool> {
        let Measures { block_len, byte_aligned, .. } = self.measures;
        if range.is_empty() {
            return Ok(true);
        }
        let before = (self.stored.bytes.len(), self.stored.clusters.len());
        let end = range.end;
        self.cut(input, range, End::Own)?;
        let last_start = self.stored.last_start(end, block_len);
        if byte_aligned || last_start.is_none_or(|start| start / block_len < end / block_len) {
            return Ok(true);
        }
        self.stored.bytes.truncate(before.0);
        self.stored.clusters.truncate(before.1);
        Ok(false)
    }
}
