//! Names of extended attributes: number of the prefix, and the rest.

use crate::disk;
use crate::options::Options;

#[derive(Clone, Copy)]
pub(super) struct Names<'o> {
    /// Name of the attribute with digests, which may be outside of all namespaces.
    digests: Option<&'o [u8]>,
}

impl<'o> Names<'o> {
    pub(super) fn new(options: &'o Options) -> Self {
        Names { digests: options.typed.digests.as_deref() }
    }

    /// Splits a name into the number of its prefix and the rest; `None` if no image can represent
    /// it. Number 0 means no prefix.
    pub(super) fn split(self, name: &[u8]) -> Option<(u8, &[u8])> {
        split_name(name).or_else(|| (self.digests == Some(name)).then_some((0, name)))
    }

    pub(super) fn of_digests(self) -> Option<(u8, &'o [u8])> {
        self.digests.and_then(|name| self.split(name))
    }
}

/// Like [`Names::split`], for names of the format's namespaces only.
pub(super) fn split_name(name: &[u8]) -> Option<(u8, &[u8])> {
    disk::XATTR_PREFIXES.iter().find_map(|&(number, prefix)| {
        let rest = name.strip_prefix(prefix)?;
        // Prefixes without a dot at the end are complete names; others never are.
        let whole = !prefix.ends_with(b".");
        (rest.is_empty() == whole && rest.len() <= usize::from(u8::MAX)).then_some((number, rest))
    })
}
