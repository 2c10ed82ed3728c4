//! A source that changes, and images of it.

use crate::common::read_image;
use packfs::{MadeAt, Pack, PackOptions, PackReport};
use packfs_testkit::{Compare, Mount, Random, is_root, snapshot_dir};
use std::fs::{self, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Options of an image, and the driver that mounts it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub format: &'static str,
    pub codec: &'static str,
    pub block_len: u32,
    pub options: &'static [(&'static str, &'static str)],
}

/// Ways whose blocks can be copied.
pub const WAYS: &[Way] = &[
    Way { format: "squashfs", codec: "zstd:3", block_len: 16 << 10, options: &[] },
    Way { format: "squashfs", codec: "gzip:6", block_len: 4096, options: &[("fragments", "always")] },
    Way { format: "squashfs", codec: "xz:0", block_len: 128 << 10, options: &[("fragments", "off")] },
    Way { format: "squashfs", codec: "lz4", block_len: 8192, options: &[("holes", "off")] },
    Way { format: "erofs", codec: "zstd:3", block_len: 16 << 10, options: &[] },
    Way { format: "erofs", codec: "deflate:1", block_len: 64 << 10, options: &[("fragments", "all")] },
    Way { format: "erofs", codec: "lz4", block_len: 4096, options: &[("kernel", "5.4")] },
    Way { format: "erofs", codec: "zstd:3+lz4", block_len: 64 << 10, options: &[] },
];

pub struct Fixture {
    pub folder: TempDir,
    pub source: PathBuf,
}

/// Files of a few thousand bytes and of a few hundred thousand, text and noise, some twice, some
/// with holes.
pub fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    let mut random = Random::new(5);
    for dir in 0..6 {
        let path = source.join(format!("dir{dir}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..40 {
            let len = 200 + random.below(9000) as usize;
            put(&path.join(format!("small{file}")), &random.text(len));
        }
        put(&path.join("large"), &random.text(300_000 + dir * 7777));
        put(&path.join("noise"), &random.noise(70_000));
        put(&path.join("sparse"), &[random.text(40_000), vec![0; 200_000], random.text(30_000)].concat());
    }
    fs::copy(source.join("dir0/large"), source.join("dir1/large-again")).unwrap();
    fs::copy(source.join("dir0/small0"), source.join("dir1/small-again")).unwrap();
    put(&source.join("empty"), b"");
    Fixture { folder, source }
}

/// Writes a file with a time of its own.
pub fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    set_time(path, 1_600_000_000 + bytes.len() as u64);
}

pub fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

impl Fixture {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An image of the source as it is now, to be run.
    pub fn packing(&self, way: Way, image: &str) -> Pack {
        packfs::pack(&self.source, self.path(image)).options(wishes(way))
    }

    #[track_caller]
    pub fn pack(&self, way: Way, image: &str) -> PackReport {
        self.packing(way, image).run().unwrap_or_else(|e| panic!("{way:?}: {e}"))
    }

    /// Changes one file of each kind, adds one, renames one, removes one.
    pub fn change(&self) {
        let mut random = Random::new(77);
        let append = |name: &str, more: &[u8]| {
            let path = self.source.join(name);
            put(&path, &[fs::read(&path).unwrap(), more.to_vec()].concat());
        };
        append("dir2/small7", b"more");
        append("dir3/large", &random.text(50_000));
        let path = self.source.join("dir4/large");
        let mut bytes = fs::read(&path).unwrap();
        bytes[150_000] ^= 1;
        put(&path, &bytes);
        put(&self.source.join("dir4/added"), &random.text(5000));
        fs::rename(self.source.join("dir5"), self.source.join("moved")).unwrap();
        fs::remove_file(self.source.join("dir0/small3")).unwrap();
    }

    /// Two images hold the same and are sound; so says the kernel, too.
    #[track_caller]
    pub fn assert_same(&self, image: &str, wanted: &str, way: Way) {
        let ((found, findings), (wanted, _)) =
            (read_image(&self.path(image)), read_image(&self.path(wanted)));
        assert!(findings.is_empty(), "{way:?}: {findings:?}");
        wanted.assert_same(&found, Compare::default(), &format!("{way:?}"));
        if is_root() {
            let mount = Mount::new(&self.path(image), way.format).unwrap();
            let compare = Compare::default();
            wanted.assert_same(&snapshot_dir(&mount.path()), compare, &format!("{way:?}, mounted"));
        }
    }
}

pub fn wishes(way: Way) -> PackOptions {
    PackOptions {
        format: Some(way.format.into()),
        codec: Some(way.codec.into()),
        block_size: Some(way.block_len),
        options: way.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        made_at: MadeAt::Seconds(1_700_000_000),
        jobs: 2,
        sync: false,
        ..PackOptions::default()
    }
}
