//! Opening images: paths, links, and what cannot be opened.

use packfs::{ErrorKind, ImagePath, MadeAt, OpenOptions, Opened, Silent, Source, source::Shape};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Packs a tree that `build` makes, and opens the image.
fn image(build: impl FnOnce(&Path)) -> (tempfile::TempDir, Opened) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    build(&source);
    let path = folder.path().join("image.sqfs");
    packfs::pack(&source, &path).sync(false).run().unwrap();
    let opened = packfs::open(&path).unwrap();
    (folder, opened)
}

fn links(source: &Path) {
    std::fs::create_dir_all(source.join("usr/lib")).unwrap();
    std::fs::write(source.join("usr/lib/file"), "contents").unwrap();
    for (target, name) in [
        ("usr/lib", "lib"),
        ("/usr/lib/file", "absolute"),
        ("../../../../usr/lib/file", "usr/outside"),
        ("loop", "loop"),
        ("nowhere", "dangling"),
        ("usr/lib/file/", "slash"),
        (".", "here"),
    ] {
        symlink(target, source.join(name)).unwrap();
    }
}

#[test]
fn links_are_followed_inside_the_image_and_never_out_of_it() {
    let (_folder, opened) = image(links);
    for path in ["usr/lib/file", "lib/file", "/absolute", "usr/outside", "here/here/lib/file"] {
        assert_eq!(opened.read(path).unwrap(), b"contents", "{path}");
    }
}

#[test]
fn reports_missing_paths_and_circles() {
    let (_folder, opened) = image(links);
    for (path, kind, words) in [
        ("nowhere", ErrorKind::NotFound, "no such path"),
        ("dangling", ErrorKind::NotFound, "no such path"),
        ("loop", ErrorKind::Failed, "symbolic links"),
        ("usr/lib/file/x", ErrorKind::Failed, "not a directory"),
        ("usr/lib", ErrorKind::Failed, "is a directory"),
    ] {
        let error = opened.read(path).unwrap_err();
        assert_eq!(error.kind(), kind, "{path}");
        assert!(error.to_string().contains(words) && error.to_string().contains(path), "{error}");
    }
    assert_eq!(opened.read("../x").unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn follows_a_final_link_only_on_request() {
    let (_folder, opened) = image(links);
    let path = |text: &str| ImagePath::parse(text.as_bytes()).unwrap();
    let lib = opened.find(path("usr/lib")).unwrap();
    assert_ne!(opened.find(path("lib")).unwrap(), lib);
    assert_eq!(opened.resolve(path("lib")).unwrap(), lib);
    assert_eq!(opened.find(path("/")).unwrap(), opened.volume().root());
}

#[test]
fn reads_holes_and_blocks_in_order() {
    let mut bytes = vec![0; 3_000_000];
    bytes[1_000_000..1_400_000].fill(7);
    bytes[2_999_999] = 1;
    let (_folder, opened) = image(|source| std::fs::write(source.join("sparse"), &bytes).unwrap());
    assert!(opened.read("sparse").unwrap() == bytes);
}

#[test]
fn what_is_no_image_is_unsupported_and_what_is_damaged_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    for (bytes, kind) in [
        (&b""[..], ErrorKind::Unsupported),
        (&[b'x'; 4096], ErrorKind::Unsupported),
        (b"hsqs", ErrorKind::Corrupt),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = packfs::open(&path).err().unwrap();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(packfs::open(folder.path().join("none")).err().unwrap().kind(), ErrorKind::Io);
    let error = OpenOptions::new().offset(1 << 40).open(&path).err().unwrap();
    assert!(error.to_string().contains('x'), "{error}");
}

#[test]
fn a_file_with_damaged_contents_is_named() {
    let (folder, opened) = image(|source| {
        std::fs::create_dir(source.join("d")).unwrap();
        std::fs::write(source.join("d/f"), "text ".repeat(100_000)).unwrap();
    });
    drop(opened);
    let path = folder.path().join("image.sqfs");
    let mut bytes = std::fs::read(&path).unwrap();
    // Contents come right behind the 96 bytes of the superblock.
    bytes[96..200].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let error = packfs::open(&path).unwrap().read("d/f").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let text = error.to_string();
    assert!(text.starts_with("\"d/f\": ") && text.contains("block at 0x60: "), "{text}");
    for format in ["erofs", "squashfs"] {
        let output = folder.path().join(format);
        let error = packfs::pack(&path, &output).format(format).run().unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Corrupt, text.clone()));
    }
}

