//! Checks of the image as a whole: superblock, announced features against those in use, and owners
//! of bytes.

use super::tree::Seen;
use crate::disk::*;
use crate::reader::Reader;
use packfs_core::{Result, len_of, parts_of, range_at, usize_of};
use packfs_format::check::Report;
use packfs_format::units::*;

/// Limit of the bytes without an owner that are searched for nonzero data.
const UNUSED_LEN_MAX: u64 = 64 << 20;
const PART_LEN: u64 = 64 << 10;

impl Reader {
    /// Faults of the superblock that do not prevent reading: truncation, or fields that kernels
    /// refuse.
    pub(crate) fn super_block_faults(&self) -> Vec<String> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        let mut found = Vec::new();
        let len = geometry.bytes_of(geometry.blocks).unwrap_or(u64::MAX);
        if len > geometry.image_len {
            found.push(format!("the image is {len} bytes long, the file only {}", geometry.image_len));
        }
        if !super_block.volume_name.contains(&0) {
            found.push("a volume name without an end, which kernels refuse".into());
        }
        let prefixes = super_block.xattr_prefix_count;
        if prefixes > 0 && !geometry.has(EROFS_FEATURE_INCOMPAT_XATTR_PREFIXES) {
            found.push(format!(
                "{prefixes} long xattr prefixes without the feature, which Linux 6.4 and later search anyway"
            ));
        }
        let shared = super_block.ishare_xattr_prefix_id;
        if geometry.has_compat(EROFS_FEATURE_COMPAT_ISHARE_XATTRS) && shared >= prefixes {
            found.push(format!("shared inodes by long xattr prefix {shared}, of {prefixes}"));
        }
        found
    }

    pub(super) fn check_super_block(&self, report: &mut Report<'_>) -> Result<()> {
        let geometry = &self.geometry;
        let super_block = &geometry.super_block;
        if let Some(fault) = self.checksum_fault {
            report.refused("superblock", Err::<(), _>(fault.into()))?;
        }
        for fault in self.super_block_faults() {
            report.error("superblock", fault);
        }
        if super_block.fixed_nsec.get() >= 1_000_000_000 {
            let found = super_block.fixed_nsec;
            report.error("superblock", format_args!("nanoseconds {found}, at most 999999999 allowed"));
        }
        if super_block.xattr_filter_reserved != 0 {
            let found = super_block.xattr_filter_reserved;
            report.warn("superblock", format_args!("xattr filter of kind {found}, which is not looked at"));
        }
        let is_48bit = geometry.has(EROFS_FEATURE_INCOMPAT_48BIT);
        if !is_48bit && super_block.rootnid_8b.get() != 0 {
            report.note("superblock", "a root of 64 bits without the feature for it");
        }
        for (index, device) in geometry.devices.iter().enumerate() {
            let others = geometry.devices.iter().take(index);
            let mut others = others.filter(|other| other.uniaddr != 0 && device.uniaddr != 0);
            let place = format_args!("device {}", index.plus(1)).to_string();
            if others.any(|other| other.uniaddr < device.end() && device.uniaddr < other.end()) {
                report.error(&place, "its addresses are another device's, too");
            }
            if device.uniaddr != 0 && device.uniaddr < geometry.blocks {
                report.note(&place, "its addresses are the first device's, too");
            }
        }
        Ok(())
    }

    /// Compares announced features with those that inodes use.
    pub(super) fn check_features(&self, seen: &Seen, report: &mut Report<'_>) {
        // An unused feature is harmless if another announced one requires a kernel as new.
        let rows = INCOMPAT_ROWS.iter().filter(|row| self.geometry.has(row.0));
        let announced = rows.map(|row| row.2).max().unwrap_or_default();
        for (feature, word, since) in INCOMPAT_ROWS {
            if seen.features & feature != 0 && !self.geometry.has(feature) {
                let fault = format_args!("the image uses {word}, but does not announce it");
                if announced >= since {
                    report.warn("superblock", fault)
                } else {
                    report.error("superblock", fault)
                }
            }
        }
        for (number, word, (major, minor)) in ALGORITHM_ROWS {
            let announced = self.geometry.has(EROFS_FEATURE_INCOMPAT_COMPR_CFGS)
                && self.geometry.algorithms >> number & 1 != 0;
            if seen.whole && announced && seen.algorithms >> number & 1 == 0 {
                let kernels = format!("kernels before {major}.{minor}, or without it, refuse to mount");
                report.note("superblock", format_args!("{word} is announced but not used: {kernels}"));
            }
        }
        let count = self.geometry.super_block.inos.get();
        if seen.whole && count != seen.inode_count {
            let named = seen.inode_count;
            let fault = format_args!("counts {count} inodes, but {named} are reached");
            if count > named {
                // A lost name leaves its inode without an owner, but so does an image that was
                // extended in place.
                report.warn("superblock", format_args!("{fault}: names may be lost"));
            } else {
                report.note("superblock", fault);
            }
        }
    }

    /// Reports overlapping structures, and nonzero bytes that no structure owns.
    pub(super) fn check_space(&self, mut seen: Seen, report: &mut Report<'_>) -> Result<()> {
        seen.claims.sort();
        for (one, other) in seen.claims.overlaps() {
            let (start, end) = (other.range.start, other.range.end);
            let place = format!("{} at {start:#x}", other.owner);
            let (owner, at) = (one.owner, one.range.start);
            report.error(place, format_args!("up to {end:#x}: overlaps the {owner} at {at:#x}"));
            if report.is_full() {
                return Ok(());
            }
        }
        if !seen.whole {
            return Ok(());
        }
        let mut left = UNUSED_LEN_MAX;
        let mut found = 0_u64;
        let mut first = None;
        let owners = seen.claims.owners(self.geometry.image_len);
        let mut bytes = Vec::new();
        for unused in owners.iter().filter(|owner| owner.owner == "unused") {
            let searched = range_at(unused.offset, unused.len.min(left));
            left = left.minus(len_of(&searched));
            for part in parts_of(searched, PART_LEN) {
                bytes.resize(usize_of(len_of(&part)), 0);
                self.read_space(part.start, &mut bytes)?;
                let count = bytes.iter().filter(|&&byte| byte != 0).count() as u64;
                if count > 0 {
                    first.get_or_insert(unused.offset);
                    found = found.plus(count);
                }
            }
        }
        if let Some(first) = first {
            let fault = format_args!("{found} unreferenced bytes are not zero, the first after {first:#x}");
            report.note("unused space", fault);
        }
        Ok(())
    }
}
