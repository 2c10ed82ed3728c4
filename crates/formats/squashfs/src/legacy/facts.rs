//! What `info` says of an image.

use crate::legacy::volume::LegacyVolume;
use packfs_format::{FactValue, Facts};

/// The superblock's flags in words, by bit.
const FLAG_WORDS: [&str; 8] = [
    "uncompressed-inodes",
    "uncompressed-data",
    "check",
    "uncompressed-fragments",
    "no-fragments",
    "always-fragments",
    "duplicates-shared",
    "exportable",
];

impl LegacyVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Facts {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        let count = |count: u32| FactValue::Count(u64::from(count));
        facts.push("format", "Format", text("squashfs-legacy"));
        facts.push("version", "Version", FactValue::Text(super_block.version.to_string()));
        facts.push("endian", "Byte order", text(geometry.endian().name()));
        let magic = String::from_utf8_lossy(&super_block.magic.bytes).into_owned();
        facts.push("magic", "Magic", FactValue::Text(magic));
        facts.push("codec", "Codec", text(geometry.layout.algorithm.name()));
        facts.push("block_len", "Block size", FactValue::Bytes(u64::from(geometry.layout.block_len)));
        facts.push("made_at", "Made at", FactValue::Time(i64::from(super_block.mkfs_time)));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(geometry.bytes_used));
        facts.push("inodes", "Inodes", count(super_block.inodes));
        facts.push("fragments", "Fragments", count(geometry.layout.fragment_count()));
        facts.push("users", "Users", FactValue::Count(self.uids.len() as u64));
        facts.push("groups", "Groups", FactValue::Count(self.gids.len() as u64));
        facts.push("exportable", "Exportable over NFS", FactValue::Flag(geometry.layout.export.is_some()));
        facts.push("flags", "Flags", FactValue::List(flag_words(super_block.flags)));
        let kernel = "none (mainline reads 4.0 only; Linux 2.4 and 2.6 up to 2.6.28 with patches)";
        facts.push("minimum_kernel", "Minimum kernel", text(kernel));
        facts
    }
}

fn flag_words(flags: u8) -> Vec<String> {
    let set = FLAG_WORDS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0);
    set.map(|(_, word)| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy::disk::*;

    #[test]
    fn every_flag_has_its_word() {
        assert_eq!(flag_words(0), Vec::<String>::new());
        assert_eq!(flag_words(1 << SQUASHFS_EXPORT | 1 << SQUASHFS_CHECK), ["check", "exportable"]);
        let words = flag_words(1 << SQUASHFS_NOI | 1 << SQUASHFS_ALWAYS_FRAG);
        assert_eq!(words, ["uncompressed-inodes", "always-fragments"]);
    }
}
