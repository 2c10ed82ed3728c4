//! Images without files of this machine: packed from memory, opened from bytes and readers; paths
//! of every kind, watched work, and errors for those who speak of `std::io`.

use packfs::{ErrorKind, ImagePath, OpenOptions, Opened, Progress, Stage};
use std::ffi::OsStr;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const FILES: [(&str, &[u8]); 3] =
    [("etc/hosts", b"127.0.0.1\n"), ("/bin/tool", &[7; 200_000]), ("empty", b"")];

/// An image of [`FILES`] as bytes.
fn image(format: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    packfs::pack_files(FILES, &path).unwrap().format(format).run().unwrap();
    std::fs::read(path).unwrap()
}

fn holds_all(opened: &Opened, what: &str) {
    for (path, bytes) in FILES {
        assert!(opened.read(path).unwrap() == bytes, "{what}: {path}");
    }
    assert_eq!(opened.walk().count(), 6, "{what}: the root, two directories, three files");
}

#[test]
fn opens_bytes_of_every_owner_and_any_reader() {
    for format in ["squashfs", "erofs", "cramfs", "iso9660"] {
        let bytes = image(format);
        let shared: Arc<[u8]> = bytes.clone().into();
        holds_all(&packfs::open_bytes(bytes.clone()).unwrap(), format);
        holds_all(&packfs::open_bytes(&bytes).unwrap(), format);
        holds_all(&packfs::open_bytes(&bytes[..]).unwrap(), format);
        holds_all(&packfs::open_bytes(Arc::clone(&shared)).unwrap(), format);
        holds_all(&packfs::open_bytes(bytes.clone().into_boxed_slice()).unwrap(), format);
        let mut cursor = Cursor::new(bytes.clone());
        cursor.set_position(77);
        holds_all(&packfs::open_reader(cursor).unwrap(), format);
        holds_all(&packfs::open_reader(Cursor::new(shared)).unwrap(), format);
        let behind = [vec![1; 4096], bytes].concat();
        holds_all(&OpenOptions::new().offset(4096).open_bytes(behind.clone()).unwrap(), format);
        holds_all(&OpenOptions::new().offset(4096).open_reader(Cursor::new(behind)).unwrap(), format);
    }
}

#[test]
fn input_that_is_no_image_is_named_by_kind() {
    assert_eq!(packfs::open_bytes(vec![0; 4096]).err().unwrap().kind(), ErrorKind::Unsupported);
    assert_eq!(packfs::open_bytes(&b"hsqs"[..]).err().unwrap().kind(), ErrorKind::Corrupt);
    assert_eq!(packfs::open_reader(Cursor::new(Vec::new())).err().unwrap().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_reader_serves_many_threads() {
    let opened = packfs::open_reader(Cursor::new(image("squashfs"))).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| holds_all(&opened, "a thread"));
        }
    });
}

#[test]
fn paths_within_an_image_are_given_as_one_has_them() {
    let opened = packfs::open_bytes(image("squashfs")).unwrap();
    let id = opened.find("etc/hosts").unwrap();
    let parsed: ImagePath = "etc/hosts".parse().unwrap();
    assert_eq!(opened.find(&parsed).unwrap(), id);
    assert_eq!(opened.resolve(parsed).unwrap(), id);
    assert_eq!(opened.find(Path::new("/etc/hosts")).unwrap(), id);
    assert_eq!(opened.find(PathBuf::from("etc/./hosts")).unwrap(), id);
    assert_eq!(opened.resolve(OsStr::new("etc/hosts")).unwrap(), id);
    assert_eq!(opened.read(b"etc/hosts").unwrap(), b"127.0.0.1\n");
    assert_eq!(opened.read(String::from("etc/hosts")).unwrap(), b"127.0.0.1\n");
    let mut out = Vec::new();
    assert_eq!(opened.copy_file("etc/hosts", &mut out).unwrap(), 10);
    assert_eq!(opened.find("etc/../etc").unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_path_that_is_not_there_has_a_kind_of_its_own() {
    for format in ["squashfs", "erofs", "cramfs", "iso9660"] {
        let opened = packfs::open_bytes(image(format)).unwrap();
        let kinds = [
            opened.read("nowhere").unwrap_err().kind(),
            opened.find("etc/none").unwrap_err().kind(),
            opened.resolve("none/hosts").unwrap_err().kind(),
            opened.open_file("etc/none").map(drop).unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::NotFound; 4], "{format}");
        assert_eq!(opened.read("etc").unwrap_err().kind(), ErrorKind::Failed, "a directory is there");
    }
}

/// A program whose own errors are those of `std::io`.
fn contents(opened: &Opened, path: &str) -> io::Result<String> {
    let mut text = String::new();
    opened.open_file(path)?.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn errors_become_those_of_the_standard_library() {
    let opened = packfs::open_bytes(image("squashfs")).unwrap();
    assert_eq!(contents(&opened, "etc/hosts").unwrap(), "127.0.0.1\n");
    let error = contents(&opened, "nowhere").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("nowhere"), "{error}");
    let missing: io::Error = packfs::open("/no/such/image").err().unwrap().into();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let damaged: io::Error = packfs::open_bytes(&b"hsqs"[..]).err().unwrap().into();
    assert_eq!(damaged.kind(), io::ErrorKind::InvalidData);
}

#[derive(Default)]
struct Watch {
    begun: AtomicU64,
    stops: AtomicBool,
}

impl Progress for Watch {
    fn begin(&self, _: Stage, _: u64, _: u64) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }
}

#[test]
fn builders_take_a_progress_that_can_cancel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqfs");
    let watch = Arc::new(Watch::default());
    let pack = packfs::pack_files(FILES, &path).unwrap().progress(Arc::clone(&watch));
    pack.clone().run().unwrap();
    let begun = watch.begun.load(Ordering::Relaxed);
    assert!(begun > 0);

    let opened = OpenOptions::new().progress(Arc::clone(&watch)).open(&path).unwrap();
    opened.unpack(folder.path().join("out")).unwrap();
    assert!(watch.begun.load(Ordering::Relaxed) > begun);

    watch.stops.store(true, Ordering::Relaxed);
    assert_eq!(pack.run().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(opened.unpack(folder.path().join("again")).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(opened.write_tar(&mut io::sink()).unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn files_in_memory_replace_each_other_and_need_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqfs");
    packfs::pack_files([("a", "old"), ("./a", "new")], &path).unwrap().run().unwrap();
    assert_eq!(packfs::open(&path).unwrap().read("a").unwrap(), b"new");
    let kind = |files: [(&str, &str); 2]| packfs::pack_files(files, &path).err().unwrap().kind();
    assert_eq!(kind([("a", ""), ("../b", "")]), ErrorKind::Usage);
    assert_eq!(kind([("a", ""), ("a/b", "")]), ErrorKind::Failed);
}
