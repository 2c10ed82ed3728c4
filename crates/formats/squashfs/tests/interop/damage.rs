//! Damaged images: whatever is done to an image, opening, walking and checking it neither panics
//! nor goes on for long.

use packfs_core::Result;
use packfs_format::{DirCursor, InodeKind};
use packfs_testkit::{Random, damages, odd_tree, peer, plain_tree, write_dir};
use std::ops::ControlFlow;
use std::path::Path;

/// Steps that reading a damaged image may take: far more than the sound image needs, far fewer than
/// a loop would.
const STEPS_MAX: u64 = 2_000_000;

/// Calls every method of an image that reads; counts steps, and stops at errors of single
/// things only.
fn read_everything(image: Vec<u8>) -> Result<u64> {
    let volume = crate::support::open(image)?;
    let volume = &*volume;
    let mut steps = 0;
    let mut open = vec![(volume.root(), 0)];
    while let Some((id, depth)) = open.pop() {
        steps += 1;
        if steps > STEPS_MAX {
            break;
        }
        let _ = volume.xattrs(id);
        let _ = volume.read_link(id);
        let _ = volume.lookup(id, b"file7");
        match volume.inode(id).map(|inode| inode.kind) {
            // Damage can make a directory its own descendant: depth replaces a reader's own
            // check.
            Ok(InodeKind::Directory) if depth < 50 && steps < 20_000 => {
                let _ = volume.read_dir(id, DirCursor::default(), &mut |entry, _| {
                    open.push((entry.id, depth + 1));
                    ControlFlow::Continue(())
                });
            }
            Ok(InodeKind::File { len }) => {
                let mut covered = 0;
                let walked = volume.extents(id, 0..len, &mut |extent| {
                    assert_eq!(extent.offset, covered, "extents leave no gap and do not overlap");
                    assert!(extent.len > 0);
                    covered += extent.len;
                    steps += 1;
                    if steps > STEPS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                assert!(walked.is_err() || steps > STEPS_MAX || covered == len);
                let _ = volume.extents(id, len / 2..len / 2 + 10, &mut |_| ControlFlow::Continue(()));
            }
            _ => {}
        }
    }
    let len: u64 = volume.space().map_or(0, |space| space.iter().map(|owner| owner.len).sum());
    assert!(len == 0 || len == crate::support::IMAGE_LEN.get(), "owners add up to {len}");
    let _ = volume.facts();
    volume.check(&mut |_| {})?;
    Ok(steps)
}

/// Damages an image about 3,000 times.
fn survives_damage(image: &[u8], what: &str) {
    let volume = crate::support::open(image.to_vec()).unwrap();
    let space = volume.space().unwrap();
    let structures = space.iter().filter(|owner| owner.len > 0).count() as u64;
    let each = 3000 / (structures * packfs_testkit::Action::ALL.len() as u64) + 1;
    let mut refused = 0;
    let mut count = 0;
    for damage in damages(image, &space, each) {
        count += 1;
        crate::support::IMAGE_LEN.set(damage.image.len() as u64);
        let what = format!("{what}: {:?} at {:#x} in {}", damage.action, damage.offset, damage.owner);
        match std::panic::catch_unwind(|| read_everything(damage.image)) {
            Ok(Ok(steps)) => assert!(steps <= STEPS_MAX, "{what} goes on and on"),
            Ok(Err(error)) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
            Err(_) => panic!("{what} panics"),
        }
    }
    assert!(count >= 3000 && refused > 0, "{what}: {count} damaged, {refused} refused");
}

/// Images of a small tree, with and without compressed metadata, fragments, exports and attributes.
fn images(scratch: &Path) -> Vec<(String, Vec<u8>)> {
    let Some(tool) = peer("mksquashfs") else { return Vec::new() };
    let root = scratch.join("plain");
    std::fs::create_dir(&root).unwrap();
    let (tree, contents) = plain_tree();
    write_dir(&tree, &contents, &root);
    let odd = scratch.join("odd");
    std::fs::create_dir(&odd).unwrap();
    let (tree, contents) = odd_tree(4096, packfs_testkit::is_root());
    write_dir(&tree, &contents, &odd);
    // The parts of the odd tree that are small.
    for part in ["many", "names", "links", "deep"] {
        std::fs::remove_dir_all(odd.join(part)).unwrap();
    }
    let stored = ["-noI", "-noD", "-noF", "-noX"];
    let cases: [(&Path, &str, &[&str]); 6] = [
        (&root, "gzip", &[]),
        (&root, "zstd", &["-b", "4096"]),
        (&root, "xz", &["-always-use-fragments"]),
        (&odd, "gzip", &stored),
        (&odd, "lz4", &["-b", "4096"]),
        (&odd, "zstd", &["-no-exports", "-no-fragments"]),
    ];
    let mut images = Vec::new();
    for (source, codec, options) in cases {
        let image = scratch.join("image");
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&source, &image, &"-noappend", &"-quiet", &"-no-progress", &"-comp", &codec];
        arguments.extend(options.iter().map(|option| option as &dyn AsRef<std::ffi::OsStr>));
        tool.run(&arguments);
        images.push((format!("{codec} {options:?}"), std::fs::read(&image).unwrap()));
    }
    images
}

#[test]
fn the_reader_neither_panics_nor_loops_on_damage() {
    let scratch = tempfile::tempdir().unwrap();
    for (what, image) in images(scratch.path()) {
        survives_damage(&image, &what);
    }
}

/// Damage of structures is gentle where metadata is compressed: random bytes over uncompressed
/// metadata go further.
#[test]
fn extreme_figures_anywhere_in_stored_metadata_do_no_harm() {
    let scratch = tempfile::tempdir().unwrap();
    let Some((what, image)) = images(scratch.path()).into_iter().nth(3) else { return };
    let volume = crate::support::open(image.clone()).unwrap();
    let space = volume.space().unwrap();
    let start = space.iter().find(|owner| owner.owner == "inode table").unwrap().offset;
    let mut random = Random::new(7);
    crate::support::IMAGE_LEN.set(image.len() as u64);
    for attempt in 0..3000 {
        let mut image = image.clone();
        for _ in 0..=attempt % 4 {
            let within = start + random.below(image.len() as u64 - start - 8);
            let at = if random.below(4) == 0 { random.below(96) } else { within } as usize;
            let figures = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, random.next() as u32];
            let bytes = figures[random.below(6) as usize].to_le_bytes();
            let len = 1 << random.below(3);
            image[at..at + len].copy_from_slice(&bytes[..len]);
        }
        let read = std::panic::catch_unwind(|| read_everything(image));
        assert!(read.is_ok(), "{what}: attempt {attempt} panics");
        if let Ok(Ok(steps)) = read {
            assert!(steps <= STEPS_MAX, "{what}: attempt {attempt} goes on and on");
        }
    }
}
