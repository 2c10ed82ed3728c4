//! Target kernels of an image, and the codecs that each of them decodes.

use packfs_codec::Algorithm;
use packfs_core::{Error, Result};
use packfs_format::lacks_in_kernel;
use std::fmt;

/// Kernel version. The third number is only used by 2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kernel(pub(crate) [u16; 3]);

pub(crate) const FIRST: Kernel = Kernel([2, 6, 29]);
pub(crate) const WORDS: &str = "VERSION, as 2.6.38|3.19|4.14";

/// Codecs of SquashFS in the order of their numbers, which begin with 1, and the first kernel that
/// decodes each. Plain LZMA remained a vendor patch.
const CODECS: [(Algorithm, Option<Kernel>); 6] = [
    (Algorithm::Zlib, Some(FIRST)),
    (Algorithm::LzmaAlone, None),
    (Algorithm::Lzo, Some(Kernel([2, 6, 36]))),
    (Algorithm::Xz, Some(Kernel([2, 6, 38]))),
    (Algorithm::Lz4, Some(Kernel([3, 19, 0]))),
    (Algorithm::Zstd, Some(Kernel([4, 14, 0]))),
];

/// The algorithms of SquashFS.
pub(crate) fn algorithms() -> [Algorithm; CODECS.len()] {
    CODECS.map(|(algorithm, _)| algorithm)
}

/// The number of a codec in the superblock; 0 for one that SquashFS does not have.
pub(crate) fn number(algorithm: Algorithm) -> u16 {
    let numbered = CODECS.iter().zip(1..);
    numbered.filter(|(row, _)| row.0 == algorithm).map(|(_, number)| number).next().unwrap_or(0)
}

/// The codec of a number.
///
/// Errors: `Unsupported`.
pub(crate) fn of_number(number: u16) -> Result<Algorithm> {
    let found = CODECS.iter().zip(1_u16..).find(|(_, known)| *known == number);
    found.map(|(row, _)| row.0).ok_or_else(|| {
        let what = format!("codec number {number}, 1 (gzip) to {} (zstd) are supported", CODECS.len());
        Error::unsupported("squashfs image", what)
    })
}

/// The first kernel that decodes a codec.
pub(crate) fn since(algorithm: Algorithm) -> Option<Kernel> {
    CODECS.iter().find(|row| row.0 == algorithm)?.1
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel([major, minor, third]) = self;
        write!(f, "{major}.{minor}")?;
        if *third > 0 { write!(f, ".{third}") } else { Ok(()) }
    }
}

impl Kernel {
    /// Errors: `Usage` for an invalid version, and for one before the first with SquashFS 4.0.
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

    /// Errors: `Usage` for a codec that this kernel does not decode, with the first kernel that
    /// does, and codecs for this one.
    pub(crate) fn check(self, algorithm: Algorithm) -> Result<()> {
        let reads = |algorithm| since(algorithm).is_some_and(|since| since <= self);
        if reads(algorithm) {
            return Ok(());
        }
        let error = match since(algorithm) {
            Some(since) => lacks_in_kernel(&format!("codec {algorithm}"), &since, &self),
            None => Error::usage("codec lzma: no Linux reads it in squashfs, only kernels of vendors do"),
        };
        let known = algorithms().into_iter().filter(|known| reads(*known));
        let known: Vec<&str> = known.map(Algorithm::name).collect();
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
