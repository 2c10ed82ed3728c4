//! EROFS vs. SquashFS: A Gentle Benchmark (sigma star gmbh): a desktop's files with four compressors, read from an SD card.

use super::Seed;
use super::asked::{Asked, RecipeParts, cell, recipe};
use super::figures::{Figures, compared, quoted, ratio, words};
use crate::results::{Cell, Recipe, Results, Table, Unit};
use crate::session::Plan;
use crate::workload::Workload;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Formats in the order of the document's columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fs {
    Tar,
    Squashfs,
    Squashfs4K,
    Erofs,
}

use Fs::{Erofs, Squashfs, Squashfs4K, Tar};

const ALL: [Fs; 4] = [Tar, Squashfs, Squashfs4K, Erofs];

/// What every row begins with.
const TITLES: [&str; 2] = ["Compressor", "Format"];
/// Whose sizes were measured.
const MAKERS: [&str; 2] = ["tar, tar2sqfs, mkfs.erofs", "packfs"];
/// Which reads were measured.
const READERS: [&str; 3] = ["their image, kernel", "packfs image, kernel", "packfs image, packfs FUSE"];

/// One compressor: name, codec of SquashFS and of EROFS; GiB of tar, SquashFS, SquashFS 4KiB and EROFS; then seconds and MiB/s of the
/// latter three.
struct Row {
    title: &'static str,
    squashfs: &'static str,
    erofs: &'static str,
    sizes: [f64; 4],
    seconds: [f64; 3],
    rates: [f64; 3],
}

static ROWS: [Row; 4] = [
    row("none", ["none", "none"], [6.5, 6.1, 6.1, 6.4], [6.75, 7.60, 6.38], [18.5, 16.5, 19.6]),
    row("LZ4", ["lz4", "lz4"], [3.3, 3.1, 3.6, 3.9], [4.76, 6.61, 4.05], [26.3, 18.9, 30.9]),
    row("LZ4 HC", ["lz4hc", "lz4hc"], [2.8, 2.7, 3.4, 3.6], [4.40, 6.23, 3.59], [28.4, 20.1, 34.8]),
    row("XZ", ["xz", "lzma"], [1.7, 2.0, 2.6, 2.7], [24.81, 32.44, 17.71], [5.0, 3.9, 7.1]),
];

const fn row(
    title: &'static str,
    [squashfs, erofs]: [&'static str; 2],
    sizes: [f64; 4],
    seconds: [f64; 3],
    rates: [f64; 3],
) -> Row {
    Row { title, squashfs, erofs, sizes, seconds, rates }
}

impl Fs {
    fn title(self) -> &'static str {
        match self {
            Tar => "tar",
            Squashfs => "SquashFS",
            Squashfs4K => "SquashFS 4KiB",
            Erofs => "EROFS",
        }
    }

    /// What the document made it with; tar2sqfs stores nothing as it is, and was changed for that.
    fn rival(self, row: &Row) -> Recipe {
        match self {
            Tar => recipe("tar", "tar", row.squashfs),
            Squashfs => recipe("tar2sqfs", "squashfs", row.squashfs),
            Squashfs4K => recipe("tar2sqfs", "squashfs", row.squashfs).block(4096),
            Erofs => recipe("mkfs.erofs", "erofs", row.erofs),
        }
    }

    fn ours(self, row: &Row) -> Option<Recipe> {
        match self {
            Tar => None,
            Squashfs => Some(recipe("packfs", "squashfs", row.squashfs).block(128 << 10)),
            Squashfs4K => Some(recipe("packfs", "squashfs", row.squashfs).block(4096)),
            // mkfs.erofs takes clusters of a block, and no fragments, if it is not told otherwise.
            Erofs => {
                let recipe = recipe("packfs", "erofs", row.erofs).words(&["-O", "fragments=off"]);
                Some(if row.erofs == "none" { recipe } else { recipe.block(4096) })
            }
        }
    }

    fn recipes(self, row: &Row) -> Vec<Recipe> {
        [Some(self.rival(row)), self.ours(row)].into_iter().flatten().collect()
    }
}

pub(super) fn cells(asked: &Asked, plan: &mut Plan) {
    let tree = asked.roles.id(0);
    for row in &ROWS {
        for fs in ALL {
            for recipe in fs.recipes(row) {
                plan.add(cell(tree, &recipe, None, Workload::ImageSize, "disk"));
                for device in devices(asked) {
                    let readers: &[&str] = match (fs, &*recipe.maker) {
                        (Tar, _) => &[],
                        (_, "packfs") => &["kernel", "packfs-fuse"],
                        _ => &["kernel"],
                    };
                    for reader in readers {
                        plan.add(cell(tree, &recipe, Some(reader), Workload::TarPrograms, device));
                    }
                }
            }
        }
    }
}

fn devices(asked: &Asked) -> Vec<&str> {
    asked.devices(Seed::Gentle.row().devices)
}

