//! Facts that `info` prints.

use crate::features;
use crate::super_block::SuperBlock;
use crate::volume::XfsVolume;
use packfs_core::{escaped, uuid_text};
use packfs_format::{FactValue, Facts, units::*};

impl XfsVolume {
    /// Implements [`packfs_format::Volume::facts`].
    pub(crate) fn describe(&self) -> Facts {
        let super_block = &self.super_block;
        let text = |text: &str| FactValue::Text(text.to_owned());
        let bytes_of = |blocks: u64| FactValue::Bytes(nth_at(0, blocks, super_block.block_len));
        let mut facts = Facts::default();
        facts.push("format", "Format", text(crate::INFO.name));
        facts.push("version", "Version", FactValue::Text(super_block.version.to_string()));
        facts.push("codec", "Codec", text("none"));
        facts.push("label", "Label", FactValue::Text(escaped(&super_block.label).to_string()));
        facts.push("uuid", "UUID", FactValue::Text(uuid_text(&super_block.uuid)));
        if super_block.meta_uuid != super_block.uuid {
            facts.push("meta_uuid", "Metadata UUID", FactValue::Text(uuid_text(&super_block.meta_uuid)));
        }
        facts.push("block_len", "Block size", FactValue::Bytes(super_block.block_len));
        facts.push("sector_len", "Sector size", FactValue::Bytes(super_block.sector_len));
        facts.push("inode_len", "Inode size", FactValue::Bytes(super_block.inode_len as u64));
        facts.push("dir_block_len", "Directory block size", FactValue::Bytes(super_block.dir_block_len));
        facts.push("groups", "Allocation groups", FactValue::Count(super_block.ag_count));
        facts.push("group_len", "Allocation group length", bytes_of(super_block.ag_blocks));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        facts.push("filesystem_len", "Filesystem length", FactValue::Bytes(super_block.len()));
        // Counts of free ones above all are damaged; the kernel computes them anew.
        if let Some(used) = super_block.blocks.checked_sub(super_block.blocks_free) {
            facts.push("bytes_used", "Bytes used", bytes_of(used));
        }
        if let Some(inodes) = super_block.inode_count.checked_sub(super_block.inodes_free) {
            facts.push("inodes", "Inodes", FactValue::Count(inodes));
        }
        if super_block.rt_blocks > 0 {
            facts.push("realtime_len", "Realtime section", bytes_of(super_block.rt_blocks));
        }
        facts.push("log", "Log", text(self.log.word()));
        facts.push("features", "Features", FactValue::List(feature_names(super_block)));
        facts
    }
}

fn feature_names(super_block: &SuperBlock) -> Vec<String> {
    let named = |rows: &[(u32, &str)], bits: u32| -> Vec<String> {
        rows.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect()
    };
    if super_block.is_v5() {
        let mut names = vec!["crc".to_owned()];
        names.extend(named(&features::INCOMPAT, super_block.incompat));
        names.extend(named(&features::RO_COMPAT, super_block.ro_compat));
        let unknown = super_block.ro_compat & !15;
        if unknown != 0 {
            names.push(format!("unknown read-only features {unknown:#x}"));
        }
        return names;
    }
    let bits = super_block.version_bits;
    let mut names: Vec<String> =
        features::V4.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    names.extend(named(&features::V4_FEATURES2, super_block.features2));
    names
}
