//! Nothing is lost on the way: directory to image to tar to image, and image to image, give the
//! same bytes.

use crate::common::{Wish, open_image, squash};
use packfs_core::Silent;
use packfs_sink::{TarOptions, write_tar};
use packfs_source::{Shape, TarInput, load_dir, load_tar};
use packfs_testkit::{Compare, is_root, odd_tree, plain_tree, snapshot_dir, snapshot_tree, write_dir};

const WISH: Wish<'_> = Wish { codec: "zstd:3", block_len: 16 << 10, options: &[], jobs: 2 };

#[test]
fn directory_to_image_to_tar_to_image_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(16 << 10, is_root());
    write_dir(&tree, &contents, &source);
    // A tar has no sockets.
    for socket in ["socket", "xattrs/socket"] {
        let _ = std::fs::remove_file(source.join(socket));
    }
    let loaded = load_dir(&source, &Shape::default(), &Silent).unwrap();
    let first = squash(&loaded.tree, &*loaded.contents, WISH, folder.path(), "first");

    let engine = open_image(&first);
    let volume = engine.load_tree(&Silent).unwrap();
    let tar = folder.path().join("image.tar");
    let mut out = std::fs::File::create(&tar).unwrap();
    let report = write_tar(&engine, &volume, &mut out, &TarOptions::default(), &Silent).unwrap();
    assert_eq!(report.sockets, 0);

    for (name, input) in [
        ("from-file", TarInput::File(tar.clone())),
        (
            "from-stream",
            TarInput::Stream {
                reader: Box::new(std::fs::File::open(&tar).unwrap()),
                name: "standard input".into(),
                spool_dir: folder.path().into(),
            },
        ),
    ] {
        let again = load_tar(input, &Shape::default(), &Silent).unwrap();
        let compare = Compare::default();
        snapshot_tree(&again.tree, &*again.contents).assert_same(&snapshot_dir(&source), compare, name);
        let second = squash(&again.tree, &*again.contents, WISH, folder.path(), name);
        assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap(), "{name}: images differ");
    }
}

#[test]
fn image_to_image_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(16 << 10, true);
    let first = squash(&tree, &contents, WISH, folder.path(), "first");
    let other = Wish { codec: "xz", block_len: 4096, options: &[("fragments", "off")], jobs: 3 };
    let engine = open_image(&first);
    let volume = engine.load_tree(&Silent).unwrap();
    let converted = squash(&volume.tree, &*engine, other, folder.path(), "converted");
    let engine = open_image(&converted);
    let volume = engine.load_tree(&Silent).unwrap();
    let back = squash(&volume.tree, &*engine, WISH, folder.path(), "back");
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&back).unwrap(), "images differ");
}

#[test]
fn no_shared_block_gets_between_the_pieces_of_a_long_file_with_a_shared_tail() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    let expected = snapshot_tree(&tree, &contents);
    for duplicates in ["share", "keep"] {
        let options = &[("fragments", "always"), ("duplicates", duplicates)];
        let image = squash(&tree, &contents, Wish { options, ..WISH }, folder.path(), "always");
        let engine = open_image(&image);
        let loaded = engine.load_tree(&Silent).unwrap();
        let held = snapshot_tree(&loaded.tree, &*engine);
        expected.assert_same(&held, Compare { xattrs: false, ..Compare::default() }, duplicates);
    }
}
