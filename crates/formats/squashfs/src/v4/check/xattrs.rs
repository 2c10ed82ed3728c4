//! Checks of extended attributes, and of sets without an inode.

use crate::Place;
use crate::v4::corruption::{NO_XATTRS, UNKNOWN_XATTRS, XATTR_TOTAL_LEN_MAX};
use crate::v4::volume::SquashfsVolume;
use packfs_core::Result;
use packfs_format::check::{Report, Tally};
use packfs_format::units::*;
use std::collections::HashSet;

/// Bytes of attributes after which the check stops: values may be shared without limit.
const XATTR_BYTES_MAX: u64 = 4 << 30;

impl SquashfsVolume {
    /// Checks every set; `used` are those of inodes, complete if `whole`.
    pub(super) fn check_xattrs(
        &self,
        used: &HashSet<u32>,
        whole: bool,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(tables) = &self.geometry.xattrs else { return Ok(()) };
        let (mut unused, mut sizes) = (Tally::default(), Tally::default());
        let mut bytes = 0;
        for index in 0..tables.sets.count {
            if report.is_full() {
                return Ok(());
            }
            if bytes > XATTR_BYTES_MAX {
                let text = format!(
                    "more than {XATTR_BYTES_MAX} bytes of attributes; sets from {index} on are not checked"
                );
                report.warn("xattr table", text);
                return Ok(());
            }
            if !used.contains(&index) {
                unused.add(|| index.to_string());
            }
            let place = Place::at("xattr set", tables.sets.start());
            let read = self.xattr_set(index, place);
            let Some((_, figures)) = report.refused(format_args!("xattr set {index}"), read)? else {
                // Refused sets were read up to an unknown position.
                bytes = bytes.plus(XATTR_TOTAL_LEN_MAX as u64);
                continue;
            };
            bytes = bytes.plus(figures.size).plus(figures.unknown_len);
            let place = format_args!("xattr set {index}").to_string();
            if figures.count == 0 {
                report.error(&place, NO_XATTRS);
            }
            if figures.unknown > 0 {
                report.error(&place, UNKNOWN_XATTRS);
            } else if figures.is_size_impossible() {
                let (found, size) = (figures.size_found, figures.size);
                report.error(&place, format_args!("a size of {found} bytes, its attributes have {size}"));
            } else if figures.size != figures.size_found {
                sizes.add(|| format!("set {index} with {} instead of {}", figures.size_found, figures.size));
            }
        }
        if whole {
            unused.note(report, "xattr table", "sets that no inode uses");
        }
        sizes.note(report, "xattr table", "sets with a wrong size");
        Ok(())
    }
}
