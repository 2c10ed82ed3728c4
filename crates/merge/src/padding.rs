//! Zeros before compressed bytes.
//!
//! Indexes of logical clusters address whole blocks, including zeros. Beyond 2^32 blocks only
//! extents are possible, whose stored length must not exceed their decoded length. Of such
//! clusters, mostly the last one of a file, the zeros are read and omitted.

use packfs_core::Result;
use packfs_format::{Cluster, ClusterForm};

/// Blocks of metadata that may precede the data of devices.
const METADATA_BLOCKS_MAX: u64 = 1 << 26;

/// First offset that an index of logical clusters may be unable to address.
pub(crate) fn far_from(block_len: u64) -> u64 {
    (u64::from(u32::MAX) - METADATA_BLOCKS_MAX).saturating_mul(block_len)
}

/// Only if the cluster's stored length exceeds its decoded length; `read` fills bytes from its
/// offset on.
pub(crate) fn leave_out(
    row: &mut Cluster,
    block_len: u64,
    read: impl FnOnce(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    if row.form != ClusterForm::Compressed || u64::from(row.stored_len) <= row.len {
        return Ok(());
    }
    let mut bytes = vec![0; u64::from(row.stored_len).min(block_len) as usize];
    read(row.offset, &mut bytes)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count() as u32;
    row.offset = row.offset.saturating_add(zeros.into());
    row.stored_len = row.stored_len.saturating_sub(zeros);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clusters_that_take_more_than_they_hold_lose_their_zeros() {
        let form = ClusterForm::Compressed;
        let cluster = Cluster { offset: 8192, len: 100, stored_len: 4096, form, second: false };
        let read = |at: u64, bytes: &mut [u8]| {
            assert_eq!((at, bytes.len()), (8192, 4096));
            bytes[4030..].fill(7);
            Ok(())
        };
        let mut short = cluster;
        leave_out(&mut short, 4096, read).unwrap();
        assert_eq!((short.offset, short.stored_len, short.len), (8192 + 4030, 66, 100));
        for kept in [Cluster { len: 5000, ..cluster }, Cluster { form: ClusterForm::Plain, ..cluster }] {
            let mut row = kept;
            leave_out(&mut row, 4096, read).unwrap();
            assert_eq!(row, kept);
        }
    }
}
