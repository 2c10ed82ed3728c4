//! Kernels that an image can be made for, and the codecs that each of them reads.

use packfs_codec::Algorithm;
use packfs_core::{Error, Result};
use packfs_format::lacks_in_kernel;
use std::fmt;

/// A kernel's version. The third number counts in 2.6 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kernel([u16; 3]);

/// The first kernel with SquashFS 4.0.
const FIRST: Kernel = Kernel([2, 6, 29]);
/// The words of the option's values.
pub(crate) const WORDS: &str = "VERSION, as 2.6.38|3.19|4.14";

/// The first kernel that decodes each codec. Plain LZMA has stayed a patch of vendors.
const CODECS: [(Algorithm, &str, Kernel); 5] = [
    (Algorithm::Zlib, "gzip", FIRST),
    (Algorithm::Lzo, "lzo", Kernel([2, 6, 36])),
    (Algorithm::Xz, "xz", Kernel([2, 6, 38])),
    (Algorithm::Lz4, "lz4", Kernel([3, 19, 0])),
    (Algorithm::Zstd, "zstd", Kernel([4, 14, 0])),
];

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel([major, minor, third]) = self;
        write!(f, "{major}.{minor}")?;
        if *third > 0 { write!(f, ".{third}") } else { Ok(()) }
    }
}

impl Kernel {
    /// Reads the name of a kernel.
    ///
    /// Errors: `Usage` for what is no version, and for one before the first with SquashFS 4.0.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        let numbers: Option<Vec<u16>> = text.split('.').map(number).collect();
        let kernel = match numbers.as_deref() {
            Some(&[2, 6, third]) => Some(Kernel([2, 6, third])),
            Some(&[major, minor]) if major > 2 => Some(Kernel([major, minor, 0])),
            _ => None,
        };
        kernel.filter(|kernel| *kernel >= FIRST).ok_or_else(|| {
            Error::usage(format!("squashfs option kernel={text}: {WORDS}, from {FIRST} on, is allowed"))
        })
    }

    /// Refuses a codec that this kernel does not read.
    ///
    /// Errors: `Usage`, naming the first kernel that does, and codecs for this one.
    pub(crate) fn check(self, algorithm: Algorithm) -> Result<()> {
        let row = CODECS.iter().find(|row| row.0 == algorithm);
        if row.is_some_and(|row| row.2 <= self) {
            return Ok(());
        }
        let error = match row {
            Some((_, name, since)) => lacks_in_kernel(&format!("codec {name}"), since, &self),
            None => Error::usage("codec lzma: no Linux reads it in squashfs, only kernels of vendors do"),
        };
        let known: Vec<&str> = CODECS.iter().filter(|row| row.2 <= self).map(|row| row.1).collect();
        Err(error.hint(format!("Linux {self} reads {}", known.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers_up_to_2_6_and_two_from_3_0_on() {
        for (text, shown) in [("2.6.29", "2.6.29"), ("3.0", "3.0"), ("4.14", "4.14"), ("6.18", "6.18")] {
            assert_eq!(Kernel::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "2.6", "2.6.28", "2.4.37", "3", "4.14.1", "4.-1", "+4.1", "four", "99999.1", "4.14."]
        {
            assert!(Kernel::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_kernel_reads_the_codecs_that_it_has() {
        let rows = [
            ("2.6.29", 1),
            ("2.6.36", 2),
            ("2.6.37", 2),
            ("2.6.38", 3),
            ("3.18", 3),
            ("3.19", 4),
            ("4.13", 4),
            ("4.14", 5),
        ];
        for (text, count) in rows {
            let kernel = Kernel::parse(text).unwrap();
            let read = CODECS.iter().filter(|row| kernel.check(row.0).is_ok()).count();
            assert_eq!(read, count, "{text}");
            assert!(kernel.check(Algorithm::LzmaAlone).is_err());
        }
        let error = Kernel::parse("3.18").unwrap().check(Algorithm::Zstd).unwrap_err();
        assert_eq!(error.to_string(), "codec zstd needs Linux 4.14 or newer, this image is for Linux 3.18");
        assert_eq!(error.hints(), ["Linux 3.18 reads gzip, lzo, xz"]);
    }
}
