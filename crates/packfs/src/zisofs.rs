//! Files of this machine in the form of zisofs: blocks of 32 KiB, each compressed by zlib, behind a
//! table of their places (`zisofs_format.txt`). A tree of such files becomes an ISO 9660 image
//! whose reader decodes them.

use packfs_codec::{Algorithm, CodecSettings, Decoder, Encoder, ZlibSettings};
use packfs_core::{Error, Result, ResultExt};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// First bytes of a file.
const MAGIC: [u8; 8] = [0x37, 0xe4, 0x53, 0x96, 0xc9, 0xdb, 0xd6, 0x07];
const HEADER_LEN: usize = 16;
const POINTER_LEN: u64 = 4;
/// Base-2 logarithm of the length of a block that is written.
const BLOCK_LOG: u8 = 15;
const BLOCK_LEN: usize = 1 << BLOCK_LOG;
/// The same of blocks that are read.
const BLOCK_LOGS: std::ops::RangeInclusive<u8> = 15..=20;
/// Best level of the encoder.
const LEVEL_MAX: u8 = 12;

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Length of the decoded file.
    len: u32,
    header_words: u8,
    block_log: u8,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        (bytes[12], bytes[13]) = (self.header_words, self.block_log);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let len = u32::from_le_bytes(*rest.first_chunk()?);
        Some(Header { len, header_words: *rest.get(4)?, block_log: *rest.get(5)? })
    }
}

/// Returns the length that a file decodes to; `None` if it is not in this form.
///
/// # Errors
/// `Io`.
pub fn decoded_len(file: &File) -> Result<Option<u64>> {
    let bytes = beginning(file).or_io(|| "cannot read a file")?;
    Ok(Header::of(&bytes).map(|header| u64::from(header.len)))
}

fn beginning(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER_LEN];
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// Codes files one after the other.
pub struct Coder {
    encoder: Box<dyn Encoder>,
    decoder: Box<dyn Decoder>,
}

impl Coder {
    /// Makes one that encodes with a level of zlib, 1 to 9.
    ///
    /// # Errors
    /// `Usage` for another level.
    pub fn new(level: u8) -> Result<Self> {
        // Files are made once, and read often.
        let level = if level == 9 { LEVEL_MAX } else { level };
        let settings = CodecSettings::Zlib(ZlibSettings { level, ..ZlibSettings::default() });
        let encoder = packfs_codec::encoder(&settings).map_err(Error::usage)?;
        Ok(Coder { encoder, decoder: packfs_codec::decoder(Algorithm::Zlib) })
    }

    /// Writes `from` to the empty file `to`, compressed if that is shorter, or with `force`, or if
    /// it would be taken for a compressed one otherwise. Lengths of 4 GiB and more have no place in
    /// the header, so that such files are copied.
    ///
    /// # Errors
    /// `Io`.
    pub fn encode(&mut self, from: &mut File, to: &mut File, force: bool) -> Result<()> {
        let cannot = || "cannot compress a file";
        let len = from.metadata().or_io(cannot)?.len();
        let is_ambiguous = beginning(from).or_io(cannot)?.starts_with(&MAGIC);
        let compressed = match u32::try_from(len) {
            Ok(len) => self.encode_blocks(from, to, len)?,
            Err(_) => None,
        };
        if compressed.is_some_and(|stored| stored < len || force || is_ambiguous) {
            return Ok(());
        }
        to.set_len(0).or_io(cannot)?;
        copy(from, to)
    }

    /// Writes header, pointers, and blocks; returns the length, or `None` if it exceeds pointers.
    fn encode_blocks(&mut self, from: &File, to: &File, len: u32) -> Result<Option<u64>> {
        let cannot = || "cannot compress a file";
        let header = Header { len, header_words: (HEADER_LEN / 4) as u8, block_log: BLOCK_LOG };
        let blocks = u64::from(len).div_ceil(BLOCK_LEN as u64);
        let mut at = HEADER_LEN as u64 + (blocks + 1) * POINTER_LEN;
        let (mut pointers, mut left) = (Vec::new(), u64::from(len));
        let (mut block, mut stored) = (vec![0; BLOCK_LEN], vec![0; 2 * BLOCK_LEN]);
        for index in 0..blocks {
            let Ok(pointer) = u32::try_from(at) else { return Ok(None) };
            pointers.extend(pointer.to_le_bytes());
            let part = &mut block[..left.min(BLOCK_LEN as u64) as usize];
            from.read_exact_at(part, index * BLOCK_LEN as u64).or_io(cannot)?;
            left -= part.len() as u64;
            // A block of zeros has no length.
            if part.iter().any(|&byte| byte != 0) {
                let len = self.encoder.compress(part, &mut stored).map_err(Error::failed)?;
                let len = len.ok_or_else(|| Error::failed("a block does not fit into twice its length"))?;
                to.write_all_at(&stored[..len], at).or_io(cannot)?;
                at += len as u64;
            }
        }
        let Ok(pointer) = u32::try_from(at) else { return Ok(None) };
        pointers.extend(pointer.to_le_bytes());
        to.write_all_at(&[&header.to_bytes()[..], &pointers].concat(), 0).or_io(cannot)?;
        Ok(Some(at))
    }

