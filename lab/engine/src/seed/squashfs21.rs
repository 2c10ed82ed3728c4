//! Squashfs 2.1, PERFORMANCE.README: Squashfs 2.0 and 2.1, zisofs, cloop and cramfs, from CD-ROM and from a hard disk.

use super::asked::{Asked, RecipeParts, cell, recipe};
use super::figures::{Figures, compared, quoted, words};
use crate::results::{Cell, Recipe, Results, Table, Unit};
use crate::session::Plan;
use crate::workload::Workload;

/// Files systems of the document, and what stands beside them today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fs {
    Zisofs,
    Cloop,
    Cramfs,
    Squashfs20,
    Squashfs21,
    Squashfs40,
    Squashfs40Theirs,
    Erofs,
}

use Fs::{Cloop, Cramfs, Erofs, Squashfs20, Squashfs21, Squashfs40, Squashfs40Theirs, Zisofs};

/// What the document does not have.
const TODAY: [Fs; 3] = [Squashfs40Theirs, Squashfs40, Erofs];

/// Device, workload, seconds.
type Times = (&'static str, Workload, &'static [(Fs, f64)]);

/// One of the two live CDs.
struct Disc {
    title: &'static str,
    /// Number of the tree that stands for it.
    tree: usize,
    /// MB, as the document has them.
    uncompressed: f64,
    sizes: &'static [(Fs, f64)],
    times: [Times; 6],
}

const CDROM: &str = "cdrom-48x";
const HDD: &str = "hdd";

const UBUNTU: Disc = Disc {
    title: "Ubuntu live CD",
    tree: 0,
    uncompressed: 1400.0,
    sizes: &[(Zisofs, 589.81), (Cloop, 471.89), (Squashfs20, 448.58), (Squashfs21, 448.58)],
    times: [
        (CDROM, Workload::List, &[(Zisofs, 49.88), (Cloop, 20.80), (Squashfs20, 16.56), (Squashfs21, 10.14)]),
        (
            CDROM,
            Workload::SequentialData,
            &[(Zisofs, 1648.54), (Cloop, 355.72), (Squashfs20, 320.87), (Squashfs21, 315.46)],
        ),
        (
            CDROM,
            Workload::SizeOrder,
            &[(Zisofs, 6089.65), (Cloop, 2127.51), (Squashfs20, 1313.05), (Squashfs21, 1306.99)],
        ),
        (HDD, Workload::List, &[(Zisofs, 17.29), (Cloop, 16.46), (Squashfs20, 13.75), (Squashfs21, 6.94)]),
        (
            HDD,
            Workload::SequentialData,
            &[(Zisofs, 81.47), (Cloop, 94.06), (Squashfs20, 81.22), (Squashfs21, 75.46)],
        ),
        (
            HDD,
            Workload::SizeOrder,
            &[(Zisofs, 673.64), (Cloop, 337.93), (Squashfs20, 307.11), (Squashfs21, 301.87)],
        ),
    ],
};

const SMALL: Disc = Disc {
    title: "Damn Small Linux live CD",
    tree: 1,
    uncompressed: 126.0,
    sizes: &[(Cramfs, 52.19), (Squashfs20, 46.52), (Squashfs21, 46.52)],
    times: [
        (CDROM, Workload::List, &[(Cramfs, 10.85), (Squashfs20, 2.97), (Squashfs21, 2.43)]),
        (CDROM, Workload::SequentialData, &[(Cramfs, 55.38), (Squashfs20, 35.99), (Squashfs21, 33.83)]),
        (CDROM, Workload::SizeOrder, &[(Cramfs, 181.68), (Squashfs20, 99.45), (Squashfs21, 98.41)]),
        (HDD, Workload::List, &[(Cramfs, 1.77), (Squashfs20, 2.67), (Squashfs21, 1.87)]),
        (HDD, Workload::SequentialData, &[(Cramfs, 6.80), (Squashfs20, 7.23), (Squashfs21, 6.53)]),
        (HDD, Workload::SizeOrder, &[(Cramfs, 28.55), (Squashfs20, 25.44), (Squashfs21, 24.72)]),
    ],
};

static DISCS: [Disc; 2] = [UBUNTU, SMALL];

impl Fs {
    fn title(self) -> &'static str {
        match self {
            Zisofs => "zisofs",
            Cloop => "cloop",
            Cramfs => "cramfs",
            Squashfs20 => "Squashfs 2.0",
            Squashfs21 => "Squashfs 2.1",
            Squashfs40 => "SquashFS 4.0, gzip (packfs)",
            Squashfs40Theirs => "SquashFS 4.0, gzip (mksquashfs)",
            Erofs => "EROFS, lz4hc 64K (packfs)",
        }
    }

    /// All but one by packfs: their own makers are gone, or make other versions today.
    fn recipe(self) -> Recipe {
        match self {
            Zisofs => recipe("packfs", "iso9660", "gzip:9"),
            Cloop => recipe("packfs", "cloop", "gzip:9"),
            Cramfs => recipe("packfs", "cramfs", "gzip:9").words(&["--lossy"]),
            Squashfs20 => {
                recipe("packfs", "squashfs-legacy", "gzip:9").words(&["-O", "version=2.0", "--lossy"])
            }
            Squashfs21 => {
                recipe("packfs", "squashfs-legacy", "gzip:9").words(&["-O", "version=2.1", "--lossy"])
            }
            Squashfs40 => recipe("packfs", "squashfs", "gzip:9").block(64 << 10),
            Squashfs40Theirs => recipe("mksquashfs", "squashfs", "gzip:9").block(64 << 10),
            Erofs => recipe("packfs", "erofs", "lz4hc:12").block(64 << 10),
        }
    }

    /// Whether this Linux has a driver; a driver that is missing after all says so itself.
    fn is_mounted_by_kernel(self) -> bool {
        matches!(self, Squashfs40 | Squashfs40Theirs | Erofs)
    }
}

