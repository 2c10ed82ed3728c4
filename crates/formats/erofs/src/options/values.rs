//! Syntax of option values.

use super::IndexForm;
use crate::disk;
use crate::sizes::{display_len, len, len_32};
use packfs_core::{Error, Result};

/// Largest chunk, and largest multiple that an image is filled up to.
const CHUNK_LEN_MAX: u32 = 1 << 30;

/// Reads the length of a block.
pub(super) fn block_len(value: &str) -> Option<u32> {
    len_32(value).filter(|len| len.is_power_of_two() && (512..=4096).contains(len))
}

/// Reads `off` or the input of a cluster of metadata.
pub(super) fn metabox_len(value: &str) -> Option<Option<u32>> {
    off_or(value, |len| (4096..=disk::Z_EROFS_PCLUSTER_MAX_SIZE).contains(&len))
}

/// Reads `off` or the length of a chunk.
pub(super) fn chunk_len(value: &str) -> Option<Option<u32>> {
    off_or(value, |len| len.is_power_of_two() && (512..=CHUNK_LEN_MAX).contains(&len))
}

fn off_or(value: &str, is_allowed: impl Fn(u32) -> bool) -> Option<Option<u32>> {
    match value {
        "off" => Some(None),
        len => len_32(len).filter(|&len| is_allowed(len)).map(Some),
    }
}

/// Reads the multiple that an image is filled up to.
pub(super) fn align(value: &str) -> Option<u64> {
    len(value).filter(|len| (1..=u64::from(CHUNK_LEN_MAX)).contains(len))
}

/// Reads seconds since 1970, such as `5` or `@5`.
pub(super) fn seconds(value: &str) -> Option<i64> {
    value.strip_prefix('@').unwrap_or(value).parse().ok()
}

/// Reads 32 hexadecimal digits, with or without hyphens.
pub(super) fn uuid(value: &str) -> Option<[u8; 16]> {
    let digits: String = value.chars().filter(|&c| c != '-').collect();
    let is_one = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes))?
}

/// Reads a volume's name; one byte stays zero, as kernels want it.
pub(super) fn label(value: &str) -> Option<[u8; disk::VOLUME_NAME_LEN]> {
    let mut label = [0; disk::VOLUME_NAME_LEN];
    label.iter_mut().zip(value.bytes()).for_each(|(to, byte)| *to = byte);
    (value.len() < label.len() && !value.contains('\0')).then_some(label)
}

/// Checks the largest stored length of a cluster.
///
/// Errors: `Usage`.
pub(super) fn check_cluster_len(len: u32, block_len: u32, index: IndexForm) -> Result<()> {
    // An index counts the blocks of a cluster in 11 bits; extents count bytes.
    let countable = match index {
        IndexForm::Extents => u32::MAX,
        _ => u32::from(disk::DELTA_MAX).saturating_mul(block_len),
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
    Err(match len_max < disk::Z_EROFS_PCLUSTER_MAX_SIZE {
        true => error.hint("index=extents, or a larger block, allows 1M"),
        false => error,
    })
}
