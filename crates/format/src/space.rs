//! Ranges of an image told apart by what owns them.

use crate::SpaceOwner;
use packfs_core::len_of;
use std::ops::Range;

/// The owners of `0..len`, in order and without gap, from claims in order of their starts: where
/// they overlap, the one that starts first wins; unclaimed bytes are `unused`. Neighbours of one
/// owner are one.
pub fn space_owners(
    claims: impl IntoIterator<Item = (Range<u64>, &'static str)>,
    len: u64,
) -> Vec<SpaceOwner> {
    let mut owners: Vec<SpaceOwner> = Vec::new();
    let mut push = |owner: &'static str, range: Range<u64>| {
        if range.is_empty() {
            return;
        }
        match owners.last_mut() {
            Some(last) if last.owner == owner => last.len = last.len.saturating_add(len_of(&range)),
            _ => owners.push(SpaceOwner { owner, offset: range.start, len: len_of(&range) }),
        }
    };
    let mut at = 0;
    for (claimed, owner) in claims {
        let range = claimed.start.max(at).min(len)..claimed.end.min(len);
        if range.is_empty() {
            continue;
        }
        push("unused", at..range.start);
        at = range.end;
        push(owner, range);
    }
    push("unused", at..len);
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_add_up_for_any_claims() {
        let claims = [
            (1024..1152, "superblock"),
            (5000..6000, "inodes"),
            (5500..7000, "file data"),
            (7000..7100, "file data"),
            (7050..7060, "directories"),
            (7500..9000, "file data"),
            (9500..9600, "file data"),
        ];
        let owners = space_owners(claims, 8000);
        let words: Vec<_> = owners.iter().map(|o| (o.owner, o.offset, o.len)).collect();
        assert_eq!(
            words,
            [
                ("unused", 0, 1024),
                ("superblock", 1024, 128),
                ("unused", 1152, 3848),
                ("inodes", 5000, 1000),
                ("file data", 6000, 1100),
                ("unused", 7100, 400),
                ("file data", 7500, 500),
            ]
        );
        assert_eq!(owners.iter().map(|o| o.len).sum::<u64>(), 8000);
    }
}
