//! Extents of a file for a requested range: cut to the range, joined if adjacent, gaps filled.

use crate::{Extent, ExtentFrom, units::*};
use packfs_core::{Result, len_of};
use std::ops::{ControlFlow, Range};

/// Receives extents in file order and passes them on as [`crate::Volume::extents`] requires.
pub struct Extents<'a> {
    range: Range<u64>,
    /// End of the extents so far, at least the start of the range.
    at: u64,
    pending: Option<Extent>,
    visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
    is_over: bool,
}

impl<'a> Extents<'a> {
    /// Passes on to `visit` the parts within `range` of a file.
    pub fn new(range: Range<u64>, visit: &'a mut dyn FnMut(Extent) -> ControlFlow<()>) -> Self {
        Extents { at: range.start, range, pending: None, visit, is_over: false }
    }

    /// Returns the requested range of the file.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Adds the next extent. Breaks when no more is needed.
    pub fn push(&mut self, extent: Extent) -> ControlFlow<()> {
        if self.is_over {
            return ControlFlow::Break(());
        }
        self.at = self.at.max(extent.range().end);
        let Some(extent) = extent.within(&self.range) else {
            return ControlFlow::Continue(());
        };
        if let Some(pending) = &mut self.pending
            && goes_on(pending, &extent)
        {
            pending.len = pending.len.plus(extent.len);
            return ControlFlow::Continue(());
        }
        let flow = match self.pending.replace(extent) {
            Some(done) => (self.visit)(done),
            None => ControlFlow::Continue(()),
        };
        self.is_over |= flow.is_break();
        flow
    }

    /// Adds a hole.
    pub fn hole(&mut self, range: Range<u64>) -> ControlFlow<()> {
        self.push(Extent { offset: range.start, len: len_of(&range), from: ExtentFrom::Hole })
    }

    /// Adds bytes that are stored uncompressed.
    pub fn stored(&mut self, range: Range<u64>, at: u64) -> ControlFlow<()> {
        self.push(Extent { offset: range.start, len: len_of(&range), from: ExtentFrom::Stored(at) })
    }

    /// Adds a hole from the end of the extents so far to `end`, unless they extend to it.
    pub fn fill_to(&mut self, end: u64) -> ControlFlow<()> {
        self.hole(self.at.min(end)..end)
    }

    /// Passes on the last one, if it is still needed. Returns the result of the walk, so that
    /// extents before a fault are passed on, too.
    pub fn finish(self, walked: Result<()>) -> Result<()> {
        if let Some(last) = self.pending.filter(|_| !self.is_over) {
            let _ = (self.visit)(last);
        }
        walked
    }
}

fn goes_on(extent: &Extent, next: &Extent) -> bool {
    match (extent.from, next.from) {
        (ExtentFrom::Hole, ExtentFrom::Hole) => true,
        (ExtentFrom::Stored(at), ExtentFrom::Stored(next)) => at.checked_add(extent.len) == Some(next),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_codec::BlockRef;

    fn handed_out(range: Range<u64>, pushed: &[Extent], most: usize) -> Vec<Extent> {
        let mut out = Vec::new();
        let mut visit = |extent| {
            out.push(extent);
            if out.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut extents = Extents::new(range, &mut visit);
        let _ = pushed.iter().try_for_each(|extent| extents.push(*extent));
        extents.finish(Ok(())).unwrap();
        out
    }

    fn stored(offset: u64, len: u64, at: u64) -> Extent {
        Extent { offset, len, from: ExtentFrom::Stored(at) }
    }

    #[test]
    fn extents_are_cut_to_the_range_and_joined() {
        let block = ExtentFrom::Block { block: BlockRef::stored(9, 100), start: 5 };
        let pushed = [
            stored(0, 100, 1000),
            stored(100, 100, 1100),
            stored(200, 100, 7000),
            Extent { offset: 300, len: 100, from: ExtentFrom::Hole },
            Extent { offset: 400, len: 100, from: ExtentFrom::Hole },
            Extent { offset: 500, len: 100, from: block },
        ];
        assert_eq!(handed_out(50..250, &pushed, 9), [stored(50, 150, 1050), stored(200, 50, 7000)]);
        let hole = Extent { offset: 300, len: 200, from: ExtentFrom::Hole };
        assert_eq!(handed_out(300..500, &pushed, 9), [hole]);
        let cut = ExtentFrom::Block { block: BlockRef::stored(9, 100), start: 15 };
        assert_eq!(handed_out(510..520, &pushed, 9), [Extent { offset: 510, len: 10, from: cut }]);
        assert_eq!(handed_out(600..700, &pushed, 9), []);
    }

    #[test]
    fn nothing_follows_what_was_the_last_one_wanted() {
        let pushed = [stored(0, 10, 0), stored(10, 10, 500), stored(20, 10, 900)];
        assert_eq!(handed_out(0..30, &pushed, 1), [stored(0, 10, 0)]);
    }
    #[test]
    fn gaps_are_filled_and_what_lies_before_a_fault_is_handed_out() {
        let mut out = Vec::new();
        let mut visit = |extent| {
            out.push(extent);
            ControlFlow::Continue(())
        };
        let mut extents = Extents::new(10..100, &mut visit);
        assert!(extents.fill_to(5).is_continue() && extents.stored(5..20, 1000).is_continue());
        assert!(extents.fill_to(30).is_continue() && extents.stored(30..40, 7000).is_continue());
        assert!(extents.fill_to(35).is_continue());
        assert!(extents.finish(Err(packfs_core::Error::failed("fault"))).is_err());
        let hole = Extent { offset: 20, len: 10, from: ExtentFrom::Hole };
        assert_eq!(out, [stored(10, 10, 1005), hole, stored(30, 10, 7000)]);
    }
}
