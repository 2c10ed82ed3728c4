//! Images of genromfs as Linux's own driver reads them, beside what is read of them here.

mod common;

use common::read_image;
use packfs_core::{FileType, Silent};
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, OldKernel, snapshot_tree};
use std::path::Path;

/// Link counts are made up by both, and a tar tells names of one file by them.
const COMPARE: Compare =
    Compare { hard_links: false, dir_links: false, symlink_times: false, ..Compare::ALL };

#[test]
fn a_kernel_reads_what_is_read_here() {
    let Some(kernel) = OldKernel::find_with_module("6.1", "romfs") else { return };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/legacy"));
    for name in ["romfs.romfs", "romfs-aligned.romfs", "romfs-patterns.romfs"] {
        let image = folder.join(name);
        let (mut expected, findings) = read_image(&image);
        assert_eq!(findings, [], "{name}");
        // Busybox leaves sockets out of a tar.
        expected.0.retain(|_, row| row.file_type != FileType::Socket);
        let scratch = tempfile::tempdir().unwrap();
        let tar = scratch.path().join("copy.tar");
        kernel.tar_of(&image, "romfs", &tar).unwrap_or_else(|said| panic!("{name}: {said}"));
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        snapshot_tree(&copied.tree, &*copied.contents).assert_same(&expected, COMPARE, name);
    }
}
