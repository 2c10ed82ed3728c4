//! The lines of the programs that call mksquashfs, mkfs.erofs and others: run by packfs under the
//! name of the tool and by the tool itself, on the same tree. `docs/guide/callers.md` is the table.

mod bench;
mod call;
mod help;
mod judge;
mod lines;
mod options;
mod packing;
mod reading;

use bench::Bench;
use call::Call;
use std::collections::BTreeSet;

fn all() -> impl Iterator<Item = &'static Call> {
    packing::SQUASHFS.iter().chain(packing::EROFS).chain(reading::SQUASHFS).chain(reading::OTHERS)
}

#[test]
fn lines_of_mksquashfs_are_those_of_the_tool() {
    Bench::new().hold_all(packing::SQUASHFS);
}

#[test]
fn actions_of_mksquashfs_change_what_they_change_in_the_tool() {
    Bench::new().hold_all(packing::ACTIONS);
}

#[test]
fn lines_of_mkfs_erofs_are_those_of_the_tool() {
    Bench::new().hold_all(packing::EROFS);
}

#[test]
fn lines_of_unsquashfs_are_those_of_the_tool() {
    Bench::new().hold_all(reading::SQUASHFS);
}

#[test]
fn lines_of_all_other_tools_are_those_of_the_tool() {
    Bench::new().hold_all(reading::OTHERS);
}

#[test]
fn the_guide_has_a_row_for_each_line() {
    let numbers: BTreeSet<u8> = all().map(|call| call.number).collect();
    assert_eq!(numbers, (1..=80).collect());
    let mut calls: Vec<&Call> = all().collect();
    calls.sort_by_key(|call| call.number);
    let table: String = calls.into_iter().map(Call::row).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/callers.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (head, rest) = guide.split_once("<!-- lines -->\n").unwrap();
    let (found, tail) = rest.split_once("<!-- end of lines -->\n").unwrap();
    if std::env::var_os("PACKFS_WRITE_DOCUMENTS").is_some() {
        let text = format!("{head}<!-- lines -->\n{table}<!-- end of lines -->\n{tail}");
        std::fs::write(path, text).unwrap();
        return;
    }
    assert!(found == table, "PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs-cli callers:: writes it");
}
