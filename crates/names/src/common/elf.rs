//! Executables that run in place, for mkcramfs.

use packfs::source::Loaded;
use packfs::{ContentReader, Error, NodeKind, Result};

/// 32-bit ELF, up to the byte order.
const MAGIC: &[u8] = b"\x7fELF\x01";

/// Header, and entry of the program header table.
const HEADER_LEN: u64 = 52;
const SEGMENT_LEN: u64 = 32;

/// PT_LOAD and PF_W.
const PT_LOAD: u32 = 1;
const PF_W: u32 = 2;

/// Paths of all 32-bit executables with a segment that is loaded and not writable.
///
/// Errors: `Usage` for a path that is not UTF-8.
pub fn programs(loaded: &Loaded) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut walk = loaded.tree.walk();
    while let Some((path, id)) = walk.next() {
        let NodeKind::File { len: len @ HEADER_LEN.., content } = loaded.tree.node(id).kind else { continue };
        if is_program(&mut *loaded.contents.open(content)?, len)? {
            let text = std::str::from_utf8(path.as_bytes());
            let text = text.map_err(|_| Error::usage(format!("-X: {path:?} is not UTF-8")))?;
            found.push(text.to_owned());
        }
    }
    Ok(found)
}

fn is_program(reader: &mut dyn ContentReader, len: u64) -> Result<bool> {
    let mut header = [0; HEADER_LEN as usize];
    reader.read_exact_at(0, &mut header)?;
    let is_big = header[MAGIC.len()] == 2;
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    // Type, machine, and version precede it; the count is a half word.
    let table_at = u64::from(word(&header, 28));
    let count = u64::from(if is_big { word(&header, 42) & 0xffff } else { word(&header, 44) & 0xffff });
    if !header.starts_with(MAGIC) || table_at + count * SEGMENT_LEN > len {
        return Ok(false);
    }
    let mut table = vec![0; (count * SEGMENT_LEN) as usize];
    reader.read_exact_at(table_at, &mut table)?;
    let is_read_only = |segment: &[u8]| word(segment, 0) == PT_LOAD && word(segment, 24) & PF_W == 0;
    Ok(table.chunks_exact(SEGMENT_LEN as usize).any(is_read_only))
}
