//! Facts of a file, as `info` prints them.

use crate::volume::CloopVolume;
use packfs_codec::Algorithm;
use packfs_core::Result;
use packfs_format::{FactValue, Facts, units::*};
use std::collections::BTreeMap;

/// Number and stored bytes of the blocks of one codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl CloopVolume {
    /// Counts the blocks of each codec; `None` for uncompressed ones.
    pub(crate) fn blocks_by_codec(&self) -> Result<BTreeMap<Option<Algorithm>, Blocks>> {
        let mut found: BTreeMap<Option<Algorithm>, Blocks> = BTreeMap::new();
        let all = 0..self.geometry.block_count;
        self.index.each(&*self.image, &self.geometry, all, &mut |_, row| {
            // The check reports faults of rows.
            if let Ok(row) = row {
                let blocks = found.entry(row.algorithm).or_default();
                blocks.count = blocks.count.plus(1);
                blocks.bytes = blocks.bytes.plus(row.len.into());
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let by_codec = self.blocks_by_codec()?;
        let name = |algorithm: &Option<Algorithm>| algorithm.map_or("none", Algorithm::name);
        let codecs = by_codec.iter().map(|(algorithm, blocks)| match by_codec.len() {
            1 => name(algorithm).to_owned(),
            _ => format!("{} ({} blocks)", name(algorithm), blocks.count),
        });
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text("cloop".into()));
        facts.push("version", "Version", FactValue::Text(geometry.version.words().into()));
        facts.push("codecs", "Codecs", FactValue::List(codecs.collect()));
        facts.push("block_len", "Block size", FactValue::Bytes(u64::from(geometry.block_len)));
        facts.push("blocks", "Blocks", FactValue::Count(geometry.block_count));
        facts.push("disk_len", "Disk length", FactValue::Bytes(geometry.disk_len));
        let stored = by_codec.values().map(|blocks| blocks.bytes).sum();
        facts.push("data_len", "Compressed length", FactValue::Bytes(stored));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        Ok(facts)
    }
}
