//! ISO 9660 images: what is packed is read back, by packfs, by other tools, and by a kernel in a
//! virtual machine.

use crate::common;
use crate::common::{Wish, open_image, read_image, seven_zip_agrees};
use packfs_core::{Contents, Silent, Tree};
use packfs_format::{FactValue, PackSettings, Severity};
use packfs_pack::{PackOptions, pack};
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{
    Compare, OldKernel, Random, odd_tree, peer, plain_tree, snapshot_dir, snapshot_tree, tree_of,
};
use std::path::{Path, PathBuf};

/// Options of the format, codec and block size.
type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, u32);

const ROWS: &[Row<'_>] = &[
    (&[], "none", 32 << 10),
    (&[("zisofs", "1")], "gzip:6", 32 << 10),
    (&[("joliet", "on")], "gzip:9", 128 << 10),
    (&[("zisofs", "2"), ("joliet", "long")], "gzip:6", 256 << 10),
];

#[track_caller]
fn iso(tree: &Tree, contents: &dyn Contents, (options, codec, block_len): Row<'_>, path: &Path, jobs: usize) {
    let wish = Wish { codec, block_len, options, jobs };
    let options = wish.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = PackSettings {
        codec: Some(codec.into()),
        block_size: Some(block_len),
        made_at: 1_700_000_000,
        options,
        ..PackSettings::default()
    };
    let packer = packfs_formats::by_name("iso9660").unwrap().packer(&settings).unwrap();
    let pack_options = PackOptions { jobs: wish.jobs, sync: false, lossy: true, ..PackOptions::default() };
    pack(tree, contents, &*packer, path, &pack_options, &Silent).unwrap_or_else(|e| panic!("{wish:?}: {e}"));
}

fn packed(tree: &Tree, contents: &dyn Contents, row: Row<'_>, folder: &Path) -> PathBuf {
    let path = folder.join("image.iso");
    iso(tree, contents, row, &path, 2);
    path
}

#[test]
fn what_is_packed_is_read_back_and_sound() {
    for &row in ROWS {
        let (tree, contents) = odd_tree(32 << 10, true);
        let folder = tempfile::tempdir().unwrap();
        let image = packed(&tree, &contents, row, folder.path());
        let (read, findings) = read_image(&image);
        assert!(findings.is_empty(), "{row:?}: {findings:?}");
        snapshot_tree(&tree, &contents).assert_same(&read, Compare::default(), &format!("{row:?}"));
        let engine = open_image(&image);
        let space = engine.volume().space().unwrap();
        assert!(space.iter().all(|owner| owner.owner != "unused" || owner.len < 4096), "{space:?}");
        assert_eq!(engine.volume().image_len(), Some(std::fs::metadata(&image).unwrap().len()));
        let mut decoded = Vec::new();
        let loaded = engine.load_tree(&Silent).unwrap();
        packfs::check::content(&engine, &loaded, &Silent, &mut |finding| decoded.push(finding)).unwrap();
        decoded.retain(|finding| finding.severity == Severity::Error);
        assert!(decoded.is_empty(), "{row:?}: {decoded:?}");
    }
}

#[test]
fn the_same_tree_gives_the_same_bytes_with_any_number_of_threads() {
    let (tree, contents) = odd_tree(32 << 10, true);
    for &row in ROWS {
        let folder = tempfile::tempdir().unwrap();
        let images = [1, 2, 5].map(|jobs| {
            let path = folder.path().join(format!("{jobs}.iso"));
            iso(&tree, &contents, row, &path, jobs);
            std::fs::read(path).unwrap()
        });
        assert!(images[0] == images[1] && images[0] == images[2], "{row:?}");
    }
}

#[test]
fn an_image_of_an_image_is_the_same() {
    let (tree, contents) = odd_tree(32 << 10, true);
    let folder = tempfile::tempdir().unwrap();
    let image = packed(&tree, &contents, ROWS[1], folder.path());
    let engine = open_image(&image);
    let loaded = engine.load_tree(&Silent).unwrap();
    let again = folder.path().join("again.iso");
    iso(&loaded.tree, &*engine, ROWS[1], &again, 2);
    assert!(std::fs::read(&image).unwrap() == std::fs::read(&again).unwrap(), "images differ");
}

