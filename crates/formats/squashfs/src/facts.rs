//! Facts common to images of all versions.

use crate::Layout;
use packfs_format::{FactValue, Facts};

/// Names of the superblock's flags, by bit; versions before 4.0 have the first eight.
const FLAG_NAMES: [&str; 12] = [
    "uncompressed-inodes",
    "uncompressed-data",
    "check",
    "uncompressed-fragments",
    "no-fragments",
    "always-fragments",
    "duplicates-shared",
    "exportable",
    "uncompressed-xattrs",
    "no-xattrs",
    "codec-options",
    "uncompressed-ids",
];

pub(crate) struct CommonFacts {
    pub(crate) mkfs_time: u32,
    pub(crate) image_len: u64,
    pub(crate) bytes_used: u64,
    pub(crate) inodes: u32,
}

impl CommonFacts {
    pub(crate) fn push(&self, facts: &mut Facts, layout: &Layout) {
        facts.push("block_len", "Block size", FactValue::Bytes(u64::from(layout.block_len)));
        facts.push("made_at", "Made at", FactValue::Time(i64::from(self.mkfs_time)));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image_len));
        facts.push("bytes_used", "Bytes used", FactValue::Bytes(self.bytes_used));
        facts.push("inodes", "Inodes", FactValue::Count(u64::from(self.inodes)));
        facts.push("fragments", "Fragments", FactValue::Count(u64::from(layout.fragment_count())));
    }
}

pub(crate) fn flag_names(flags: u16) -> FactValue {
    let set = (0..u16::BITS as usize).filter(|bit| flags >> bit & 1 != 0);
    let name = |bit: usize| FLAG_NAMES.get(bit).map_or_else(|| format!("bit-{bit}"), |&name| name.to_owned());
    FactValue::List(set.map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy::disk as legacy;
    use crate::v4::disk::*;

    #[test]
    fn every_flag_has_its_name() {
        let names = |flags, wanted: &[&str]| {
            let wanted = wanted.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(flag_names(flags), FactValue::List(wanted));
        };
        names(0, &[]);
        names(1 << legacy::SQUASHFS_EXPORT | 1 << legacy::SQUASHFS_CHECK, &["check", "exportable"]);
        names(1 << SQUASHFS_EXPORT | 1 << SQUASHFS_COMP_OPT, &["exportable", "codec-options"]);
        names(1 << SQUASHFS_NOID | 1 << 15, &["uncompressed-ids", "bit-15"]);
        names(1 << SQUASHFS_NOI | 1 << SQUASHFS_ALWAYS_FRAG, &["uncompressed-inodes", "always-fragments"]);
    }
}
