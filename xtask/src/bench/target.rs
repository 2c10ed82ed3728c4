//! What packfs has to reach against the rival of each verb: the one place that says so.

use super::case::{Case, Verb};
use super::kernel::Work;
use crate::corpus::Corpus;
use crate::rivals::Format;

const MIB: u64 = 1 << 20;

/// Upper limits; ratios are packfs to rival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    pub wall_ratio_max: f64,
    /// None where nothing is compressed.
    pub len_ratio_max: Option<f64>,
    /// Resident memory in bytes, whatever the rival takes; None where none was set.
    pub memory_max: Option<Memory>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub fixed: u64,
    pub per_entry: u64,
}

impl Memory {
    pub fn for_entries(self, entries: u64) -> u64 {
        self.fixed + self.per_entry * entries
    }
}

/// Which cases a target is for; None means every one.
struct Row {
    verb: Verb,
    format: Format,
    corpus: Option<Corpus>,
    codec: Option<&'static str>,
    target: Target,
}

const fn pack(wall_ratio_max: f64, len_ratio_max: f64) -> Target {
    let memory_max = Some(Memory { fixed: 200 * MIB, per_entry: 300 });
    Target { wall_ratio_max, len_ratio_max: Some(len_ratio_max), memory_max }
}

const fn unpack(wall_ratio_max: f64) -> Target {
    let memory_max = Some(Memory { fixed: 150 * MIB, per_entry: 0 });
    Target { wall_ratio_max, len_ratio_max: None, memory_max }
}

const fn tar(wall_ratio_max: f64) -> Target {
    Target { wall_ratio_max, len_ratio_max: None, memory_max: None }
}

const fn row(verb: Verb, format: Format, codec: Option<&'static str>, target: Target) -> Row {
    Row { verb, format, corpus: None, codec, target }
}

/// The first row that fits a case holds.
const ROWS: [Row; 17] = [
    Row { corpus: Some(Corpus::Same60k), ..row(Verb::Pack, Format::Squashfs, None, pack(0.1, 1.0)) },
    row(Verb::Pack, Format::Squashfs, Some("gzip"), pack(0.4, 0.99)),
    row(Verb::Pack, Format::Squashfs, None, pack(1.0, 1.0)),
    row(Verb::Unpack, Format::Squashfs, Some("gzip"), unpack(0.5)),
    row(Verb::Unpack, Format::Squashfs, Some("zstd"), unpack(0.7)),
    row(Verb::Unpack, Format::Squashfs, Some("lz4"), unpack(0.7)),
    // Both spend nearly all of their time in the same decoder on all cores.
    row(Verb::Unpack, Format::Squashfs, Some("xz"), unpack(0.95)),
    row(Verb::Unpack, Format::Squashfs, None, unpack(0.9)),
    row(Verb::Tar, Format::Squashfs, None, tar(0.55)),
    Row { corpus: Some(Corpus::Releases), ..row(Verb::Pack, Format::Erofs, None, pack(0.05, 1.0)) },
    row(Verb::Pack, Format::Erofs, Some("zstd"), pack(0.3, 1.0)),
    row(Verb::Pack, Format::Erofs, Some("deflate"), pack(0.3, 1.0)),
    row(Verb::Pack, Format::Erofs, Some("lz4hc"), pack(0.6, 1.0)),
    row(Verb::Pack, Format::Erofs, Some("lzma"), pack(0.9, 1.0)),
    row(Verb::Pack, Format::Erofs, None, pack(1.0, 1.0)),
    row(Verb::Unpack, Format::Erofs, Some("lzma"), unpack(0.55)),
    row(Verb::Unpack, Format::Erofs, None, unpack(0.5)),
];

/// The same for the kernel's own mount of an image of packfs, against one of mkfs.erofs with the same clusters.
pub fn kernel_wall_ratio_max(work: Work) -> f64 {
    match work {
        Work::Metadata => 0.9,
        Work::Tree => 1.0,
    }
}

pub fn of(case: &Case) -> Option<Target> {
    let fits = |row: &&Row| {
        (row.verb, row.format) == (case.verb, case.format)
            && row.corpus.is_none_or(|corpus| corpus == case.corpus)
            && row.codec.is_none_or(|codec| codec == case.codec.name)
    };
    ROWS.iter().find(fits).map(|row| row.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::{Filter, select};

    fn target(label: &str) -> Target {
        let cases = select(&[], &Filter::default()).unwrap();
        of(cases.iter().find(|case| case.label() == label).unwrap()).unwrap()
    }

    #[test]
    fn asks_for_less_time_where_libdeflate_helps() {
        assert_eq!(target("pack debian squashfs gzip:9 128K"), pack(0.4, 0.99));
        assert_eq!(target("pack debian squashfs zstd:15 1M"), pack(1.0, 1.0));
        assert_eq!(target("unpack debian squashfs gzip:9 128K"), unpack(0.5));
        assert_eq!(target("unpack debian squashfs xz 128K"), unpack(0.95));
        assert_eq!(target("tar debian squashfs lzo:8 128K"), tar(0.55));
    }

    #[test]
    fn asks_for_one_pass_instead_of_many_where_the_rival_bisects() {
        assert_eq!(target("pack debian erofs zstd:15 64K"), pack(0.3, 1.0));
        assert_eq!(target("pack debian erofs lzma:6 1M fragments"), pack(0.9, 1.0));
        assert_eq!(target("unpack debian erofs lz4 64K"), unpack(0.5));
    }

    #[test]
    fn asks_for_a_tenth_where_the_rival_is_quadratic() {
        assert_eq!(target("pack same60k squashfs gzip:9 128K"), pack(0.1, 1.0));
    }

    #[test]
    fn grows_the_memory_of_pack_with_the_number_of_entries() {
        let memory = target("pack small100k squashfs zstd:15 128K").memory_max.unwrap();
        assert_eq!(memory.for_entries(100_000), 200 * MIB + 30_000_000);
    }
}
