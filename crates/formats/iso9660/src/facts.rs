//! Facts of an image, as `info` prints them.

use crate::boot::BootImage;
use crate::dates;
use crate::open::View;
use crate::volume::Iso9660Volume;
use packfs_core::Result;
use packfs_format::{FactValue, Facts, units::*};

impl Iso9660Volume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.geometry;
        let descriptor = &geometry.primary.descriptor;
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        facts.push("format", "Format", text("iso9660"));
        facts.push("view", "Shown", text(geometry.view.word()));
        facts.push("extensions", "Extensions", FactValue::List(geometry.extensions.clone()));
        let level = geometry.joliet.as_ref().map(|(_, level)| *level);
        facts.push("joliet_level", "Joliet level", FactValue::Count(level.unwrap_or(0).into()));
        facts.push("volume_id", "Volume id", FactValue::Text(words(&descriptor.volume_id)));
        if let Some((joliet, _)) = geometry.joliet.as_ref().filter(|_| geometry.view == View::Joliet) {
            let name = crate::names::joliet(&joliet.descriptor.volume_id);
            facts.push("joliet_volume_id", "Joliet volume id", FactValue::Text(words(&name)));
        }
        for (key, label, bytes) in [
            ("system_id", "System", &descriptor.system_id[..]),
            ("volume_set_id", "Volume set", &descriptor.volume_set_id),
            ("publisher", "Publisher", &descriptor.publisher_id),
            ("preparer", "Prepared by", &descriptor.preparer_id),
            ("application", "Application", &descriptor.application_id),
        ] {
            let words = words(bytes);
            if !words.is_empty() {
                facts.push(key, label, FactValue::Text(words));
            }
        }
        if let Some(time) = dates::of_digits(&descriptor.created) {
            facts.push("made_at", "Made at", FactValue::Time(time.seconds));
        }
        facts.push("block_len", "Block size", FactValue::Bytes(geometry.block_len.into()));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        facts.push("volume_len", "Volume length", FactValue::Bytes(geometry.volume_end()));
        let images = match self.boot_catalog() {
            Ok(catalog) => catalog.images.iter().map(BootImage::words).collect(),
            Err(error) => vec![error.to_string()],
        };
        facts.push("boot_images", "Boot images", FactValue::List(images));
        Ok(facts)
    }
}

/// Text of a descriptor without padding.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(until_nul(bytes));
    packfs_core::printable(text.trim_end()).into_owned()
}
