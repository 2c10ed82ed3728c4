//! Ranges of an image and their claims, for the space map and the check, with permitted sharing.
//! Independent of the format.

use packfs_format::{SpaceOwner, space_owners};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sharing {
    /// Metadata that must not overlap anything.
    Alone,
    /// Metadata with several references, each to the whole.
    Whole,
    /// Contents, which files may share in any way.
    Contents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) range: Range<u64>,
    pub(crate) sharing: Sharing,
    pub(crate) owner: &'static str,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    /// Adds a claim, joined with the previous one if they are adjacent.
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

    /// Pairs of sorted claims that overlap without permission; each claim is reported at most once.
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

    pub(crate) fn owners(&self, len: u64) -> Vec<SpaceOwner> {
        space_owners(self.0.iter().map(|claim| (claim.range.clone(), claim.owner)), len)
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