pub(super) fn tables(asked: &Asked, results: &Results) -> Vec<Table> {
    let figures = Figures(results);
    let mut tables = vec![sizes(asked, figures), shares(asked, figures)];
    for device in devices(asked) {
        tables.push(times(asked, device, figures));
        tables.push(rates(asked, device, figures));
    }
    tables
}

/// The sizes of one row: the document's, theirs, ours.
fn size_cells(tree: &str, fs: Fs, index: usize, row: &Row, figures: Figures<'_>) -> [Cell; 3] {
    let theirs = figures.size(tree, &fs.rival(row));
    let ours = fs.ours(row).map_or(Cell::Empty, |recipe| figures.size(tree, &recipe));
    [quoted(row.sizes[index] * GIB), theirs, ours]
}

/// A row for each compressor and format: their titles, and the cells of the two; the number is that of the format among `formats`.
fn rows<const N: usize>(formats: &[Fs], cells: impl Fn(&Row, usize, Fs) -> [Cell; N]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for row in &ROWS {
        for (index, fs) in formats.iter().enumerate() {
            let mut line = vec![words(row.title), words(fs.title())];
            line.extend(cells(row, index, *fs));
            rows.push(line);
        }
    }
    rows
}

fn sizes(asked: &Asked, figures: Figures<'_>) -> Table {
    let tree = asked.roles.id(0);
    let rows = rows(&ALL, |row, index, fs| {
        let [from, theirs, ours] = size_cells(tree, fs, index, row, figures);
        let by = ratio(&ours, &theirs);
        [from, theirs, ours, by]
    });
    Table {
        title: format!("Image size ({tree})"),
        method: "tar by GNU tar and lz4 or xz, SquashFS by tar2sqfs -c, EROFS by mkfs.erofs -z; packfs with the same codec and block"
            .into(),
        columns: compared(&TITLES, Unit::Bytes, &MAKERS, Some("packfs to theirs")),
        rows,
    }
}

fn shares(asked: &Asked, figures: Figures<'_>) -> Table {
    let tree = asked.roles.id(0);
    let rows = rows(&ALL, |row, index, fs| {
        let [from, theirs, ours] = size_cells(tree, fs, index, row, figures);
        let [from_whole, theirs_whole, ours_whole] = size_cells(tree, fs, index, &ROWS[0], figures);
        // The uncompressed image that tar2sqfs cannot make is packfs's.
        let theirs_whole =
            if matches!(theirs_whole, Cell::Figure(_)) { theirs_whole } else { ours_whole.clone() };
        [ratio(&from, &from_whole), ratio(&theirs, &theirs_whole), ratio(&ours, &ours_whole)]
    });
    Table {
        title: format!("Image size, as a share of the uncompressed one ({tree})"),
        method: "each format by its own uncompressed image; tar2sqfs, which makes none, by packfs's".into(),
        columns: compared(&TITLES, Unit::Percent, &MAKERS, None),
        rows,
    }
}

/// Time, or rate, of every row that can be mounted.
fn reads(
    asked: &Asked,
    device: &str,
    from: impl Fn(&Row, usize) -> Cell,
    figure: impl Fn(&crate::session::Cell) -> Cell,
) -> Vec<Vec<Cell>> {
    let tree = asked.roles.id(0);
    rows(&[Squashfs, Squashfs4K, Erofs], |row, index, fs| {
        let of = |recipe: &Recipe, reader: &str| {
            figure(&cell(tree, recipe, Some(reader), Workload::TarPrograms, device))
        };
        let ours = |reader: &str| fs.ours(row).map_or(Cell::Empty, |recipe| of(&recipe, reader));
        [from(row, index), of(&fs.rival(row), "kernel"), ours("kernel"), ours("packfs-fuse")]
    })
}

fn read_table(title: String, method: &str, unit: Unit, rows: Vec<Vec<Cell>>) -> Table {
    Table { title, method: method.into(), columns: compared(&TITLES, unit, &READERS, None), rows }
}

fn times(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let rows = reads(asked, device, |row, index| quoted(row.seconds[index]), |cell| figures.seconds(cell));
    let method = "tar cf - usr/bin | cat > /dev/null, nothing of the image in memory; the document has the worst of five runs, these \
                  are medians with the worst as the upper end of their spread";
    read_table(format!("Time to read usr/bin ({}, {device})", asked.roles.id(0)), method, Unit::Seconds, rows)
}

fn rates(asked: &Asked, device: &str, figures: Figures<'_>) -> Table {
    let rows = reads(asked, device, |row, index| quoted(row.rates[index] * MIB), |cell| figures.rate(cell));
    let method = "bytes in files of usr/bin by the time it takes to read them; the document divides the size of the tar (125 MiB)";
    read_table(
        format!("Rate of reading usr/bin ({}, {device})", asked.roles.id(0)),
        method,
        Unit::BytesPerSecond,
        rows,
    )
}
