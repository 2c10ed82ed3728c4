//! squashfs-tools-ng, doc/benchmark.txt: packing a tar in parallel with every compressor, unpacking, and sizes.

use super::Seed;
use super::asked::{Asked, cell, recipe};
use super::figures::{Figures, column, compared, quoted, quoted_column, ratio, words};
use crate::results::{Cell, Recipe, Results, Spread, Table, Unit};
use crate::session::{self, Plan};
use crate::workload::Workload;

/// Length of the document's tar.
const TAR_LEN: f64 = 7_008_118_272.0;

/// A compressor: its title, packfs's name, seconds serially and with 1 to 16 jobs, to unpack, and bytes of the image.
struct Row {
    title: &'static str,
    codec: &'static str,
    serial: f64,
    packing: [f64; 16],
    unpacking: f64,
    size: f64,
}

static ROWS: [Row; 7] = [
    Row {
        title: "XZ",
        codec: "xz",
        serial: 1108.39,
        packing: [
            1116.06, 591.21, 415.90, 320.02, 263.94, 224.23, 196.78, 175.04, 166.52, 159.35, 151.08, 144.72,
            137.91, 132.94, 126.76, 119.06,
        ],
        unpacking: 120.53,
        size: 2_098_466_816.0,
    },
    Row {
        title: "lzma",
        codec: "lzma",
        serial: 995.43,
        packing: [
            990.33, 536.61, 370.48, 288.35, 235.69, 200.63, 176.35, 157.82, 148.88, 141.08, 136.27, 128.91,
            122.67, 117.79, 113.51, 107.15,
        ],
        unpacking: 118.91,
        size: 2_102_169_600.0,
    },
    Row {
        title: "gzip",
        codec: "gzip",
        serial: 609.79,
        packing: [
            598.85, 312.14, 215.92, 165.50, 136.28, 116.44, 100.66, 89.79, 83.01, 77.04, 71.52, 67.21, 63.43,
            59.45, 56.37, 52.56,
        ],
        unpacking: 20.57,
        size: 2_471_276_544.0,
    },
    Row {
        title: "LZO",
        codec: "lzo",
        serial: 753.14,
        packing: [
            753.53, 394.21, 273.14, 210.32, 172.33, 146.80, 128.61, 113.47, 106.14, 99.92, 94.23, 89.33,
            84.39, 80.87, 76.68, 71.49,
        ],
        unpacking: 10.65,
        size: 2_732_015_616.0,
    },
    Row {
        title: "LZ4",
        codec: "lz4",
        serial: 13.58,
        packing: [
            11.25, 6.41, 4.84, 4.29, 4.19, 4.28, 4.24, 4.46, 4.64, 4.84, 5.00, 5.28, 5.41, 5.71, 5.74, 6.37,
        ],
        unpacking: 2.59,
        size: 3_381_751_808.0,
    },
    Row {
        title: "zstd",
        codec: "zstd",
        serial: 550.59,
        packing: [
            550.37, 294.12, 205.14, 159.71, 132.27, 112.79, 99.26, 88.22, 84.97, 81.61, 77.51, 74.10, 71.83,
            68.86, 65.78, 62.52,
        ],
        unpacking: 7.74,
        size: 2_295_078_912.0,
    },
    Row {
        title: "none",
        codec: "none",
        serial: 5.86,
        packing: [
            4.23, 4.13, 4.58, 4.62, 4.94, 5.08, 5.43, 5.68, 5.76, 5.94, 6.14, 6.39, 6.51, 6.68, 6.91, 7.10,
        ],
        unpacking: 1.42,
        size: 6_542_389_248.0,
    },
];

/// Who packs and unpacks.
#[derive(Clone, Copy)]
enum Who {
    Theirs,
    Ours,
}

impl Row {
    fn recipe(&self, who: Who) -> Recipe {
        match who {
            Who::Theirs => recipe("tar2sqfs", "squashfs", self.codec),
            // Levels are those that tar2sqfs takes by itself.
            Who::Ours => {
                let codec = match self.codec {
                    "gzip" => "gzip:9",
                    "zstd" => "zstd:15",
                    other => other,
                };
                Recipe { block_len: Some(128 << 10), ..recipe("packfs", "squashfs", codec) }
            }
        }
    }

    fn build(&self, asked: &Asked, who: Who, device: &str, jobs: u32) -> session::Cell {
        let cell = cell(asked.roles.id(0), &self.recipe(who), None, Workload::Build, device);
        session::Cell { jobs: Some(jobs), ..cell }
    }

