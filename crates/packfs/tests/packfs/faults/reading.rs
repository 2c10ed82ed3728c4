//! Reading images that fail: unpacking, archiving, mounting.

use super::{FORMATS, open, tree};
use packfs_core::{ErrorKind, Image, Silent};
use packfs_core::{FileImage, MemoryImage};
use packfs_format::PackSettings;
use packfs_mount::{FuseMount, FuseOptions};
use packfs_pack::{PackOptions, pack};
use packfs_read::ReadEngine;
use packfs_sink::{TarOptions, UnpackOptions, unpack, write_tar};
use packfs_testkit::{Countdown, FaultyImage, ReadFault, is_root, skip, snapshot_dir, snapshot_tree};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const FAULTS: [ReadFault; 2] = [ReadFault::Error, ReadFault::Short];

fn image(folder: &Path, format: &str, codec: &str) -> Arc<dyn Image> {
    let (tree, held) = tree();
    let settings = PackSettings { codec: Some(codec.into()), ..PackSettings::default() };
    let packer = packfs_formats::by_name(format).unwrap().packer(&settings).unwrap();
    let path = folder.join(format);
    pack(&tree, &held, &*packer, &path, &PackOptions::default(), &Silent).unwrap();
    Arc::new(FileImage::open(&path).unwrap())
}

/// Runs `work` with each call failing in turn, until none does.
fn at_every_call(
    image: &Arc<dyn Image>,
    mut work: impl FnMut(&str, packfs_core::Result<Arc<ReadEngine>>, &Countdown),
) {
    for fault in FAULTS {
        for call in 0.. {
            let countdown = Countdown::new(call, 1);
            let faulty = FaultyImage::new(Arc::clone(image), fault, Arc::clone(&countdown));
            work(&format!("{} {fault:?} {call}", image.name()), open(faulty), &countdown);
            if !countdown.has_failed() {
                break;
            }
        }
    }
}

#[test]
fn unpacked_files_are_correct_and_others_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, held) = tree();
    let right = snapshot_tree(&tree, &held);
    for (format, codec) in FORMATS {
        at_every_call(&image(folder.path(), format, codec), |what, engine, countdown| {
            let target = tempfile::tempdir_in(folder.path()).unwrap();
            let unpacked = engine.and_then(|engine| {
                let loaded = engine.load_tree(&Silent)?;
                unpack(&engine, &loaded, target.path(), &UnpackOptions::default(), &Silent)
            });
            let there = snapshot_dir(target.path());
            for (path, row) in &there.0 {
                let content = &right.0[path].content;
                assert!(row.content == *content, "{what}: {:?} is wrong", String::from_utf8_lossy(path));
            }
            match unpacked {
                Ok(_) => assert_eq!(there.0.len(), right.0.len(), "{what}"),
                Err(error) => {
                    assert!(countdown.has_failed(), "{what}: {error}");
                    let kinds = [ErrorKind::Io, ErrorKind::Corrupt, ErrorKind::Unsupported];
                    assert!(kinds.contains(&error.kind()), "{what}: {error}");
                }
            }
        });
    }
}

#[test]
fn a_tar_is_whole_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (format, codec) in FORMATS {
        let image = image(folder.path(), format, codec);
        let tar = |engine: &Arc<ReadEngine>| {
            let mut out = Vec::new();
            let loaded = engine.load_tree(&Silent)?;
            write_tar(engine, &loaded, &mut out, &TarOptions::default(), &Silent).map(|_| out)
        };
        let right = tar(&open(Arc::clone(&image)).unwrap()).unwrap();
        at_every_call(&image, |what, engine, countdown| match engine.and_then(|engine| tar(&engine)) {
            Ok(bytes) => assert!(bytes == right, "{what}"),
            Err(error) => assert!(countdown.has_failed(), "{what}: {error}"),
        });
    }
}

#[test]
fn a_mount_returns_eio_and_continues() {
    if !is_root() || File::options().read(true).write(true).open("/dev/fuse").is_err() {
        return skip("mounting through FUSE needs root and /dev/fuse");
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, held) = tree();
    let right = snapshot_tree(&tree, &held);
    for (format, codec) in FORMATS {
        let file = image(folder.path(), format, codec);
        let mut bytes = vec![0; file.len() as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        let memory: Arc<dyn Image> = Arc::new(MemoryImage::new("image", bytes));
        let known = Countdown::new(u64::MAX, 0);
        let opened =
            open(FaultyImage::new(Arc::clone(&memory), ReadFault::Error, Arc::clone(&known))).unwrap();
        opened.load_tree(&Silent).unwrap();
        // All that follows once names are known fails for a while.
        let countdown = Countdown::new(known.calls(), 40);
        let engine = open(FaultyImage::new(memory, ReadFault::Error, Arc::clone(&countdown))).unwrap();
        engine.load_tree(&Silent).unwrap();
        let at = folder.path().join("at");
        let _ = std::fs::create_dir(&at);
        let options = FuseOptions::new(engine.volume().root(), folder.path());
        let mount = FuseMount::new(engine, &at, &options).unwrap();
        let mut failures = 0;
        for _ in 0..500 {
            let mut buf = [0; 4096];
            match File::open(at.join("large")).and_then(|file| file.read_exact_at(&mut buf, 0)) {
                Ok(()) => break,
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(5), "{format}: {error}");
                    failures += 1;
                }
            }
        }
        assert!(failures > 0, "{format}");
        for (path, row) in snapshot_dir(&at).0 {
            assert!(row.content == right.0[&path].content, "{format}: {:?}", String::from_utf8_lossy(&path));
        }
        drop(mount);
    }
}
