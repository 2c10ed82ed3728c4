//! Layers of containers: marks of hidden files as overlayfs knows them, judged by the kernel's
//! overlayfs; and SELinux labels.

use packfs::source::{FileContexts, Shape, Whiteouts};
use packfs::{ImagePath, Silent};
use packfs_testkit::{Mount, is_root, skip, snapshot_dir};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Files with their own names as contents, and a tar of them.
fn layer(folder: &Path, name: &str, files: &[&str]) -> std::path::PathBuf {
    let root = folder.join(name);
    for file in files {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let is_mark = path.file_name().unwrap().to_string_lossy().starts_with(".wh.");
        std::fs::write(&path, if is_mark { String::new() } else { format!("{name}:{file}") }).unwrap();
    }
    let tar = folder.join(format!("{name}.tar"));
    let made = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").status().unwrap();
    assert!(made.success());
    tar
}

fn shape(whiteouts: Whiteouts) -> Shape {
    Shape { whiteouts: Some(whiteouts), ..Shape::default() }
}

#[test]
fn overlayfs_hides_what_the_marks_of_a_layer_hide() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lower =
        layer(folder, "lower", &["kept", "gone", "dir/gone", "dir/kept", "opaque/old", "file-or-dir/old"]);
    let marks = [
        ".wh.gone",
        "dir/.wh.gone",
        "opaque/.wh..wh..opq",
        "opaque/new",
        ".wh.file-or-dir",
        "file-or-dir/new",
    ];
    let upper = layer(folder, "upper", &marks);
    for format in ["erofs", "squashfs"] {
        let image = |tar: &Path, name: &str| {
            let image = folder.join(format!("{name}.{format}"));
            let pack = packfs::pack(tar, &image).format(format).shape(shape(Whiteouts::Overlayfs));
            pack.sync(false).run().unwrap();
            image
        };
        let upper = Mount::new(&image(&upper, "upper"), format).unwrap();
        let lower = Mount::new(&image(&lower, "lower"), format).unwrap();
        let overlay = Mount::overlay(&[upper.path(), lower.path()]).unwrap();
        let found = snapshot_dir(&overlay.path());
        let paths: Vec<&str> = found.0.keys().map(|path| std::str::from_utf8(path).unwrap()).collect();
        let expected =
            ["", "dir", "dir/kept", "file-or-dir", "file-or-dir/new", "kept", "opaque", "opaque/new"];
        assert_eq!(paths, expected, "{format}");
    }
}

#[test]
fn marks_go_from_aufs_to_overlayfs_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tar = layer(folder, "layer", &["a/.wh.gone", "a/kept", "b/.wh..wh..opq", "b/new", ".wh.c"]);
    let pack = |source: &Path, name: &str, whiteouts| {
        let image = folder.join(name);
        packfs::pack(source, &image).shape(shape(whiteouts)).sync(false).run().unwrap();
        image
    };
    let names = |image: &Path| {
        let tree = packfs::open(image).unwrap().load(&Silent).unwrap().tree;
        let mut names = Vec::new();
        let mut walk = tree.walk();
        while let Some((path, _)) = walk.next() {
            names.push(path.to_string());
        }
        names
    };
    let kept = pack(&tar, "kept.erofs", Whiteouts::Keep);
    let overlay = pack(&kept, "overlay.sqfs", Whiteouts::Overlayfs);
    assert_eq!(names(&overlay), ["/", "a", "a/gone", "a/kept", "b", "b/new", "c"]);
    let aufs = pack(&overlay, "aufs.erofs", Whiteouts::Aufs);
    assert_eq!(names(&aufs), names(&kept));
}

#[test]
fn the_kernel_shows_the_labels_of_a_policy() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir_all(source.join("bin")).unwrap();
    std::fs::write(source.join("bin/sh"), "#!").unwrap();
    std::os::unix::fs::symlink("bin/sh", source.join("link")).unwrap();
    let policy = "/system(/.*)? u:object_r:system_file:s0\n\
                  /system/bin/.* -- u:object_r:exec:s0\n\
                  /system/bin -d u:object_r:bin_dir:s0\n";
    let contexts = FileContexts::parse(policy).unwrap().mounted_at(ImagePath::parse(b"system").unwrap());
    let shape = Shape { file_contexts: Some(Arc::new(contexts)), ..Shape::default() };
    for format in ["erofs", "squashfs"] {
        let image = folder.path().join(format);
        packfs::pack(&source, &image).format(format).shape(shape.clone()).sync(false).run().unwrap();
        let mount = Mount::new(&image, format).unwrap();
        let found = snapshot_dir(&mount.path());
        let label = |path: &str| {
            let value = found.0[path.as_bytes()].xattrs.get(&b"security.selinux"[..]);
            String::from_utf8(value.unwrap_or_else(|| panic!("{format}: {path}")).clone()).unwrap()
        };
        assert_eq!(label(""), "u:object_r:system_file:s0\0", "{format}");
        assert_eq!(label("bin"), "u:object_r:bin_dir:s0\0", "{format}");
        assert_eq!(label("bin/sh"), "u:object_r:exec:s0\0", "{format}");
        assert_eq!(label("link"), "u:object_r:system_file:s0\0", "{format}");
    }
}
