//! Kernels, and the images that they can mount.

use packfs::{Error, Result};
use std::fmt;

/// A version of Linux: major, minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel(pub u16, pub u16);

/// First kernels with SquashFS 4.0 and each codec in it (`fs/squashfs/Kconfig` and its history).
const SQUASHFS: [(&str, Kernel); 5] = [
    ("gzip", Kernel(2, 29)),
    ("lzo", Kernel(2, 36)),
    ("xz", Kernel(2, 38)),
    ("lz4", Kernel(3, 19)),
    ("zstd", Kernel(4, 14)),
];

/// Kernels that EROFS images can be made for (`-O kernel=`), oldest first.
const EROFS_TARGETS: [Kernel; 7] =
    [Kernel(5, 4), Kernel(5, 10), Kernel(5, 15), Kernel(6, 1), Kernel(6, 6), Kernel(6, 12), Kernel(6, 18)];

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Kernel {
    /// Reads `6.1` or `6.1.55-amd64`.
    ///
    /// Errors: `Usage` for anything else.
    pub fn parse(text: &str) -> Result<Kernel> {
        let refuse = || Error::usage(format!("{text:?} is no kernel version; write 5.15 or 6.1"));
        let digits = |part: Option<&str>| {
            let part = part.unwrap_or_default();
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse::<u16>().map_err(|_| refuse())
        };
        let mut parts = text.splitn(3, '.');
        let (major, minor) = (digits(parts.next())?, digits(parts.next())?);
        Ok(Kernel(major, minor))
    }

    /// The kernel that runs here.
    ///
    /// Errors: `Io` if `/proc` does not tell.
    pub fn running() -> Result<Kernel> {
        let path = "/proc/sys/kernel/osrelease";
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io(format!("cannot read {path:?}"), error))?;
        Kernel::parse(text.trim())
    }

    /// The newest kernel that EROFS images are made for, and this one mounts.
    pub fn erofs_target(self) -> Option<Kernel> {
        EROFS_TARGETS.into_iter().rev().find(|target| *target <= self)
    }

    /// Why this kernel cannot mount SquashFS with a codec, if it cannot.
    pub fn refuses_squashfs(self, codec: &str) -> Option<String> {
        let name = codec.split([':', ',']).next().unwrap_or_default();
        let name = if name == "lz4hc" { "lz4" } else { name };
        // What is stored as it is needs no codec, but names gzip.
        let name = if name == "none" { "gzip" } else { name };
        let Some((_, since)) = SQUASHFS.into_iter().find(|(known, _)| *known == name) else {
            return Some(format!("no kernel reads {name} in squashfs"));
        };
        // Versions before 3.0 had three parts, of which the last counts.
        let found = if self.0 == 2 { Kernel(2, self.1.max(29)) } else { self };
        (found < since).then(|| format!("{name} in squashfs needs Linux {since}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_as_kernels_print_them() {
        assert_eq!(Kernel::parse("6.18.44-fc").unwrap(), Kernel(6, 18));
        assert_eq!(Kernel::parse("5.15").unwrap(), Kernel(5, 15));
        assert!(Kernel::parse("six").is_err());
        assert!(Kernel::parse("6").is_err());
    }

    #[test]
    fn reports_features_that_a_kernel_cannot_mount() {
        assert!(Kernel(4, 9).refuses_squashfs("zstd:15").unwrap().contains("4.14"));
        assert_eq!(Kernel(4, 19).refuses_squashfs("zstd:15"), None);
        assert_eq!(Kernel(5, 4).refuses_squashfs("lz4hc:12"), None);
        assert!(Kernel(6, 18).refuses_squashfs("lzma").is_some());
    }

    #[test]
    fn images_of_erofs_are_made_for_the_next_older_listed_kernel() {
        assert_eq!(Kernel(6, 8).erofs_target(), Some(Kernel(6, 6)));
        assert_eq!(Kernel(6, 18).erofs_target(), Some(Kernel(6, 18)));
        assert_eq!(Kernel(4, 19).erofs_target(), None);
    }
}