#[test]
fn boot_images_are_stored_as_they_are_and_listed() {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    // The largest file that compresses, so that it would have been.
    let path = largest(&tree);
    let options = [("boot", &*path), ("efi-boot", &path), ("boot-sectors", "all"), ("volume-id", "STARTS")];
    let image = packed(&tree, &contents, (&options, "gzip:9", 32 << 10), folder.path());
    let engine = open_image(&image);
    let facts = engine.volume().facts().unwrap();
    let Some(FactValue::List(images)) = facts.get("boot_images") else { panic!("{facts:?}") };
    assert_eq!(images.len(), 2, "{images:?}");
    assert!(images[0].starts_with("x86, no emulation") && images[1].starts_with("EFI"), "{images:?}");
    assert_eq!(facts.get("volume_id"), Some(&FactValue::Text("STARTS".into())));
    let (read, findings) = read_image(&image);
    assert!(findings.is_empty(), "{findings:?}");
    snapshot_tree(&tree, &contents).assert_same(&read, Compare::default(), "with boot images");
    // Where the catalog says, the file begins.
    let bytes = std::fs::read(&image).unwrap();
    let block: usize = images[0].rsplit(' ').next().unwrap().parse().unwrap();
    let loaded = engine.load_tree(&Silent).unwrap();
    let node = loaded.tree.find(&packfs_testkit::path(path)).unwrap();
    let packfs_core::NodeKind::File { len, content } = loaded.tree.node(node).kind else { panic!() };
    let mut wanted = vec![0; len as usize];
    engine.open(content).unwrap().read_exact_at(0, &mut wanted).unwrap();
    assert!(bytes[block * 2048..][..wanted.len()] == wanted[..]);
}

#[test]
fn a_boot_image_and_its_twins_are_stored_once_and_as_they_are() {
    let bytes = Random::new(3).text(300_000);
    // The one that boots is neither the first nor the last.
    let (tree, contents) = tree_of(["a", "boot", "z"].map(|name| (name, bytes.clone())));
    let folder = tempfile::tempdir().unwrap();
    let image = packed(&tree, &contents, (&[("boot", "boot")], "gzip:9", 32 << 10), folder.path());
    let len = std::fs::metadata(&image).unwrap().len();
    assert!((300_000..400_000).contains(&len), "{len}");
    let (read, findings) = read_image(&image);
    assert!(findings.iter().all(|finding| finding.severity < Severity::Error), "{findings:?}");
    snapshot_tree(&tree, &contents).assert_same(&read, Compare::default(), "with twins");
}

fn largest(tree: &Tree) -> String {
    let len = |kind: &packfs_core::NodeKind| match kind {
        packfs_core::NodeKind::File { len, .. } => *len,
        _ => 0,
    };
    let (id, _) = tree.nodes().max_by_key(|(_, node)| len(&node.kind)).unwrap();
    String::from_utf8(tree.path(id).as_bytes().to_vec()).unwrap()
}

#[test]
fn xorriso_reads_what_is_packed() {
    let Some(tool) = peer("xorriso") else { return };
    let (tree, contents) = plain_tree();
    for &row in ROWS {
        let folder = tempfile::tempdir().unwrap();
        let image = packed(&tree, &contents, row, folder.path());
        let out = folder.path().join("out");
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 11] = [
            &"-osirrox",
            &"on:auto_chmod_off",
            &"-zisofs",
            &"default",
            &"-indev",
            &image,
            &"-hardlinks",
            &"on",
            &"-extract",
            &"/",
            &out,
        ];
        tool.run(&arguments);
        let compare =
            Compare { root: false, xattrs: false, dir_links: false, hard_links: false, ..Compare::default() };
        let compare = Compare { owners: packfs_testkit::is_root(), ..compare };
        // It gives symlinks neither owner nor time.
        let (mut wanted, mut found) = (snapshot_tree(&tree, &contents), snapshot_dir(&out));
        let links = [wanted.0.remove(&b"link"[..]), found.0.remove(&b"link"[..])];
        assert!(matches!(&links, [Some(one), Some(other)] if one.content == other.content));
        wanted.assert_same(&found, compare, &format!("xorriso of {row:?}"));
    }
}

