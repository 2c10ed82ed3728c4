//! The words for compression: which algorithm, with which settings.
//!
//! Plain data only. The code that compresses lives in `packfs-codec`; formats name an algorithm by their own
//! on-disk number and translate it to [`Algorithm`] here, so that everything to the right speaks of one thing.

use std::fmt;

/// A compression algorithm together with its framing, as a decoder needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// DEFLATE in a zlib wrapper (RFC 1950).
    Zlib,
    /// LZMA1 in the `.lzma` ("alone") container: properties, dictionary size, 64-bit length, stream.
    LzmaAlone,
    /// LZO1X, raw, no header.
    Lzo,
    /// One `.xz` stream.
    Xz,
    /// LZ4 block format, raw, no frame.
    Lz4,
    /// One Zstandard frame.
    Zstd,
    /// DEFLATE without a wrapper (RFC 1951).
    Deflate,
    /// LZMA1 as liblzma's MicroLZMA: one byte of inverted properties, then the stream without its first byte, which is
    /// always zero. It states neither dictionary nor lengths, so decoding takes the exact length of both sides.
    MicroLzma,
    /// LZMA1 behind its five bytes of properties and dictionary; no length, no end marker (routers with Squashfs 2.0 to 4.0).
    LzmaProps,
    /// A 32-bit little-endian length in front of the five bytes of properties (7-Zip's patch for Squashfs 2.1).
    LzmaLenProps,
    /// The same length behind them (OpenRG's cramfs).
    LzmaPropsLen,
    /// One byte each for `pb`, `lc` and `lp`, then 0xff, then the stream, without a length (DD-WRT's Squashfs 3.0).
    LzmaPbLcLp,
    /// The stream alone, with `lc` 0, `lp` 0 and `pb` 2 (OpenWrt's first Squashfs 3.0).
    LzmaBare,
    /// [`Algorithm::LzmaAlone`] with any dictionary, or [`Algorithm::Zlib`], told apart by the first byte of each block (sqlzma).
    Sqlzma,
}

impl Algorithm {
    /// Every algorithm, those of SquashFS first, in the order of their numbers there.
    pub const ALL: [Algorithm; 14] = [
        Algorithm::Zlib,
        Algorithm::LzmaAlone,
        Algorithm::Lzo,
        Algorithm::Xz,
        Algorithm::Lz4,
        Algorithm::Zstd,
        Algorithm::Deflate,
        Algorithm::MicroLzma,
        Algorithm::LzmaProps,
        Algorithm::LzmaLenProps,
        Algorithm::LzmaPropsLen,
        Algorithm::LzmaPbLcLp,
        Algorithm::LzmaBare,
        Algorithm::Sqlzma,
    ];

    /// Those that device makers gave LZMA before formats had a framing for it. Nothing encodes to them.
    pub const VENDOR_LZMA: &'static [Algorithm] = Algorithm::ALL.split_at(8).1;

    /// The name users type and read: `gzip` for zlib streams, as every tool of this field calls them.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Zlib => "gzip",
            Algorithm::LzmaAlone => "lzma",
            Algorithm::Lzo => "lzo",
            Algorithm::Xz => "xz",
            Algorithm::Lz4 => "lz4",
            Algorithm::Zstd => "zstd",
            Algorithm::Deflate => "deflate",
            Algorithm::MicroLzma => "microlzma",
            Algorithm::LzmaProps => "lzma-props",
            Algorithm::LzmaLenProps => "lzma-len-props",
            Algorithm::LzmaPropsLen => "lzma-props-len",
            Algorithm::LzmaPbLcLp => "lzma-pb-lc-lp",
            Algorithm::LzmaBare => "lzma-bare",
            Algorithm::Sqlzma => "sqlzma",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an encoder is to compress. Decoders need only the [`Algorithm`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodecSettings {
    /// zlib streams.
    Zlib {
        /// 1 (fastest) to 12 (smallest); 10 to 12 search for near-optimal parses.
        level: u8,
        /// Base-2 logarithm of the window, 8 to 15.
        window_log: u8,
        /// Strategies of the zlib encoder to try in turn, smallest result kept; empty: the encoder's own choice.
        strategies: Vec<ZlibStrategy>,
    },
    /// LZMA1, alone format.
    LzmaAlone {
        /// Preset 0 to 9.
        preset: u8,
        /// liblzma's "extreme" flag: slower variant of the preset.
        extreme: bool,
        /// Dictionary in bytes.
        dict_len: u32,
    },
    /// LZO1X.
    Lzo {
        /// The encoder's variant.
        variant: LzoVariant,
        /// 1 to 9 for [`LzoVariant::X999`]; ignored by the others.
        level: u8,
    },
    /// XZ.
    Xz {
        /// Preset 0 to 9.
        preset: u8,
        /// liblzma's "extreme" flag: slower variant of the preset.
        extreme: bool,
        /// Dictionary in bytes.
        dict_len: u32,
        /// Branch filters to try besides none, smallest result kept.
        filters: Vec<BranchFilter>,
    },
    /// LZ4, fast encoder.
    Lz4 {
        /// 1 (default) to 65,537: higher is faster and larger.
        acceleration: u32,
    },
    /// LZ4, high compression encoder.
    Lz4Hc {
        /// 0 to 12; 0 is the library's own choice, 9.
        level: u8,
    },
    /// Zstandard.
    Zstd {
        /// Negative (fast) to 22.
        level: i32,
        /// Largest base-2 logarithm of a frame's window, 10 to 31, where a format has a limit; `None`: as the level likes.
        window_log_max: Option<u8>,
    },
    /// Raw DEFLATE.
    Deflate {
        /// 0 (stored) to 12 (smallest); 10 to 12 search for near-optimal parses.
        level: u8,
    },
    /// LZMA1, MicroLZMA.
    MicroLzma {
        /// Preset 0 to 9.
        preset: u8,
        /// liblzma's "extreme" flag: slower variant of the preset.
        extreme: bool,
        /// Dictionary in bytes.
        dict_len: u32,
    },
}

impl CodecSettings {
    /// How far back the encoder finds what occurs again, in bytes, where that is less than blocks may be long.
    pub fn reach(&self) -> Option<u32> {
        match self {
            CodecSettings::Zlib { window_log, .. } => Some(1 << window_log),
            CodecSettings::Deflate { .. } => Some(1 << 15),
            CodecSettings::Lzo { .. } => Some(48 << 10),
            CodecSettings::Lz4 { .. } | CodecSettings::Lz4Hc { .. } => Some(64 << 10),
            CodecSettings::LzmaAlone { .. }
            | CodecSettings::Xz { .. }
            | CodecSettings::Zstd { .. }
            | CodecSettings::MicroLzma { .. } => None,
        }
    }

    /// The algorithm that decodes what these settings produce.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            CodecSettings::Zlib { .. } => Algorithm::Zlib,
            CodecSettings::LzmaAlone { .. } => Algorithm::LzmaAlone,
            CodecSettings::Lzo { .. } => Algorithm::Lzo,
            CodecSettings::Xz { .. } => Algorithm::Xz,
            CodecSettings::Lz4 { .. } | CodecSettings::Lz4Hc { .. } => Algorithm::Lz4,
            CodecSettings::Zstd { .. } => Algorithm::Zstd,
            CodecSettings::Deflate { .. } => Algorithm::Deflate,
            CodecSettings::MicroLzma { .. } => Algorithm::MicroLzma,
        }
    }
}

