//! Metadata of a file besides its name and contents.

use std::collections::BTreeMap;
use std::fmt;

/// The seven types of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

impl FileType {
    /// Returns the letter of `ls -l` and `find -printf %y`: `d`, `-`, `l`, `b`, `c`, `p`, `s`.
    pub fn letter(self) -> char {
        match self {
            FileType::Directory => 'd',
            FileType::File => '-',
            FileType::Symlink => 'l',
            FileType::BlockDevice => 'b',
            FileType::CharDevice => 'c',
            FileType::Fifo => 'p',
            FileType::Socket => 's',
        }
    }

    /// Returns the type bits of `st_mode` (`S_IFMT`), as in Linux's `stat.h`.
    pub fn mode_bits(self) -> u32 {
        match self {
            FileType::Fifo => 0o010_000,
            FileType::CharDevice => 0o020_000,
            FileType::Directory => 0o040_000,
            FileType::BlockDevice => 0o060_000,
            FileType::File => 0o100_000,
            FileType::Symlink => 0o120_000,
            FileType::Socket => 0o140_000,
        }
    }

    /// Returns the type of the type bits of `st_mode`, if valid.
    pub fn from_mode_bits(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0o010_000 => FileType::Fifo,
            0o020_000 => FileType::CharDevice,
            0o040_000 => FileType::Directory,
            0o060_000 => FileType::BlockDevice,
            0o100_000 => FileType::File,
            0o120_000 => FileType::Symlink,
            0o140_000 => FileType::Socket,
            _ => return None,
        })
    }

    /// Returns the word for messages: `directory`, `file`, `symlink`, `block device`, ...
    pub fn word(self) -> &'static str {
        match self {
            FileType::Directory => "directory",
            FileType::File => "file",
            FileType::Symlink => "symlink",
            FileType::BlockDevice => "block device",
            FileType::CharDevice => "character device",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
        }
    }
}

/// User and group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Point in time: seconds since 1970 (negative before it) and nanoseconds after that second.
///
/// Packed into 12 bytes, because trees contain one for each of millions of files: `seconds` can be
/// copied, but not borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(Rust, packed(4))]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub seconds: i64,
    /// 0 to 999,999,999, always after `seconds`.
    pub nanos: u32,
}

impl Timestamp {
    /// Creates a timestamp of a whole second.
    pub fn from_seconds(seconds: i64) -> Self {
        Timestamp { seconds, nanos: 0 }
    }
}

/// Formats decimal seconds; `-1.5` is half a second before `-1`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return write!(f, "{}", { self.seconds });
        }
        let total = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        let sign = if total < 0 { "-" } else { "" };
        let digits = format!("{:09}", total.unsigned_abs() % 1_000_000_000);
        write!(f, "{sign}{}.{}", total.unsigned_abs() / 1_000_000_000, digits.trim_end_matches('0'))
    }
}

/// Major and minor number of a device node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Major number; Linux knows 12 bits.
    pub major: u32,
    /// Minor number; Linux knows 20 bits.
    pub minor: u32,
}

impl DeviceNumber {
    /// Returns the 32-bit form that Linux and most formats store (`new_encode_dev` in the kernel's
    /// `kdev_t.h`).
    ///
    /// Numbers beyond 12 and 20 bits are truncated; sources must not produce them.
    pub fn encode(self) -> u32 {
        (self.minor & 0xff) | ((self.major & 0xfff) << 8) | ((self.minor & 0xf_ff00) << 12)
    }

    /// Returns the number of an encoded one; the inverse of [`DeviceNumber::encode`].
    pub fn decode(encoded: u32) -> Self {
        DeviceNumber { major: (encoded >> 8) & 0xfff, minor: (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00) }
    }
}

/// Metadata of every node: permissions, owner, modification time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Meta {
    /// The lower 12 bits of `st_mode`: set-id bits, sticky bit and permissions.
    pub mode: u16,
    /// User and group.
    pub owner: Owner,
    /// Time of last modification.
    pub mtime: Timestamp,
}

/// Metadata of directories that a source only implies by paths of their entries, and of a root that
/// it does not describe. The default is root's, mode 755.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implied {
    /// Permissions.
    pub mode: u16,
    /// User and group.
    pub owner: Owner,
    /// Time; `None` for the latest that the caller allows, or 1970.
    pub mtime: Option<Timestamp>,
}

impl Default for Implied {
    fn default() -> Self {
        Implied { mode: 0o755, owner: Owner::default(), mtime: None }
    }
}

impl Implied {
    /// Returns the metadata, with a time of at most `latest`.
    pub fn meta(self, latest: Option<Timestamp>) -> Meta {
        let mtime = self.mtime.or(latest).unwrap_or_default();
        Meta { mode: self.mode, owner: self.owner, mtime }
    }
}

impl From<Meta> for Implied {
    fn from(meta: Meta) -> Self {
        Implied { mode: meta.mode, owner: meta.owner, mtime: Some(meta.mtime) }
    }
}

/// Extended attributes by full name (`user.x`, `security.capability`), values as raw bytes; sorted
/// by name.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_the_kernel_encoding() {
        for (major, minor) in [(0, 0), (1, 3), (8, 255), (8, 256), (0xfff, 0xf_ffff), (259, 1_048_575)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(DeviceNumber::decode(number.encode()), number);
        }
        assert_eq!(DeviceNumber { major: 1, minor: 3 }.encode(), 0x103);
    }

    #[test]
    fn times_before_1970_print_as_decimal_seconds() {
        assert_eq!(Timestamp { seconds: -2, nanos: 500_000_000 }.to_string(), "-1.5");
        assert_eq!(Timestamp { seconds: -1, nanos: 500_000_000 }.to_string(), "-0.5");
        assert_eq!(Timestamp { seconds: 1, nanos: 1 }.to_string(), "1.000000001");
        assert_eq!(Timestamp::from_seconds(-7).to_string(), "-7");
    }

    #[test]
    fn type_bits_round_trip() {
        for file_type in [
            FileType::Directory,
            FileType::File,
            FileType::Symlink,
            FileType::BlockDevice,
            FileType::CharDevice,
            FileType::Fifo,
            FileType::Socket,
        ] {
            assert_eq!(FileType::from_mode_bits(file_type.mode_bits() | 0o777), Some(file_type));
        }
        assert_eq!(FileType::from_mode_bits(0), None);
    }
}
