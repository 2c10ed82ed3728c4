//! Properties of any image.

use crate::judge::{digest, judge, open as open_image};
use crate::{Breach, Sandpit};
use packfs::read::FileReader;
use packfs::{ErrorKind, InodeKind, Opened, Silent};
use std::cell::OnceCell;

thread_local! {
    static PIT: OnceCell<Sandpit> = const { OnceCell::new() };
}

/// One folder for all inputs of a thread.
///
/// # Panics
/// If no folder can be made.
pub(super) fn with_pit<T>(work: impl FnOnce(&Sandpit) -> T) -> T {
    PIT.with(|pit| {
        work(
            pit.get_or_init(|| Sandpit::new().unwrap_or_else(|error| panic!("no temporary folder: {error}"))),
        )
    })
}

/// Longest input that is tried: what is longer only takes longer.
const INPUT_LEN_MAX: usize = 1 << 20;
/// Names that are followed.
const ENTRIES_MAX: usize = 5000;

fn opened(input: &[u8]) -> Option<Opened> {
    if input.len() > INPUT_LEN_MAX { None } else { open_image(input, 1).ok() }
}

/// Opening answers or refuses, and so does whatever is asked of the image as a whole.
///
/// # Errors
/// A [`Breach`].
pub fn open(input: &[u8]) -> Result<(), Breach> {
    if let Some(opened) = opened(input) {
        let volume = opened.volume();
        let _ =
            (volume.facts(), volume.space(), volume.coding(), volume.inode_count_hint(), volume.made_at());
        let _ = volume.inode(volume.root());
    }
    Ok(())
}

/// A walk ends, whatever the directories say, and every inode on the way answers.
///
/// # Errors
/// A [`Breach`].
pub fn walk(input: &[u8]) -> Result<(), Breach> {
    let Some(opened) = opened(input) else { return Ok(()) };
    for entry in opened.walk().take(ENTRIES_MAX).flatten() {
        let volume = opened.volume();
        let _ = volume.xattrs(entry.id);
        let _ = volume.read_link(entry.id);
        let _ = opened.find(&entry.path);
        if let InodeKind::File { len } = entry.inode.kind {
            let _ = volume.extents(entry.id, 0..len, &mut |_| std::ops::ControlFlow::Continue(()));
        }
    }
    Ok(())
}

/// Files are read in order and at random, and both see the same bytes.
///
/// # Errors
/// A [`Breach`].
pub fn read_all(input: &[u8]) -> Result<(), Breach> {
    let Some(opened) = opened(input) else { return Ok(()) };
    for entry in opened.walk().take(ENTRIES_MAX).flatten() {
        let InodeKind::File { len } = entry.inode.kind else { continue };
        let Ok(file) = opened.open_id(entry.id) else { continue };
        let places = [0, 1, len / 2, len.saturating_sub(1), len, 4095, 4096];
        for at in places {
            pieces_agree(&file, at, &entry.path.to_string())?;
        }
    }
    if let Ok(loaded) = opened.load(&Silent) {
        let _ = digest(&opened, &loaded);
    }
    Ok(())
}

/// Requires that one read returns the same bytes as two.
fn pieces_agree(file: &FileReader, at: u64, what: &str) -> Result<(), Breach> {
    let mut whole = [0xaa; 600];
    let Ok(len) = file.read_at(at, &mut whole) else { return Ok(()) };
    let mut parts = [0x55; 600];
    let cut = 217.min(len);
    let first = file.read_at(at, &mut parts[..cut]);
    let second = file.read_at(at.saturating_add(cut as u64), &mut parts[cut..len]);
    match (first, second) {
        (Ok(a), Ok(b)) if a == cut && b == len - cut && parts[..len] == whole[..len] => Ok(()),
        other => Err(Breach::CheckMissed(format!("{what} at {at}: {len} bytes at once, then {other:?}"))),
    }
}

/// Requires that an image without findings of the check is read without an error.
///
/// # Errors A [`Breach`].
pub fn check(input: &[u8]) -> Result<(), Breach> {
    extract(input)
}

/// Nothing outside of the target changes when an image is unpacked, and all that [`judge`] looks at
/// holds.
///
/// # Errors
/// A [`Breach`].
pub fn extract(input: &[u8]) -> Result<(), Breach> {
    if input.len() > INPUT_LEN_MAX {
        return Ok(());
    }
    with_pit(|pit| judge(input, pit, 1, None)).breach.map_or(Ok(()), Err)
}

/// Longest tree that is packed again, in bytes of files.
const REPACKED_LEN_MAX: u64 = 4 << 20;

/// Requires that a readable image can be packed again, by its format and by another, with an equal
/// tree.
///
/// # Errors A [`Breach`].
pub fn repack(input: &[u8]) -> Result<(), Breach> {
    let Some(opened) = opened(input) else { return Ok(()) };
    let Ok(loaded) = opened.load(&Silent) else { return Ok(()) };
    let lens = loaded.tree.nodes().map(|(_, node)| match node.kind {
        packfs::NodeKind::File { len, .. } => len,
        _ => 0,
    });
    if lens.fold(0, u64::saturating_add) > REPACKED_LEN_MAX {
        return Ok(());
    }
    let Ok(before) = digest(&opened, &loaded) else { return Ok(()) };
    with_pit(|pit| {
        let settings = packfs::PackSettings { codec: Some("zstd:1".into()), ..Default::default() };
        // Old formats cannot hold what an image claims, or cannot be packed; EROFS can hold all of
        // it.
        let own = opened.format();
        let format = match own.name() {
            "squashfs" | "erofs" => own,
            _ => packfs::formats::by_name("erofs").unwrap_or(own),
        };
        let packer =
            format.packer(&settings).map_err(|error| Breach::RepackFailed(format!("settings: {error}")))?;
        let options = packfs_pack::PackOptions { jobs: 1, sync: false, ..Default::default() };
        let packed =
            packfs_pack::pack(&loaded.tree, &**opened.engine(), &*packer, &pit.image(), &options, &Silent);
        if let Err(error) = packed {
            // What the format cannot hold is told, not lost; trees read from it can be odd, too.
            let told = matches!(error.kind(), ErrorKind::Failed | ErrorKind::Usage | ErrorKind::Unsupported);
            return if told { Ok(()) } else { Err(Breach::RepackFailed(error.to_string())) };
        }
        let failed = |error: packfs::Error| Breach::RepackFailed(error.to_string());
        let again = packfs::OpenOptions::new().jobs(1).open(pit.image()).map_err(failed)?;
        let reloaded = again.load(&Silent).map_err(failed)?;
        let after = digest(&again, &reloaded).map_err(failed)?;
        if before == after {
            return Ok(());
        }
        let first = loaded.tree.nodes().count();
        let second = reloaded.tree.nodes().count();
        Err(Breach::RepackDiffers(format!("{first} nodes before, {second} after")))
    })
}
