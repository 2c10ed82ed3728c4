//! The mount table of the kernel (`/proc/self/mountinfo`).

use packfs_core::{Result, ResultExt};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Row of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mounted {
    /// Device number of the filesystem, as in `stat`: major and minor.
    pub device: (u32, u32),
    /// Mounted path within the filesystem: `/`, or a subvolume or directory.
    pub root: PathBuf,
    /// Mount point.
    pub at: PathBuf,
    /// Filesystem type: `erofs`, `squashfs`, `fuse.packfs`.
    pub fs_type: String,
    /// Source: a device, a file, or a name given by the filesystem.
    pub source: PathBuf,
}

/// Returns all mounts visible to this process, each after those below it.
///
/// Errors: `Io` without `/proc`.
pub fn read() -> Result<Vec<Mounted>> {
    let path = "/proc/self/mountinfo";
    let text = std::fs::read(path).or_io(|| format!("cannot read {path:?}"))?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

/// Returns the topmost mount at `path`; `None` if nothing is mounted there.
///
/// Errors: as [`read`].
pub fn topmost(path: &Path) -> Result<Option<Mounted>> {
    Ok(read()?.into_iter().rev().find(|mounted| mounted.at == path))
}

/// Resolves a path and its directory's links without accessing the filesystem mounted there, whose
/// server may have ended.
///
/// Errors: `Io` if the parent directory cannot be found.
pub fn place(path: &Path) -> Result<PathBuf> {
    // A trailing slash or dot is not a name.
    let cannot = || format!("cannot find {path:?}");
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let direct = parent.canonicalize().or_io(cannot)?.join(name);
            // A link is followed if its target is accessible.
            let is_link = std::fs::symlink_metadata(&direct).is_ok_and(|found| found.is_symlink());
            if is_link { direct.canonicalize().or_io(cannot) } else { Ok(direct) }
        }
        _ => path.canonicalize().or_io(cannot),
    }
}

/// Format: `proc_pid_mountinfo(5)`.
fn parse(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let (major, minor) = std::str::from_utf8(fields.get(2)?).ok()?.split_once(':')?;
    let rest = fields.iter().skip(6).position(|field| *field == b"-")? + 7;
    Some(Mounted {
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: unescape(fields.get(3)?),
        at: unescape(fields.get(4)?),
        fs_type: String::from_utf8_lossy(fields.get(rest)?).into_owned(),
        source: unescape(fields.get(rest + 1)?),
    })
}

/// Reverses [`escape`]: a backslash and three octal digits are one byte.
pub(crate) fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text;
    while let Some((&byte, rest)) = left.split_first() {
        let digits = rest.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match (byte, digits) {
            (b'\\', Some(digits)) => {
                let value = digits.iter().fold(0_u32, |value, digit| value << 3 | u32::from(digit - b'0'));
                bytes.push(value as u8);
                left = &rest[3..];
            }
            _ => {
                bytes.push(byte);
                left = rest;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Escapes blanks, control characters and backslashes in a path, as `/proc/self/mountinfo` does.
pub(crate) fn escape(path: &Path) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if (b'!'..=b'~').contains(&byte) && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_with_and_without_optional_fields() {
        let line =
            b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - fuse.packfs /dev/\\134root rw";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.device, (98, 0));
        assert_eq!((mounted.root, mounted.at), ("/mnt1".into(), "/mnt 2".into()));
        assert_eq!(mounted.fs_type, "fuse.packfs");
        assert_eq!(mounted.source, Path::new("/dev/\\root"));
        assert_eq!(parse(b"36 35 0:5 / / rw - proc proc rw").unwrap().fs_type, "proc");
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"36 35 0:5 / / rw"), None);
    }

    #[test]
    fn every_path_survives_being_escaped() {
        let bytes: Vec<u8> = (1..=255).collect();
        let path = PathBuf::from(OsString::from_vec(bytes));
        let text = escape(&path);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
        assert_eq!(unescape(text.as_bytes()), path);
        assert_eq!(unescape(b"a\\9\\04"), Path::new("a\\9\\04"));
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(topmost(Path::new("/")).unwrap().is_some());
        assert_eq!(place(Path::new("/proc/")).unwrap(), Path::new("/proc"));
        assert_eq!(place(Path::new("/")).unwrap(), Path::new("/"));
    }
}
