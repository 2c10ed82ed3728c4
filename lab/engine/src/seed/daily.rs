//! Which file system to use for daily work? (braindevices, gist): Btrfs with and without compression, ext4 and XFS on a USB3 SSD, an
//! NVMe SSD and a hard disk.

mod quotes;

use quotes::{CHOICES, RATIOS, Ratio, SPEEDS, Speed, Tree};

use super::Seed;
use super::asked::{Asked, RecipeParts, cell, recipe};
use super::figures::{Figures, column, quoted, quoted_column, words};
use crate::results::{Cell, Recipe, Results, Spread, Table, Unit};
use crate::session::{self, Plan};
use crate::workload::Workload;

const MIB: f64 = 1024.0 * 1024.0;

/// File systems as the document names them. Those that end in 0 and 1 are two of the same, to show what is noise.
const WRITABLE: [&str; 8] =
    ["ext4.0", "xfs.0", "btrfs.none", "btrfs.lzo", "btrfs.zstd-1", "btrfs.zstd-3", "ext4.1", "xfs.1"];

/// What Btrfs compresses with, as the document's first table has it.
const CODECS: [&str; 4] = ["lzo", "zlib", "zstd:1", "zstd:3"];

/// Images of packfs beside them: they are not written, but what is read of them is as fast as that.
const IMAGES: [(&str, &str, &str); 2] =
    [("packfs squashfs zstd:3", "squashfs", "zstd:3"), ("packfs erofs lz4hc:12 64K", "erofs", "lz4hc:12")];

fn image(format: &str, codec: &str) -> Recipe {
    let block = if format == "erofs" { 64 << 10 } else { 128 << 10 };
    recipe("packfs", format, codec).block(block)
}

/// A file system of the document.
fn writable(name: &str) -> Recipe {
    let (fs, rest) = name.split_once('.').unwrap_or((name, "none"));
    let maker = format!("mkfs.{fs}");
    if fs == "btrfs" {
        recipe(&maker, fs, &rest.replace('-', ":"))
    } else {
        recipe(&maker, fs, "none").words(&["-L", &format!("copy-{rest}")])
    }
}

fn devices(asked: &Asked) -> Vec<&str> {
    asked.devices(Seed::Daily.row().devices)
}

/// In minutes the second ones of the same are left out.
fn file_systems(asked: &Asked) -> Vec<(String, Recipe)> {
    let names = WRITABLE.iter().filter(|name| !asked.quick || !name.ends_with(".1"));
    let plain: Vec<_> = names.map(|&name| (name.to_owned(), writable(name))).collect();
    let luks = plain
        .iter()
        .filter(|_| asked.luks)
        .map(|(name, recipe)| (format!("{name}, LUKS"), Recipe { luks: true, ..recipe.clone() }));
    plain.iter().cloned().chain(luks).collect()
}

const READS: [Workload; 2] = [Workload::TarRead, Workload::CpRead];

pub(super) fn cells(asked: &Asked, plan: &mut Plan) {
    for tree in Tree::ALL {
        let id = asked.roles.id(tree.number());
        for (_, format, codec) in IMAGES {
            plan.add(cell(id, &image(format, codec), None, Workload::ImageSize, "disk"));
        }
        for codec in CODECS {
            plan.add(cell(id, &recipe("mkfs.btrfs", "btrfs", codec), None, Workload::DiskUsage, "disk"));
        }
        for device in devices(asked) {
            for (_, recipe) in file_systems(asked) {
                plan.add(cell(id, &recipe, None, Workload::Write, device));
                READS.iter().for_each(|work| plan.add(cell(id, &recipe, Some("kernel"), *work, device)));
            }
            for (_, format, codec) in IMAGES {
                let recipe = image(format, codec);
                READS.iter().for_each(|work| plan.add(cell(id, &recipe, Some("kernel"), *work, device)));
            }
        }
    }
}

