//! The match finder of the dense encoder.

/// A match: the shortest distance at which `len` bytes are found.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) len: usize,
    pub(super) distance: usize,
}

/// Index of the positions of the window, in which matches are found.
///
/// Every position of the input is either inserted or skipped, in order.
pub(super) trait Finder {
    fn reset(&mut self);

    /// Inserts the position `at` and fills `found` with its matches of three bytes and more, with
    /// increasing length and distance, none longer than `len_max`.
    fn insert(&mut self, src: &[u8], at: usize, len_max: usize, found: &mut Vec<Found>);

    /// Inserts the position `at` within a match of `len_max` or more, whose own matches are not
    /// needed.
    fn skip(&mut self, src: &[u8], at: usize, len_max: usize);
}
