//! Features: bits, names as `xfs_info` prints them, and support.

use crate::disk::Dsb;
use packfs_core::{Error, Result};

/// Bits that every version 4 filesystem in use has: directories of version 2, and flags for
/// unwritten extents.
const V4_NEEDED: u16 = 0x2000 | 0x1000;
/// Bit of version 4: a filesystem shared by several machines, which Linux does not mount.
const V4_SHARED: u16 = 0x0200;
/// Bit of version 4: further bits are in `features2`.
pub(crate) const V4_MORE: u16 = 0x8000;
/// Bit of `features2`: types in directory entries.
pub(crate) const V4_FTYPE: u32 = 0x200;

/// Incompatible features of version 5 (`XFS_SB_FEAT_INCOMPAT_*`).
pub(crate) const FTYPE: u32 = 1;
pub(crate) const META_UUID: u32 = 1 << 2;
pub(crate) const NEEDSREPAIR: u32 = 1 << 4;
pub(crate) const PARENT: u32 = 1 << 7;
pub(crate) const METADIR: u32 = 1 << 8;
pub(crate) const ZONED: u32 = 1 << 9;
pub(crate) const ZONE_GAPS: u32 = 1 << 10;

/// Read-only feature of version 5: shared blocks.
pub(crate) const REFLINK: u32 = 1 << 2;

pub(crate) const INCOMPAT: [(u32, &str); 11] = [
    (FTYPE, "ftype"),
    (1 << 1, "sparse"),
    (META_UUID, "meta_uuid"),
    (1 << 3, "bigtime"),
    (NEEDSREPAIR, "needsrepair"),
    (1 << 5, "nrext64"),
    (1 << 6, "exchange"),
    (PARENT, "parent"),
    (METADIR, "metadir"),
    (ZONED, "zoned"),
    (ZONE_GAPS, "zone_gaps"),
];

pub(crate) const RO_COMPAT: [(u32, &str); 4] =
    [(1, "finobt"), (1 << 1, "rmapbt"), (REFLINK, "reflink"), (1 << 3, "inobtcount")];

pub(crate) const V4: [(u16, &str); 4] =
    [(0x0040, "quota"), (0x0080, "align"), (0x0400, "logv2"), (0x4000, "ascii-ci")];

pub(crate) const V4_FEATURES2: [(u32, &str); 4] =
    [(0x2, "lazy-count"), (0x8, "attr2"), (0x80, "projid32bit"), (V4_FTYPE, "ftype")];

/// Errors: `Unsupported` for unknown versions and features.
pub(crate) fn version(raw: &Dsb) -> Result<u16> {
    let bits = raw.sb_versionnum.get();
    let refused = |what: String| Err(Error::unsupported("xfs image", what));
    match bits & 15 {
        4 => {
            let names = [(0x2000, "dirv2"), (0x1000, "extflg")];
            let missing = names.iter().find(|(bit, _)| bits & V4_NEEDED & bit == 0);
            if let Some((_, name)) = missing {
                return refused(format!("version 4 without {name}, as before 2002"));
            }
            if bits & V4_SHARED != 0 {
                return refused("shared by several machines (shared)".into());
            }
            let features2 = raw.sb_features2.get() | raw.sb_bad_features2.get();
            let known = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | V4_FTYPE;
            let unknown = if bits & V4_MORE == 0 { 0 } else { features2 & !known };
            match unknown {
                0 => Ok(4),
                unknown => refused(format!("unknown features of version 4 ({unknown:#x})")),
            }
        }
        5 => {
            let known = INCOMPAT.iter().fold(0, |known, (bit, _)| known | bit);
            match raw.sb_features_incompat.get() & !known {
                0 => Ok(5),
                unknown => refused(format!("unknown incompatible features ({unknown:#x})")),
            }
        }
        other => refused(format!("version {other}, 4 and 5 are read")),
    }
}