pub(super) fn tables(asked: &Asked, results: &Results) -> Vec<Table> {
    let figures = Figures(results);
    let mut tables: Vec<_> = Tree::ALL.iter().map(|tree| usage(*tree, asked, figures)).collect();
    for device in devices(asked) {
        tables.extend(Tree::ALL.iter().map(|tree| speed(*tree, device, asked, figures)));
    }
    tables.push(choices(asked, figures));
    tables
}

/// Disk usage by codec.
fn usage(tree: Tree, asked: &Asked, figures: Figures<'_>) -> Table {
    let id = asked.roles.id(tree.number());
    let mut rows = Vec::new();
    for codec in CODECS {
        let recipe = recipe("mkfs.btrfs", "btrfs", codec);
        let plain = codec.split(':').next().unwrap_or(codec);
        let found = figures.subject(id, &recipe).filter(|subject| !subject.usage.is_empty());
        for kind in ["TOTAL", "none", plain] {
            let quote =
                RATIOS.iter().find(|ratio| (ratio.tree, ratio.codec, ratio.kind) == (tree, codec, kind));
            let from = |figure: fn(&Ratio) -> f64| quote.map_or(Cell::Empty, |ratio| quoted(figure(ratio)));
            let mut row = vec![
                words(codec),
                words(kind),
                from(|r| r.percent / 100.0),
                from(|r| r.disk),
                from(|r| r.uncompressed),
            ];
            let usage = found.and_then(|subject| {
                subject.usage.iter().find(|usage| usage.codec.eq_ignore_ascii_case(kind))
            });
            match usage {
                Some(usage) => {
                    let share = if usage.uncompressed == 0 {
                        0.0
                    } else {
                        usage.disk as f64 / usage.uncompressed as f64
                    };
                    let here = [share, usage.disk as f64, usage.uncompressed as f64, usage.referenced as f64];
                    row.extend(here.map(|figure| Cell::Figure(Spread::exact(figure))));
                }
                None => {
                    let why = figures.seconds(&cell(id, &recipe, None, Workload::DiskUsage, "disk"));
                    row.extend([why, Cell::Empty, Cell::Empty, Cell::Empty]);
                }
            }
            rows.push(row);
        }
    }
    let bytes = figures.0.trees.iter().find(|facts| facts.id == id).map_or(0, |facts| facts.bytes) as f64;
    for (title, format, codec) in IMAGES {
        let size = figures.size(id, &image(format, codec));
        let whole = Cell::Figure(Spread::exact(bytes));
        let share = super::figures::ratio(&size, &whole);
        let empty = [Cell::Empty, Cell::Empty, Cell::Empty];
        let mut row = vec![words(title), words("image")];
        row.extend(empty);
        row.extend([share, size, whole, Cell::Empty]);
        rows.push(row);
    }
    Table {
        title: format!("Compression ratio: {} ({id})", tree.title()),
        method: "compsize on Btrfs that was mounted with compress=CODEC; of an image its length".into(),
        columns: vec![
            column("Compression", Unit::Text),
            column("Type", Unit::Text),
            quoted_column("document", Unit::Percent),
            quoted_column("document, disk usage", Unit::Bytes),
            quoted_column("document, uncompressed", Unit::Bytes),
            column("here", Unit::Percent),
            column("disk usage", Unit::Bytes),
            column("uncompressed", Unit::Bytes),
            column("referenced", Unit::Bytes),
        ],
        rows,
    }
}

