//! What the kernel counts at a block device.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Linux counts sectors of this many bytes, whatever the device's are (`Documentation/block/stat.rst`).
const SECTOR: u64 = 512;

/// Bytes that were read from and written to a block device so far: the one at this path, or the one that is mounted there.
/// None for what has no block device below it.
pub(super) fn transferred(path: &Path) -> Option<u64> {
    let facts = path.metadata().ok()?;
    let number = if facts.file_type().is_block_device() { facts.rdev() } else { facts.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if major == 0 {
        return None;
    }
    sectors_in(&std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
        .map(|sectors| sectors.saturating_mul(SECTOR))
}

/// The third field counts sectors read, the seventh sectors written.
fn sectors_in(stat: &str) -> Option<u64> {
    let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
    fields.get(2)?.checked_add(*fields.get(6)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_what_was_read_and_written() {
        let stat = "     310       12    20480      55        3        0        24        0        0       44       55";
        assert_eq!(sectors_in(stat), Some(20504));
        assert_eq!(sectors_in("no figures"), None);
    }

    #[test]
    fn memory_has_no_device() {
        assert_eq!(transferred(Path::new("/proc")), None);
    }
}
