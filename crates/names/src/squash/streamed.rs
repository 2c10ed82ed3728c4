//! Images of `mksquashfs -stream`, with the superblock at the end.

use packfs::{Error, Result, ResultExt};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Magics with the superblock at the beginning and at the end, in either byte order.
const MAGICS: [&[u8; 4]; 2] = [b"hsqs", b"sqsh"];
const STREAMED: [&[u8; 4]; 2] = [b"HSQS", b"SQSH"];
const SUPERBLOCK_LEN: usize = 96;

/// Moves the superblock to the beginning, unless it is there.
///
/// Errors: `Failed` for any other file; `Io`.
pub fn fix(path: &Path) -> Result<()> {
    let wrong = || {
        Error::failed(format!(
            "File \"{}\" is not a streamed Squashfs file, incorrect magic found!",
            path.display()
        ))
    };
    let cannot = || format!("cannot fix {path:?}");
    let file = File::options().read(true).write(true).open(path).or_io(cannot)?;
    let len = file.metadata().or_io(cannot)?.len();
    let mut block = [0; SUPERBLOCK_LEN];
    file.read_exact_at(&mut block, 0).or_io(cannot)?;
    if MAGICS.iter().any(|magic| block.starts_with(*magic)) {
        return Ok(());
    }
    let end = len.checked_sub(2 * SUPERBLOCK_LEN as u64).map(|end| end + SUPERBLOCK_LEN as u64);
    let end = end.filter(|_| STREAMED.iter().any(|magic| block.starts_with(*magic))).ok_or_else(wrong)?;
    file.read_exact_at(&mut block, end).or_io(cannot)?;
    if !MAGICS.iter().any(|magic| block.starts_with(*magic)) {
        return Err(wrong());
    }
    file.write_all_at(&block, 0).or_io(cannot)?;
    file.set_len(end).or_io(cannot)
}
