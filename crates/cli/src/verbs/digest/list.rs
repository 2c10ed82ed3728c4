//! Lists of digests as `packfs digest` prints them: a digest, two spaces, a path with escapes.

use packfs::integrity::TreeDigest;
use packfs::{Error, Result, ResultExt};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A list longer than this is none.
const LEN_MAX: u64 = 64 << 20;

/// Line of a list.
pub struct Listed {
    /// The digest it should have.
    pub digest: TreeDigest,
    /// The source.
    pub source: PathBuf,
}

/// Reads a list.
///
/// Errors: `Usage` for a line that is none, which it names, and for a list without lines.
pub fn read(path: &Path) -> Result<Vec<Listed>> {
    let mut text = String::new();
    let cannot = || format!("cannot read {path:?}");
    if path == Path::new("-") {
        std::io::stdin().take(LEN_MAX).read_to_string(&mut text).or_io(cannot)?;
    } else {
        std::fs::File::open(path).or_io(cannot)?.take(LEN_MAX).read_to_string(&mut text).or_io(cannot)?;
    }
    let mut listed = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let row = line.split_once("  ").and_then(|(digest, name)| Some((digest, unescaped(name)?)));
        let Some((digest, name)) = row else {
            let error = Error::usage(format!("{path:?}: line {}: cannot parse {line:?}", index + 1));
            return Err(error.hint("a line is a digest, two spaces and a path, as printed by packfs digest"));
        };
        let digest =
            digest.parse().map_err(|error: Error| error.at(format!("{path:?}: line {}", index + 1)))?;
        listed.push(Listed { digest, source: OsString::from_vec(name).into() });
    }
    if listed.is_empty() {
        return Err(Error::usage(format!("cannot check {path:?}: it lists no digests")));
    }
    Ok(listed)
}

/// The bytes that [`packfs::escaped`] shows as `text`; `None` if there are none.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('\\');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    while let Some(part) = parts.next() {
        match part.as_bytes().first() {
            // Two backslashes: what is between them is nothing, what comes next is plain.
            None => {
                bytes.push(b'\\');
                bytes.extend_from_slice(parts.next()?.as_bytes());
            }
            Some(b'n') => bytes.extend([b"\n", &part.as_bytes()[1..]].concat()),
            Some(b't') => bytes.extend([b"\t", &part.as_bytes()[1..]].concat()),
            Some(b'x') => {
                bytes.push(packfs::hex_byte(part.as_bytes().get(1..3)?)?);
                bytes.extend_from_slice(&part.as_bytes()[3..]);
            }
            Some(_) => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_as_they_are_printed() {
        for name in [
            &b"plain name"[..],
            b"a\\b",
            b"\\",
            b"\\\\n",
            b"new\nline\t\x1b[31m",
            b"\xff\xfe",
            "k\u{202e}".as_bytes(),
        ] {
            let printed = packfs::escaped(name).to_string();
            assert_eq!(unescaped(&printed).as_deref(), Some(name), "{printed}");
        }
        for bad in ["\\", "\\q", "\\x1", "\\xgg", "\\x+a"] {
            assert_eq!(unescaped(bad), None, "{bad}");
        }
    }
}
