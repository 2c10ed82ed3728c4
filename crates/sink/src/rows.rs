//! One line of a listing: its contents ([`Row`]) and its format ([`RowFormat`]).
//!
//! Names and link targets are escaped for terminals unless raw output is requested.

use packfs_core::{Civil, DeviceNumber, FileType, ImagePath, Meta, Timestamp, escaped};
use packfs_format::{Inode, InodeId, InodeKind};
use std::fmt::Write as _;
use std::io::Write;

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Path from the root of the image.
    pub path: ImagePath,
    /// Inode.
    pub id: InodeId,
    /// Inode number as stored.
    pub number: u64,
    /// File type.
    pub file_type: FileType,
    /// Permissions, owner, time.
    pub meta: Meta,
    /// Link count as stored.
    pub links: u32,
    /// Length in bytes: of a file's contents or a symlink's target; 0 for all others.
    pub len: u64,
    /// Device number.
    pub device: Option<DeviceNumber>,
    /// Target of a symlink, raw bytes.
    pub target: Option<Vec<u8>>,
    /// True if there are extended attributes.
    pub has_xattrs: bool,
}

impl Row {
    /// Creates a row from an inode; `target` is that of a symlink.
    pub fn new(path: ImagePath, id: InodeId, inode: &Inode, target: Option<Vec<u8>>) -> Self {
        let len = match inode.kind {
            InodeKind::File { len } => len,
            InodeKind::Symlink => target.as_ref().map_or(0, |target| target.len() as u64),
            _ => 0,
        };
        let device = match inode.kind {
            InodeKind::BlockDevice(device) | InodeKind::CharDevice(device) => Some(device),
            _ => None,
        };
        Row {
            path,
            id,
            number: inode.number,
            file_type: inode.kind.file_type(),
            meta: inode.meta,
            links: inode.links,
            len,
            device,
            target,
            has_xattrs: inode.has_xattrs,
        }
    }

    /// Returns type and permissions in the format of `ls -l`, such as `-rwsr-xr-x`.
    pub fn mode_text(&self) -> String {
        mode_text(self.file_type, self.meta.mode)
    }
}

/// Returns type and permissions in the format of `ls -l`, such as `-rwsr-xr-x`.
pub fn mode_text(file_type: FileType, mode: u16) -> String {
    let mut text = String::with_capacity(10);
    text.push(file_type.letter());
    for (shift, special, set, unset) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, false) => 'x',
            (true, true) => set,
            (false, true) => unset,
            (false, false) => '-',
        });
    }
    text
}