/// Writing and reading on one device.
fn speed(tree: Tree, device: &str, asked: &Asked, figures: Figures<'_>) -> Table {
    let id = asked.roles.id(tree.number());
    let mut rows = Vec::new();
    for (name, recipe) in file_systems(asked) {
        let quote =
            SPEEDS.iter().find(|speed| (speed.tree, speed.device, speed.fs) == (tree, device, &*name));
        let from = |figure: fn(&Speed) -> f64| quote.map_or(Cell::Empty, |speed| quoted(figure(speed)));
        let write = cell(id, &recipe, None, Workload::Write, device);
        let read = |work| figures.rate(&cell(id, &recipe, Some("kernel"), work, device));
        rows.push(vec![
            words(name),
            from(|speed| speed.seconds),
            figures.seconds(&write),
            from(|speed| speed.write * MIB),
            figures.rate(&write),
            from(|speed| speed.tar * MIB),
            read(Workload::TarRead),
            from(|speed| speed.cp * MIB),
            read(Workload::CpRead),
        ]);
    }
    for (title, format, codec) in IMAGES {
        let recipe = image(format, codec);
        let read = |work| figures.rate(&cell(id, &recipe, Some("kernel"), work, device));
        let mut row = vec![words(title)];
        row.extend([const { Cell::Empty }; 5]);
        row.extend([read(Workload::TarRead), Cell::Empty, read(Workload::CpRead)]);
        rows.push(row);
    }
    Table {
        title: format!("{device}: {} ({id})", tree.title()),
        method: "write: cp -a and sync, after deletion and fstrim; tar read: tar -c | cat; cp read: cp -a to memory; mounted anew before \
                 each read. The document's column \"disk usage\" says how full its disks were, and is left out."
            .into(),
        columns: vec![
            column("File system", Unit::Text),
            quoted_column("write, document", Unit::Seconds),
            column("write", Unit::Seconds),
            quoted_column("write, document", Unit::BytesPerSecond),
            column("write", Unit::BytesPerSecond),
            quoted_column("tar read, document", Unit::BytesPerSecond),
            column("tar read", Unit::BytesPerSecond),
            quoted_column("cp read, document", Unit::BytesPerSecond),
            column("cp read", Unit::BytesPerSecond),
        ],
        rows,
    }
}

/// Which to choose: the document's word, and the order of the rates measured here.
fn choices(asked: &Asked, figures: Figures<'_>) -> Table {
    let mut rows = Vec::new();
    for device in devices(asked) {
        for tree in [Tree::Build, Tree::Small] {
            let quote = CHOICES.iter().find(|choice| (choice.0, choice.1) == (tree, device));
            let mut row = vec![words(device), words(tree.title())];
            row.extend((0..4).map(|place| quote.map_or(Cell::Empty, |choice| words(choice.2[place]))));
            let ranked = ranking(tree, device, asked, figures);
            let at = |place: Option<&String>| place.map_or(Cell::Empty, words);
            row.extend([at(ranked.first()), at(ranked.get(1)), at(ranked.get(2)), at(ranked.last())]);
            rows.push(row);
        }
    }
    let mut columns = vec![column("Hardware", Unit::Text), column("Tree", Unit::Text)];
    columns.extend(
        ["best", "2nd", "3rd", "worst"].map(|at| quoted_column(format!("document, {at}"), Unit::Text)),
    );
    columns.extend(["best", "2nd", "3rd", "worst"].map(|at| column(at, Unit::Text)));
    Table {
        title: "Choices".into(),
        method:
            "here by the product of the rates of writing, tar and cp; of two of the same the first counts"
                .into(),
        columns,
        rows,
    }
}

fn ranking(tree: Tree, device: &str, asked: &Asked, figures: Figures<'_>) -> Vec<String> {
    let id = asked.roles.id(tree.number());
    let rate = |cell: &session::Cell| match figures.rate(cell) {
        Cell::Figure(spread) => Some(spread.median),
        _ => None,
    };
    let score = |recipe: &Recipe| {
        let write = rate(&cell(id, recipe, None, Workload::Write, device))?;
        let read = |work| rate(&cell(id, recipe, Some("kernel"), work, device));
        Some(write * read(Workload::TarRead)? * read(Workload::CpRead)?)
    };
    let once = file_systems(asked).into_iter().filter(|(name, _)| !name.contains(".1"));
    let mut scored: Vec<_> = once
        .filter_map(|(name, recipe)| Some((name.trim_end_matches(".0").to_owned(), score(&recipe)?)))
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.into_iter().map(|(name, _)| name).collect()
}
