//! Names of compression algorithms with their framings.
//!
//! Formats translate their on-disk numbers to [`Algorithm`], so that every other crate uses the
//! same names.

use std::fmt;

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A compression algorithm together with its framing, as needed to decode it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
        }

        impl Algorithm {
            /// Every algorithm, those of SquashFS first, in the order of their numbers there.
            pub const ALL: [Algorithm; [$($name),*].len()] = [$(Algorithm::$variant),*];

            /// Name as users type and read it: `gzip` for zlib streams, as in most tools.
            pub fn name(self) -> &'static str {
                match self {
                    $(Algorithm::$variant => $name,)*
                }
            }
        }
    };
}

algorithms! {
    /// DEFLATE in a zlib wrapper (RFC 1950).
    Zlib = "gzip",
    /// LZMA1 in the `.lzma` ("alone") container: properties, dictionary size, 64-bit length,
    /// stream.
    LzmaAlone = "lzma",
    /// LZO1X, raw, no header.
    Lzo = "lzo",
    /// One `.xz` stream.
    Xz = "xz",
    /// LZ4 block format, raw, no frame.
    Lz4 = "lz4",
    /// One Zstandard frame.
    Zstd = "zstd",
    /// DEFLATE without a wrapper (RFC 1951).
    Deflate = "deflate",
    /// LZMA1 as liblzma's MicroLZMA: one byte of inverted properties, then the stream without its
    /// first byte, which is always zero. It states neither dictionary nor lengths, so decoding
    /// needs the exact length of both sides.
    MicroLzma = "microlzma",
    /// LZMA1 after its five bytes of properties and dictionary; no length, no end marker (routers
    /// with Squashfs 2.0 to 4.0).
    LzmaProps = "lzma-props",
    /// A 32-bit little-endian length before the five bytes of properties (7-Zip's patch for
    /// Squashfs 2.1).
    LzmaLenProps = "lzma-len-props",
    /// The same length after them (OpenRG's cramfs).
    LzmaPropsLen = "lzma-props-len",
    /// One byte each for `pb`, `lc` and `lp`, then 0xff, then the stream, without a length
    /// (DD-WRT's Squashfs 3.0).
    LzmaPbLcLp = "lzma-pb-lc-lp",
    /// The stream alone, with `lc` 0, `lp` 0 and `pb` 2 (OpenWrt's first Squashfs 3.0).
    LzmaBare = "lzma-bare",
    /// [`Algorithm::LzmaAlone`] with any dictionary, or [`Algorithm::Zlib`], distinguished by the
    /// first byte of each block (sqlzma).
    Sqlzma = "sqlzma",
    /// [`Algorithm::Zlib`] in sectors of btrfs: bytes after the stream are ignored, and the decoded
    /// data is padded with zeros.
    BtrfsZlib = "btrfs-zlib",
    /// LZO1X of btrfs: the total length, then a stored length and a stream for each sector of data;
    /// padded with zeros.
    BtrfsLzo = "btrfs-lzo",
    /// [`Algorithm::Zstd`] in sectors of btrfs, as [`Algorithm::BtrfsZlib`].
    BtrfsZstd = "btrfs-zstd",
}

impl Algorithm {
    /// Vendors' framings of LZMA from before formats defined one. They are only decoded.
    pub const VENDOR_LZMA: [Algorithm; 6] = [
        Algorithm::LzmaProps,
        Algorithm::LzmaLenProps,
        Algorithm::LzmaPropsLen,
        Algorithm::LzmaPbLcLp,
        Algorithm::LzmaBare,
        Algorithm::Sqlzma,
    ];
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
