//! Facts of an image, as `info` prints them.

use crate::facts::{CommonFacts, flag_names};
use crate::v4::disk::*;
use crate::v4::kernel::{self, Kernel};
use crate::v4::volume::SquashfsVolume;
use packfs_codec::{Algorithm, BranchFilter};
use packfs_core::Result;
use packfs_format::{FactValue, Facts};

impl SquashfsVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let codec = self.codec_words()?;
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
        let sizes = CommonFacts {
            mkfs_time: super_block.mkfs_time.get(),
            image_len: geometry.image_len,
            bytes_used: geometry.bytes_used,
            inodes: super_block.inodes.get(),
        };
        sizes.push(&mut facts, &geometry.layout);
        facts.push("ids", "Ids", FactValue::Count(self.ids.len() as u64));
        let xattr_sets = geometry.xattrs.as_ref().map_or(0, |tables| tables.sets.count);
        facts.push("xattr_sets", "Xattr sets", FactValue::Count(u64::from(xattr_sets)));
        facts.push("exportable", "Exportable over NFS", FactValue::Flag(geometry.layout.export.is_some()));
        facts.push(
            "duplicates_shared",
            "Duplicates shared",
            FactValue::Flag(geometry.flag(SQUASHFS_DUPLICATE)),
        );
        facts.push("streamed", "Streamed", FactValue::Flag(geometry.super_block_at != 0));
        facts.push("flags", "Flags", flag_names(super_block.flags.get()));
        let kernel = self.kernel_words(&codec.filters);
        facts.push("minimum_kernel", "Minimum kernel", FactValue::Text(kernel));
        Ok(facts)
    }

    /// Returns the oldest mainline kernel that mounts the image, and the feature that needs it.
    fn kernel_words(&self, filters: &[BranchFilter]) -> String {
        if self.geometry.super_block_at != 0 {
            return "none (streamed, `mksquashfs -fix` makes it mountable)".into();
        }
        let algorithm = self.geometry.layout.algorithm;
        let Some(since) = kernel::since(algorithm) else {
            let what = if algorithm == Algorithm::LzmaAlone { "lzma" } else { "a vendor's LZMA" };
            return format!("none (no mainline kernel reads {what})");
        };
        let codec = (since, algorithm.name());
        let mut needs = vec![(kernel::FIRST, "SquashFS 4.0"), codec];
        if self.geometry.xattrs.is_some() {
            needs.push((Kernel([2, 6, 35]), "extended attributes"));
        }
        for filter in filters {
            match filter {
                BranchFilter::Arm64 => needs.push((Kernel([6, 12, 0]), "xz filter arm64")),
                BranchFilter::RiscV => needs.push((Kernel([6, 12, 0]), "xz filter riscv")),
                _ => {}
            }
        }
        let (kernel, why) = needs.into_iter().max_by_key(|need| need.0).unwrap_or(codec);
        format!("{kernel} ({why})")
    }
}