    /// Writes what `from` decodes to; a file that is not in this form is copied.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn decode(&mut self, from: &mut File, to: &mut File) -> Result<()> {
        let cannot = || "cannot decode a file";
        let Some(header) = Header::of(&beginning(from).or_io(cannot)?) else { return copy(from, to) };
        let corrupt = |fault: String| Error::corrupt("zisofs file", fault);
        if !BLOCK_LOGS.contains(&header.block_log) {
            return Err(corrupt(format!("blocks of 2^{}: 2^15 to 2^20 are allowed", header.block_log)));
        }
        let block_len = 1_usize << header.block_log;
        let blocks = u64::from(header.len).div_ceil(block_len as u64);
        let file_len = from.metadata().or_io(cannot)?.len();
        let table = u64::from(header.header_words) * 4;
        if table + (blocks + 1) * POINTER_LEN > file_len {
            return Err(corrupt(format!("{blocks} blocks: their pointers exceed its {file_len} bytes")));
        }
        let (mut block, mut stored) = (vec![0; block_len], Vec::new());
        let mut left = u64::from(header.len);
        for index in 0..blocks {
            let mut pair = [0; 8];
            from.read_exact_at(&mut pair, table + index * POINTER_LEN).or_io(cannot)?;
            let [start, end] = [&pair[..4], &pair[4..]]
                .map(|bytes| bytes.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte)));
            let stored_len = end.checked_sub(start).filter(|len| *len <= 2 * block_len as u64);
            let stored_len = stored_len.filter(|_| end <= file_len);
            let stored_len = stored_len
                .ok_or_else(|| corrupt(format!("block {index} from {start} to {end} of {file_len} bytes")))?;
            let part = &mut block[..left.min(block_len as u64) as usize];
            part.fill(0);
            if stored_len > 0 {
                stored.resize(stored_len as usize, 0);
                from.read_exact_at(&mut stored, start).or_io(cannot)?;
                let decoded = self.decoder.decompress(&stored, part);
                let len = decoded.map_err(|error| error.of("zisofs file", format!("block {index}")))?;
                if len != part.len() {
                    return Err(corrupt(format!("block {index}: {len} bytes instead of {}", part.len())));
                }
            }
            to.write_all(part).or_io(cannot)?;
            left -= part.len() as u64;
        }
        Ok(())
    }
}

fn copy(from: &mut File, to: &mut File) -> Result<()> {
    std::io::copy(from, to).map(drop).or_io(|| "cannot copy a file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn coded(bytes: &[u8], force: bool) -> (u64, Vec<u8>) {
        let (from, stored, back) =
            (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let (mut from, mut stored, mut back) = (from, stored, back);
        from.write_all_at(bytes, 0).unwrap();
        let mut coder = Coder::new(9).unwrap();
        coder.encode(&mut from, &mut stored, force).unwrap();
        let len = stored.metadata().unwrap().len();
        let mut stored = reopened(&stored);
        coder.decode(&mut stored, &mut back).unwrap();
        let mut found = Vec::new();
        reopened(&back).read_to_end(&mut found).unwrap();
        (len, found)
    }

    /// Returns the same file at its beginning.
    fn reopened(file: &File) -> File {
        use std::os::fd::AsRawFd;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
    }

    #[test]
    fn files_come_back_whatever_they_hold() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(|n| n.to_le_bytes()).collect();
        let noise: Vec<u8> = (0..70_000_u64).map(|n| ((n * n * 2_654_435_761) >> 13) as u8).collect();
        for (bytes, force) in [
            (&text[..], false),
            (&noise, false),
            (&noise, true),
            (&[0; 100_000], false),
            (b"", false),
            (b"x", false),
            (b"x", true),
            (&MAGIC, false),
        ] {
            let (_, found) = coded(bytes, force);
            assert!(found == bytes, "{} bytes", bytes.len());
        }
        assert!(coded(&text, false).0 < text.len() as u64);
        assert_eq!(coded(&[0; 100_000], false).0, 16 + 5 * 4);
        assert_eq!(coded(b"x", false).0, 1);
    }

    #[test]
    fn damaged_files_are_refused() {
        let text = [b'a'; 100_000];
        let (from, stored) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let (mut from, mut stored) = (from, stored);
        from.write_all_at(&text, 0).unwrap();
        let mut coder = Coder::new(6).unwrap();
        coder.encode(&mut from, &mut stored, false).unwrap();
        for (at, byte) in [(8, 0xff), (13, 40), (13, 14), (16, 0xff), (20, 1), (12, 0xff), (40, 0x55)] {
            let mut right = [0];
            stored.read_exact_at(&mut right, at).unwrap();
            stored.write_all_at(&[byte], at).unwrap();
            let mut back = tempfile::tempfile().unwrap();
            let outcome = coder.decode(&mut reopened(&stored), &mut back);
            assert!(outcome.is_err(), "byte {at}");
            stored.write_all_at(&right, at).unwrap();
        }
    }
}
