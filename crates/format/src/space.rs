//! Ranges of an image and their owners.

use crate::{SpaceOwner, units::*};
use packfs_core::len_of;
use std::ops::Range;

/// Limit of separate claims.
const CLAIMS_MAX: usize = 1 << 20;
/// Minimum distance over which claims are joined when there are too many, in bytes.
const GAP_MIN: u64 = 4096;

/// Claims of bytes of an image, in any order. Beyond a million they are joined across small gaps,
/// including claims of other owners in between.
#[derive(Debug)]
pub struct Claims {
    claims: Vec<(Range<u64>, &'static str)>,
    max: usize,
    gap: u64,
}

impl Default for Claims {
    fn default() -> Self {
        Claims::new()
    }
}

impl Claims {
    /// Returns an empty list.
    pub fn new() -> Claims {
        Claims::within(CLAIMS_MAX)
    }

    fn within(max: usize) -> Claims {
        Claims { claims: Vec::new(), max, gap: 0 }
    }

    /// Adds a claim.
    pub fn add(&mut self, range: Range<u64>, owner: &'static str) {
        match self.claims.last_mut() {
            _ if range.is_empty() => {}
            Some((last, own)) if *own == owner && last.end == range.start => last.end = range.end,
            _ => self.claims.push((range, owner)),
        }
        while self.claims.len() >= self.max {
            self.join();
            if self.claims.len() > self.max / 2 {
                self.gap = self.gap.times(2).max(GAP_MIN);
            }
        }
    }

    fn join(&mut self) {
        self.claims.sort_by_key(|(range, _)| range.start);
        let gap = self.gap;
        self.claims.dedup_by(|(range, owner), (last, own)| {
            let is_near = range.start <= end_of(last.end, gap);
            let is_joined = is_near && (owner == own || len_of(range) <= gap || last.end >= range.end);
            if is_joined {
                last.end = last.end.max(range.end);
            }
            is_joined
        });
    }

    /// Returns the owners of `0..len`, as [`space_owners`].
    pub fn owners(mut self, len: u64) -> Vec<SpaceOwner> {
        self.claims.sort_by_key(|(range, _)| range.start);
        space_owners(self.claims, len)
    }
}

/// Returns the owners of `0..len`, in order and without gaps, from claims sorted by start: where
/// they overlap, the one that starts first prevails; unclaimed bytes are `unused`. Adjacent ranges
/// of one owner are joined.
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
            Some(last) if last.owner == owner => last.len = last.len.plus(len_of(&range)),
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
    fn too_many_claims_are_joined_with_what_lies_between() {
        let mut claims = Claims::within(16);
        let owners = ["metadata", "file data"];
        for number in 0..10_000_u64 {
            let at = number * 7919 % 10_000;
            claims.add(at * 8192..at * 8192 + 4096, owners[(at % 2) as usize]);
            assert!(claims.claims.len() < 16);
        }
        let owners = claims.owners(10_000 * 8192);
        assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), 10_000 * 8192);
        let mut exact = Claims::within(16);
        for (range, owner) in [(40..50, "b"), (0..10, "a"), (10..20, "a")] {
            exact.add(range, owner);
        }
        let words: Vec<_> = exact.owners(50).iter().map(|owner| (owner.owner, owner.len)).collect();
        assert_eq!(words, [("a", 20), ("unused", 20), ("b", 10)]);
    }

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
