//! Splits a piece of a file around data that is not cut: long runs of zeros, and clusters shared
//! with other files.

use super::coder::Coders;
use super::segment::{self, Encoders, Measures, Rest};
use super::shape::End;
use super::stored::{CutForm, Stored};
use crate::context::is_zero;
use packfs_core::Result;
use packfs_format::ClusterForm;
use std::ops::Range;

/// State of a piece. Positions are bytes from its start, which is a multiple of the block.
pub(super) struct Stretches<'s> {
    pub measures: Measures,
    pub coders: &'s mut Coders,
    /// Length of the steps in which runs of zeros are removed; `None` if they are not.
    pub zeros_len: Option<usize>,
    pub scratch: &'s mut Vec<u8>,
    pub stored: &'s mut Stored,
}

impl Stretches<'_> {
    /// Returns the rest and the position it counts from.
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
                let form = if byte_aligned {
                    CutForm::Is(ClusterForm::Hole)
                } else {
                    match self.coders.first.zeros(zeros_len, block_len)? {
                        Some(zeros) => CutForm::Zeros(zeros),
                        None => break,
                    }
                };
                self.cut_stretch(&input[start..at], End::Own)?;
                self.stored.push_empty(zeros_len as u64, form);
                at += zeros_len;
                start = at;
            }
        }
        Ok((start, self.cut_stretch(&input[start..range.end], end)?))
    }

    fn cut_stretch(&mut self, input: &[u8], end: End) -> Result<Rest> {
        segment::cut(self.measures, input, end, Encoders::of(self.coders), self.scratch, self.stored)
    }

    /// Cuts the data before a shared cluster. Returns false and cuts nothing if the last cluster
    /// before it would start in the same block of input, which an index of blocks cannot represent.
    /// That happens with a short rest, and always in incompressible data, unless the shared data
    /// lies at a multiple of the block.
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