#[test]
fn the_default_image_time_is_that_of_the_newest_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, output) = (folder.path().join("s"), folder.path().join("o.sqfs"));
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("f"), "x").unwrap();
    let shape = Shape { mtime: Some(packfs::Timestamp::from_seconds(77)), ..Shape::default() };
    let made_at = |made_at| {
        packfs::pack(&source, &output).shape(shape.clone()).made_at(made_at).sync(false).run().unwrap();
        packfs::open(&output).unwrap().volume().made_at()
    };
    assert_eq!(made_at(MadeAt::Newest), Some(77));
    assert_eq!(made_at(MadeAt::Seconds(5)), Some(5));
    assert!(made_at(MadeAt::Now) > Some(1_700_000_000));
}

#[test]
fn an_image_that_is_packed_over_is_not_packed_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("inside.sqfs");
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let shape = Shape { mtime: Some(packfs::Timestamp::default()), ..Shape::default() };
    let pack = packfs::pack(folder.path(), &output).shape(shape).sync(false);
    let first = pack.run().unwrap();
    let second = pack.run().unwrap();
    assert_eq!((first.files, second.files), (1, 1));
    assert_eq!(first.image_len, second.image_len);
    let loaded = Source::detect(&output).unwrap().load(&Shape::default(), &Silent).unwrap();
    assert_eq!(loaded.tree.file_count(), 1);
}

#[test]
fn an_image_becomes_another_image_without_a_directory_between() {
    let (folder, opened) = image(links);
    let other = folder.path().join("other.sqfs");
    packfs::pack(folder.path().join("image.sqfs"), &other)
        .codec("zstd:1")
        .block_size(4096)
        .sync(false)
        .run()
        .unwrap();
    let other = packfs::open(&other).unwrap();
    assert_eq!(other.read("lib/file").unwrap(), opened.read("lib/file").unwrap());
    let count = |opened: &Opened| opened.load(&Silent).unwrap().tree.entry_count();
    assert_eq!(count(&other), count(&opened));
}

#[test]
fn an_opened_image_and_its_files_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Opened>();
    shared::<packfs::FileReader>();
}

#[test]
fn a_walk_meets_every_name_once_and_in_order() {
    let (_folder, opened) = image(links);
    let met: Vec<_> = opened.walk().map(|entry| entry.unwrap().path.to_string()).collect();
    let expected = [
        "/",
        "absolute",
        "dangling",
        "here",
        "lib",
        "loop",
        "slash",
        "usr",
        "usr/lib",
        "usr/lib/file",
        "usr/outside",
    ];
    assert_eq!(met, expected);
}

#[test]
fn files_are_opened_by_path_and_by_inode() {
    use std::io::Read;
    let (_folder, opened) = image(links);
    let mut by_path = opened.open_file("lib/file").unwrap();
    let mut text = String::new();
    by_path.read_to_string(&mut text).unwrap();
    assert_eq!(text, "contents");
    let mut part = [0; 3];
    assert_eq!(opened.open_id(by_path.id()).unwrap().read_at(6, &mut part).unwrap(), 2);
    assert_eq!(&part[..2], b"ts");
    for (path, words) in [("usr/lib", "is a directory"), ("nowhere", "no such path")] {
        let error = opened.open_file(path).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(words) && error.to_string().contains(path), "{error}");
    }
}

#[test]
fn refuses_an_option_that_no_layer_takes() {
    let dir = tempfile::tempdir().unwrap();
    let (source, path) = (dir.path().join("source"), dir.path().join("a.sqfs"));
    std::fs::create_dir(&source).unwrap();
    packfs::pack(&source, &path).run().unwrap();
    let plain = OpenOptions::new;
    let options = [
        (plain().device(&path), "further devices"),
        (plain().subvolume("home"), "subvolumes"),
        (plain().no_journal(), "journal"),
        (plain().snapshot("1"), "snapshots"),
        (plain().allow_backing(&path), "backing files"),
    ];
    for (options, things) in options {
        let error = options.open(&path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().ends_with(&format!("has no {things}")), "{error}");
    }
    assert!(plain().open(&path).unwrap().warnings().is_empty());
}
