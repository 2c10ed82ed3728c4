//! Shares of files in stored bytes, each byte counted once.

use std::ops::Range;

use packfs::{Error, Result};

/// Most claims, 512 MiB: those of an image of 64 GiB in blocks of 4 KiB.
const MAX_CLAIMS: usize = 16 << 20;

/// Upper bound of a piece's weight: no block decodes to more bytes.
const MAX_WEIGHT: u64 = 1 << 38;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    start: u64,
    end: u64,
    file: u32,
    weight: u64,
}

/// References of all files to stored bytes.
#[derive(Default)]
pub struct Claims(Vec<Claim>);

/// Shares of all files.
pub struct Settled {
    /// Stored bytes of each file.
    pub stored: Vec<u64>,
    /// Bytes of `stored` in shared pieces.
    pub shared: Vec<u64>,
    /// All pieces, in order and without overlap.
    pub taken: Vec<Range<u64>>,
}

impl Claims {
    /// Adds a reference of a file to a piece. A piece that continues the file's last one and was
    /// added with it before counts as one.
    ///
    /// Errors: `Failed` if there are more than 16 Mi.
    pub fn add(&mut self, range: Range<u64>, file: u32, weight: u64) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        if let Some(last) = self.0.last_mut()
            && (last.start, last.end, last.file) == (range.start, range.end, file)
        {
            last.weight = last.weight.saturating_add(weight);
            return Ok(());
        }
        if self.0.len() == MAX_CLAIMS {
            return Err(Error::failed(format!(
                "files lie in more than {MAX_CLAIMS} pieces, too many for a map"
            ))
            .hint("`packfs info --space` shows who owns the bytes, without files"));
        }
        self.0.push(Claim { start: range.start, end: range.end, file, weight });
        Ok(())
    }

    /// Divides `0..len` among `files`: files that refer to the same piece share it by weight; of
    /// pieces that overlap otherwise, the first one gets the common part.
    pub fn settle(mut self, len: u64, files: usize) -> Settled {
        self.0.sort_unstable();
        let mut settled = Settled { stored: vec![0; files], shared: vec![0; files], taken: Vec::new() };
        let mut at = 0;
        for group in self.0.chunk_by(|one, other| (one.start, one.end) == (other.start, other.end)) {
            let piece = group[0].start.max(at)..group[0].end.min(len);
            if piece.is_empty() {
                continue;
            }
            at = piece.end;
            settled.divide(group, piece.end - piece.start);
            match settled.taken.last_mut() {
                Some(last) if last.end == piece.start => last.end = piece.end,
                _ => settled.taken.push(piece),
            }
        }
        settled
    }
}

impl Settled {
    /// The parts add up to `len`.
    fn divide(&mut self, group: &[Claim], len: u64) {
        let is_shared = group.iter().any(|claim| claim.file != group[0].file);
        // Bounded, so that products below do not overflow for hostile images.
        let weight = |claim: &Claim| u128::from(claim.weight.clamp(1, MAX_WEIGHT));
        let all: u128 = group.iter().map(weight).sum();
        let (mut sum, mut given) = (0, 0);
        for claim in group {
            sum += weight(claim);
            // The quotient is at most `len`.
            let until = u64::try_from(u128::from(len) * sum / all).unwrap_or(len);
            let part = until - given;
            given = until;
            let file = claim.file as usize;
            self.stored[file] += part;
            if is_shared {
                self.shared[file] += part;
            }
        }
    }

    /// Counts the bytes of a range that belong to files. Ranges must be in order; `next` is the end
    /// of the last one in [`Settled::taken`].
    pub fn within(&self, range: &Range<u64>, next: &mut usize) -> u64 {
        let mut sum = 0;
        while let Some(taken) = self.taken.get(*next) {
            let (start, end) = (taken.start.max(range.start), taken.end.min(range.end));
            sum += end.saturating_sub(start);
            if taken.end > range.end {
                break;
            }
            *next += 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(claims: &[(Range<u64>, u32, u64)], len: u64) -> Settled {
        let mut all = Claims::default();
        for (range, file, weight) in claims {
            all.add(range.clone(), *file, *weight).unwrap();
        }
        all.settle(len, 4)
    }

    #[test]
    fn shared_blocks_are_divided_and_add_up() {
        let settled = settled(&[(0..100, 0, 1), (0..100, 1, 1), (0..100, 2, 1), (100..150, 3, 9)], 1000);
        assert_eq!(settled.stored, [33, 33, 34, 50]);
        assert_eq!(settled.shared, [33, 33, 34, 0]);
        assert_eq!(settled.taken.first(), Some(&(0..150)));
        assert_eq!(settled.taken.len(), 1);
    }

    #[test]
    fn larger_reads_get_more_of_a_block() {
        let settled = settled(&[(10..20, 0, 900), (10..20, 1, 100), (10..20, 1, 0)], 1000);
        assert_eq!(settled.stored, [9, 1, 0, 0]);
    }

    #[test]
    fn overlaps_and_what_lies_beyond_count_once_or_not_at_all() {
        let claims =
            [(0..50, 0, 1), (40..60, 1, 1), (45..55, 2, 1), (90..200, 3, 1), (300..400, 3, u64::MAX)];
        let settled = settled(&claims, 100);
        assert_eq!(settled.stored, [50, 10, 0, 10]);
        assert_eq!(settled.taken, [0..60, 90..100]);
        let mut next = 0;
        let within: Vec<u64> =
            [0..10, 10..55, 55..95, 95..100].iter().map(|range| settled.within(range, &mut next)).collect();
        assert_eq!(within, [10, 45, 10, 5]);
    }

    #[test]
    fn the_same_piece_twice_is_one_of_one_file() {
        let settled = settled(&[(0..10, 0, 5), (0..10, 0, 5)], 10);
        assert_eq!((settled.stored[0], settled.shared[0]), (10, 0));
    }
}
