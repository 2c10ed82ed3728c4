//! Recognition of archives that hold container images: those of `docker save`, and layouts.

use super::header::{BLOCK_LEN, Field, Header};
use crate::archive::{compression_of, decoded_stream};
use packfs_core::{Limits, Result, ResultExt};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most members that are examined.
const MEMBERS_MAX: usize = 20_000;
/// Longest list of images that is read.
const LIST_LEN_MAX: u64 = 4 << 20;

/// Returns true for an archive, compressed or not, that contains only container images. Of any
/// other archive, little more than the first member is read.
///
/// Errors: `Io`.
pub fn holds_container_image(path: &Path, limits: Limits) -> Result<bool> {
    let mut file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
    let mut beginning = [0; BLOCK_LEN];
    let len = file.read_at(&mut beginning, 0).or_io(|| format!("cannot read {path:?}"))?;
    if compression_of(&beginning[..len]).is_none() {
        return Ok(is_image_archive(&mut file));
    }
    let decoded = decoded_stream(Box::new(file), &format!("{path:?}"), limits);
    // Data that cannot be decoded is reported when the archive is opened.
    Ok(decoded.is_ok_and(|reader| is_image_archive(&mut Stream(reader))))
}

trait Skip: Read {
    fn skip(&mut self, len: u64) -> io::Result<()>;
}

impl Skip for File {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        self.seek(SeekFrom::Current(i64::try_from(len).map_err(io::Error::other)?)).map(|_| ())
    }
}

struct Stream<R>(R);

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<R: Read> Skip for Stream<R> {
    fn skip(&mut self, len: u64) -> io::Result<()> {
        io::copy(&mut self.0.by_ref().take(len), &mut io::sink()).map(|_| ())
    }
}

fn is_image_archive(input: &mut impl Skip) -> bool {
    let (mut is_saved, mut has_mark, mut has_index) = (false, false, false);
    let mut block = [0; BLOCK_LEN];
    for _ in 0..MEMBERS_MAX {
        if input.read_exact(&mut block).is_err() || block == [0; BLOCK_LEN] {
            break;
        }
        let Some(header) = Header::new(&block) else { return false };
        let Some(len) = header.number(Field::Size).and_then(|len| u64::try_from(len).ok()) else {
            return false;
        };
        let path = header.path();
        let name = path.strip_prefix(b"./").unwrap_or(&path);
        let is_file = matches!(header.typeflag(), b'0' | 0);
        let mut left = len.next_multiple_of(BLOCK_LEN as u64);
        match header.typeflag() {
            b'5' | b'x' | b'g' | b'L' | b'K' => {}
            b'0' | 0 | b'1' | b'2' if is_of_images(name) => {}
            _ => return false,
        }
        if is_file && name == b"manifest.json" && len <= LIST_LEN_MAX {
            let mut text = Vec::new();
            if input.by_ref().take(left).read_to_end(&mut text).is_err() {
                return false;
            }
            is_saved = is_list_of_images(&text);
            left = left.saturating_sub(text.len() as u64);
        }
        has_mark |= is_file && name == b"oci-layout";
        has_index |= is_file && name == b"index.json";
        if input.skip(left).is_err() {
            break;
        }
    }
    is_saved || has_mark && has_index
}

fn is_of_images(name: &[u8]) -> bool {
    let ends = |end: &[u8]| name.ends_with(end);
    let is_top = !name.contains(&b'/');
    let is_digest =
        name.starts_with(b"sha256:") || name.len() >= 32 && name.iter().all(u8::is_ascii_hexdigit);
    name.starts_with(b"blobs/")
        || is_top && (ends(b".json") || ends(b".tar") || ends(b".tar.gz") || is_digest)
        || matches!(name, b"repositories" | b"oci-layout")
        || ends(b"/layer.tar")
        || ends(b"/json")
        || ends(b"/VERSION")
}

/// True for the list of images of `docker save`; other archives contain files of that name, too.
fn is_list_of_images(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|found| found == word);
    text.trim_ascii_start().starts_with(b"[") && has(b"\"Config\"") && has(b"\"Layers\"")
}
