//! Features of a filesystem, named as by e2fsprogs.

use packfs_core::{Error, Result};

/// Bit and name.
type Row = (u32, &'static str);

const COMPATIBLE: &[Row] = &[
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (HAS_JOURNAL, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (DIR_INDEX, "dir_index"),
    (0x40, "lazy_bg"),
    (0x80, "snapshot_bitmap"),
    (0x100, "exclude_bitmap"),
    (SPARSE_SUPER2, "sparse_super2"),
    (FAST_COMMIT, "fast_commit"),
    (0x800, "stable_inodes"),
    (ORPHAN_FILE, "orphan_file"),
];

const INCOMPATIBLE: &[Row] = &[
    (0x1, "compression"),
    (FILETYPE, "filetype"),
    (RECOVER, "needs_recovery"),
    (JOURNAL_DEV, "journal_dev"),
    (META_BG, "meta_bg"),
    (EXTENTS, "extent"),
    (BITS_64, "64bit"),
    (MMP, "mmp"),
    (FLEX_BG, "flex_bg"),
    (EA_INODE, "ea_inode"),
    (DIRDATA, "dirdata"),
    (CSUM_SEED, "metadata_csum_seed"),
    (LARGE_DIR, "large_dir"),
    (INLINE_DATA, "inline_data"),
    (ENCRYPT, "encrypt"),
    (CASEFOLD, "casefold"),
];

const READ_ONLY: &[Row] = &[
    (SPARSE_SUPER, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (HUGE_FILE, "huge_file"),
    (GDT_CSUM, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "has_snapshot"),
    (QUOTA, "quota"),
    (BIGALLOC, "bigalloc"),
    (METADATA_CSUM, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (PROJECT, "project"),
    (SHARED_BLOCKS, "shared_blocks"),
    (0x8000, "verity"),
    (0x1_0000, "orphan_present"),
];

pub(crate) const HAS_JOURNAL: u32 = 0x4;
pub(crate) const DIR_INDEX: u32 = 0x20;
pub(crate) const SPARSE_SUPER2: u32 = 0x200;
pub(crate) const FAST_COMMIT: u32 = 0x400;
pub(crate) const ORPHAN_FILE: u32 = 0x1000;

pub(crate) const FILETYPE: u32 = 0x2;
pub(crate) const RECOVER: u32 = 0x4;
pub(crate) const JOURNAL_DEV: u32 = 0x8;
pub(crate) const META_BG: u32 = 0x10;
const EXTENTS: u32 = 0x40;
pub(crate) const BITS_64: u32 = 0x80;
pub(crate) const MMP: u32 = 0x100;
const FLEX_BG: u32 = 0x200;
pub(crate) const EA_INODE: u32 = 0x400;
pub(crate) const DIRDATA: u32 = 0x1000;
pub(crate) const CSUM_SEED: u32 = 0x2000;
pub(crate) const LARGE_DIR: u32 = 0x4000;
const INLINE_DATA: u32 = 0x8000;
const ENCRYPT: u32 = 0x1_0000;
const CASEFOLD: u32 = 0x2_0000;

pub(crate) const SPARSE_SUPER: u32 = 0x1;
pub(crate) const HUGE_FILE: u32 = 0x8;
pub(crate) const GDT_CSUM: u32 = 0x10;
pub(crate) const QUOTA: u32 = 0x100;
pub(crate) const BIGALLOC: u32 = 0x200;
pub(crate) const METADATA_CSUM: u32 = 0x400;
pub(crate) const PROJECT: u32 = 0x2000;
pub(crate) const SHARED_BLOCKS: u32 = 0x4000;

/// Supported incompatible features. `journal_dev` is refused separately.
const READABLE: u32 = FILETYPE
    | RECOVER
    | JOURNAL_DEV
    | META_BG
    | EXTENTS
    | BITS_64
    | MMP
    | FLEX_BG
    | EA_INODE
    | DIRDATA
    | CSUM_SEED
    | LARGE_DIR
    | INLINE_DATA
    | ENCRYPT
    | CASEFOLD;
const INCOMPATIBLE_OF_3: u32 = 0x1f;
const READ_ONLY_OF_3: u32 = 0x7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) compatible: u32,
    pub(crate) incompatible: u32,
    pub(crate) read_only: u32,
}

impl Features {
    /// True if it has an incompatible feature.
    pub(crate) fn needs(self, bit: u32) -> bool {
        self.incompatible & bit != 0
    }

    pub(crate) fn has(self, bit: u32) -> bool {
        self.compatible & bit != 0
    }

    /// True if it has a read-only compatible feature.
    pub(crate) fn forbids(self, bit: u32) -> bool {
        self.read_only & bit != 0
    }

    /// Errors: `Unsupported` for unknown incompatible features.
    pub(crate) fn check(self) -> Result<()> {
        match self.incompatible & !READABLE {
            0 => Ok(()),
            unknown => {
                let text = names(unknown, INCOMPATIBLE, "incompat").join(", ");
                let error = Error::unsupported("ext4 image", format_args!("feature {text}"));
                Err(error.hint("tune2fs -l IMAGE prints the features; a newer packfs may know them"))
            }
        }
    }

    pub(crate) fn names(self) -> Vec<String> {
        [
            names(self.compatible, COMPATIBLE, "compat"),
            names(self.incompatible, INCOMPATIBLE, "incompat"),
            names(self.read_only, READ_ONLY, "ro_compat"),
        ]
        .concat()
    }

    /// Returns the first of ext2, ext3, and ext4 that has these features.
    pub(crate) fn version(self) -> &'static str {
        if self.incompatible & !INCOMPATIBLE_OF_3 != 0 || self.read_only & !READ_ONLY_OF_3 != 0 {
            "ext4"
        } else if self.has(HAS_JOURNAL) {
            "ext3"
        } else {
            "ext2"
        }
    }
}

fn names(word: u32, rows: &[Row], kind: &str) -> Vec<String> {
    let bits = (0..u32::BITS).map(|bit| word & 1_u32.rotate_left(bit)).filter(|bit| *bit != 0);
    let name = |bit: u32| match rows.iter().find(|row| row.0 == bit) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{kind} {bit:#x}"),
    };
    bits.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::ErrorKind;

    #[test]
    fn unknown_features_are_refused_by_name_or_bit() {
        let error = Features { incompatible: 0x4001 | 0x80_0000, ..Features::default() }.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().ends_with("feature compression, incompat 0x800000"), "{error}");
        let writable = Features { compatible: !0, read_only: !0, incompatible: 0 };
        assert!(writable.check().is_ok());
    }

    #[test]
    fn versions_are_told_by_their_features() {
        let version =
            |compatible, incompatible, read_only| Features { compatible, incompatible, read_only }.version();
        assert_eq!(version(0x38, 0x2, 0x3), "ext2");
        assert_eq!(version(0x3c, 0x6, 0x3), "ext3");
        assert_eq!(version(0x3c, 0x42, 0x3), "ext4");
        assert_eq!(version(0x38, 0x2, 0x10), "ext4");
    }
}
