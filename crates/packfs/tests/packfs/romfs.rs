//! Images of genromfs as Linux's own driver reads them, beside what is read of them here.

use crate::common::read_image;
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
    let images = ["romfs.romfs", "romfs-aligned.romfs", "romfs-patterns.romfs"].map(|name| folder.join(name));
    let scratch = tempfile::tempdir().unwrap();
    for (image, tar) in images.iter().zip(kernel.tars_in(scratch.path(), "romfs", &images)) {
        let name = image.display().to_string();
        let (mut expected, findings) = read_image(image);
        assert_eq!(findings, [], "{name}");
        // Busybox leaves sockets out of a tar.
        expected.0.retain(|_, row| row.file_type != FileType::Socket);
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        snapshot_tree(&copied.tree, &*copied.contents).assert_same(&expected, COMPARE, &name);
    }
}
