//! Ranges of an image and what owns them: sorted, told apart, and filled up.
//!
//! Owns the sweep over claims that the space map and the check share. Knows no structure of the format.

use packfs_core::SpaceOwner;
use std::ops::Range;

/// Whether a range may belong to several owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sharing {
    /// Metadata: nothing else may lie there.
    Alone,
    /// Metadata that is referred to from several places, each time as a whole.
    Whole,
    /// Contents, which files may share in any way.
    Contents,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) range: Range<u64>,
    pub(crate) sharing: Sharing,
    pub(crate) owner: &'static str,
}

/// All claims on an image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    /// Adds a claim; one that goes on where the last one ended is joined to it.
    pub(crate) fn add(&mut self, range: Range<u64>, sharing: Sharing, owner: &'static str) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last)
                if last.owner == owner && sharing == Sharing::Contents && last.range.end == range.start =>
            {
                last.range.end = range.end;
            }
            _ => self.0.push(Claim { range, sharing, owner }),
        }
    }

    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|claim| (claim.range.start, claim.sharing, claim.range.end));
    }

    /// Pairs of sorted claims that must not overlap but do; each claim is told at most once.
    pub(crate) fn overlaps(&self) -> impl Iterator<Item = (&Claim, &Claim)> {
        let mut metadata: Option<&Claim> = None;
        let mut contents: Option<&Claim> = None;
        self.0.iter().filter_map(move |claim| {
            let start = claim.range.start;
            let over = |other: &Option<&'_ Claim>| other.is_some_and(|other| start < other.range.end);
            let same = metadata.is_some_and(|other| {
                claim.sharing == Sharing::Whole
                    && other.sharing == Sharing::Whole
                    && other.range == claim.range
            });
            let found = if over(&metadata) && !same {
                metadata
            } else if claim.sharing != Sharing::Contents && over(&contents) {
                contents
            } else {
                None
            };
            let last = if claim.sharing == Sharing::Contents { &mut contents } else { &mut metadata };
            if last.is_none_or(|last| claim.range.end > last.range.end) {
                *last = Some(claim);
            }
            found.map(|other| (other, claim))
        })
    }

    /// The owners of `0..len`, from sorted claims: where they overlap, the one that starts first wins; what nobody claims is
    /// `unused`.
    pub(crate) fn owners(&self, len: u64) -> Vec<SpaceOwner> {
        let mut owners: Vec<SpaceOwner> = Vec::new();
        let mut push = |owner: &'static str, range: Range<u64>| {
            if range.is_empty() {
                return;
            }
            match owners.last_mut() {
                Some(last) if last.owner == owner => last.len += range.end - range.start,
                _ => owners.push(SpaceOwner { owner, offset: range.start, len: range.end - range.start }),
            }
        };
        let mut at = 0;
        for claim in &self.0 {
            let range = claim.range.start.max(at).min(len)..claim.range.end.min(len);
            if range.is_empty() {
                continue;
            }
            push("unused", at..range.start);
            at = range.end;
            push(claim.owner, range);
        }
        push("unused", at..len);
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(rows: &[(Range<u64>, Sharing, &'static str)]) -> Claims {
        let mut claims = Claims::default();
        for (range, sharing, owner) in rows {
            claims.add(range.clone(), *sharing, owner);
        }
        claims.sort();
        claims
    }

    #[test]
    fn owners_add_up_whatever_is_claimed() {
        use Sharing::{Alone, Contents};
        let claims = claims(&[
            (1024..1152, Alone, "superblock"),
            (5000..6000, Alone, "inodes"),
            (5500..7000, Contents, "file data"),
            (7000..7100, Contents, "file data"),
            (7500..9000, Contents, "file data"),
        ]);
        let owners = claims.owners(8000);
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

    #[test]
    fn only_contents_may_overlap() {
        use Sharing::{Alone, Contents, Whole};
        let fine = claims(&[
            (0..100, Alone, "a"),
            (100..300, Contents, "b"),
            (200..400, Contents, "c"),
            (400..420, Whole, "x"),
            (400..420, Whole, "x"),
        ]);
        assert_eq!(fine.overlaps().count(), 0);
        let bad = claims(&[
            (0..100, Alone, "a"),
            (50..60, Alone, "b"),
            (90..200, Contents, "c"),
            (150..160, Whole, "x"),
            (155..160, Whole, "x"),
        ]);
        let pairs: Vec<_> = bad.overlaps().map(|(one, other)| (one.owner, other.owner)).collect();
        assert_eq!(pairs, [("a", "b"), ("a", "c"), ("c", "x"), ("x", "x")]);
    }
}
