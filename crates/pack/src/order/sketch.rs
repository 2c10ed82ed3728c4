//! What a file is about, in a few numbers: files with much in common have many of them in common.
//!
//! Every run of eight bytes has a hash; those whose hash falls into the lowest eighth are the
//! file's shingles, and the least [`FEATURES_MAX`] of them its sketch. Which runs count depends on
//! their bytes alone (content-defined), so the same text is seen wherever it lies in a file, and
//! two sketches have about as large a part in common as the files themselves (min-hash, Broder
//! 1997).

/// Most features of one file.
pub(super) const FEATURES_MAX: usize = 64;
/// Length of a run in bytes.
const RUN_LEN: usize = 8;
/// One run in so many counts.
const SAMPLED: u32 = 8;
/// Features collected before the least of them are picked out.
const KEPT_MAX: usize = 4 * FEATURES_MAX;
/// Runs that are looked at between two looks at how many were collected.
const LOOKED_AT: usize = 256;

/// The features of `bytes`, rising, each once.
pub(super) fn sketch(bytes: &[u8]) -> Box<[u32]> {
    let mut features = Vec::with_capacity(KEPT_MAX + LOOKED_AT);
    // What is above the least ones so far cannot be among the least of all: few are kept after the
    // first.
    let mut limit = u32::MAX / SAMPLED;
    let mut rest = bytes;
    while rest.len() >= RUN_LEN {
        let now = &rest[..rest.len().min(LOOKED_AT + RUN_LEN - 1)];
        // Whether one counts cannot be foretold, so nothing is decided by it but where the next one
        // goes.
        let mut found = [0; LOOKED_AT];
        let mut count = 0;
        for run in now.array_windows::<RUN_LEN>() {
            let feature = feature(u64::from_le_bytes(*run));
            found[count % LOOKED_AT] = feature;
            count += usize::from(feature <= limit);
        }
        features.extend_from_slice(&found[..count]);
        if features.len() >= KEPT_MAX {
            keep_least(&mut features);
            limit = features.get(FEATURES_MAX - 1).copied().unwrap_or(limit);
        }
        rest = &rest[now.len() - (RUN_LEN - 1)..];
    }
    keep_least(&mut features);
    features.into()
}

fn keep_least(features: &mut Vec<u32>) {
    features.sort_unstable();
    features.dedup();
    features.truncate(FEATURES_MAX);
}

/// A feature must not say how its run looks, or the least ones would be those of one kind of data:
/// both halves of a product are folded, so that every bit of it depends on all of the run.
fn feature(run: u64) -> u32 {
    let product = u128::from(run ^ 0x9e37_79b9_7f4a_7c15) * 0xbf58_476d_1ce4_e5b9;
    let folded = product as u64 ^ (product >> 64) as u64;
    (folded >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u32, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn common(a: &[u32], b: &[u32]) -> usize {
        a.iter().filter(|feature| b.binary_search(feature).is_ok()).count()
    }

    #[test]
    fn the_same_text_is_seen_wherever_it_lies() {
        let shared = text(1, 20_000);
        let a = [text(2, 1_001), shared.clone()].concat();
        let b = [shared, text(3, 2_000)].concat();
        let other = text(4, 21_000);
        let [a, b, other] = [a, b, other].map(|bytes| sketch(&bytes));
        assert!(common(&a, &b) > FEATURES_MAX / 2, "{}", common(&a, &b));
        assert_eq!(common(&a, &other), 0);
    }

    #[test]
    fn a_sketch_is_short_and_sorted() {
        let long = sketch(&text(5, 1 << 20));
        assert_eq!(long.len(), FEATURES_MAX);
        assert!(long.is_sorted_by(|a, b| a < b));
        assert!(sketch(b"short").is_empty());
    }
}
