//! SquashFS images whose makers changed the magic: told by the rest of their superblock, and read
//! with a magic that is known.

use packfs_core::BeginningImage;
use packfs_core::{Image, Result};
use packfs_format::{Format, Volume};
use std::sync::Arc;

/// Length of what is looked at: the superblocks of all versions begin with the same fields.
const HEAD_LEN: usize = 96;

/// Returns the magics that an image can be read with in place of its own, as `--magic` takes them.
pub fn magics() -> Vec<&'static str> {
    let all = packfs_formats::all().iter().flat_map(|format| format.info().magics);
    let mut magics: Vec<&str> = Vec::new();
    for magic in all.filter(|magic| magic.at == 0 && magic.bytes.len() == 4) {
        if let Ok(text) = std::str::from_utf8(magic.bytes)
            && text.chars().all(|c| c.is_ascii_alphanumeric())
            && !magics.contains(&text)
        {
            magics.push(text);
        }
    }
    magics
}

/// Returns the magic that the image can be opened with, if it is a SquashFS image with another one.
pub(crate) fn readable_magic(image: &Arc<dyn Image>) -> Option<&'static str> {
    open(image).map(|(magic, ..)| magic)
}

/// Opens a SquashFS image with a magic that is not its own.
pub(crate) fn open(image: &Arc<dyn Image>) -> Option<(&'static str, &'static dyn Format, Box<dyn Volume>)> {
    let mut head = [0; HEAD_LEN];
    if image.read_at(0, &mut head).ok()? < HEAD_LEN || !looks_like_squashfs(&head) {
        return None;
    }
    magics().into_iter().filter(|magic| !head.starts_with(magic.as_bytes())).find_map(|magic| {
        let (format, volume) = open_as(image, magic).ok()??;
        Some((magic, format, volume))
    })
}

type OpenedAs = (&'static dyn Format, Box<dyn Volume>);

fn open_as(image: &Arc<dyn Image>, magic: &str) -> Result<Option<OpenedAs>> {
    let image: Arc<dyn Image> = Arc::new(BeginningImage::new(Arc::clone(image), magic));
    let Some(format) = packfs_formats::probe(&*image)? else { return Ok(None) };
    let volume = format.open(image)?;
    volume.inode(volume.root())?;
    Ok(Some((format, volume)))
}

/// True if version and block size, which is stored twice, are those of a superblock of any version,
/// in either byte order.
fn looks_like_squashfs(head: &[u8; HEAD_LEN]) -> bool {
    let little = |at: usize, len: usize| {
        head[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let big = |at: usize, len: usize| {
        head[at..at + len].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    is_super_block(&little) || is_super_block(&big)
}

fn is_super_block(number: &dyn Fn(usize, usize) -> u64) -> bool {
    let is_block = |log: u64, len: u64| (9..=20).contains(&log) && len == 1 << log;
    match (number(28, 2), number(30, 2)) {
        (4, 0) => is_block(number(22, 2), number(12, 4)),
        (1, 0..=1) => is_block(number(34, 2), number(32, 2)),
        (2..=3, 0..=2) => is_block(number(34, 2), number(51, 4)),
        _ => false,
    }
}
