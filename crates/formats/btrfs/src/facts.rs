//! Facts of the filesystem, its devices, and its subvolumes.

use crate::disk::tree;
use crate::subvolumes::Paths;
use crate::super_block::{COMPAT_RO, INCOMPAT, feature_names};
use crate::volume::BtrfsVolume;
use packfs_core::{Error, Result, escaped};
use packfs_format::{FactValue, Facts, units::*};
use std::collections::BTreeSet;

const SUBVOLUMES_MAX: usize = 10_000;

impl BtrfsVolume {
    pub(crate) fn opened_device_len(&self) -> u64 {
        let is_opened = |device: &&crate::super_block::DeviceItem| {
            self.fs.store.devices.is_opened(device.id, device.uuid)
        };
        self.fs.devices.iter().find(is_opened).map_or(self.image.len(), |device| device.len)
    }

    /// Implements [`packfs_format::Volume::facts`].
    pub(crate) fn all_facts(&self) -> Result<Facts> {
        let block = self.fs.store.super_block();
        let mut facts = Facts::default();
        let text = |text: &str| FactValue::Text(text.to_owned());
        facts.push("format", "Format", text(crate::INFO.name));
        facts.push("label", "Label", FactValue::Text(escaped(&block.label).to_string()));
        facts.push("uuid", "UUID", FactValue::Text(block.fsid.to_string()));
        if block.metadata_uuid != block.fsid {
            facts.push("metadata_uuid", "Metadata UUID", FactValue::Text(block.metadata_uuid.to_string()));
        }
        if let Ok(made_at) = self.fs.root(tree::TOP).map(|root| root.made_at) {
            facts.push("made_at", "Made at", FactValue::Time(made_at));
        }
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        facts.push("total_len", "Length of all devices", FactValue::Bytes(block.total_bytes));
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(block.bytes_used));
        facts.push("generation", "Generation", FactValue::Count(block.generation));
        facts.push("sector_len", "Sector size", FactValue::Bytes(block.sector_len.into()));
        facts.push("node_len", "Node size", FactValue::Bytes(block.node_len.into()));
        facts.push("checksum", "Checksum", text(block.checksum.name()));
        facts.push("profiles", "Profiles", FactValue::List(self.profiles()));
        let mut features = feature_names(block.incompat, &INCOMPAT, "incompat");
        features.extend(feature_names(block.compat_ro, &COMPAT_RO, "compat_ro"));
        facts.push("features", "Features", FactValue::List(features));
        facts.push("devices", "Devices", FactValue::List(self.device_lines()));
        facts.push("subvolume", "Subvolume", FactValue::Count(self.opened));
        match self.fs.default_subvolume() {
            Ok(id) => facts.push("default_subvolume", "Default subvolume", FactValue::Count(id)),
            Err(error) => facts.push("default_subvolume", "Default subvolume", unreadable(&error)),
        }
        let lines = self.subvolume_lines();
        facts.push(
            "subvolumes",
            "Subvolumes",
            lines.map_or_else(|error| unreadable(&error), FactValue::List),
        );
        facts.push("log", "Unclean", FactValue::Flag(block.log.is_some()));
        Ok(facts)
    }

    fn profiles(&self) -> Vec<String> {
        let chunks = self.fs.store.chunks.iter();
        let kinds: BTreeSet<_> = chunks.map(|chunk| (chunk.contents(), chunk.profile)).collect();
        kinds.into_iter().map(|(contents, profile)| format!("{contents}: {}", profile.name())).collect()
    }

    fn device_lines(&self) -> Vec<String> {
        let line = |device: &crate::super_block::DeviceItem| {
            let given = self.fs.store.devices.has(device.id, device.uuid);
            let missing = if given { "" } else { ", not given" };
            format!("{}: {}, {} bytes{missing}", device.id, device.uuid, device.len)
        };
        self.fs.devices.iter().map(line).collect()
    }

    /// Returns lines with number, path, and read-only flag.
    fn subvolume_lines(&self) -> Result<Vec<String>> {
        let ids = self.fs.subvolume_ids()?;
        let (mut lines, mut paths) = (Vec::new(), Paths::default());
        for id in ids.iter().take(SUBVOLUMES_MAX) {
            let Ok(root) = self.fs.root(*id) else { continue };
            let path = match self.fs.subvolume_path(*id, &mut paths) {
                Ok(Some(path)) => escaped(&path).to_string(),
                _ => "without a path".into(),
            };
            let read_only = if root.is_read_only { ", read-only" } else { "" };
            let origin = if root.parent_uuid.is_some() { ", snapshot" } else { "" };
            lines.push(format!("{id}: {path}{read_only}{origin}"));
        }
        if ids.len() > SUBVOLUMES_MAX {
            lines.push(format!("and {} more", ids.len().minus(SUBVOLUMES_MAX)));
        }
        Ok(lines)
    }
}

fn unreadable(error: &Error) -> FactValue {
    FactValue::Text(format!("unreadable: {error}"))
}
