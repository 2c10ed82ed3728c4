//! erofs-utils, docs/PERFORMANCE.md: EROFS and SquashFS with LZ4HC on a cloud disk of 3000 IOPS, Linux 6.2, erofs-utils 1.6,
//! squashfs-tools 4.5.1.

use super::Seed;
use super::asked::{Asked, RecipeParts, cell, recipe};
use super::figures::{Figures, cluster, compared, quoted, ratio, words};
use crate::results::{Cell, Recipe, Results, Table, Unit};
use crate::session::Plan;
use crate::workload::Workload;

/// Number of the tree among those of the document.
const ROOTFS: usize = 0;
const LARGE: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fs {
    Erofs,
    Squashfs,
}

use Fs::{Erofs, Squashfs};

/// Size of the image of the Debian root: bytes, file system, cluster.
const SIZES: [(f64, Fs, Option<u32>); 10] = [
    (124_669_952.0, Erofs, None),
    (124_522_496.0, Squashfs, None),
    (73_601_024.0, Squashfs, Some(4096)),
    (73_121_792.0, Erofs, Some(4096)),
    (67_162_112.0, Squashfs, Some(16384)),
    (65_478_656.0, Erofs, Some(16384)),
    (61_456_384.0, Squashfs, Some(65536)),
    (59_834_368.0, Erofs, Some(65536)),
    (59_150_336.0, Squashfs, Some(131_072)),
    (58_515_456.0, Erofs, Some(131_072)),
];

/// Seconds, file system, cluster.
type Times = [(f64, Fs, Option<u32>); 6];

const SEQUENTIAL_DATA: Times = [
    (10.257, Squashfs, Some(4096)),
    (1.111, Erofs, None),
    (1.034, Squashfs, None),
    (0.9413, Squashfs, Some(131_072)),
    (0.8481, Erofs, Some(4096)),
    (0.7242, Erofs, Some(131_072)),
];
const SEQUENTIAL_METADATA: Times = [
    (0.4196, Erofs, None),
    (0.1425, Squashfs, Some(4096)),
    (0.1292, Squashfs, None),
    (0.1254, Squashfs, Some(131_072)),
    (0.0755, Erofs, Some(4096)),
    (0.0658, Erofs, Some(131_072)),
];
const SMALL_RANDOM_DATA: Times = [
    (1.386, Squashfs, Some(4096)),
    (1.083, Squashfs, None),
    (1.067, Squashfs, Some(131_072)),
    (0.2496, Erofs, Some(4096)),
    (0.2378, Erofs, None),
    (0.1896, Erofs, Some(131_072)),
];
const SMALL_RANDOM_METADATA: Times = [
    (0.817, Squashfs, Some(4096)),
    (0.801, Squashfs, Some(131_072)),
    (0.7413, Squashfs, None),
    (0.1978, Erofs, None),
    (0.0631, Erofs, Some(4096)),
    (0.0607, Erofs, Some(131_072)),
];
const FULL_RANDOM_DATA: Times = [
    (20.668, Squashfs, Some(4096)),
    (12.543, Squashfs, None),
    (11.753, Squashfs, Some(131_072)),
    (1.493, Erofs, None),
    (1.223, Erofs, Some(4096)),
    (0.5982, Erofs, Some(131_072)),
];
const FULL_RANDOM_METADATA: Times = [
    (9.212, Squashfs, Some(131_072)),
    (8.905, Squashfs, Some(4096)),
    (7.961, Squashfs, None),
    (0.6612, Erofs, Some(4096)),
    (0.1258, Erofs, None),
    (0.1196, Erofs, Some(131_072)),
];

const READS: [(Workload, Times); 6] = [
    (Workload::SequentialData, SEQUENTIAL_DATA),
    (Workload::SequentialMetadata, SEQUENTIAL_METADATA),
    (Workload::SmallRandomData, SMALL_RANDOM_DATA),
    (Workload::SmallRandomMetadata, SMALL_RANDOM_METADATA),
    (Workload::FullRandomData, FULL_RANDOM_DATA),
    (Workload::FullRandomMetadata, FULL_RANDOM_METADATA),
];

/// Size of the image of silesia.tar.
const LARGE_SIZES: [(f64, Fs, Option<u32>); 8] = [
    (114_339_840.0, Squashfs, Some(4096)),
    (104_972_288.0, Erofs, Some(4096)),
    (98_033_664.0, Squashfs, Some(16384)),
    (89_571_328.0, Erofs, Some(16384)),
    (85_143_552.0, Squashfs, Some(65536)),
    (81_211_392.0, Squashfs, Some(131_072)),
    (80_519_168.0, Erofs, Some(65536)),
    (78_888_960.0, Erofs, Some(131_072)),
];

/// MiB/s, file system, cluster.
type Rates = [(f64, Fs, Option<u32>); 8];

