//! Names of extended attributes: the number of a prefix, and the rest.

use crate::disk;

/// Splits a name into the number of its prefix and the rest; `None` if the format cannot hold it.
pub(super) fn split_name(name: &[u8]) -> Option<(u8, &[u8])> {
    disk::XATTR_PREFIXES.iter().find_map(|&(number, prefix)| {
        let rest = name.strip_prefix(prefix)?;
        // Prefixes that do not end with a dot are whole names, and the others never are.
        let whole = !prefix.ends_with(b".");
        (rest.is_empty() == whole && rest.len() <= usize::from(u8::MAX)).then_some((number, rest))
    })
}
