//! Writers x options x readers of EROFS: every reader finds what went in, or the table of
//! exceptions says why it cannot.
//!
//! The source is a directory of the host; every reader must find the same walk with the same
//! SHA-256 of every file. Rows are in `rows.rs`, programs in `writers.rs` and `readers.rs`, and
//! known faults, none of them in packfs, in `exceptions.rs`. Every run of the tests tries a tree of
//! odd things in as many rows as leave no option out; `cargo xtask matrix` tries it in all rows, a
//! Debian root as well, and writes `docs/formats/interop-erofs.md`.

mod exceptions;
mod readers;
mod rows;
mod table;
mod trees;
mod writers;

use packfs_testkit::{is_root, skip};
use readers::{Outcome, Reader};
use rows::Row;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{Line, Table};
use trees::Source;
use writers::Writer;

/// Number of rows tried at the same time.
const THREADS: usize = 2;

/// Makes the image of every row with every writer, reads each with every reader.
fn read_all(source: &Source, rows: &[&'static Row]) -> Option<Table> {
    let (writers, readers) = (Writer::all()?, Reader::all()?);
    let next = AtomicUsize::new(0);
    let work = || {
        let folder = trees::room();
        let mut table = Table::default();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            read_row(source, row, &writers, &readers, folder.path(), &mut table);
        }
        table
    };
    let tables = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<Table>>()
    });
    Some(Table::of(tables, rows))
}

fn read_row(
    source: &Source,
    row: &'static Row,
    writers: &[Writer],
    readers: &[Reader],
    folder: &Path,
    table: &mut Table,
) {
    let image = folder.join("image.erofs");
    for writer in writers {
        let written = writer.write(row, source.path(), &image);
        for reader in readers {
            let outcome = match &written {
                Ok(()) => reader.read(&image, &source.expected, folder),
                Err(why) => Outcome::Cannot(format!("not written: {why}")),
            };
            table.add(Line { writer: writer.name(), row: row.name, reader: reader.name(), outcome });
        }
        let len = std::fs::metadata(&image).map_or(0, |found| found.len());
        table.note_len(writer.name(), row.name, len);
        let _ = std::fs::remove_file(&image);
    }
}

/// Returns true if this run can mount and keep owners; reports a skip if not.
fn can_mount() -> bool {
    if !is_root() {
        skip("mounting and owners need root");
    }
    is_root()
}

/// Every cell is as it should be: readers agree, but for exceptions, which are as they are known.
#[track_caller]
fn holds(table: &Table, all_known: bool) {
    let wrong: Vec<String> = table.lines().filter_map(|line| exceptions::surprise(line, all_known)).collect();
    assert!(wrong.is_empty(), "{} surprises:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_reader_agrees_on_a_tree_of_odd_things() {
    if !can_mount() {
        return;
    }
    let rows: Vec<_> = rows::all().filter(|row| row.often).collect();
    let Some(table) = read_all(&Source::odd(), &rows) else { return };
    holds(&table, true);
}

/// Every run tries each codec, cluster length, and option of packfs, and each option of mkfs.erofs,
/// at least once.
#[test]
fn what_is_tried_often_leaves_no_option_out() {
    let often: BTreeSet<String> = rows::all().filter(|row| row.often).flat_map(Row::words).collect();
    let left_out: Vec<_> = rows::all().flat_map(Row::words).filter(|word| !often.contains(word)).collect();
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn every_exception_is_about_a_cell_of_the_matrix() {
    exceptions::all_have_a_cell();
}

/// Not a test of its own: `cargo xtask matrix` names a tree and a file for the table.
#[test]
#[ignore = "cargo xtask matrix runs it"]
fn table() {
    let tree = std::env::var("PACKFS_MATRIX_TREE").expect("the path of a tree, or odd");
    let out = std::env::var("PACKFS_MATRIX_TABLE").expect("where the table is written");
    assert!(is_root(), "mounting and owners need root");
    let is_odd = tree == "odd";
    // Names of rows have commas in them.
    let named = std::env::var("PACKFS_MATRIX_ROWS").unwrap_or_default();
    let named: Vec<&str> = named.split(';').map(str::trim).filter(|name| !name.is_empty()).collect();
    let rows: Vec<_> = if named.is_empty() {
        rows::all().collect()
    } else {
        let find =
            |name: &&str| rows::all().find(|row| row.name == *name).unwrap_or_else(|| panic!("{name}?"));
        named.iter().map(find).collect()
    };
    let source = if is_odd { Source::odd() } else { Source::of(Path::new(&tree)) };
    let table = read_all(&source, &rows).expect("the peers of `cargo xtask peers`");
    // Lengths of images of the odd tree say nothing.
    let images = if is_odd { String::new() } else { table.images() + "\n" };
    std::fs::write(out, images + &table.exceptions()).unwrap();
    holds(&table, is_odd);
}
