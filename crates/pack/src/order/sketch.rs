//! Sketch of a file's contents: similar files have many features in common.
//!
//! Every run of eight bytes is hashed. Hashes in the lowest eighth are the file's shingles, and the
//! least [`FEATURES_MAX`] of them its sketch. Sampling depends on content only, so text is
//! recognized wherever it lies in a file, and two sketches overlap about as much as their files
//! (min-hash, Broder 1997).

/// Most features of one file.
pub(super) const FEATURES_MAX: usize = 64;
/// Length of a run in bytes.
const RUN_LEN: usize = 8;
const SAMPLED: u32 = 8;
/// Features collected before the least ones are selected.
const KEPT_MAX: usize = 4 * FEATURES_MAX;
/// Runs examined between two checks of the number collected.
const LOOKED_AT: usize = 256;

/// Ascending, without duplicates.
pub(super) fn sketch(bytes: &[u8]) -> Box<[u32]> {
    let mut features = Vec::with_capacity(KEPT_MAX + LOOKED_AT);
    // Features above the least ones so far can be dropped, so few are kept after the first
    // selection.
    let mut limit = u32::MAX / SAMPLED;
    let mut rest = bytes;
    while rest.len() >= RUN_LEN {
        let now = &rest[..rest.len().min(LOOKED_AT + RUN_LEN - 1)];
        // Selection is unpredictable, so it only advances an index instead of branching.
        let mut found = [0; LOOKED_AT];
        let mut count = 0;
        for run in now.windows(RUN_LEN).filter_map(<[u8]>::first_chunk) {
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

/// Returns a feature of a run. It must not reveal the run's contents, or the least features would
/// all come from one kind of data; both halves of a product are folded so that every bit depends on
/// the whole run.
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
    fn recognizes_the_same_text_at_any_offset() {
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
