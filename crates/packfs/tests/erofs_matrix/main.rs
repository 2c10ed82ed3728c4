//! Writers x options x readers of EROFS: every reader finds what went in, or the table of exceptions says why it cannot.
//!
//! What goes in is a directory of the host; what comes out is the same walk with the same SHA-256 of every file. Rows are
//! in `rows.rs`, who writes and reads in `writers.rs` and `readers.rs`, and what is known to go wrong, none of it in
//! packfs, in `exceptions.rs`. A tree of odd things is tried in every run of the tests; a Debian root by
//! `cargo xtask matrix`, which also prints the table.

#[path = "../common/mod.rs"]
mod common;
mod exceptions;
mod readers;
mod rows;
mod table;
mod trees;
mod writers;

use packfs_testkit::{is_root, skip};
use readers::{Outcome, Reader};
use rows::Row;
use std::path::Path;
use table::{Line, Table};
use trees::Source;
use writers::Writer;

/// Makes the image of every row with every writer, reads each with every reader.
fn read_all(source: &Source, rows: &mut dyn Iterator<Item = &'static Row>) -> Option<Table> {
    if !is_root() {
        skip("mounting and owners need root");
        return None;
    }
    let (writers, readers) = (Writer::all()?, Reader::all()?);
    let folder = tempfile::tempdir().unwrap();
    let mut table = Table::default();
    for row in rows {
        for writer in &writers {
            let image = folder.path().join("image.erofs");
            let written = writer.write(row, source.path(), &image);
            for reader in &readers {
                let outcome = match &written {
                    Ok(()) => reader.read(&image, &source.expected, folder.path()),
                    Err(why) => Outcome::Cannot(format!("not written: {why}")),
                };
                let line = Line { writer: writer.name(), row: row.name, reader: reader.name(), outcome };
                table.add(line);
            }
            let len = std::fs::metadata(&image).map_or(0, |found| found.len());
            table.note_len(writer.name(), row.name, len);
            let _ = std::fs::remove_file(&image);
        }
    }
    Some(table)
}

/// Every cell is as it should be: readers agree, but for exceptions, which are as they are known.
#[track_caller]
fn holds(table: &Table) {
    let wrong: Vec<String> = table.lines().filter_map(exceptions::surprise).collect();
    assert!(wrong.is_empty(), "{} surprises:\n{}", wrong.len(), wrong.join("\n"));
}

#[track_caller]
fn odd_tree_agrees(rows: &'static [Row]) {
    let source = Source::odd();
    let Some(table) = read_all(&source, &mut rows.iter()) else { return };
    holds(&table);
}

#[test]
fn every_reader_agrees_on_every_layout() {
    odd_tree_agrees(rows::LAYOUTS);
}

#[test]
fn every_reader_agrees_on_every_codec_at_every_cluster_length() {
    odd_tree_agrees(rows::CODECS);
}

#[test]
fn every_reader_agrees_on_tails_and_fragments() {
    odd_tree_agrees(rows::TAILS);
}

#[test]
fn every_reader_agrees_on_sharing_wide_addresses_and_compressed_metadata() {
    odd_tree_agrees(rows::FEATURES);
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
    let is_odd = tree == "odd";
    let source = if is_odd { Source::odd() } else { Source::of(Path::new(&tree)) };
    let mut rows = rows::all().filter(|row| is_odd || row.on_roots);
    let table = read_all(&source, &mut rows).expect("root, and the peers of `cargo xtask peers`");
    std::fs::write(out, table.markdown()).unwrap();
    holds(&table);
}
