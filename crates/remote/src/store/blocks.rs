//! Blocks of a file of the cache, and the table with a word for each.

use super::header::{HEADER_LEN, Header, WORD_LEN};
use crate::plan::BLOCK_LEN;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Part of the word of a block that is there.
const MARK: u32 = 0x6b63_6170;

/// Writes a block, then its word.
pub(super) fn write_block(file: &File, header: &Header, number: u64, block: &[u8]) -> io::Result<()> {
    let mut word = [0; 8];
    let (checksum, mark) = word.split_at_mut(4);
    checksum.copy_from_slice(&crc32c::crc32c(block).to_le_bytes());
    mark.copy_from_slice(&mark_of(number).to_le_bytes());
    file.write_all_at(block, block_at(header, number))?;
    file.write_all_at(&word, word_at(number))
}

/// Reads a block, if it is there and its checksum matches.
pub(super) fn read_block(
    file: &File,
    header: &Header,
    number: u64,
    len: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, word_at(number))?;
    let (checksum, mark) = word.split_at(4);
    if number >= header.blocks() || mark != mark_of(number).to_le_bytes() {
        return Ok(None);
    }
    let mut block = vec![0; len];
    file.read_exact_at(&mut block, block_at(header, number))?;
    Ok(Some(block).filter(|block| crc32c::crc32c(block).to_le_bytes() == checksum))
}

/// True if the table says that a block is there.
pub(super) fn is_marked(file: &File, number: u64) -> io::Result<bool> {
    let mut mark = [0; 4];
    file.read_exact_at(&mut mark, word_at(number).saturating_add(4))?;
    Ok(mark == mark_of(number).to_le_bytes())
}

/// Mark of a block: a table of zeros, or one of another file, has none.
fn mark_of(number: u64) -> u32 {
    MARK ^ u32::try_from(number).unwrap_or(u32::MAX)
}

fn word_at(number: u64) -> u64 {
    HEADER_LEN.saturating_add(number.saturating_mul(WORD_LEN))
}

fn block_at(header: &Header, number: u64) -> u64 {
    header.data_start().saturating_add(number.saturating_mul(BLOCK_LEN))
}
