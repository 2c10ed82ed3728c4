//! Content-defined chunking: the same bytes are cut at the same positions, wherever they occur.
//!
//! A gear hash: each byte shifts the sum and adds a number of its own, so the sum depends on the
//! last 64 bytes.

/// Chunk size: about `1 << log` bytes, at least a quarter and at most four times that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunker {
    log: u32,
}

const GEAR: [u64; 256] = gear();

/// Numbers of a `splitmix64` generator.
const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state: u64 = 0;
    let mut index = 0;
    while index < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[index] = z ^ (z >> 31);
        index += 1;
    }
    table
}

impl Chunker {
    pub(super) fn new(log: u32) -> Self {
        Chunker { log }
    }

    pub(super) fn len_max(self) -> usize {
        4 << self.log
    }

    pub(super) fn cut(self, bytes: &[u8]) -> usize {
        let len_min = 1 << self.log >> 2;
        let end = bytes.len().min(self.len_max());
        if end <= len_min {
            return end;
        }
        let mut sum: u64 = 0;
        // The sum depends on 64 bytes, so earlier ones need not be read.
        for (at, &byte) in bytes[..end].iter().enumerate().skip(len_min.saturating_sub(64)) {
            sum = (sum << 1).wrapping_add(GEAR[usize::from(byte)]);
            if sum >> (64 - self.log) == 0 && at >= len_min {
                return at + 1;
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    fn cuts(bytes: &[u8]) -> Vec<usize> {
        let chunker = Chunker::new(12);
        let mut ends = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            at += chunker.cut(&bytes[at..]);
            ends.push(at);
        }
        ends
    }

    #[test]
    fn the_same_bytes_are_cut_at_the_same_places_behind_different_ones() {
        let mut random = Random::new(1);
        let same = random.noise(400_000);
        let (a, b) = (random.noise(10_000), random.noise(12_345));
        let ends = |before: &[u8]| -> Vec<usize> {
            let all = cuts(&[before, &same].concat());
            all.into_iter().filter_map(|end| end.checked_sub(before.len())).collect()
        };
        let (ends_a, ends_b) = (ends(&a), ends(&b));
        let shared = ends_a.iter().filter(|end| ends_b.contains(end)).count();
        assert!(ends_a.len() > 60 && shared + 8 > ends_a.len(), "{shared} of {}", ends_a.len());
    }

    #[test]
    fn chunks_keep_their_bounds() {
        let mut random = Random::new(2);
        for bytes in [random.noise(300_000), random.text(300_000), vec![0; 300_000]] {
            let ends = cuts(&bytes);
            let lens: Vec<usize> =
                std::iter::once(&0).chain(&ends).zip(&ends).map(|(start, end)| end - start).collect();
            assert!(lens[..lens.len() - 1].iter().all(|&len| (1024..=16_384).contains(&len)));
            assert_eq!(*ends.last().unwrap(), bytes.len());
        }
    }
}
