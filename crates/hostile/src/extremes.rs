//! Values that figures rarely have: ends of ranges, what is one beside them, and what other figures
//! of the image say.

use crate::Field;
use packfs_testkit::Random;

/// Values at which lengths and counts change their meaning.
const EDGES: [u64; 26] = [
    0,
    1,
    2,
    3,
    7,
    8,
    12,
    31,
    32,
    127,
    128,
    255,
    256,
    257,
    511,
    512,
    4095,
    4096,
    4097,
    8191,
    8192,
    8193,
    65_535,
    65_536,
    1 << 20,
    12 << 20,
];

/// A value for `field`, in the image where it stands.
pub(crate) fn extreme(image: &[u8], field: Field, others: &[Field], random: &mut Random) -> u64 {
    let bits = 8 * field.len as u32;
    let max = u64::MAX >> (64 - bits);
    let now = field.get(image);
    let value = match random.below(12) {
        0 => 0,
        1 => max - random.below(3),
        // The sign, and around it.
        2 => (1 << (bits - 1)) - random.below(2),
        3 => now.wrapping_add(1 + random.below(2)),
        4 => now.wrapping_sub(1 + random.below(2)),
        5 => now ^ 1 << random.below(u64::from(bits)),
        6 | 7 => EDGES[random.below(EDGES.len() as u64) as usize],
        8 => (image.len() as u64).wrapping_add(random.below(5)).wrapping_sub(2) >> (random.below(2) * 12),
        9 | 10 if !others.is_empty() => others[random.below(others.len() as u64) as usize].get(image),
        _ => random.next() >> (random.below(u64::from(bits)) + u64::from(64 - bits)),
    };
    value & max
}
