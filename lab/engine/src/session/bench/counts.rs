//! The kernel's counts of a block device.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Linux counts sectors of this many bytes, whatever the device's are
/// (`Documentation/block/stat.rst`).
const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reads {
    pub requests: u64,
    pub bytes: u64,
}

impl Reads {
    /// Returns the reads since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// Reads of a block device so far: the one at this path, or the one that is mounted there. None for
/// what has no block device below it.
pub(super) fn read_so_far(path: &Path) -> Option<Reads> {
    let facts = path.metadata().ok()?;
    let number = if facts.file_type().is_block_device() { facts.rdev() } else { facts.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if major == 0 {
        return None;
    }
    reads(&std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// The first field counts requests after merging, the third sectors. The fifth and the seventh do
/// so for writes: a mount that notes when files were read writes, too.
fn reads(stat: &str) -> Option<Reads> {
    let mut fields = stat.split_whitespace();
    let requests = fields.next()?.parse().ok()?;
    let sectors: u64 = fields.nth(1)?.parse().ok()?;
    Some(Reads { requests, bytes: sectors.saturating_mul(SECTOR) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_was_read_and_not_what_was_written() {
        let stat = "     310       12    20480      55        3        0        24        0        0       44       55";
        let before = reads(stat).unwrap();
        assert_eq!(before, Reads { requests: 310, bytes: 20480 * 512 });
        let after = Reads { requests: 312, bytes: 20488 * 512 };
        assert_eq!(after.since(before), Reads { requests: 2, bytes: 4096 });
        assert_eq!(reads("no figures"), None);
    }

    #[test]
    fn memory_has_no_device() {
        assert_eq!(read_so_far(Path::new("/proc")), None);
    }
}
