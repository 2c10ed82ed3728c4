//! The directory source, tested on real directories.

use packfs_core::{NodeKind, Silent, Timestamp, Tree};
use packfs_source::{Shape, load_dir};
use packfs_testkit::{Compare, as_nobody, is_root, odd_tree, path, snapshot_dir, snapshot_tree, write_dir};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn names(tree: &Tree) -> Vec<String> {
    let mut walk = tree.walk();
    let mut names = Vec::new();
    while let Some((path, _)) = walk.next() {
        names.push(path.to_string());
    }
    names
}

fn load_error(folder: &Path, shape: &Shape) -> String {
    load_dir(folder, shape, &Silent).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn finds_everything_that_a_directory_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, contents) = odd_tree(4096, is_root());
    write_dir(&tree, &contents, folder.path());
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    let compare = Compare { nanos: true, ..Compare::default() };
    let host = snapshot_dir(folder.path());
    snapshot_tree(&loaded.tree, &*loaded.contents).assert_same(&host, compare, "directory and loaded tree");
}

#[test]
fn reports_the_holes_of_a_sparse_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 32 << 20).unwrap();
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    let NodeKind::File { content, len } = loaded.tree.node(loaded.tree.find(&path("sparse")).unwrap()).kind
    else {
        panic!("a file")
    };
    let mut reader = loaded.contents.open(content).unwrap();
    let data = reader.next_data(0).unwrap().unwrap();
    assert!(data.start > 16 << 20 && data.start <= 32 << 20 && data.end < 48 << 20, "{data:?}");
    assert_eq!(reader.next_data(data.end).unwrap(), None);
    assert_eq!(reader.next_data(len).unwrap(), None);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error_that_names_it() {
    type Change = (&'static str, fn(&Path));
    let changes: [Change; 4] = [
        ("grows", |path| fs::write(path, "longer than before").unwrap()),
        ("shrinks", |path| fs::write(path, "").unwrap()),
        ("same-length", |path| fs::write(path, "other").unwrap()),
        ("old-time", |path| {
            let old = fs::metadata(path).unwrap().modified().unwrap();
            fs::write(path, "other").unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_times(fs::FileTimes::new().set_modified(old)).unwrap();
        }),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in changes {
        fs::write(folder.path().join(name), "first").unwrap();
    }
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    // Timestamps of filesystems have a resolution of a few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(12));
    for (name, change) in changes {
        let node = loaded.tree.node(loaded.tree.find(&path(name)).unwrap());
        let NodeKind::File { content, .. } = node.kind else { panic!("a file") };
        let mut reader = loaded.contents.open(content).unwrap();
        let mut bytes = [0; 5];
        reader.read_exact_at(0, &mut bytes).unwrap();
        reader.check_unchanged().unwrap();
        change(&folder.path().join(name));
        let error = reader.check_unchanged().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("changed during packing"), "{error}");
        assert!(loaded.contents.open(content).is_err(), "{name}");
    }
}

#[test]
fn a_file_that_changes_after_the_scan_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["grows", "vanishes", "becomes-a-link"] {
        fs::write(folder.path().join(name), "before").unwrap();
    }
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    fs::write(folder.path().join("grows"), "before and after").unwrap();
    fs::remove_file(folder.path().join("vanishes")).unwrap();
    fs::remove_file(folder.path().join("becomes-a-link")).unwrap();
    symlink("/etc/passwd", folder.path().join("becomes-a-link")).unwrap();
    for (name, fault) in
        [("grows", "changed"), ("vanishes", "No such file"), ("becomes-a-link", "cannot open")]
    {
        let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path(name)).unwrap()).kind
        else {
            panic!("a file")
        };
        let error = loaded.contents.open(content).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(fault), "{error}");
    }
}