const LARGE_SEQUENTIAL: Rates = [
    (624.0, Erofs, Some(65536)),
    (600.0, Erofs, Some(16384)),
    (569.0, Erofs, Some(4096)),
    (535.0, Erofs, Some(131_072)),
    (236.0, Squashfs, Some(131_072)),
    (157.0, Squashfs, Some(65536)),
    (55.2, Squashfs, Some(16384)),
    (12.5, Squashfs, Some(4096)),
];
const LARGE_RANDOM: Rates = [
    (242.0, Erofs, Some(131_072)),
    (232.0, Squashfs, Some(131_072)),
    (198.0, Erofs, Some(65536)),
    (150.0, Squashfs, Some(65536)),
    (96.4, Erofs, Some(16384)),
    (49.5, Squashfs, Some(16384)),
    (33.7, Erofs, Some(4096)),
    (6817.0 / 1024.0, Squashfs, Some(4096)),
];
const LARGE_SMALL_RANDOM: Rates = [
    (19.2, Erofs, Some(131_072)),
    (16.9, Erofs, Some(65536)),
    (15.1, Squashfs, Some(131_072)),
    (14.7, Erofs, Some(16384)),
    (13.8, Squashfs, Some(65536)),
    (13.0, Erofs, Some(4096)),
    (11.7, Squashfs, Some(16384)),
    (4376.0 / 1024.0, Squashfs, Some(4096)),
];

const LARGE_READS: [(Workload, Rates); 3] = [
    (Workload::LargeSequential, LARGE_SEQUENTIAL),
    (Workload::LargeRandom, LARGE_RANDOM),
    (Workload::LargeSmallRandom, LARGE_SMALL_RANDOM),
];

impl Fs {
    fn name(self) -> &'static str {
        if self == Erofs { "erofs" } else { "squashfs" }
    }

    /// What the document made it with, with the document's options.
    fn rival(self, tree: usize, cluster: Option<u32>) -> Recipe {
        match (self, cluster) {
            (Erofs, None) => recipe("mkfs.erofs", "erofs", "none").words(&["-T0"]),
            (Erofs, Some(len)) if tree == LARGE => recipe("mkfs.erofs", "erofs", "lz4hc:12").block(len),
            (Erofs, Some(len)) => {
                recipe("mkfs.erofs", "erofs", "lz4hc:12").block(len).words(&["-Efragments", "-T0"])
            }
            (Squashfs, None) => recipe("mksquashfs", "squashfs", "none").words(&[
                "-no-xattrs",
                "-all-time",
                "0",
                "-no-duplicates",
            ]),
            (Squashfs, Some(len)) if tree == LARGE => {
                recipe("mksquashfs", "squashfs", "lz4hc").block(len).words(&["-no-xattrs"])
            }
            (Squashfs, Some(len)) => {
                recipe("mksquashfs", "squashfs", "lz4hc").block(len).words(&["-no-xattrs", "-all-time", "0"])
            }
        }
    }

    /// The same of packfs.
    fn ours(self, tree: usize, cluster: Option<u32>) -> Recipe {
        let codec = if cluster.is_some() { "lz4hc:12" } else { "none" };
        let recipe = recipe("packfs", self.name(), codec);
        let recipe = match cluster {
            Some(len) => recipe.block(len),
            None => recipe,
        };
        match (self, tree) {
            (Erofs, LARGE) => recipe.words(&["-O", "fragments=off"]),
            (Erofs, _) => recipe.words(&["--mtime", "@0"]),
            (Squashfs, LARGE) => recipe.words(&["--no-xattrs"]),
            (Squashfs, _) => recipe.words(&["--no-xattrs", "--mtime", "@0"]),
        }
    }
}

/// What every row begins with.
const TITLES: [&str; 2] = ["Filesystem", "Cluster size"];

/// Who reads: whose image, and how.
const KERNEL: &str = "kernel";
const FUSE: &str = "packfs-fuse";

/// In minutes only the ends of the range are measured.
fn is_wanted(asked: &Asked, cluster: Option<u32>) -> bool {
    !asked.quick || !matches!(cluster, Some(16384 | 65536))
}

fn both(fs: Fs, tree: usize, len: Option<u32>) -> [Recipe; 2] {
    [fs.rival(tree, len), fs.ours(tree, len)]
}

pub(super) fn cells(asked: &Asked, plan: &mut Plan) {
    let (rootfs, large) = (asked.roles.id(ROOTFS), asked.roles.id(LARGE));
    for (tree, number, sizes) in [(rootfs, ROOTFS, &SIZES[..]), (large, LARGE, &LARGE_SIZES)] {
        for (_, fs, len) in sizes {
            // Sizes are quickly made, so all are.
            both(*fs, number, *len)
                .iter()
                .for_each(|recipe| plan.add(cell(tree, recipe, None, Workload::ImageSize, "disk")));
        }
    }
    for device in asked.devices(Seed::ErofsPerf.row().devices) {
        for (workload, times) in &READS {
            for (_, fs, len) in times.iter().filter(|(_, _, len)| is_wanted(asked, *len)) {
                let [rival, ours] = both(*fs, ROOTFS, *len);
                for (recipe, reader) in [(&rival, KERNEL), (&ours, KERNEL), (&ours, FUSE)] {
                    plan.add(cell(rootfs, recipe, Some(reader), *workload, device));
                }
            }
        }
        for (workload, rates) in &LARGE_READS {
            for (_, fs, len) in rates.iter().filter(|(_, _, len)| is_wanted(asked, *len)) {
                let [rival, ours] = both(*fs, LARGE, *len);
                for (recipe, reader) in [(&rival, KERNEL), (&ours, KERNEL), (&ours, FUSE)] {
                    plan.add(cell(large, recipe, Some(reader), *workload, device));
                }
            }
        }
    }
}