    fn decode(&self, asked: &Asked, who: Who, device: &str) -> session::Cell {
        let reader = match who {
            Who::Theirs => "sqfs2tar",
            Who::Ours => "packfs",
        };
        let cell = cell(asked.roles.id(0), &self.recipe(who), Some(reader), Workload::Decode, device);
        // sqfs2tar has one thread.
        session::Cell { jobs: Some(1), ..cell }
    }
}

const BOTH: [Who; 2] = [Who::Theirs, Who::Ours];

fn devices(asked: &Asked) -> Vec<&str> {
    asked.devices(Seed::ToolsNg.row().devices)
}

/// One to all, as many as the document has at most.
fn jobs(asked: &Asked) -> std::ops::RangeInclusive<u32> {
    1..=asked.jobs.clamp(1, 16)
}

pub(super) fn cells(asked: &Asked, plan: &mut Plan) {
    for device in devices(asked) {
        for row in &ROWS {
            for who in BOTH {
                plan.add(cell(asked.roles.id(0), &row.recipe(who), None, Workload::ImageSize, "disk"));
                jobs(asked).for_each(|jobs| plan.add(row.build(asked, who, device, jobs)));
                plan.add(row.decode(asked, who, device));
            }
        }
    }
}

pub(super) fn tables(asked: &Asked, results: &Results) -> Vec<Table> {
    let figures = Figures(results);
    let mut tables = Vec::new();
    for device in devices(asked) {
        tables.push(packing(asked, device, figures));
        tables.push(speedup(asked, device, figures));
        tables.push(throughput(asked, device, figures));
        tables.push(unpacking(asked, device, figures));
    }
    tables.push(sizes(asked, figures));
    tables
}

/// The document's seconds with so many jobs.
fn documented(row: &Row, jobs: u32) -> f64 {
    row.packing[jobs as usize - 1]
}

fn packing(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let mut rows = Vec::new();
    for row in &ROWS {
        for jobs in jobs(asked) {
            let [theirs, ours] = BOTH.map(|who| figures.seconds(&row.build(asked, who, device, jobs)));
            let by = ratio(&ours, &theirs);
            let count = Cell::Figure(Spread::exact(jobs.into()));
            rows.push(vec![words(row.title), count, quoted(documented(row, jobs)), theirs, ours, by]);
        }
    }
    Table {
        title: format!("1. Parallel compression: run time ({}, {device})", asked.roles.id(0)),
        method: "a tar repacked by tar2sqfs -j JOBS -c COMPRESSOR, and by packfs pack with the same codec, level and block; the \
                 document has the worst of four runs. Its serial version is another build of tar2sqfs, which nobody ships."
            .into(),
        columns: vec![
            column("Compressor", Unit::Text),
            column("Jobs", Unit::Count),
            quoted_column("document", Unit::Seconds),
            column("tar2sqfs", Unit::Seconds),
            column("packfs", Unit::Seconds),
            column("packfs to theirs", Unit::Ratio),
        ],
        rows,
    }
}

/// Speed-up and efficiency, relative to one job of the same program.
fn speedup(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let mut rows = Vec::new();
    for row in &ROWS {
        for jobs in jobs(asked).skip(1) {
            let from = row.packing[0] / documented(row, jobs);
            let measured = BOTH.map(|who| {
                let of = |jobs| figures.seconds(&row.build(asked, who, device, jobs));
                ratio(&of(1), &of(jobs))
            });
            let share = |cell: &Cell| ratio(cell, &quoted(jobs.into()));
            let [theirs, ours] = measured;
            rows.push(vec![
                words(row.title),
                Cell::Figure(Spread::exact(jobs.into())),
                quoted(from),
                theirs.clone(),
                ours.clone(),
                quoted(from / f64::from(jobs)),
                share(&theirs),
                share(&ours),
            ]);
        }
    }
    Table {
        title: format!("1. Parallel compression: speed-up and efficiency ({}, {device})", asked.roles.id(0)),
        method: "speed-up: run time with one job by run time with so many, as the document's discussion reads it (its formula has the \
                 quotient the other way round); efficiency: speed-up by jobs"
            .into(),
        columns: vec![
            column("Compressor", Unit::Text),
            column("Jobs", Unit::Count),
            quoted_column("speed-up, document", Unit::Ratio),
            column("speed-up, tar2sqfs", Unit::Ratio),
            column("speed-up, packfs", Unit::Ratio),
            quoted_column("efficiency, document", Unit::Percent),
            column("efficiency, tar2sqfs", Unit::Percent),
            column("efficiency, packfs", Unit::Percent),
        ],
        rows,
    }
}

