//! The superblock of SquashFS 4, as unsquashfs prints it.

use crate::common::when::Clock;
use packfs::{Error, Opened, Result};
use std::path::Path;

/// Index: number of the codec (`squashfs_fs.h`).
const CODECS: [&str; 7] = ["unknown", "gzip", "lzma", "lzo", "xz", "lz4", "zstd"];

const UNCOMPRESSED_INODES: u16 = 1;
const UNCOMPRESSED_DATA: u16 = 1 << 1;
const UNCOMPRESSED_FRAGMENTS: u16 = 1 << 3;
const NO_FRAGMENTS: u16 = 1 << 4;
const ALWAYS_FRAGMENTS: u16 = 1 << 5;
const DUPLICATES: u16 = 1 << 6;
const EXPORTABLE: u16 = 1 << 7;
const UNCOMPRESSED_XATTRS: u16 = 1 << 8;
const NO_XATTRS: u16 = 1 << 9;
const COMPRESSOR_OPTIONS: u16 = 1 << 10;
const UNCOMPRESSED_IDS: u16 = 1 << 11;

/// `struct squashfs_super_block`.
pub struct Superblock {
    pub made_at: u32,
    pub block_size: u32,
    inodes: u32,
    fragments: u32,
    codec: u16,
    flags: u16,
    ids: u16,
    bytes_used: u64,
    xattr_table: u64,
}

impl Superblock {
    /// Errors: `Io`; `Unsupported` for an older version.
    pub fn read(opened: &Opened) -> Result<Self> {
        let mut bytes = [0; 96];
        opened.image().read_exact_at(0, &mut bytes)?;
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if opened.format().name() != "squashfs" || u16_at(28) != 4 {
            let what = "superblocks before version 4 are not printed";
            return Err(Error::unsupported("SquashFS", what).hint("packfs info prints them"));
        }
        Ok(Superblock {
            inodes: u32_at(4),
            made_at: u32_at(8),
            block_size: u32_at(12),
            fragments: u32_at(16),
            codec: u16_at(20),
            flags: u16_at(24),
            ids: u16_at(26),
            bytes_used: u64_at(40),
            xattr_table: u64_at(56),
        })
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub fn stat(&self, opened: &Opened, image: &Path, clock: &Clock) -> Result<String> {
        let un = |is_plain: bool| if is_plain { "un" } else { "" };
        let not = |is_so: bool| if is_so { "" } else { "not " };
        let kib = self.bytes_used as f64 / 1024.0;
        let mut lines = vec![
            format!("Found a valid SQUASHFS 4:0 superblock on {}.", image.display()),
            format!("Creation or last append time {}", clock.asctime(i64::from(self.made_at))),
            format!(
                "Filesystem size {} bytes ({kib:.2} Kbytes / {:.2} Mbytes)",
                self.bytes_used,
                kib / 1024.0
            ),
            format!("Compression {}", CODECS.get(usize::from(self.codec)).unwrap_or(&CODECS[0])),
        ];
        lines.extend(self.codec_options(opened)?);
        lines.push(format!("Block size {}", self.block_size));
        lines.push(format!("Filesystem is {}exportable via NFS", not(self.has(EXPORTABLE))));
        lines.push(format!("Inodes are {}compressed", un(self.has(UNCOMPRESSED_INODES))));
        lines.push(format!("Data is {}compressed", un(self.has(UNCOMPRESSED_DATA))));
        let ids = self.has(UNCOMPRESSED_INODES) || self.has(UNCOMPRESSED_IDS);
        lines.push(format!("Uids/Gids (Id table) are {}compressed", un(ids)));
        if self.has(NO_FRAGMENTS) {
            lines.push("Fragments are not stored".to_owned());
        } else {
            lines.push(format!("Fragments are {}compressed", un(self.has(UNCOMPRESSED_FRAGMENTS))));
            lines.push(format!("Tailends are {}packed into fragments", not(self.has(ALWAYS_FRAGMENTS))));
        }
        if self.has(NO_XATTRS) {
            lines.push("Xattrs are not stored".to_owned())
        } else {
            lines.push(format!("Xattrs are {}compressed", un(self.has(UNCOMPRESSED_XATTRS))))
        }
        lines.push(format!("Duplicates are {}removed", not(self.has(DUPLICATES))));
        lines.push(format!("Number of fragments {}", self.fragments));
        lines.push(format!("Number of inodes {}", self.inodes));
        lines.push(format!("Number of ids {}", self.ids));
        if !self.has(NO_XATTRS) {
            lines.push(format!("Number of xattr ids {}", self.xattr_ids(opened)?));
        }
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }

    fn xattr_ids(&self, opened: &Opened) -> Result<u32> {
        if self.xattr_table == u64::MAX {
            return Ok(0);
        }
        let mut bytes = [0; 4];
        opened.image().read_exact_at(self.xattr_table.saturating_add(8), &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn codec_options(&self, opened: &Opened) -> Result<Vec<String>> {
        if !self.has(COMPRESSOR_OPTIONS) {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 10];
        opened.image().read_exact_at(96, &mut bytes)?;
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (first, second) = (u32_at(2), u32_at(6));
        let chosen = |names: &[&str], bits: u32| {
            let names = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
            names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
        };
        Ok(match self.codec {
            1 => {
                let names = ["default", "filtered", "huffman_only", "run_length_encoded", "fixed"];
                let strategies = chosen(&names, second >> 16);
                let strategies = if strategies.is_empty() { "default".to_owned() } else { strategies };
                vec![
                    format!("\tcompression-level {first}"),
                    format!("\twindow-size {}", second & 0xffff),
                    format!("\tStrategies selected: {strategies}"),
                ]
            }
            3 => {
                let names = ["lzo1x_1", "lzo1x_1_11", "lzo1x_1_12", "lzo1x_1_15", "lzo1x_999"];
                let index = usize::try_from(first).unwrap_or(usize::MAX);
                let mut lines = vec![format!("\talgorithm {}", names.get(index).unwrap_or(&"unknown"))];
                if index == 4 {
                    lines.push(format!("\tcompression level {second}"));
                }
                lines
            }
            4 => {
                let names = ["x86", "powerpc", "ia64", "arm", "armthumb", "sparc", "arm64", "riscv"];
                let filters = chosen(&names, second);
                let filters = if filters.is_empty() {
                    "\tNo filters specified".to_owned()
                } else {
                    format!("\tFilters selected: {filters}")
                };
                vec![format!("\tDictionary size {first}"), filters]
            }
            5 if second & 1 != 0 => vec!["\tHigh Compression option specified (-Xhc)".to_owned()],
            6 => vec![format!("\tcompression-level {first}")],
            _ => Vec::new(),
        })
    }
}
