//! Facts of an image, as `info` prints them.

use crate::disk::*;
use crate::reader::Reader;
use packfs_core::{Result, escaped, uuid_text};
use packfs_format::{FactValue, Facts, units::*};

impl Reader {
    /// Creation time in seconds since 1970.
    pub(crate) fn made_at(&self) -> i64 {
        let after = i64::from(self.geometry.super_block.build_time.get());
        self.geometry.epoch.saturating_add(after)
    }

    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        let words = |rows: &[KernelRow], bits: u32| {
            FactValue::List(rows.iter().filter(|row| bits & row.0 != 0).map(|row| row.1.to_owned()).collect())
        };
        facts.push("format", "Format", text("erofs"));
        let label = super_block.volume_name;
        let label = until_nul(&label);
        facts.push("label", "Label", FactValue::Text(escaped(label).to_string()));
        facts.push("uuid", "UUID", FactValue::Text(uuid_text(&super_block.uuid)));
        let codecs = self.codec_names();
        facts.push(
            "codec",
            "Codecs",
            FactValue::List(codecs.iter().map(|name| (*name).to_owned()).collect()),
        );
        facts.push("codec_options", "Codec options", FactValue::List(geometry.settings.words.clone()));
        facts.push("block_len", "Block size", FactValue::Bytes(geometry.block_len()));
        facts.push("made_at", "Made at", FactValue::Time(self.made_at()));
        facts.push("epoch", "Epoch", FactValue::Time(geometry.epoch));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        let used = geometry.bytes_of(geometry.blocks).unwrap_or(u64::MAX);
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(used));
        facts.push("inodes", "Inodes", FactValue::Count(super_block.inos.get()));
        facts.push(
            "packed_len",
            "Packed tails",
            FactValue::Bytes(self.packed.as_ref().map_or(0, |raw| raw.size)),
        );
        let metabox_len = self.metabox.as_ref().map_or(0, |metabox| metabox.inode.size);
        facts.push("metabox_len", "Metabox", FactValue::Bytes(metabox_len));
        facts.push("devices", "Further devices", FactValue::List(self.device_words()));
        let prefixes = self.prefixes.iter().map(|prefix| {
            let base = XATTR_PREFIXES.iter().find(|row| row.0 == prefix.base_index);
            escaped(&[base.map_or(&b"?"[..], |row| row.1), &*prefix.infix].concat()).to_string()
        });
        facts.push("xattr_prefixes", "Long xattr prefixes", FactValue::List(prefixes.collect()));
        facts.push("features", "Features", words(&INCOMPAT_ROWS, geometry.incompat));
        facts.push("compatible_features", "Compatible features", words(&COMPAT_ROWS, geometry.compat));
        facts.push("minimum_kernel", "Minimum kernel", FactValue::Text(self.kernel_words()));
        Ok(facts)
    }

    /// Announced codecs; without settings LZ4, if the image can contain compressed data.
    fn codec_names(&self) -> Vec<&'static str> {
        let geometry = &self.geometry;
        let any = EROFS_FEATURE_INCOMPAT_COMPR_CFGS | EROFS_FEATURE_INCOMPAT_LZ4_0PADDING;
        if !geometry.has(any) {
            return Vec::new();
        }
        let announced = |row: &&KernelRow| geometry.algorithms >> row.0 & 1 != 0;
        ALGORITHM_ROWS.iter().filter(announced).map(|row| row.1).collect()
    }

    fn device_words(&self) -> Vec<String> {
        let rows = self.geometry.devices.iter();
        rows.map(|device| {
            let tag = until_nul(&device.tag);
            let tag = if tag.is_empty() { String::new() } else { format!(" {}", escaped(tag)) };
            format!("{} blocks from block {}{tag}", device.blocks, device.uniaddr)
        })
        .collect()
    }

    /// The oldest mainline kernel that mounts the image, and the reason.
    fn kernel_words(&self) -> String {
        let geometry = &self.geometry;
        let mut needs = vec![((5, 4), "EROFS")];
        let word = |row: &KernelRow| match (row.0, geometry.devices.is_empty()) {
            // The same bit.
            (EROFS_FEATURE_INCOMPAT_DEVICE_TABLE, true) => "compr_head2",
            (EROFS_FEATURE_INCOMPAT_DEVICE_TABLE, false) => "device_table",
            _ => row.1,
        };
        needs.extend(INCOMPAT_ROWS.iter().filter(|row| geometry.has(row.0)).map(|row| (row.2, word(row))));
        if geometry.has(EROFS_FEATURE_INCOMPAT_COMPR_CFGS) {
            let announced = |row: &&KernelRow| geometry.algorithms >> row.0 & 1 != 0;
            needs.extend(ALGORITHM_ROWS.iter().filter(announced).map(|row| (row.2, row.1)));
        }
        if geometry.block_bits < 12 {
            let compressed = !self.codec_names().is_empty();
            let kernel = if compressed { (6, 8) } else { (6, 4) };
            needs.push((kernel, "blocks smaller than pages"));
        }
        // The first reason for the newest kernel is shown.
        let newest = needs.iter().map(|need| need.0).max().unwrap_or((5, 4));
        let why = needs.iter().find(|need| need.0 == newest).map_or("", |need| need.1);
        let pages = match geometry.block_bits {
            13.. => format!("; only with pages of {} bytes or more", geometry.block_len()),
            _ => String::new(),
        };
        format!("{}.{} ({why}{pages})", newest.0, newest.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_read_as_everybody_writes_them() {
        let uuid = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(uuid_text(&uuid), "12345678-9abc-def0-0102-030405060708");
    }
}