pub(super) fn tables(asked: &Asked, results: &Results) -> Vec<Table> {
    let figures = Figures(results);
    let mut tables = vec![sizes("Image size", asked, ROOTFS, &SIZES, figures)];
    let devices = asked.devices(Seed::ErofsPerf.row().devices);
    for device in &devices {
        tables.extend(READS.iter().map(|(workload, times)| reads(*workload, asked, times, device, figures)));
    }
    tables.push(sizes("Image size of a single large file", asked, LARGE, &LARGE_SIZES, figures));
    for device in &devices {
        let of =
            |(workload, rates): &(Workload, Rates)| large_reads(*workload, asked, rates, device, figures);
        tables.extend(LARGE_READS.iter().map(of));
    }
    tables
}

fn sizes(
    title: &str,
    asked: &Asked,
    number: usize,
    sizes: &[(f64, Fs, Option<u32>)],
    figures: Figures<'_>,
) -> Table {
    let tree = asked.roles.id(number);
    let row = |(bytes, fs, len): &(f64, Fs, Option<u32>)| {
        let [theirs, ours] = both(*fs, number, *len).map(|recipe| figures.size(tree, &recipe));
        let by = ratio(&ours, &theirs);
        vec![words(fs.name()), cluster(*len), quoted(*bytes), theirs, ours, by]
    };
    Table {
        title: format!("{title} ({tree})"),
        method: "LZ4HC at level 12; mkfs.erofs -Efragments -T0 and mksquashfs -Xhc -no-xattrs -all-time 0, for the large file \
                 without fragments and with its own times; packfs alike. The document's tree is another one, so its sizes compare \
                 with each other, not with these."
            .into(),
        columns: compared(
            &TITLES,
            Unit::Bytes,
            &["mkfs.erofs, mksquashfs", "packfs"],
            Some("packfs to theirs"),
        ),
        rows: sizes.iter().map(row).collect(),
    }
}

fn headings(unit: Unit) -> Vec<crate::results::Column> {
    let here = ["their image, kernel", "packfs image, kernel", "packfs image, packfs FUSE"];
    compared(&TITLES, unit, &here, Some("packfs to theirs, kernel"))
}

fn measured_row(
    tree: (usize, &str),
    (fs, len): (Fs, Option<u32>),
    from: Cell,
    figure: impl Fn(&crate::session::Cell) -> Cell,
    workload: Workload,
    device: &str,
) -> Vec<Cell> {
    let [rival, ours] = both(fs, tree.0, len);
    let of = |recipe: &Recipe, reader: &str| figure(&cell(tree.1, recipe, Some(reader), workload, device));
    let (theirs, kernel, fuse) = (of(&rival, KERNEL), of(&ours, KERNEL), of(&ours, FUSE));
    let by = ratio(&kernel, &theirs);
    vec![words(fs.name()), cluster(len), from, theirs, kernel, fuse, by]
}

fn reads(workload: Workload, asked: &Asked, times: &Times, device: &str, figures: Figures<'_>) -> Table {
    let tree = (ROOTFS, asked.roles.id(ROOTFS));
    let wanted = times.iter().filter(|(_, _, len)| is_wanted(asked, *len));
    let row = |(seconds, fs, len): &(f64, Fs, Option<u32>)| {
        measured_row(tree, (*fs, *len), quoted(*seconds), |cell| figures.seconds(cell), workload, device)
    };
    Table {
        title: format!("{} ({}, {device})", workload.row().title, tree.1),
        method: format!(
            "{}; mounted anew and nothing of the image in memory before each run",
            workload.row().command
        ),
        columns: headings(Unit::Seconds),
        rows: wanted.map(row).collect(),
    }
}

fn large_reads(
    workload: Workload,
    asked: &Asked,
    rates: &Rates,
    device: &str,
    figures: Figures<'_>,
) -> Table {
    let tree = (LARGE, asked.roles.id(LARGE));
    let wanted = rates.iter().filter(|(_, _, len)| is_wanted(asked, *len));
    let row = |(mib, fs, len): &(f64, Fs, Option<u32>)| {
        let from = quoted(mib * 1024.0 * 1024.0);
        measured_row(tree, (*fs, *len), from, |cell| figures.rate(cell), workload, device)
    };
    Table {
        title: format!("{} ({}, {device})", workload.row().title, tree.1),
        method: format!(
            "{}; mounted anew and nothing of the image in memory before each run",
            workload.row().command
        ),
        columns: headings(Unit::BytesPerSecond),
        rows: wanted.map(row).collect(),
    }
}