#[test]
fn skips_excluded_directories_without_reading_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("keep/cache")).unwrap();
    fs::write(folder.path().join("keep/cache/x"), "").unwrap();
    fs::write(folder.path().join("keep/a.o"), "").unwrap();
    fs::write(folder.path().join("keep/b.c"), "").unwrap();
    fs::write(folder.path().join("keep/.ignored"), "*.c\n!b.c\n").unwrap();
    fs::write(folder.path().join("keep/d.c"), "").unwrap();
    let image = fs::metadata(folder.path().join("keep/a.o")).unwrap();
    let shape = Shape {
        exclude: vec!["cache/".into()],
        ignore_files: vec![".ignored".into()],
        skip: vec![(image.dev(), image.ino())],
        ..Shape::default()
    };
    let loaded = load_dir(folder.path(), &shape, &Silent).unwrap();
    assert_eq!(names(&loaded.tree), ["/", "keep", "keep/.ignored", "keep/b.c"]);
    assert_eq!(loaded.notes.left_out, 3);
}

#[test]
fn follows_symlinks_only_on_request_and_never_in_circles() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("dir")).unwrap();
    fs::write(folder.path().join("dir/file"), "content").unwrap();
    symlink("dir", folder.path().join("link")).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    let kept = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    assert_eq!(names(&kept.tree), ["/", "dangling", "dir", "dir/file", "link"]);
    let follow = Shape { follow_symlinks: true, ..Shape::default() };
    let followed = load_dir(folder.path(), &follow, &Silent).unwrap();
    assert_eq!(names(&followed.tree), ["/", "dangling", "dir", "dir/file", "link", "link/file"]);
    symlink("..", folder.path().join("dir/up")).unwrap();
    let error = load_error(folder.path(), &follow);
    assert!(error.contains("circle"), "{error}");
}

#[test]
fn reads_directories_deeper_than_a_path_can_be_long() {
    let folder = tempfile::tempdir().unwrap();
    let name = "n".repeat(200);
    let mut at: rustix::fd::OwnedFd = fs::File::open(folder.path()).unwrap().into();
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, name.as_str(), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        at = rustix::fs::openat(&at, name.as_str(), flags, rustix::fs::Mode::empty()).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&at, "file", flags, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    rustix::io::write(&file, b"deep").unwrap();
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    let (id, _) = loaded.tree.nodes().last().unwrap();
    assert_eq!(loaded.tree.path(id).as_bytes().len(), 30 * 201 + 4);
    let NodeKind::File { content, .. } = loaded.tree.node(id).kind else { panic!("a file") };
    let mut bytes = [0; 4];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"deep");
}

#[test]
fn clamps_times_and_keeps_names_that_are_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"\xff\n");
    fs::write(folder.path().join(name), "").unwrap();
    let shape = Shape { mtime_max: Some(Timestamp::from_seconds(1000)), ..Shape::default() };
    let loaded = load_dir(folder.path(), &shape, &Silent).unwrap();
    let id = loaded.tree.find(&path(b"\xff\n")).unwrap();
    assert_eq!(loaded.tree.node(id).meta.mtime, Timestamp::from_seconds(1000));
}

#[test]
fn errors_name_unreadable_files() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(load_error(&missing, &Shape::default()).contains("missing"));
    fs::write(&missing, "").unwrap();
    assert!(load_error(&missing, &Shape::default()).contains("Not a directory"));
}

#[test]
fn the_nearest_ignore_file_decides_and_a_wrong_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join(".ignored"), "*.log\n/a/b/only-here\n").unwrap();
    fs::write(folder.path().join("a/.ignored"), "!kept.log\n/b/x\n").unwrap();
    for name in ["1.log", "a/kept.log", "a/b/kept.log", "a/b/2.log", "a/b/x", "a/x", "a/b/only-here"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let shape = Shape { ignore_files: vec![".ignored".into()], ..Shape::default() };
    let loaded = load_dir(folder.path(), &shape, &Silent).unwrap();
    let kept = ["/", ".ignored", "a", "a/.ignored", "a/b", "a/b/kept.log", "a/kept.log", "a/x"];
    assert_eq!(names(&loaded.tree), kept);
    fs::write(folder.path().join("a/.ignored"), "fine\n[z-a]\n").unwrap();
    let error = load_error(folder.path(), &shape);
    assert!(error.contains("a/.ignored") && error.contains(":2"), "{error}");
}

