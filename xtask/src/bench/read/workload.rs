//! What is done with a mounted image.

use std::time::Duration;

use crate::corpus::Corpus;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// `tar cf - . | cat >/dev/null`.
    Tar,
    /// Every file once in random order.
    Cat,
    /// The same by four readers, each with files of its own.
    Readers,
    /// `find . -ls` of a tree nobody has looked at.
    FindCold,
    /// The same again.
    FindWarm,
    /// Pages of one large file in random order.
    Random4k,
    /// One large file from its beginning.
    Sequential,
    /// Tar, cat, four readers and find, one after the other on one mount: what the program needs in the end.
    Memory,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Time from begin to end: less is better.
    Wall,
    /// Reads a second: more is better.
    Iops,
    /// Megabytes (10^6 bytes) a second: more is better.
    Rate,
}

impl Workload {
    pub const ALL: [Self; 8] = [
        Self::Tar,
        Self::Cat,
        Self::Readers,
        Self::FindCold,
        Self::FindWarm,
        Self::Random4k,
        Self::Sequential,
        Self::Memory,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tar => "mount-tar",
            Self::Cat => "mount-cat",
            Self::Readers => "mount-readers",
            Self::FindCold => "mount-find-cold",
            Self::FindWarm => "mount-find-warm",
            Self::Random4k => "mount-random4k",
            Self::Sequential => "mount-sequential",
            Self::Memory => "mount-memory",
        }
    }

    /// What is done, for a page.
    pub fn about(self) -> &'static str {
        match self {
            Self::Tar => "`tar cf - . | cat >/dev/null`, mounted anew",
            Self::Cat => "every file read once in random order, mounted anew (`load cat`)",
            Self::Readers => "the same by 4 readers of files of their own (`load cat --threads 4`)",
            Self::FindCold => "`find . -ls`, mounted anew",
            Self::FindWarm => "`find . -ls` a second time",
            Self::Random4k => "4 KiB pages of one 500 MiB file in random order for 3 s (`load random`)",
            Self::Sequential => "the same file from its beginning for at most 3 s (`load sequential`)",
            Self::Memory => "tar, cat, 4 readers and find one after the other on one mount",
        }
    }

    pub fn corpus(self) -> Corpus {
        if self.is_of_large_file() { Corpus::Large } else { Corpus::Debian }
    }

    pub fn figure(self) -> Figure {
        match self {
            Self::Random4k => Figure::Iops,
            Self::Sequential => Figure::Rate,
            _ => Figure::Wall,
        }
    }

    /// Whether caches of the program and of the kernel together are limited, so that both programs have as much.
    pub fn is_of_large_file(self) -> bool {
        matches!(self, Self::Random4k | Self::Sequential)
    }
}

/// One run of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub wall: Duration,
    /// Of those who read.
    pub reader_cpu: Duration,
    /// Of the program that serves the mount, from its start to its end; None for the kernel's own mount.
    pub daemon_cpu: Option<Duration>,
    /// Of that program, in bytes.
    pub memory_peak: Option<u64>,
    /// Files or reads; 0 where nobody counts.
    pub operations: u64,
    pub bytes: u64,
}

impl Sample {
    /// The figure that is compared, in seconds, reads a second or megabytes a second.
    pub fn value(&self, figure: Figure) -> f64 {
        let seconds = self.wall.as_secs_f64();
        match figure {
            Figure::Wall => seconds,
            Figure::Iops => self.operations as f64 / seconds,
            Figure::Rate => self.bytes as f64 / 1e6 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_reads_and_megabytes_by_the_second() {
        let sample =
            Sample { wall: Duration::from_secs(2), operations: 3000, bytes: 5_000_000, ..Sample::default() };
        let values = [Figure::Wall, Figure::Iops, Figure::Rate].map(|figure| sample.value(figure));
        assert_eq!(values, [2.0, 1500.0, 2.5]);
    }
}
