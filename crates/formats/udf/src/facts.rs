//! Facts of an image, as `info` prints them.

use crate::cs0::dstring;
use crate::disk::{CD001, INTEGRITY_CLOSE};
use crate::volume::UdfVolume;
use packfs_format::{FactValue, Facts};

impl UdfVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Facts {
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        let descriptor = &self.logical.descriptor;
        facts.push("format", "Format", text(crate::INFO.name));
        facts.push("codec", "Codec", text("none"));
        facts.push("revision", "Revision", FactValue::Text(self.revision()));
        let standard = self.recognition.standard().map(|ident| String::from_utf8_lossy(&ident).into_owned());
        facts.push("standard", "Standard", FactValue::Text(standard.unwrap_or_default()));
        facts.push(
            "logical_volume_id",
            "Logical volume",
            FactValue::Text(dstring(&descriptor.logical_vol_ident)),
        );
        facts.push("volume_id", "Volume id", FactValue::Text(dstring(&self.primary.vol_ident)));
        facts.push("volume_set_id", "Volume set", FactValue::Text(dstring(&self.primary.vol_set_ident)));
        let kinds = self.reader.maps.iter().map(|map| map.kind().to_owned()).collect();
        facts.push("partitions", "Partitions", FactValue::List(kinds));
        let made_at = self.primary.recording_date_and_time.time();
        facts.push("made_at", "Made at", FactValue::Time(made_at.seconds));
        facts.push("block_len", "Block size", FactValue::Bytes(self.reader.blocks.block_len.into()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.reader.blocks.image.len()));
        facts.push("volume_len", "Volume length", FactValue::Bytes(self.end()));
        if let Some(counts) = self.integrity.counts {
            facts.push("file_count", "Files", FactValue::Count(counts.num_files.get().into()));
            facts.push("directory_count", "Directories", FactValue::Count(counts.num_dirs.get().into()));
        }
        let other = if self.recognition.has(CD001) { "iso9660" } else { "none" };
        facts.push("other_filesystem", "Other filesystem", text(other));
        let is_closed = self.is_closed();
        facts.push("state", "State", text(if is_closed { "unmounted" } else { "not unmounted" }));
        facts.push("minimum_kernel", "Minimum kernel", text("2.4 (udf); 2.6.28 from revision 2.50 on"));
        facts
    }

    /// Revision of UDF, such as 2.01.
    pub(crate) fn revision(&self) -> String {
        let revision = self.logical.descriptor.domain_ident.revision();
        format!("{:x}.{:02x}", revision >> 8, revision & 0xff)
    }

    /// True if the volume was unmounted, or does not record it.
    pub(crate) fn is_closed(&self) -> bool {
        self.integrity.newest.is_none_or(|newest| newest.integrity_type.get() == INTEGRITY_CLOSE)
    }
}
