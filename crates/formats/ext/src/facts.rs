//! Facts of an image, as `info` prints them.

use crate::features::{BIGALLOC, HAS_JOURNAL, RECOVER};
use crate::super_block::{STATE_CLEAN, STATE_ERRORS, uuid_text};
use crate::volume::ExtVolume;
use packfs_core::escaped;
use packfs_format::{FactValue, Facts};

impl ExtVolume {
    pub(crate) fn time_made(&self) -> Option<i64> {
        let raw = &self.reader.super_block.raw;
        let seconds = i64::from(raw.s_mkfs_time.get()) | i64::from(raw.s_mkfs_time_hi) << 32;
        (seconds != 0).then_some(seconds)
    }

    /// Implements [`packfs_format::Volume::facts`].
    pub(crate) fn all_facts(&self) -> Facts {
        let super_block = &self.reader.super_block;
        let (raw, features) = (&super_block.raw, super_block.features);
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        let name =
            |bytes: &[u8]| FactValue::Text(escaped(packfs_format::units::until_nul(bytes)).to_string());
        facts.push("format", "Format", text(crate::INFO.name));
        facts.push("version", "Version", text(features.version()));
        facts.push("codec", "Codec", text("none"));
        facts.push("label", "Label", name(&raw.s_volume_name));
        facts.push("uuid", "UUID", FactValue::Text(uuid_text(super_block.uuid())));
        facts.push("mounted_at", "Last mounted at", name(&raw.s_last_mounted));
        if let Some(time) = self.time_made() {
            facts.push("made_at", "Made at", FactValue::Time(time));
        }
        facts.push("block_len", "Block size", FactValue::Bytes(super_block.block_len));
        if features.forbids(BIGALLOC) {
            let len = super_block.block_len << super_block.cluster_bits;
            facts.push("cluster_len", "Cluster size", FactValue::Bytes(len));
        }
        facts.push("inode_len", "Inode size", FactValue::Bytes(super_block.inode_len as u64));
        facts.push("inodes", "Inodes", FactValue::Count(u64::from(super_block.inode_count)));
        facts.push("free_inodes", "Free inodes", FactValue::Count(u64::from(raw.s_free_inodes_count.get())));
        facts.push("groups", "Block groups", FactValue::Count(u64::from(super_block.group_count)));
        facts.push("image_len", "Image length", FactValue::Bytes(self.reader.image.len()));
        let len = super_block.offset(super_block.block_count);
        facts.push("filesystem_len", "Filesystem length", FactValue::Bytes(len));
        let free = super_block.free_blocks();
        // Figures that no check bounds: none is better than a wrong one.
        if let Some(free) = free.checked_mul(super_block.block_len) {
            facts.push("free_len", "Free", FactValue::Bytes(free));
        }
        if let Some(written) = raw.s_kbytes_written.get().checked_mul(1024) {
            facts.push("written_len", "Written in its life", FactValue::Bytes(written));
        }
        facts.push("state", "State", FactValue::List(self.state_words(raw.s_state.get())));
        facts.push("journal", "Journal", text(self.journal_word()));
        facts.push("checksums", "Checksums", text(self.sums_word()));
        facts.push("features", "Features", FactValue::List(features.names()));
        facts
    }

    fn state_words(&self, state: u16) -> Vec<String> {
        let needs_recovery = self.reader.super_block.features.needs(RECOVER);
        let first = if state & STATE_CLEAN != 0 && !needs_recovery { "clean" } else { "not clean" };
        let errors = (state & STATE_ERRORS != 0).then_some("errors");
        [Some(first), errors].into_iter().flatten().map(str::to_owned).collect()
    }

    fn journal_word(&self) -> &'static str {
        let super_block = &self.reader.super_block;
        if !super_block.features.has(HAS_JOURNAL) {
            return "none";
        }
        match (super_block.raw.s_journal_inum.get(), self.replayed.is_some()) {
            (0, false) => "external",
            (0, true) => "external, replayed in memory",
            (_, false) => "internal",
            (_, true) => "internal, replayed in memory",
        }
    }

    fn sums_word(&self) -> &'static str {
        match (self.reader.sums.all, self.reader.super_block.features.forbids(crate::features::GDT_CSUM)) {
            (true, _) => "crc32c of metadata",
            (false, true) => "crc16 of group descriptors",
            (false, false) => "none",
        }
    }
}
