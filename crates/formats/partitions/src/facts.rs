//! Facts of a disk, as `info` prints them.

use crate::kinds;
use crate::table::{Kind, Partition, TableKind};
use crate::volume::PartitionsVolume;
use packfs_format::{FactValue, Facts};

impl PartitionsVolume {
    /// See [`packfs_format::Volume::facts`].
    pub(crate) fn image_facts(&self) -> Facts {
        let table = &self.table;
        let mut facts = Facts::default();
        let (kind, id) = match table.kind {
            TableKind::Mbr { disk_id } => ("MBR", format!("{disk_id:#010x}")),
            TableKind::Gpt { disk_guid, .. } => ("GPT", kinds::guid(&disk_guid)),
        };
        facts.push("format", "Format", FactValue::Text("partitions".into()));
        facts.push("version", "Table", FactValue::Text(kind.into()));
        facts.push("disk_id", "Disk", FactValue::Text(id));
        facts.push("sector_len", "Sector size", FactValue::Bytes(table.sector_len));
        if let TableKind::Gpt { is_backup, .. } = table.kind {
            facts.push("backup_used", "Second copy used", FactValue::Flag(is_backup));
        }
        facts.push("partitions", "Partitions", FactValue::List(table.partitions.iter().map(words).collect()));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image.len()));
        facts
    }
}

/// Describes a partition: `p1: Linux "root" 1048576+4194304 0fc6...`.
fn words(partition: &Partition) -> String {
    let Partition { start, len, label, .. } = partition;
    let kind = match partition.kind {
        Kind::Mbr(kind) => kinds::of_mbr(kind),
        Kind::Gpt { kind, .. } => kinds::of_gpt(&kind),
    };
    let mut words = format!("{}: {kind}", partition.file_name());
    if !label.is_empty() {
        words += &format!(" {label:?}");
    }
    words += &format!(", {len} bytes at {start:#x}");
    if let Kind::Gpt { guid, .. } = partition.kind {
        words += &format!(", {}", kinds::guid(&guid));
    }
    if partition.boots {
        words += ", boots";
    }
    words
}