/// Bytes of the tar by the shortest run time.
fn throughput(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let bytes = tree_bytes(asked, figures);
    let row = |row: &Row| {
        let from = row.packing.iter().copied().fold(row.serial, f64::min);
        let [theirs, ours] = BOTH.map(|who| {
            let all = jobs(asked).map(|jobs| figures.seconds(&row.build(asked, who, device, jobs)));
            let fastest = all.reduce(|a, b| match (&a, &b) {
                (Cell::Figure(first), Cell::Figure(second)) if second.median >= first.median => a,
                (Cell::Figure(_), Cell::Missing(_) | Cell::Empty) => a,
                _ => b,
            });
            match fastest {
                Some(Cell::Figure(spread)) => Cell::Figure(Spread::exact(bytes / spread.median)),
                other => other.unwrap_or(Cell::Empty),
            }
        });
        vec![words(row.title), quoted(TAR_LEN / from), theirs, ours]
    };
    Table {
        title: format!("1. Parallel compression: highest throughput ({}, {device})", asked.roles.id(0)),
        method: "size of the tar by the shortest run time, with any number of jobs".into(),
        columns: compared(&["Compressor"], Unit::BytesPerSecond, &["tar2sqfs", "packfs"], None),
        rows: ROWS.iter().map(row).collect(),
    }
}

fn tree_bytes(asked: &Asked, figures: Figures<'_>) -> f64 {
    let tree = asked.roles.id(0);
    figures.0.trees.iter().find(|facts| facts.id == tree).map_or(0.0, |facts| facts.bytes as f64)
}

/// The rows, the largest figure first.
fn falling(figure: impl Fn(&Row) -> f64) -> Vec<&'static Row> {
    let mut rows: Vec<&Row> = ROWS.iter().collect();
    rows.sort_by(|a, b| figure(b).total_cmp(&figure(a)));
    rows
}

fn unpacking(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let row = |row: &Row| {
        let [theirs, ours] = BOTH.map(|who| figures.seconds(&row.decode(asked, who, device)));
        let by = ratio(&ours, &theirs);
        vec![words(row.title), quoted(row.unpacking), theirs, ours, by]
    };
    Table {
        title: format!("2. Reference decompression ({}, {device})", asked.roles.id(0)),
        method: "sqfs2tar IMAGE > /dev/null of tar2sqfs's image, packfs tar --jobs 1 of packfs's; the document has the worst of four \
                 runs"
            .into(),
        columns: compared(
            &["Compressor"],
            Unit::Seconds,
            &["sqfs2tar", "packfs"],
            Some("packfs to theirs"),
        ),
        rows: falling(|row| row.unpacking).into_iter().map(row).collect(),
    }
}

fn sizes(asked: &Asked, figures: Figures<'_>) -> Table {
    let tree = asked.roles.id(0);
    let none = ROWS.iter().find(|row| row.codec == "none").unwrap_or(&ROWS[0]);
    let whole = figures.size(tree, &none.recipe(Who::Ours));
    let tar = Cell::Figure(Spread::exact(tree_bytes(asked, figures)));
    let mut rows =
        vec![vec![words("tar"), quoted(TAR_LEN), Cell::Empty, tar.clone(), tar, Cell::Empty, Cell::Empty]];
    for row in falling(|row| row.size) {
        let [theirs, ours] = BOTH.map(|who| figures.size(tree, &row.recipe(who)));
        let shares =
            [ratio(&quoted(row.size), &quoted(none.size)), ratio(&theirs, &whole), ratio(&ours, &whole)];
        let [from_share, theirs_share, ours_share] = shares;
        rows.push(vec![
            words(row.title),
            quoted(row.size),
            from_share,
            theirs,
            ours,
            theirs_share,
            ours_share,
        ]);
    }
    Table {
        title: format!("3. Compression size ({tree})"),
        method:
            "the images of the first table; ratio: by the uncompressed image, which only packfs makes here"
                .into(),
        columns: vec![
            column("Compressor", Unit::Text),
            quoted_column("document", Unit::Bytes),
            quoted_column("ratio, document", Unit::Percent),
            column("tar2sqfs", Unit::Bytes),
            column("packfs", Unit::Bytes),
            column("ratio, tar2sqfs", Unit::Percent),
            column("ratio, packfs", Unit::Percent),
        ],
        rows,
    }
}
