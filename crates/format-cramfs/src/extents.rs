//! Extents cut to what was asked for, those that go on joined.

use packfs_core::{Extent, ExtentFrom};
use std::ops::{ControlFlow, Range};

/// Takes extents in file order and hands them out.
pub(crate) struct Extents<'a> {
    range: Range<u64>,
    pending: Option<Extent>,
    visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
}

impl<'a> Extents<'a> {
    pub(crate) fn new(range: Range<u64>, visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>) -> Self {
        Extents { range, pending: None, visit }
    }

    pub(crate) fn push(&mut self, extent: Extent) -> ControlFlow<()> {
        let start = extent.offset.max(self.range.start);
        let end = (extent.offset + extent.len).min(self.range.end);
        if start >= end {
            return ControlFlow::Continue(());
        }
        let cut = start - extent.offset;
        let from = match extent.from {
            ExtentFrom::Hole => ExtentFrom::Hole,
            ExtentFrom::Stored(at) => ExtentFrom::Stored(at + cut),
            ExtentFrom::Block { block, start } => ExtentFrom::Block { block, start: start + cut as u32 },
        };
        let extent = Extent { offset: start, len: end - start, from };
        if let Some(pending) = &mut self.pending
            && goes_on(pending, &extent)
        {
            pending.len += extent.len;
            return ControlFlow::Continue(());
        }
        match self.pending.replace(extent) {
            Some(done) => (self.visit)(done),
            None => ControlFlow::Continue(()),
        }
    }

    /// Hands out the last one.
    pub(crate) fn finish(&mut self) {
        if let Some(last) = self.pending.take() {
            let _ = (self.visit)(last);
        }
    }
}

fn goes_on(extent: &Extent, next: &Extent) -> bool {
    match (extent.from, next.from) {
        (ExtentFrom::Hole, ExtentFrom::Hole) => true,
        (ExtentFrom::Stored(at), ExtentFrom::Stored(next)) => at + extent.len == next,
        _ => false,
    }
}
