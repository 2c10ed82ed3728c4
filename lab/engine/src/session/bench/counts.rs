//! The kernel's counts of a block device.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Linux counts sectors of this many bytes, whatever the device's are
/// (`Documentation/block/stat.rst`).
const SECTOR: u64 = 512;

/// Bytes that were read from a block device so far: the one at this path, or the one that is
/// mounted there. None for what has no block device below it.
pub(super) fn read_so_far(path: &Path) -> Option<u64> {
    let facts = path.metadata().ok()?;
    let number = if facts.file_type().is_block_device() { facts.rdev() } else { facts.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if major == 0 {
        return None;
    }
    sectors_read(&std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
        .map(|sectors| sectors.saturating_mul(SECTOR))
}

/// The third field. The seventh counts sectors written: a mount that notes when files were read
/// writes, too.
fn sectors_read(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_was_read_and_not_what_was_written() {
        let stat = "     310       12    20480      55        3        0        24        0        0       44       55";
        assert_eq!(sectors_read(stat), Some(20480));
        assert_eq!(sectors_read("no figures"), None);
    }

    #[test]
    fn memory_has_no_device() {
        assert_eq!(read_so_far(Path::new("/proc")), None);
    }
}