/// Strategies of zlib's `deflateInit2`, in the order of the SquashFS option bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZlibStrategy {
    /// `Z_DEFAULT_STRATEGY`.
    Default,
    /// `Z_FILTERED`.
    Filtered,
    /// `Z_HUFFMAN_ONLY`.
    HuffmanOnly,
    /// `Z_RLE`.
    RunLength,
    /// `Z_FIXED`.
    Fixed,
}

/// Variants of the LZO1X encoder; every one decodes with the same decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LzoVariant {
    /// Fastest, least memory (`lzo1x_1_11`).
    X1_11,
    /// `lzo1x_1_12`.
    X1_12,
    /// `lzo1x_1_15`.
    X1_15,
    /// The usual fast encoder (`lzo1x_1`).
    X1,
    /// The slow, dense encoder (`lzo1x_999`).
    X999,
}

/// Branch-call-jump filters of XZ, in the order of the SquashFS option bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchFilter {
    /// x86 and x86-64.
    X86,
    /// Big-endian PowerPC.
    PowerPc,
    /// Itanium.
    Ia64,
    /// ARM, 32-bit instructions.
    Arm,
    /// ARM Thumb.
    ArmThumb,
    /// SPARC.
    Sparc,
    /// AArch64.
    Arm64,
    /// RISC-V.
    RiscV,
}

impl BranchFilter {
    /// Every filter, in the order of the SquashFS option bits (bit 0 is x86).
    pub const ALL: [BranchFilter; 8] = [
        BranchFilter::X86,
        BranchFilter::PowerPc,
        BranchFilter::Ia64,
        BranchFilter::Arm,
        BranchFilter::ArmThumb,
        BranchFilter::Sparc,
        BranchFilter::Arm64,
        BranchFilter::RiscV,
    ];

    /// Those that every kernel with XZ decodes; the others came with Linux 6.12.
    pub const OLD: &'static [BranchFilter] = BranchFilter::ALL.split_at(6).0;

    /// The name users type: `x86`, `powerpc`, `ia64`, `arm`, `armthumb`, `sparc`, `arm64`, `riscv`.
    pub fn name(self) -> &'static str {
        match self {
            BranchFilter::X86 => "x86",
            BranchFilter::PowerPc => "powerpc",
            BranchFilter::Ia64 => "ia64",
            BranchFilter::Arm => "arm",
            BranchFilter::ArmThumb => "armthumb",
            BranchFilter::Sparc => "sparc",
            BranchFilter::Arm64 => "arm64",
            BranchFilter::RiscV => "riscv",
        }
    }
}

/// Branch filters that may suit a block, as far as is known of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchSet {
    bits: u8,
    /// Whether nothing is known of some of it.
    unknown: bool,
}

impl BranchSet {
    /// What is no code.
    pub const NONE: BranchSet = BranchSet { bits: 0, unknown: false };
    /// What may be code of any machine, or none.
    pub const UNKNOWN: BranchSet = BranchSet { bits: 0, unknown: true };

    /// Code for which these filters are meant.
    pub fn of(filters: &[BranchFilter]) -> BranchSet {
        BranchSet { bits: filters.iter().fold(0, |bits, filter| bits | 1 << *filter as u8), unknown: false }
    }

    /// What is one or the other, or both.
    #[must_use]
    pub fn union(self, other: BranchSet) -> BranchSet {
        BranchSet { bits: self.bits | other.bits, unknown: self.unknown || other.unknown }
    }

    /// Whether a filter is worth a try, where so many were asked for: on code that it is meant for; on what is unknown only
    /// if it is the one that was asked for, as each try costs as much as compressing.
    pub fn suits(self, filter: BranchFilter, chosen_count: usize) -> bool {
        self.bits & 1 << filter as u8 != 0 || self.unknown && chosen_count == 1
    }
}
