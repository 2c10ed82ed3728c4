//! Facts of an image, as `info` prints them.

use crate::disk::*;
use crate::open::Pointers;
use crate::volume::CramfsVolume;
use packfs_core::{Result, escaped};
use packfs_format::{FactValue, Facts, units::*};

/// Names of the superblock's flags, without the bits that OpenRG uses as numbers.
const FLAG_WORDS: [(u32, &str); 6] = [
    (CRAMFS_FLAG_FSID_VERSION_2, "version-2"),
    (CRAMFS_FLAG_SORTED_DIRS, "sorted-directories"),
    (CRAMFS_FLAG_HOLES, "holes"),
    (CRAMFS_FLAG_WRONG_SIGNATURE, "wrong-signature"),
    (CRAMFS_FLAG_SHIFTED_ROOT_OFFSET, "shifted-root"),
    (CRAMFS_FLAG_EXT_BLOCK_POINTERS, "extended-block-pointers"),
];

impl CramfsVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        let codec = geometry.algorithm.map_or("none", |algorithm| algorithm.name());
        let version = if geometry.is_version_2() { "2" } else { "1" };
        facts.push("format", "Format", text("cramfs"));
        facts.push("version", "Version", text(version));
        facts.push("byte_order", "Byte order", text(geometry.order.name()));
        facts.push("codec", "Codec", text(codec));
        facts.push("block_len", "Block size", FactValue::Bytes(geometry.block_len.into()));
        facts.push("name", "Name", FactValue::Text(escaped(self.name()).to_string()));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.file_len));
        if geometry.is_version_2() {
            facts.push("bytes_used", "Bytes used", FactValue::Bytes(geometry.end));
            facts.push("names", "Names", FactValue::Count(super_block.files.into()));
            facts.push("blocks", "Blocks", FactValue::Count(super_block.blocks.into()));
            facts.push("edition", "Edition", FactValue::Count(super_block.edition.into()));
            facts.push("checksum", "Checksum", FactValue::Text(format!("{:08x}", super_block.crc)));
        }
        facts.push("super_block_at", "Superblock at", FactValue::Bytes(geometry.super_block_at));
        facts.push("openrg", "Variant of OpenRG", FactValue::Flag(geometry.is_openrg));
        facts.push("flags", "Flags", FactValue::List(flag_words(super_block.flags, geometry.is_openrg)));
        facts.push("minimum_kernel", "Minimum kernel", FactValue::Text(self.kernel_words()));
        Ok(facts)
    }

    /// The image's name without padding.
    fn name(&self) -> &[u8] {
        until_nul(&self.geometry.super_block.name)
    }

    /// Returns the oldest mainline kernel that mounts the image, and the reason. Kernels only read
    /// their own byte order.
    fn kernel_words(&self) -> String {
        let geometry = &self.geometry;
        let order = geometry.order.name();
        if geometry.is_openrg {
            return "none (only OpenRG's own kernels read its blocks)".into();
        }
        match geometry.pointers {
            Pointers::Extended => format!("4.15, {order}-endian (extended block pointers)"),
            Pointers::Plain => format!("2.4, {order}-endian (cramfs)"),
        }
    }
}

fn flag_words(flags: u32, is_openrg: bool) -> Vec<String> {
    let flags = if is_openrg { flags & !(OPENRG_BITS | CRAMFS_FLAG_EXT_BLOCK_POINTERS) } else { flags };
    (0..u32::BITS)
        .map(|bit| 1 << bit)
        .filter(|flag| flags & flag != 0)
        .map(|flag| {
            let row = FLAG_WORDS.iter().find(|row| row.0 == flag);
            row.map_or_else(|| format!("{flag:#x}"), |row| row.1.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_printed_as_words() {
        assert_eq!(flag_words(0, false), Vec::<String>::new());
        assert_eq!(
            flag_words(0x903, false),
            ["version-2", "sorted-directories", "holes", "extended-block-pointers"]
        );
        assert_eq!(flag_words(0x44, false), ["0x4", "0x40"]);
        assert_eq!(flag_words(0xa803, true), ["version-2", "sorted-directories"]);
    }
}
