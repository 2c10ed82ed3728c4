//! Facts of an image, as `info` prints them.

use crate::disk::{CORRUPT, DIRTY};
use crate::snapshots;
use crate::volume::QcowVolume;
use packfs_core::{Result, escaped};
use packfs_format::{FactValue, Facts};

impl QcowVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Result<Facts> {
        let geometry = &self.top.geometry;
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text("qcow2".into()));
        facts.push("version", "Version", FactValue::Text(geometry.version.to_string()));
        facts.push("disk_len", "Disk length", FactValue::Bytes(self.top.disk_len));
        facts.push("cluster_len", "Cluster size", FactValue::Bytes(geometry.cluster_len()));
        facts.push("codecs", "Codec", FactValue::Text(geometry.algorithm.name().into()));
        facts.push("extended_l2", "Subclusters", FactValue::Flag(geometry.is_extended()));
        if let Some(name) = &geometry.backing {
            facts.push("backing_file", "Backing file", FactValue::Text(escaped(name).to_string()));
        }
        if let Some(format) = &geometry.extensions.backing_format {
            facts.push("backing_format", "Format of the backing file", FactValue::Text(format.clone()));
        }
        let (snapshots, _) = snapshots::read(&*self.image, geometry)?;
        let words = snapshots.iter().map(|it| format!("{}, {} bytes", it.words(), it.disk_len));
        facts.push("snapshots", "Snapshots", FactValue::List(words.collect()));
        if let Some(snapshot) = &self.snapshot {
            facts.push("snapshot", "Snapshot shown", FactValue::Text(snapshot.clone()));
        }
        let has = |bit: u64| FactValue::Flag(geometry.incompatible & bit != 0);
        facts.push("dirty", "Dirty", has(DIRTY));
        facts.push("corrupt", "Marked corrupt", has(CORRUPT));
        facts.push("image_len", "Image length", FactValue::Bytes(geometry.image_len));
        Ok(facts)
    }
}
