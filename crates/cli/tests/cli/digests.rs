//! `packfs digest`: one tree, one digest, wherever it lives.

use crate::fixture::Fixture;
use packfs_testkit::{Peer, is_root, odd_tree, peer, write_dir};
use std::os::unix::fs::FileExt;

/// A folder with the odd tree `rootfs` and images and a tar of it; without sockets, which no tar
/// holds.
fn with_odd_tree() -> Fixture {
    let fixture = Fixture::new();
    let root = fixture.path("rootfs");
    std::fs::create_dir(&root).unwrap();
    let (tree, contents) = odd_tree(128 << 10, is_root());
    write_dir(&tree, &contents, &root);
    for socket in ["socket", "xattrs/socket"] {
        let _ = std::fs::remove_file(root.join(socket));
    }
    let sparse = std::fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"data", 700 << 20).unwrap();
    sparse.set_len((1 << 30) + 1).unwrap();
    fixture
}

/// The digest that a line begins with.
fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap()
}

#[test]
fn a_directory_a_tar_and_images_of_one_tree_agree() {
    let fixture = with_odd_tree();
    let images: [&[&str]; 4] = [
        &["root.sqfs", "-c", "zstd:1"],
        &["other.sqfs", "-c", "lz4", "-b", "64K", "--order", "path"],
        &["root.erofs", "-c", "lz4"],
        &["plain.erofs", "-c", "none", "-O", "chunks=16K"],
    ];
    for image in images {
        fixture.run([&["pack", "rootfs", "-q"], image].concat()).done();
    }
    fixture.run(["tar", "root.sqfs", "-o", "root.tar", "-q"]).done();
    let sources = ["rootfs", "root.sqfs", "other.sqfs", "root.erofs", "plain.erofs", "root.tar"];
    let run = fixture.run([&["digest"], &sources[..]].concat());
    let digest = first_word(run.done().text());
    assert!(digest.starts_with("packfs-tree-1:sha256:") && digest.len() == 85, "{digest}");
    let expected: String = sources.iter().map(|source| format!("{digest}  {source}\n")).collect();
    assert_eq!(run.text(), expected);
    // What SquashFS cannot hold, EROFS does.
    fixture.write("rootfs/now", "a file with nanoseconds");
    for image in ["nanos.erofs", "nanos.sqfs"] {
        fixture.run(["pack", "rootfs", image, "-q"]).done();
    }
    let nanos = fixture.run(["digest", "--facts", "+nanos", "rootfs", "nanos.erofs", "nanos.sqfs"]);
    let lines: Vec<&str> = nanos.done().text().lines().map(first_word).collect();
    assert!(lines[0] == lines[1] && lines[0] != lines[2], "{lines:?}");
}

