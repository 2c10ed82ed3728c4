//! What is mounted, by the kernel's own table.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Whether something is mounted on exactly this folder. Asks nothing of whoever serves the mount.
pub fn is_mount_point(dir: &Path) -> bool {
    below(dir).iter().any(|mounted| mounted == dir)
}

/// Mount points at or below a folder, the last mounted first.
pub fn below(dir: &Path) -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut points = points_in(&table);
    points.retain(|point| point.starts_with(dir));
    points.reverse();
    points
}

/// The fifth field of each line: proc(5).
fn points_in(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(unescaped(field)))
        .collect()
}

/// Blanks, tabs, line ends and backslashes stand there as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> OsString {
    let mut bytes = vec![];
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let byte = octal
            .and_then(|digits| u8::from_str_radix(std::ffi::OsStr::from_bytes(digits).to_str()?, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mount_points_with_blanks_in_them() {
        let table = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            36 22 0:5 / /mnt/a\\040b ro - fuse.packfs x ro\n";
        assert_eq!(points_in(table), [PathBuf::from("/"), PathBuf::from("/mnt/a b")]);
    }

    #[test]
    fn knows_a_mount_point_from_a_folder() {
        assert!(is_mount_point(Path::new("/proc")));
        assert!(!is_mount_point(Path::new("/proc/self")));
    }
}
