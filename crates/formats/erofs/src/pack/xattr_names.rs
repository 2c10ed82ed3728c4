//! Names of extended attributes: the number of a prefix, and the rest.

use crate::disk;
use crate::options::Options;

/// Names that an image holds.
#[derive(Clone, Copy)]
pub(super) struct Names<'o> {
    /// Name of the attribute with digests, which may lie outside of all namespaces.
    digests: Option<&'o [u8]>,
}

impl<'o> Names<'o> {
    pub(super) fn new(options: &'o Options) -> Self {
        Names { digests: options.typed.digests.as_deref() }
    }

    /// Splits a name into the number of its prefix and the rest; `None` if no image can hold it.
    /// Number 0 is that of no prefix.
    pub(super) fn split(self, name: &[u8]) -> Option<(u8, &[u8])> {
        split_name(name).or_else(|| (self.digests == Some(name)).then_some((0, name)))
    }

    /// Returns the split name of digests.
    pub(super) fn of_digests(self) -> Option<(u8, &'o [u8])> {
        self.digests.and_then(|name| self.split(name))
    }
}

/// Splits a name into the number of its prefix and the rest; `None` if the format cannot hold it.
pub(super) fn split_name(name: &[u8]) -> Option<(u8, &[u8])> {
    disk::XATTR_PREFIXES.iter().find_map(|&(number, prefix)| {
        let rest = name.strip_prefix(prefix)?;
        // Prefixes that do not end with a dot are whole names, and the others never are.
        let whole = !prefix.ends_with(b".");
        (rest.is_empty() == whole && rest.len() <= usize::from(u8::MAX)).then_some((number, rest))
    })
}
