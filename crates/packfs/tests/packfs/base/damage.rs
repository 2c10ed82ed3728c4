//! Damaged bases: whatever is wrong with them, the new image is right or not made at all.

use super::fixture::{WAYS, fixture};
use crate::common::{open_image, read_image};
use packfs_core::{ErrorKind, Progress, Silent};
use packfs_format::{ExtentFrom, InodeKind};
use packfs_testkit::{Compare, Random};
use std::fs;
use std::ops::ControlFlow;
use std::sync::Mutex;

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Progress for Warnings {
    fn warn(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Returns offset and length of a file's compressed data in an image.
fn first_block(image: &std::path::Path, name: &[u8]) -> (usize, usize) {
    let engine = open_image(image);
    let loaded = engine.load_tree(&Silent).unwrap();
    let node = loaded.tree.find(&packfs_core::ImagePath::parse(name).unwrap()).unwrap();
    let id = loaded.inodes[node.index()];
    let InodeKind::File { len } = engine.volume().inode(id).unwrap().kind else { panic!("a file") };
    let mut found = None;
    engine
        .volume()
        .extents(id, 0..len, &mut |extent| {
            if let ExtentFrom::Block { block, .. } = extent.from {
                found = Some((block.offset as usize, block.stored_len as usize));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    found.expect("a compressed block")
}

#[test]
fn a_damaged_block_is_never_copied() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "full");
        fixture.pack(way, "old");
        let path = fixture.path("old");
        let mut bytes = fs::read(&path).unwrap();
        for name in [&b"dir3/large"[..], b"dir3/small1"] {
            let (at, len) = first_block(&path, name);
            bytes[at + len / 2..at + len].fill(0x5a);
        }
        fs::write(&path, &bytes).unwrap();
        let warnings = Warnings::default();
        let report = fixture.packing(way, "new").base(&path).run_with(&warnings).unwrap();
        fixture.assert_same("new", "full", way);
        // A packed stream that holds all goes with the part that is damaged.
        let has_own = !way.options.contains(&("fragments", "all"));
        assert!(report.base_blocks > 0 || !has_own, "{way:?}");
        // LZ4 does not always notice, but the comparison does.
        let told = warnings.0.lock().unwrap().iter().any(|line| line.contains("is damaged"));
        assert!(told || way.codec == "lz4", "{way:?}");
        // Packed again, the damage is reported, unless verification is off.
        let again = packfs::repack(&path, fixture.path("again")).sync(false).run();
        match way.codec {
            "lz4" => {}
            _ => assert_eq!(again.unwrap_err().kind(), ErrorKind::Corrupt, "{way:?}"),
        }
        packfs::repack(&path, fixture.path("again")).sync(false).trust(true).run().ok();
    }
}

#[test]
fn damage_anywhere_gives_the_right_image_or_none() {
    for &way in WAYS {
        let fixture = fixture();
        fixture.pack(way, "full");
        let wanted = read_image(&fixture.path("full")).0;
        fixture.pack(way, "old");
        let path = fixture.path("old");
        let sound = fs::read(&path).unwrap();
        fixture.change();
        fixture.pack(way, "changed");
        let changed = read_image(&fixture.path("changed")).0;
        assert!(!wanted.differences(&changed, Compare::default()).is_empty());
        let mut random = Random::new(9);
        for round in 0..24 {
            let mut bytes = sound.clone();
            // Half of the rounds at the end, where metadata is, and at the very beginning.
            for _ in 0..4 {
                let at = match round % 4 {
                    0 => random.below(bytes.len() as u64) as usize,
                    1 => random.below(2048) as usize,
                    _ => bytes.len() - 1 - random.below(bytes.len() as u64 / 12) as usize,
                };
                bytes[at] ^= 1 << random.below(8);
            }
            fs::write(&path, &bytes).unwrap();
            if fixture.packing(way, "new").base(&path).run().is_ok() {
                let (found, findings) = read_image(&fixture.path("new"));
                assert!(findings.is_empty(), "{way:?} {round}: {findings:?}");
                changed.assert_same(&found, Compare::default(), &format!("{way:?} {round}"));
            }
        }
    }
}
