//! What `info` says of an image.

use crate::v4::disk::*;
use crate::v4::volume::SquashfsVolume;
use packfs_codec::{Algorithm, BranchFilter};
use packfs_core::Result;
use packfs_format::{FactValue, Facts};

/// The superblock's flags in words, by bit.
const FLAG_WORDS: [&str; 12] = [
    "uncompressed-inodes",
    "uncompressed-data",
    "check",
    "uncompressed-fragments",
    "no-fragments",
    "always-fragments",
    "duplicates-shared",
    "exportable",
    "uncompressed-xattrs",
    "no-xattrs",
    "codec-options",
    "uncompressed-ids",
];

/// A kernel version, and why it is needed.
type Need = ((u16, u16, u16), &'static str);

impl SquashfsVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let codec = self.codec_words()?;
        let rows = |rows: Option<u32>| FactValue::Count(u64::from(rows.unwrap_or(0)));
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        facts.push("format", "Format", text("squashfs"));
        facts.push(
            "version",
            "Version",
            FactValue::Text(format!("{}.{}", super_block.s_major, super_block.s_minor)),
        );
        facts.push("codec", "Codec", text(geometry.layout.algorithm.name()));
        facts.push(
            "codec_options",
            "Codec options",
            FactValue::List(codec.words.iter().chain(&codec.fault).cloned().collect()),
        );
        facts.push("block_len", "Block size", FactValue::Bytes(u64::from(geometry.layout.block_len)));
        facts.push("made_at", "Made at", FactValue::Time(i64::from(super_block.mkfs_time.get())));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(geometry.bytes_used));
        facts.push("inodes", "Inodes", FactValue::Count(u64::from(super_block.inodes.get())));
        facts.push(
            "fragments",
            "Fragments",
            rows(geometry.layout.fragments.as_ref().map(|table| table.count)),
        );
        facts.push("ids", "Ids", FactValue::Count(self.ids.len() as u64));
        facts.push(
            "xattr_sets",
            "Xattr sets",
            rows(geometry.xattrs.as_ref().map(|tables| tables.sets.count)),
        );
        facts.push("exportable", "Exportable over NFS", FactValue::Flag(geometry.layout.export.is_some()));
        facts.push(
            "duplicates_shared",
            "Duplicates shared",
            FactValue::Flag(geometry.flag(SQUASHFS_DUPLICATE)),
        );
        facts.push("streamed", "Streamed", FactValue::Flag(geometry.super_block_at != 0));
        facts.push("flags", "Flags", FactValue::List(flag_words(super_block.flags.get())));
        let kernel = self.kernel_words(&codec.filters);
        facts.push("minimum_kernel", "Minimum kernel", FactValue::Text(kernel));
        Ok(facts)
    }

    /// The oldest mainline kernel that mounts the image, and why that one.
    fn kernel_words(&self, filters: &[BranchFilter]) -> String {
        if self.geometry.super_block_at != 0 {
            return "none (streamed, `mksquashfs -fix` makes it mountable)".into();
        }
        let codec: Need = match self.geometry.layout.algorithm {
            Algorithm::Zlib => ((2, 6, 29), "gzip"),
            Algorithm::LzmaAlone => return "none (no mainline kernel reads lzma)".into(),
            Algorithm::Lzo => ((2, 6, 36), "lzo"),
            Algorithm::Xz => ((2, 6, 38), "xz"),
            Algorithm::Lz4 => ((3, 19, 0), "lz4"),
            Algorithm::Zstd => ((4, 14, 0), "zstd"),
            _ => return "none (no mainline kernel reads a vendor's LZMA)".into(),
        };
        let mut needs = vec![((2, 6, 29), "SquashFS 4.0"), codec];
        if self.geometry.xattrs.is_some() {
            needs.push(((2, 6, 35), "extended attributes"));
        }
        for filter in filters {
            match filter {
                BranchFilter::Arm64 => needs.push(((6, 12, 0), "xz filter arm64")),
                BranchFilter::RiscV => needs.push(((6, 12, 0), "xz filter riscv")),
                _ => {}
            }
        }
        let ((major, minor, patch), why) = needs.into_iter().max_by_key(|need| need.0).unwrap_or(codec);
        match (major, patch) {
            (2, _) => format!("{major}.{minor}.{patch} ({why})"),
            _ => format!("{major}.{minor} ({why})"),
        }
    }
}

fn flag_words(flags: u16) -> Vec<String> {
    (0..u16::BITS as usize)
        .filter(|bit| flags >> bit & 1 != 0)
        .map(|bit| FLAG_WORDS.get(bit).map_or_else(|| format!("bit-{bit}"), |word| (*word).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_its_word() {
        assert_eq!(flag_words(0), Vec::<String>::new());
        assert_eq!(
            flag_words(1 << SQUASHFS_EXPORT | 1 << SQUASHFS_COMP_OPT),
            ["exportable", "codec-options"]
        );
        assert_eq!(flag_words(1 << SQUASHFS_NOID | 1 << 15), ["uncompressed-ids", "bit-15"]);
    }
}
