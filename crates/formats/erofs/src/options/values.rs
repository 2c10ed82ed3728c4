//! Syntax of option values.

use super::IndexForm;
use crate::disk;
use crate::sizes::{display_len, len, len_32};
use packfs_core::{Error, Result, from_hex};
use packfs_format::units::*;

/// Largest chunk, and largest alignment of the image's length.
const CHUNK_LEN_MAX: u32 = 1 << 30;

pub(super) fn block_len(value: &str) -> Option<u32> {
    len_32(value).filter(|len| len.is_power_of_two() && (512..=4096).contains(len))
}

/// Parses `off` or the uncompressed length of a metadata cluster.
pub(super) fn metabox_len(value: &str) -> Option<Option<u32>> {
    off_or(value, |len| (4096..=disk::Z_EROFS_PCLUSTER_MAX_SIZE).contains(&len))
}

pub(super) fn chunk_len(value: &str) -> Option<Option<u32>> {
    off_or(value, |len| len.is_power_of_two() && (512..=CHUNK_LEN_MAX).contains(&len))
}

fn off_or(value: &str, is_allowed: impl Fn(u32) -> bool) -> Option<Option<u32>> {
    match value {
        "off" => Some(None),
        len => len_32(len).filter(|&len| is_allowed(len)).map(Some),
    }
}

pub(super) fn align(value: &str) -> Option<u64> {
    len(value).filter(|len| (1..=u64::from(CHUNK_LEN_MAX)).contains(len))
}

/// Parses seconds since 1970, such as `5` or `@5`.
pub(super) fn seconds(value: &str) -> Option<i64> {
    value.strip_prefix('@').unwrap_or(value).parse().ok()
}

pub(super) fn uuid(value: &str) -> Option<[u8; 16]> {
    let digits: String = value.chars().filter(|&c| c != '-').collect();
    from_hex(&digits)?.try_into().ok()
}

/// Parses a volume name; one byte remains zero for the kernel.
pub(super) fn label(value: &str) -> Option<[u8; disk::VOLUME_NAME_LEN]> {
    let mut label = [0; disk::VOLUME_NAME_LEN];
    label.iter_mut().zip(value.bytes()).for_each(|(to, byte)| *to = byte);
    (value.len() < label.len() && !value.contains('\0')).then_some(label)
}

/// Errors: `Usage`.
pub(super) fn check_cluster_len(len: u32, block_len: u32, index: IndexForm) -> Result<()> {
    // An index counts the blocks of a cluster in 11 bits; extents count bytes.
    let countable = match index {
        IndexForm::Extents => u32::MAX,
        _ => nth_at(0, disk::DELTA_MAX.into(), block_len),
    };
    let len_max = disk::Z_EROFS_PCLUSTER_MAX_SIZE.min(countable);
    if len.is_multiple_of(block_len) && (block_len..=len_max).contains(&len) {
        return Ok(());
    }
    let block = display_len(block_len);
    let error = Error::usage(format!(
        "erofs block size {}: a multiple of the block of {block} from {block} to {} is allowed",
        display_len(len),
        display_len(len_max)
    ));
    Err(if len_max < disk::Z_EROFS_PCLUSTER_MAX_SIZE {
        error.hint("index=extents, or a larger block, allows 1M")
    } else {
        error
    })
}
