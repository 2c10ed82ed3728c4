//! The match finder of the dense encoder.

/// A match: the least distance at which `len` bytes are found.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) len: usize,
    pub(super) distance: usize,
}

/// Knows the places of the window and finds matches among them.
///
/// Every place of the input is either inserted or skipped, in order.
pub(super) trait Finder {
    /// Forgets every place.
    fn reset(&mut self);

    /// Inserts the place `at` and fills `found` with its matches, ever longer and ever farther,
    /// from three bytes on, none longer than `len_max`.
    fn insert(&mut self, src: &[u8], at: usize, len_max: usize, found: &mut Vec<Found>);

    /// Inserts the place `at`, a place within a match of `len_max` or more, whose own matches are
    /// not needed.
    fn skip(&mut self, src: &[u8], at: usize, len_max: usize);
}