#[test]
fn isoinfo_lists_what_is_packed() {
    let Some(tool) = peer("isoinfo") else { return };
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let image = packed(&tree, &contents, ROWS[2], folder.path());
    let listed = tool.run(&[&"-R", &"-f", &"-i", &image]).stdout;
    let mut listed: Vec<Vec<u8>> = listed.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    listed.retain(|line| !line.is_empty());
    listed.sort();
    let mut wanted = Vec::new();
    let mut walk = tree.walk();
    while let Some((path, _)) = walk.next() {
        if !path.is_root() {
            wanted.push([b"/", path.as_bytes()].concat());
        }
    }
    wanted.sort();
    assert_eq!(listed, wanted);
    let joliet = tool.run(&[&"-J", &"-l", &"-i", &image]).stdout;
    assert!(joliet.len() > 1000, "the Joliet tree is listed");
}

/// It does not decode zisofs, and where there is Joliet, it shows that.
#[test]
fn seven_zip_reads_what_is_not_compressed() {
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    let image = packed(&tree, &contents, ROWS[0], folder.path());
    seven_zip_agrees(&image, &snapshot_tree(&tree, &contents), "iso9660");
}

#[test]
fn bsdtar_reads_what_is_packed() {
    let Some(tool) = peer("bsdtar") else { return };
    let (tree, contents) = plain_tree();
    let folder = tempfile::tempdir().unwrap();
    for row in &ROWS[..2] {
        let image = packed(&tree, &contents, *row, folder.path());
        let out = tempfile::tempdir().unwrap();
        tool.run(&[&"-xpf", &image, &"-C", &out.path()]);
        let compare = Compare { root: false, xattrs: false, dir_links: false, ..Compare::default() };
        let compare = Compare { owners: packfs_testkit::is_root(), ..compare };
        let found = snapshot_dir(out.path());
        snapshot_tree(&tree, &contents).assert_same(&found, compare, &format!("bsdtar of {row:?}"));
    }
}

#[test]
fn a_kernel_reads_what_is_packed() {
    let Some(kernel) = OldKernel::find_with_module("6.1", "isofs") else { return };
    let (tree, contents) = plain_tree();
    // It does not know version 2 of zisofs.
    let rows = &ROWS[1..3];
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let images = rows.iter().zip(&folders).map(|(&row, folder)| packed(&tree, &contents, row, folder.path()));
    let tars = kernel.tars_in(folders[0].path(), "iso9660", &images.collect::<Vec<_>>());
    for (row, tar) in rows.iter().zip(tars) {
        let copied = load_tar(TarInput::File(tar), &Shape::default(), &Silent).unwrap();
        // The driver takes each name for a file of its own.
        let compare = Compare { xattrs: false, dir_links: false, hard_links: false, ..Compare::default() };
        let copied = snapshot_tree(&copied.tree, &*copied.contents);
        snapshot_tree(&tree, &contents).assert_same(&copied, compare, &format!("{row:?}"));
    }
}

/// Nothing but zlib has checksums, and of two trees one is shown: much damage cannot be seen.
#[test]
fn damage_to_any_structure_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = plain_tree();
    for row in [ROWS[2], ROWS[3]] {
        let image = std::fs::read(packed(&tree, &contents, row, folder.path())).unwrap();
        common::damage::survives(&image, 6, false, &format!("{row:?}"));
    }
    let (tree, contents) = odd_tree(4096, packfs_testkit::is_root());
    let image = std::fs::read(packed(&tree, &contents, ROWS[1], folder.path())).unwrap();
    common::damage::survives(&image, 4, false, "odd tree");
}
