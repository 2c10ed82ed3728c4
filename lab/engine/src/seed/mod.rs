//! The documents that the lab can reproduce: each with its own figures, quoted, the plan that measures them again, and the tables
//! that put both side by side.
//!
//! One file each. Their tables are functions of results alone.

mod asked;
mod daily;
mod erofs_perf;
mod figures;
mod gentle;
mod squashfs21;
mod tools_ng;
mod trees;

use packfs::{Error, Result};

pub use asked::{Asked, Roles};
pub use trees::{SeedTrees, prepare};

use crate::results::{Results, Table};
use crate::session::Plan;
use crate::trees::TreeKind;

/// One of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// EROFS against SquashFS on a cloud disk.
    ErofsPerf,
    /// Squashfs 2.1 against zisofs, cloop and cramfs on CD-ROM and hard disk.
    Squashfs21,
    /// EROFS against SquashFS on the SD card of a Raspberry Pi.
    Gentle,
    /// How squashfs-tools-ng compresses in parallel, and unpacks.
    ToolsNg,
    /// Which file system to use for daily work.
    Daily,
}

/// What is known of a document.
#[derive(Clone, Copy, Debug)]
pub struct SeedRow {
    /// Which one.
    pub seed: Seed,
    /// As it is asked for.
    pub name: &'static str,
    /// Title, author and year of the document.
    pub source: &'static str,
    /// On what it was measured.
    pub setup: &'static str,
    /// Trees that stand for its own, the main one first.
    pub trees: &'static [TreeKind],
    /// Devices that stand for its own.
    pub devices: &'static [&'static str],
    /// Measured runs of each cell, if nobody says.
    pub runs: u32,
    /// Bytes that a tree is cut down to; none for all of it.
    pub bytes: Option<u64>,
    /// The same where minutes have to do.
    pub quick_bytes: u64,
    /// What a smaller tree has to hold all of.
    pub wanted: &'static [&'static str],
}

const MIB: u64 = 1 << 20;

/// All there are.
pub const SEEDS: [SeedRow; 5] = [
    SeedRow {
        seed: Seed::ErofsPerf,
        name: "erofs-perf",
        source: "erofs-utils, docs/PERFORMANCE.md (2023)",
        setup: "Xeon Platinum 8369B, 2 virtual cores, cloud disk of 3000 IOPS, Linux 6.2, erofs-utils 1.6, squashfs-tools 4.5.1; \
                Debian bullseye rootfs, silesia.tar",
        trees: &[TreeKind::Debian, TreeKind::Large],
        devices: &["cloud-3000iops"],
        runs: 5,
        bytes: None,
        quick_bytes: 40 * MIB,
        wanted: &[],
    },
    SeedRow {
        seed: Seed::Squashfs21,
        name: "squashfs21",
        source: "Squashfs 2.1, PERFORMANCE.README (Phillip Lougher, 2004)",
        setup: "live CDs of Ubuntu (Warty, 1.4 GB) and Damn Small Linux 0.8.4 (126 MB), from CD-ROM and from a hard disk",
        trees: &[TreeKind::Desktop, TreeKind::Debian],
        devices: &["cdrom-48x", "hdd"],
        runs: 1,
        bytes: Some(1400 * MIB),
        quick_bytes: 16 * MIB,
        wanted: &[],
    },
    SeedRow {
        seed: Seed::Gentle,
        name: "gentle",
        source: "EROFS vs. SquashFS: A Gentle Benchmark (David Oberhollenzer, sigma star gmbh, 2022)",
        setup: "Debian 10.2 XFCE live image (6.5 GiB); Raspberry Pi 3, micro SD card, Linux 5.19, worst of 5 runs",
        trees: &[TreeKind::Desktop],
        devices: &["sd"],
        runs: 5,
        bytes: None,
        quick_bytes: 60 * MIB,
        wanted: &["usr/bin"],
    },
    SeedRow {
        seed: Seed::ToolsNg,
        name: "tools-ng",
        source: "squashfs-tools-ng, doc/benchmark.txt (David Oberhollenzer, 2021)",
        setup: "Ryzen 7 3700X, 32 GiB, Fedora 33, Linux 5.11; Debian 10.2 XFCE live image as a tar (7,008,118,272 bytes) in a \
                tmpfs, worst of 4 runs",
        trees: &[TreeKind::Desktop],
        devices: &["memory"],
        runs: 4,
        bytes: None,
        quick_bytes: 60 * MIB,
        wanted: &[],
    },
    SeedRow {
        seed: Seed::Daily,
        name: "daily",
        source: "which file system to use for daily work? (braindevices, gist, 2022)",
        setup: "Core i7-9750H, Linux 6.0 and 6.1; USB3 SATA SSD (Intel 530), NVMe SSD (Intel 660p), USB hard disk (Seagate One \
                Touch); build folders of ffmpeg (1.4k files, 2.7 GiB) and boost (149k files, 2 GiB), and media",
        trees: &[TreeKind::Desktop, TreeKind::Linux, TreeKind::Media],
        devices: &["usb3-ssd", "nvme", "hdd"],
        runs: 3,
        bytes: None,
        quick_bytes: 40 * MIB,
        wanted: &[],
    },
];

impl Seed {
    /// What is known of it.
    pub fn row(self) -> &'static SeedRow {
        // Rows stand in the order of the enumeration; a test holds them to it.
        &SEEDS[self as usize]
    }

    /// The one of this name.
    ///
    /// Errors: `Usage` if there is none; the message lists all.
    pub fn named(name: &str) -> Result<Self> {
        SEEDS.iter().find(|row| row.name == name).map(|row| row.seed).ok_or_else(|| {
            let known: Vec<_> = SEEDS.iter().map(|row| row.name).collect();
            Error::usage(format!("there is no document {name:?}"))
                .hint(format!("there are {}", known.join(", ")))
        })
    }

    /// What measures it again.
    pub fn plan(self, asked: &Asked) -> Plan {
        let mut plan = asked.empty_plan(self.row());
        match self {
            Self::ErofsPerf => erofs_perf::cells(asked, &mut plan),
            Self::Squashfs21 => squashfs21::cells(asked, &mut plan),
            Self::Gentle => gentle::cells(asked, &mut plan),
            Self::ToolsNg => tools_ng::cells(asked, &mut plan),
            Self::Daily => daily::cells(asked, &mut plan),
        }
        plan
    }

    /// Its tables, with its own figures and those that were measured.
    pub fn tables(self, asked: &Asked, results: &Results) -> Vec<Table> {
        match self {
            Self::ErofsPerf => erofs_perf::tables(asked, results),
            Self::Squashfs21 => squashfs21::tables(asked, results),
            Self::Gentle => gentle::tables(asked, results),
            Self::ToolsNg => tools_ng::tables(asked, results),
            Self::Daily => daily::tables(asked, results),
        }
    }
}

#[cfg(test)]
mod tests;
