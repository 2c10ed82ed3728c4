//! Facts that survive each way: a tree of everything goes from a directory into an image and out of
//! it again, by the kernel's mount, through FUSE, unpacked, and as a tar. docs/guide/fidelity.md is
//! what comes of it.
//!
//! `cargo xtask fidelity` writes that file; here it must be what the test finds. Whatever does not
//! survive was told before anything was written, and refused without `--lossy`.

mod routes;
mod table;

use packfs_core::{ErrorKind, Silent};
use packfs_source::{Shape, load_dir};
use packfs_testkit::{Mount, Snapshot, everything, is_root, skip, snapshot_dir, snapshot_tree, write_dir};
use std::path::Path;
use table::{Column, Table};

/// Room for images and all that is unpacked, in memory: what a disk cannot hold is not asked here.
const ROOM: u64 = 4 << 30;

/// Reads a tree out of an image, with the help of a folder.
type Route = fn(&Path, &Path, &str) -> Snapshot;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/fidelity.md");

#[test]
fn undamaged_files_are_those_of_the_document() {
    if !is_root() || std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return skip("a tree of everything needs root, and mounting through FUSE needs /dev/fuse");
    }
    let memory = match Mount::memory(ROOM) {
        Ok(memory) => memory,
        Err(why) => return skip(&format!("no file system in memory: {why}")),
    };
    let folder = memory.path();
    let source = folder.join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents, facts) = everything();
    write_dir(&tree, &contents, &source);
    let host = snapshot_dir(&source);
    host_is_the_tree(&host, &snapshot_tree(&tree, &contents));
    let loaded = load_dir(&source, &Shape::default(), &Silent).unwrap();
    host_is_the_tree(&host, &snapshot_tree(&loaded.tree, &*loaded.contents));

    let mut table = Table::new(facts);
    for format in ["squashfs", "erofs"] {
        let image = folder.join(format);
        let losses = refused_unless_lossy(format, &source, &image);
        let ways: [(&str, Route); 4] = [
            ("kernel", routes::kernel),
            ("FUSE", routes::fuse),
            ("unpack", routes::unpacked),
            ("tar", routes::tar),
        ];
        for (way, route) in ways {
            let there = route(&image, folder.as_path(), format);
            let said = match way {
                "tar" => [losses.as_slice(), &["sockets".to_owned()]].concat(),
                _ => losses.clone(),
            };
            table.add(Column { format, way, losses: said }, &host, &there);
        }
        table.said(format, losses);
    }
    table.judge();
    let text = table.document();
    if std::env::var_os("PACKFS_WRITE_DOCUMENTS").is_some() {
        std::fs::write(DOCUMENT, &text).unwrap();
    }
    let document = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(document == text, "docs/guide/fidelity.md is stale; `cargo xtask fidelity` writes:\n{text}");
}

/// The host itself must hold everything, or nothing can be learned from it.
#[track_caller]
fn host_is_the_tree(host: &Snapshot, tree: &Snapshot) {
    table::differences(host, tree, |path, field| {
        panic!("{field:?} of {:.200}", packfs_core::escaped(path).to_string());
    });
}

/// Packs; returns what the packer said would be lost.
fn refused_unless_lossy(format: &str, source: &Path, image: &Path) -> Vec<String> {
    let pack = packfs::pack(source, image).format(format).sync(false).verify(true);
    let pack = match format {
        "erofs" => pack.codec("lz4"),
        _ => pack.codec("zstd:1"),
    };
    let error = pack.run().unwrap_err();
    assert_eq!((error.kind(), error.kind().exit_code()), (ErrorKind::Failed, 1), "{error}");
    assert!(!image.exists(), "{format}");
    let report = pack.lossy(true).run().unwrap_or_else(|e| panic!("{format}: {e}"));
    let message = error.to_string();
    for loss in report.losses.iter().filter(|loss| loss.refused) {
        assert!(message.contains(&loss.what), "{format}: {:?} is not in: {message}", loss.what);
    }
    let words = |loss: &packfs::Loss| {
        if loss.refused { format!("{} (refused without `--lossy`)", loss.what) } else { loss.what.clone() }
    };
    report.losses.iter().map(words).collect()
}