#[test]
fn the_second_implementation_of_the_document_agrees() {
    let Some(python) = peer("python3") else { return };
    let fixture = with_odd_tree();
    let document = std::fs::read_to_string("../../docs/formats/digest.md").unwrap();
    let (_, program) = document.split_once("```python\n").unwrap();
    let program = program.split_once("```").unwrap().0;
    fixture.write("digest.py", program);
    let digits = |python: &Peer, facts: &[&str]| {
        let (program, root) = (fixture.path("digest.py"), fixture.path("rootfs"));
        let mut command = python.command(&[&program, &root]);
        let output = command.args(facts).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for (facts, typed) in [
        ("mode+owner+mtime+xattrs+links+root", "+mode"),
        ("mode+owner+mtime+nanos+xattrs+links+root", "all"),
        ("none", "none"),
        ("nanos+links", "links,nanos"),
    ] {
        let run = fixture.run(["digest", "--facts", typed, "rootfs"]);
        let ours = first_word(run.done().text()).rsplit(':').next().unwrap().to_owned();
        assert_eq!(ours, digits(&python, &[facts]), "{facts}");
    }
    let run = fixture.run(["digest", "rootfs"]);
    assert_eq!(first_word(run.done().text()).rsplit(':').next().unwrap(), digits(&python, &[]));
}

#[test]
fn digests_are_checked_one_by_one_and_from_lists() {
    let fixture = Fixture::with_image();
    let list = fixture.run(["digest", "rootfs", "root.sqfs"]);
    let digest = first_word(list.done().text());
    fixture.run(["digest", "--check", digest, "rootfs", "root.sqfs", "-q"]).done();
    fixture.write("list", list.text());
    assert_eq!(fixture.run(["digest", "-c", "list"]).done().text(), "same: rootfs\nsame: root.sqfs\n");
    fixture.write("rootfs/etc/os-release", "NAME=another\n");
    let run = fixture.run(["digest", "--check-list", "list"]);
    assert_eq!(run.code, Some(1));
    assert!(run.text().starts_with("differs: rootfs: packfs-tree-1:sha256:"), "{}", run.text());
    assert!(run.text().ends_with("\nsame: root.sqfs\n"), "{}", run.text());
    let checked = fixture.run(["digest", "--check-list", "list", "--json"]);
    assert_eq!(checked.code, Some(1));
    let rows: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((rows[0]["same"].as_bool(), rows[1]["same"].as_bool()), (Some(false), Some(true)));
    assert_eq!(rows[0]["expected"], digest);
    assert_eq!(rows[1]["digest"], digest);
    // A digest tells which facts count.
    let metadata = fixture.run(["digest", "--facts", "mode,links", "root.sqfs"]);
    fixture.run(["digest", "--check", first_word(metadata.done().text()), "root.sqfs"]).done();

    fixture.run(["digest", "--check", "packfs-tree-1:sha256:00", "rootfs"]).failed(2, &["not the digest"]);
    let other = digest.replace("tree-1", "tree-9");
    fixture.run(["digest", "--check", &other, "rootfs"]).failed(4, &["packfs-tree-9"]);
    fixture.write("list", "nonsense\n");
    fixture.run(["digest", "-c", "list"]).failed(2, &["line 1"]);
    fixture.run(["digest", "no-such"]).failed(1, &["no-such"]);
    fixture.run(["digest", "-", "-"]).failed(2, &["standard input"]);
}

#[test]
fn digests_of_directories_locate_differences() {
    let fixture = Fixture::with_image();
    fixture.write("rootfs/usr/share/doc/README", "changed");
    fixture.run(["pack", "rootfs", "new.sqfs", "-q"]).done();
    let facts = ["digest", "--depth", "3", "--facts", "-mtime", "--json"];
    let directories = |source: &str| {
        let document = fixture.run([&facts[..], &[source]].concat()).json();
        assert_eq!(document[0]["source"], source);
        assert_eq!(document[0]["digest"], document[0]["directories"][0]["digest"]);
        document[0]["directories"].as_array().unwrap().clone()
    };
    let (old, new) = (directories("root.sqfs"), directories("new.sqfs"));
    let differ: Vec<_> =
        old.iter().zip(&new).filter(|(old, new)| old != new).map(|(old, _)| old["path"].clone()).collect();
    assert_eq!(differ, ["", "usr", "usr/share", "usr/share/doc"]);
    assert_eq!(old.len(), 7);
    let lines = fixture.run(["digest", "--depth", "1", "root.sqfs"]);
    let names: Vec<_> = lines.done().text().lines().map(|line| line.split("  ").nth(1).unwrap()).collect();
    assert_eq!(names, ["root.sqfs", "root.sqfs:/empty", "root.sqfs:/etc", "root.sqfs:/usr"]);
    let alone = fixture.run(["digest", "rootfs/usr/bin"]);
    let within = fixture.run(["digest", "--depth", "2", "rootfs"]);
    assert!(within.done().text().contains(&format!("{}  rootfs:/usr/bin", first_word(alone.done().text()))));
}
