//! Copies ranges between files within the kernel.
//!
//! `copy_file_range` shares blocks where a file system can (btrfs, XFS, bcachefs), has a server
//! copy them where there is one (NFS 4.2), and otherwise copies them without passing them through
//! this process.

use rustix::io::Errno;
use std::fs::File;

/// Block of file systems that share blocks.
const BLOCK_LEN: u64 = 4096;
/// Most bytes of one call, so that a copy can be watched and stopped.
const CALL_LEN_MAX: u64 = 256 << 20;

/// Returns the number of bytes copied, which is less if the system cannot copy between the files,
/// or one ends.
pub(crate) fn range(from: &File, from_at: u64, to: &File, to_at: u64, len: u64) -> Result<u64, Errno> {
    let mut done = 0;
    while done < len {
        let (mut source, mut target) = (from_at + done, to_at + done);
        let part_len = part_len(source, target, len - done);
        match rustix::fs::copy_file_range(from, Some(&mut source), to, Some(&mut target), part_len) {
            Ok(0) => break,
            Ok(copied) => done += copied as u64,
            Err(Errno::INTR) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::FBIG)) => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Length of the next call: up to a block that both files can share, then whole blocks.
fn part_len(source: u64, target: u64, len: u64) -> usize {
    let (source_past, target_past) = (source % BLOCK_LEN, target % BLOCK_LEN);
    let most =
        if source_past == target_past && source_past > 0 { BLOCK_LEN - source_past } else { CALL_LEN_MAX };
    len.min(most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn ranges_that_may_share_blocks_start_at_one() {
        assert_eq!(part_len(96, 96, 1 << 20), 4000);
        assert_eq!(part_len(4096, 8192, 1 << 20), 1 << 20);
        assert_eq!(part_len(96, 97, 1 << 20), 1 << 20);
        assert_eq!(part_len(96, 96, 10), 10);
        assert_eq!(part_len(0, 0, 1 << 40), CALL_LEN_MAX as usize);
    }

    #[test]
    fn a_range_is_copied_to_its_place_and_no_further_than_the_source() {
        let (mut from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let bytes: Vec<u8> = (0..20_000_u32).map(|index| (index % 251) as u8).collect();
        from.write_all(&bytes).unwrap();
        let copied = range(&from, 96, &to, 4192, 10_000).unwrap();
        let mut found = vec![0; copied as usize];
        std::os::unix::fs::FileExt::read_exact_at(&to, &mut found, 4192).unwrap();
        assert_eq!(found, bytes[96..96 + found.len()]);
        assert!(range(&from, 19_990, &to, 0, 10_000).unwrap() <= 10);
    }
}
