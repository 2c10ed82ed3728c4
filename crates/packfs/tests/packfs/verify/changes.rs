//! Files of a directory that change while it is packed.

use packfs::{PackReport, Progress, Stage};
use packfs_core::Result;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Does something when a stage begins for the first time.
struct When<F>(Stage, F, AtomicBool);

impl<F: Fn() + Send + Sync> Progress for When<F> {
    fn begin(&self, stage: Stage, _: u64, _: u64) {
        if stage == self.0 && !self.2.swap(true, Ordering::SeqCst) {
            (self.1)();
        }
    }
}

type Change = (&'static str, fn(&Path));

/// Changes of a file of 100,000 bytes.
const CHANGES: [Change; 7] = [
    ("grows", |path| fs::write(path, vec![b'n'; 200_000]).unwrap()),
    ("shrinks", |path| File::options().write(true).open(path).unwrap().set_len(10).unwrap()),
    ("vanishes", |path| fs::remove_file(path).unwrap()),
    ("is written anew", |path| fs::write(path, vec![b'n'; 100_000]).unwrap()),
    ("is written anew behind an old time", |path| {
        let old = fs::metadata(path).unwrap().modified().unwrap();
        fs::write(path, vec![b'n'; 100_000]).unwrap();
        let times = FileTimes::new().set_modified(old);
        File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }),
    ("is replaced", |path| {
        let old = fs::metadata(path).unwrap().modified().unwrap();
        let other = path.with_extension("other");
        fs::write(&other, vec![b'n'; 100_000]).unwrap();
        File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_times(FileTimes::new().set_modified(old))
            .unwrap();
        fs::rename(&other, path).unwrap();
    }),
    ("becomes a directory", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
];

fn source(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(source.join(name), vec![name.as_bytes()[0]; 100_000]).unwrap();
    }
    source
}

fn pack_while(stage: Stage, change: fn(&Path), format: &str, keep_going: bool) -> Result<PackReport> {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let output = folder.path().join("image");
    // The clocks of file systems tick a few milliseconds apart.
    std::thread::sleep(Duration::from_millis(12));
    let path = source.join("b");
    let packed = packfs::pack(&source, &output)
        .format(format)
        .jobs(2)
        .sync(false)
        .with(|options| options.keep_going = keep_going)
        .run_with(&When(stage, move || change(&path), AtomicBool::new(false)));
    assert_eq!(output.exists(), packed.is_ok());
    packed
}

#[test]
fn every_failure_of_a_file_is_an_error_with_its_name() {
    for format in ["squashfs", "erofs"] {
        for stage in [Stage::Dedupe, Stage::Data] {
            for (what, change) in CHANGES {
                let error = pack_while(stage, change, format, false).unwrap_err().to_string();
                assert!(error.contains("source/b"), "{format} {stage:?} {what}: {error}");
            }
        }
        let report = pack_while(Stage::Data, CHANGES[3].1, format, true).unwrap();
        assert!(report.skipped.len() == 1 && report.skipped[0].contains("source/b"), "{:?}", report.skipped);
    }
}

/// One byte, all over a file, in every state of it.
fn write(path: &Path, byte: u8) {
    fs::write(path, vec![byte; 50_000]).unwrap();
}

#[test]
fn a_tree_that_changes_all_the_time_gives_images_of_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let paths: Vec<PathBuf> = (0..6).map(|index| source.join(format!("{index}"))).collect();
    paths.iter().for_each(|path| write(path, b'a'));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u8.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                write(&paths[usize::from(round) % paths.len()], b'a' + round % 26);
                std::thread::sleep(Duration::from_millis(12));
            }
        });
        for round in 0..30 {
            let format = ["squashfs", "erofs"][round % 2];
            let output = folder.path().join("image");
            match packfs::pack(&source, &output).format(format).codec("zstd:1").sync(false).run() {
                Ok(_) => {
                    let image = packfs::open(&output).unwrap();
                    for index in 0..paths.len() {
                        let bytes = image.read(format!("{index}")).unwrap();
                        assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "{format}: {index} is torn");
                    }
                    fs::remove_file(&output).unwrap();
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(message.contains("source/"), "{message}");
                    assert!(!output.exists());
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
