//! Facts of an image, as `info` prints them.

use crate::facts::{CommonFacts, flag_names};
use crate::legacy::volume::LegacyVolume;
use packfs_format::{FactValue, Facts};

impl LegacyVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Facts {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        facts.push("format", "Format", text("squashfs-legacy"));
        facts.push("version", "Version", FactValue::Text(super_block.version.to_string()));
        facts.push("endian", "Byte order", text(geometry.endian().name()));
        let magic = String::from_utf8_lossy(&super_block.magic.bytes).into_owned();
        facts.push("magic", "Magic", FactValue::Text(magic));
        facts.push("codec", "Codec", text(geometry.layout.algorithm.name()));
        let sizes = CommonFacts {
            mkfs_time: super_block.mkfs_time,
            image_len: geometry.image_len,
            bytes_used: geometry.bytes_used,
            inodes: super_block.inodes,
        };
        sizes.push(&mut facts, &geometry.layout);
        facts.push("users", "Users", FactValue::Count(self.uids.len() as u64));
        facts.push("groups", "Groups", FactValue::Count(self.gids.len() as u64));
        facts.push("exportable", "Exportable over NFS", FactValue::Flag(geometry.layout.export.is_some()));
        facts.push("flags", "Flags", flag_names(u16::from(super_block.flags)));
        let kernel = "none (mainline reads 4.0 only; Linux 2.4 and 2.6 up to 2.6.28 with patches)";
        facts.push("minimum_kernel", "Minimum kernel", text(kernel));
        facts
    }
}
