//! What a mount of packfs has to reach: the one place that says so.

use super::workload::{Figure, Workload};
use crate::rivals::Format;

const MIB: u64 = 1 << 20;

/// Decoded blocks a mount keeps when it is not told how many, in bytes.
const CACHE_BUDGET: u64 = 64 * MIB;

/// What it may have resident besides.
const MEMORY_BESIDES: u64 = 40 * MIB;

/// Whom packfs is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opponent {
    /// The FUSE program of the format.
    Fuse,
    /// The kernel's own mount.
    Kernel,
}

/// A limit to the ratio of packfs to its opponent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Ahead, by however little.
    Below(f64),
}

impl Bound {
    pub fn holds(self, found: f64) -> bool {
        match self {
            Self::AtMost(limit) => found <= limit,
            Self::AtLeast(limit) => found >= limit,
            Self::Below(limit) => found < limit,
        }
    }

    pub fn spelled(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit:.2}"),
            Self::AtLeast(limit) => format!(">= {limit:.2}"),
            Self::Below(limit) => format!("< {limit:.2}"),
        }
    }
}

/// None where nothing was set.
pub fn of(workload: Workload, format: Format, opponent: Opponent) -> Option<Bound> {
    use Bound::{AtLeast, AtMost, Below};
    use Workload::{Cat, FindCold, FindWarm, Random4k, Readers, Sequential, Tar};
    Some(match (opponent, format, workload) {
        (Opponent::Fuse, _, Tar | Cat) => AtMost(0.6),
        (Opponent::Fuse, _, Readers | FindCold) => AtMost(0.7),
        (Opponent::Fuse, _, FindWarm) => AtMost(1.0),
        (Opponent::Fuse, _, Random4k) => AtLeast(1.5),
        (Opponent::Fuse, _, Sequential) => AtLeast(2.0),
        (Opponent::Kernel, Format::Squashfs, Tar | Cat | Readers) => Below(1.0),
        (Opponent::Kernel, Format::Erofs, Tar) => AtMost(1.5),
        (Opponent::Kernel, Format::Erofs, Readers) => AtMost(1.3),
        _ => return None,
    })
}

/// Most memory the program may have had after any work, in bytes.
pub const MEMORY_MAX: u64 = CACHE_BUDGET + MEMORY_BESIDES;

/// How a figure is called in a verdict.
pub fn figure_name(figure: Figure) -> &'static str {
    match figure {
        Figure::Wall => "wall",
        Figure::Iops => "IOPS",
        Figure::Rate => "MB/s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_a_lead_over_the_kernel_where_that_decodes_in_one_thread() {
        assert_eq!(of(Workload::Cat, Format::Squashfs, Opponent::Kernel), Some(Bound::Below(1.0)));
        assert_eq!(of(Workload::Tar, Format::Erofs, Opponent::Kernel), Some(Bound::AtMost(1.5)));
        assert_eq!(of(Workload::FindCold, Format::Erofs, Opponent::Kernel), None);
    }

    #[test]
    fn holds_at_the_limit_but_is_not_ahead_there() {
        assert!(Bound::AtMost(0.6).holds(0.6) && Bound::AtLeast(2.0).holds(2.0));
        assert!(!Bound::Below(1.0).holds(1.0) && Bound::Below(1.0).holds(0.99));
    }
}