#[test]
fn skips_unreadable_files_with_keep_going() {
    // Root can open everything.
    as_nobody(|| {
        let folder = tempfile::tempdir().unwrap();
        for name in ["readable", "secret"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join("locked")).unwrap();
        for name in ["secret", "locked"] {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        assert!(load_error(folder.path(), &Shape::default()).contains("locked"));
        let going_on = Shape { keep_going: true, ..Shape::default() };
        let loaded = load_dir(folder.path(), &going_on, &Silent).unwrap();
        assert_eq!(names(&loaded.tree), ["/", "locked", "readable"]);
        assert_eq!(loaded.notes.unreadable.len(), 2, "{:?}", loaded.notes);
    });
}

#[test]
fn does_not_look_at_files_that_are_left_out_unless_they_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.o", "b.o"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    fs::hard_link(folder.path().join("b.o"), folder.path().join("kept")).unwrap();
    let shape = Shape { exclude: vec!["*.o".into()], ..Shape::default() };
    let loaded = load_dir(folder.path(), &shape, &Silent).unwrap();
    assert_eq!(names(&loaded.tree), ["/", "kept"]);
    assert_eq!(loaded.notes.left_out, 2);
    let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path("kept")).unwrap()).kind
    else {
        panic!("a file")
    };
    let mut bytes = [0; 3];
    loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"b.o");
}

#[test]
fn mount_points_stay_empty_when_only_one_file_system_is_wanted() {
    if !is_root() {
        packfs_testkit::skip("only root can mount");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mounted = folder.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    fs::write(folder.path().join("here"), "").unwrap();
    let flags = rustix::mount::MountFlags::empty();
    if let Err(error) = rustix::mount::mount("none", &mounted, "tmpfs", flags, None) {
        packfs_testkit::skip(&format!("cannot mount: {error}"));
        return;
    }
    fs::write(mounted.join("elsewhere"), "").unwrap();
    let all = load_dir(folder.path(), &Shape::default(), &Silent);
    let one = load_dir(folder.path(), &Shape { one_file_system: true, ..Shape::default() }, &Silent);
    rustix::mount::unmount(&mounted, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(names(&all.unwrap().tree), ["/", "here", "mounted", "mounted/elsewhere"]);
    assert_eq!(names(&one.unwrap().tree), ["/", "here", "mounted"]);
}

#[test]
fn equal_inode_numbers_on_two_file_systems_are_two_files() {
    if !is_root() {
        packfs_testkit::skip("only root can mount");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mounts = ["one", "two"].map(|name| folder.path().join(name));
    for at in &mounts {
        fs::create_dir(at).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        if let Err(error) = rustix::mount::mount("none", at, "tmpfs", flags, None) {
            packfs_testkit::skip(&format!("cannot mount: {error}"));
            return;
        }
        fs::write(at.join("file"), at.as_os_str().as_bytes()).unwrap();
        fs::hard_link(at.join("file"), at.join("link")).unwrap();
    }
    let inodes = mounts.each_ref().map(|at| fs::metadata(at.join("file")).unwrap().ino());
    let loaded = load_dir(folder.path(), &Shape::default(), &Silent).unwrap();
    let content = |name: &str| {
        let node = loaded.tree.node(loaded.tree.find(&path(name)).unwrap());
        let NodeKind::File { content, len } = node.kind else { panic!("a file") };
        let mut bytes = vec![0; len as usize];
        loaded.contents.open(content).unwrap().read_exact_at(0, &mut bytes).unwrap();
        bytes
    };
    let found = ["one/file", "one/link", "two/file", "two/link"].map(content);
    for at in &mounts {
        rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
    assert_eq!(inodes[0], inodes[1], "the numbers are equal, or this shows nothing");
    let expected =
        [&mounts[0], &mounts[0], &mounts[1], &mounts[1]].map(|at| at.as_os_str().as_bytes().to_vec());
    assert_eq!(found, expected);
}