fn readers(fs: Fs) -> &'static [&'static str] {
    if fs.is_mounted_by_kernel() { &["kernel", "packfs-fuse"] } else { &["packfs-fuse"] }
}

/// The devices that a time was taken on, or the ones that are asked for.
fn devices<'a>(asked: &'a Asked, own: &'a str) -> Vec<&'a str> {
    asked.devices(&[own])
}

fn rows(quoted: &[(Fs, f64)]) -> Vec<(Fs, Option<f64>)> {
    let old = quoted.iter().map(|&(fs, figure)| (fs, Some(figure)));
    old.chain(TODAY.map(|fs| (fs, None))).collect()
}

pub(super) fn cells(asked: &Asked, plan: &mut Plan) {
    for disc in &DISCS {
        let tree = asked.roles.id(disc.tree);
        for (fs, _) in rows(disc.sizes) {
            plan.add(cell(tree, &fs.recipe(), None, Workload::ImageSize, "disk"));
        }
        for (own, workload, times) in &disc.times {
            for device in devices(asked, own) {
                for (fs, _) in rows(times) {
                    for reader in readers(fs) {
                        plan.add(cell(tree, &fs.recipe(), Some(reader), *workload, device));
                    }
                }
            }
        }
    }
}

pub(super) fn tables(asked: &Asked, results: &Results) -> Vec<Table> {
    let figures = Figures(results);
    let mut tables = Vec::new();
    for (number, disc) in DISCS.iter().enumerate() {
        tables.push(sizes(number + 1, disc, asked, figures));
        for (index, (own, workload, times)) in disc.times.iter().enumerate() {
            // A device that the document has no times of is shown once, without them.
            let has_own = |device: &str| disc.times.iter().any(|(own, ..)| *own == device);
            let is_shown = |device: &&str| if has_own(device) { own == device } else { index < 3 };
            for device in devices(asked, own).into_iter().filter(is_shown) {
                tables.push(read(disc, (*workload, *times), device, *own == device, asked, figures));
            }
        }
    }
    tables
}

fn sizes(number: usize, disc: &Disc, asked: &Asked, figures: Figures<'_>) -> Table {
    let tree = asked.roles.id(disc.tree);
    let bytes = figures.0.trees.iter().find(|facts| facts.id == tree).map_or(0, |facts| facts.bytes);
    let mut table_rows = vec![vec![
        words("uncompressed"),
        quoted(disc.uncompressed * 1e6),
        Cell::Figure(crate::results::Spread::exact(bytes as f64)),
    ]];
    for (fs, figure) in rows(disc.sizes) {
        let from = figure.map_or(Cell::Empty, |mb| quoted(mb * 1e6));
        table_rows.push(vec![words(fs.title()), from, figures.size(tree, &fs.recipe())]);
    }
    Table {
        title: format!("{number}. {}: sizes ({tree})", disc.title),
        method: "gzip at level 9, the largest block each takes by itself but 64K for SquashFS 4.0. zisofs, cloop, cramfs and Squashfs 2 \
                 are packed by packfs: nobody else makes all of them today. cramfs and \
                 Squashfs 2 hold no extended attributes (--lossy)."
            .into(),
        columns: compared(&["Filesystem"], Unit::Bytes, &["here"], None),
        rows: table_rows,
    }
}

fn read(
    disc: &Disc,
    (workload, times): (Workload, &[(Fs, f64)]),
    device: &str,
    is_own: bool,
    asked: &Asked,
    figures: Figures<'_>,
) -> Table {
    let tree = asked.roles.id(disc.tree);
    let row = |(fs, figure): (Fs, Option<f64>)| {
        let of = |reader: &str| figures.seconds(&cell(tree, &fs.recipe(), Some(reader), workload, device));
        let kernel = if fs.is_mounted_by_kernel() {
            of("kernel")
        } else {
            Cell::Missing("this Linux has no driver; read by packfs through FUSE".into())
        };
        let from = figure.filter(|_| is_own).map_or(Cell::Empty, quoted);
        vec![words(fs.title()), from, kernel, of("packfs-fuse")]
    };
    Table {
        title: format!("{}: {} ({tree}, {device})", disc.title, workload.row().title),
        method: format!(
            "{}; mounted anew and nothing of the image in memory before each run",
            workload.row().command
        ),
        columns: compared(&["Filesystem"], Unit::Seconds, &["kernel", "packfs FUSE"], None),
        rows: rows(times).into_iter().map(row).collect(),
    }
}