/// Formats a time as `2026-11-21 14:05:59`, shifted by an offset from UTC in seconds.
pub fn time_text(time: Timestamp, offset_seconds: i32) -> String {
    let seconds = time.seconds.saturating_add(i64::from(offset_seconds));
    let Civil { year, month, day, hour, minute, second } = Civil::of_seconds(seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Format of rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowFormat {
    /// Set to show mode, links, owner, length and time before the name, as `ls -l`.
    pub long: bool,
    /// Set to show the whole path instead of the name.
    pub full_path: bool,
    /// Set to show names without escapes.
    pub raw: bool,
    /// Set to end lines with a NUL byte instead of a newline; implies `raw`.
    pub nul: bool,
    /// Offset from UTC in seconds at a given time; `None` means UTC.
    pub offset_at: Option<fn(Timestamp) -> i32>,
}

impl RowFormat {
    /// Writes one line.
    pub fn write(&self, row: &Row, out: &mut dyn Write) -> std::io::Result<()> {
        if self.long {
            out.write_all(self.columns(row).as_bytes())?;
        }
        let name = match row.path.file_name() {
            None => b"/".as_slice(),
            Some(_) if self.full_path => row.path.as_bytes(),
            Some(name) => name.as_bytes(),
        };
        self.write_bytes(name, out)?;
        if let (true, Some(target)) = (self.long, &row.target) {
            out.write_all(b" -> ")?;
            self.write_bytes(target, out)?;
        }
        out.write_all(if self.nul { b"\0" } else { b"\n" })
    }

    fn write_bytes(&self, bytes: &[u8], out: &mut dyn Write) -> std::io::Result<()> {
        if self.raw || self.nul { out.write_all(bytes) } else { write!(out, "{}", escaped(bytes)) }
    }

    fn columns(&self, row: &Row) -> String {
        let mut text = row.mode_text();
        let owner = format!("{}/{}", row.meta.owner.uid, row.meta.owner.gid);
        let len = match row.device {
            Some(device) => format!("{}, {}", device.major, device.minor),
            None => row.len.to_string(),
        };
        let time = time_text(row.meta.mtime, self.offset_at.map_or(0, |offset| offset(row.meta.mtime)));
        // Writing to a string cannot fail.
        let _ = write!(text, " {:>3} {owner:<11} {len:>11} {time} ", row.links);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Owner;

    fn row(path: &[u8], kind: InodeKind, mode: u16, target: Option<&[u8]>) -> Row {
        let meta = Meta {
            mode,
            owner: Owner { uid: 1000, gid: 4_000_000_000 },
            mtime: Timestamp::from_seconds(1_795_270_000),
        };
        let inode = Inode { kind, meta, links: 1, number: 7, doubt: None, has_xattrs: false, sectors: 0 };
        Row::new(ImagePath::parse(path).unwrap(), InodeId(1), &inode, target.map(<[u8]>::to_vec))
    }

    fn text(format: RowFormat, row: &Row) -> Vec<u8> {
        let mut out = Vec::new();
        format.write(row, &mut out).unwrap();
        out
    }

    #[test]
    fn modes_look_as_ls_shows_them() {
        for (mode, shown) in [
            (0o755, "-rwxr-xr-x"),
            (0o4755, "-rwsr-xr-x"),
            (0o4644, "-rwSr--r--"),
            (0o2711, "-rwx--s--x"),
            (0o1777, "-rwxrwxrwt"),
            (0o7000, "---S--S--T"),
        ] {
            assert_eq!(mode_text(FileType::File, mode), shown);
        }
    }

    #[test]
    fn times_are_right_before_1970_after_leap_days_and_far_away() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (4_294_967_295, "2106-02-07 06:28:15"),
            (1_709_251_199, "2024-02-29 23:59:59"),
        ] {
            assert_eq!(time_text(Timestamp::from_seconds(seconds), 0), shown);
        }
        assert_eq!(time_text(Timestamp::from_seconds(0), -3600), "1969-12-31 23:00:00");
        // Extreme values must not overflow.
        time_text(Timestamp::from_seconds(i64::MAX), 1);
        time_text(Timestamp::from_seconds(i64::MIN), -1);
    }

    #[test]
    fn long_rows_show_mode_links_owner_length_time_name_and_target() {
        let long = RowFormat { long: true, full_path: true, ..RowFormat::default() };
        let link = text(long, &row(b"usr/l", InodeKind::Symlink, 0o777, Some(b"../x")));
        assert_eq!(
            String::from_utf8(link).unwrap(),
            "lrwxrwxrwx   1 1000/4000000000           4 2026-11-21 14:06:40 usr/l -> ../x\n"
        );
        let device = InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 });
        let device = String::from_utf8(text(long, &row(b"null", device, 0o666, None))).unwrap();
        assert!(device.contains(" 1, 3 "), "{device}");
    }

    #[test]
    fn names_are_escaped_without_raw() {
        let hostile = row(b"d/\x1b[31m\xff", InodeKind::Fifo, 0o644, None);
        assert_eq!(text(RowFormat::default(), &hostile), b"\\x1b[31m\\xff\n");
        assert_eq!(text(RowFormat { raw: true, ..RowFormat::default() }, &hostile), b"\x1b[31m\xff\n");
        let nul = RowFormat { nul: true, full_path: true, ..RowFormat::default() };
        assert_eq!(text(nul, &hostile), b"d/\x1b[31m\xff\0");
    }
}
