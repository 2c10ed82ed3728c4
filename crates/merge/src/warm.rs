//! Bounds the metadata that all volumes together cache.
//!
//! A volume caches some MiB of its metadata, which is too much for thousands of volumes. The
//! volumes used last share [`LEN_MAX`] bytes, and the others cache nothing.

use crate::MergeInput;
use std::cell::RefCell;
use std::collections::VecDeque;

const LEN_MAX: usize = 16 << 20;
/// Least cache of a volume: for both its inodes and its names, read side by side.
const LEN_MIN: usize = 128 << 10;
const COUNT_MAX: usize = LEN_MAX / LEN_MIN;

pub(crate) struct Warm<'a> {
    inputs: &'a [MergeInput],
    len_max: usize,
    /// Volumes by their last use, the last one first.
    recent: RefCell<VecDeque<usize>>,
}

impl<'a> Warm<'a> {
    pub(crate) fn new(inputs: &'a [MergeInput]) -> Self {
        let len_max = LEN_MAX.checked_div(inputs.len()).unwrap_or(LEN_MAX).max(LEN_MIN);
        inputs.iter().for_each(|input| input.volume.keep_at_most(len_max));
        Warm { inputs, len_max, recent: RefCell::default() }
    }

    pub(crate) fn touch(&self, input: usize) {
        let mut recent = self.recent.borrow_mut();
        if recent.front() == Some(&input) {
            return;
        }
        if let Some(at) = recent.iter().position(|&found| found == input) {
            recent.remove(at);
        }
        recent.push_front(input);
        if recent.len() > COUNT_MAX
            && let Some(input) = recent.pop_back().and_then(|last| self.inputs.get(last))
        {
            input.volume.keep_at_most(self.len_max);
        }
    }
}
