//! Linux shows the same tree: the image below overlayfs, with the objects as a layer of data.

use super::{generated, write_tree};
use packfs::composefs::{ComposefsOptions, make};
use packfs::{OpenOptions, Silent};
use packfs_testkit::{Compare, Mount, is_root, skip, snapshot_dir, snapshot_tree};

#[test]
fn the_kernel_shows_what_packfs_reads() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (root, objects, path) =
        (folder.path().join("root"), folder.path().join("objects"), folder.path().join("root.cfs"));
    write_tree(&root);
    std::fs::hard_link(root.join("usr/bin/65"), root.join("etc/hard")).unwrap();
    generated::add_special_files(&root);
    let options = ComposefsOptions { objects: Some(objects.clone()), ..ComposefsOptions::default() };
    let read = || {
        std::fs::write(&path, make(&root, &options, &Silent).unwrap().bytes).unwrap();
        let opened = OpenOptions::new().objects(&objects).open(&path).unwrap();
        let loaded = opened.load(&Silent).unwrap();
        let own = snapshot_tree(&loaded.tree, &**opened.engine());
        snapshot_dir(&root).assert_same(&own, Compare::default(), "packfs");
        own
    };
    read();
    // Linux shows a whiteout of the tree as an empty file, which is one for a mount above.
    std::fs::remove_file(root.join("usr/gone")).unwrap();
    let own = read();

    let image = Mount::new(&path, "erofs").unwrap();
    let mounted = match Mount::composefs(&image.path(), &objects) {
        Ok(mounted) => mounted,
        Err(why) => return skip(&format!("this kernel has no layers of data: {why}")),
    };
    let compare = Compare { xattrs: false, ..Compare::default() };
    snapshot_dir(&mounted.path()).assert_same(&own, compare, "kernel");
}
