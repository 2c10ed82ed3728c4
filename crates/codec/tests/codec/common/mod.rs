//! Blocks of every kind, and the codecs to run over them.
#![allow(dead_code, reason = "each test binary uses its own part")]

use packfs_codec::{Algorithm, CodecSettings, CodecSpec, DictLens};

/// Every codec at the edges of its levels and with each of its options.
pub const SPECS: &[&str] = &[
    "gzip:1",
    "gzip:9",
    "gzip:12",
    "gzip:1,window=8",
    "deflate:1",
    "deflate:9",
    "deflate:12",
    "gzip:9,window=14",
    "gzip:9,strategy=default+filtered+huffman+rle+fixed",
    "lzo:1",
    "lzo:8",
    "lzo:9",
    "lzo,variant=1",
    "lzo,variant=1_11",
    "lzo,variant=1_12",
    "lzo,variant=1_15",
    "lz4",
    "lz4,acceleration=65537",
    "lz4hc:1",
    "lz4hc:2",
    "lz4hc:12",
    "xz:0",
    "xz:6",
    "xz:9,extreme",
    "xz:3,bcj=x86+powerpc+ia64+arm+armthumb+sparc+arm64+riscv",
    "xz:2,dict=75%",
    "lzma:0",
    "lzma:9",
    "lzma:2,dict=50%",
    "lzma:3,extreme",
    "microlzma:0",
    "microlzma:6",
    "zstd:-131072",
    "zstd:-1",
    "zstd:1",
    "zstd:15",
    "zstd:22",
];

/// Settings so fast that they may shrink nothing at all.
pub const HARDLY_SHRINKING: [&str; 2] = ["lz4,acceleration=65537", "zstd:-131072"];

pub const BLOCK_LENS: [usize; 3] = [4 << 10, 128 << 10, 1 << 20];

/// `lzma` is LZMA-alone, `microlzma` MicroLZMA.
pub fn settings(spec: &str, block_len: usize) -> CodecSettings {
    let (spec, left_out) = match spec.strip_prefix("micro") {
        Some(spec) => (spec, Algorithm::LzmaAlone),
        None => (spec, Algorithm::MicroLzma),
    };
    let algorithms: Vec<_> = Algorithm::ALL.into_iter().filter(|&algorithm| algorithm != left_out).collect();
    let dict_lens = DictLens::of_block(block_len.try_into().unwrap());
    spec.parse::<CodecSpec>().unwrap().resolve(&algorithms, dict_lens).unwrap().unwrap()
}

/// A generator of bytes that look random (splitmix64).
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

pub fn noise(len: usize) -> Vec<u8> {
    let mut noise = Noise(len as u64);
    (0..len).map(|_| noise.next() as u8).collect()
}

pub fn text(len: usize) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "block",
        "inode",
        "the",
        "directory",
        "of",
        "fragment",
        "and",
        "table",
        "image",
        "is",
        "read\n",
        "a",
    ];
    let mut noise = Noise(7);
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        text.extend_from_slice(WORDS[noise.below(WORDS.len())].as_bytes());
        text.push(b' ');
    }
    text.truncate(len);
    text
}

/// Machine code and tables: this test's own program, repeated if it is shorter.
pub fn program(len: usize) -> Vec<u8> {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    program.iter().copied().cycle().take(len).collect()
}
