//! Checks of directories and inodes specific to 4.0.

use crate::RawInode;
use crate::check::TreeRules;
use crate::v4::disk::SQUASHFS_INVALID_XATTR;
use crate::v4::volume::SquashfsVolume;
use packfs_format::check::{EntryPath, Report, Tally};
use packfs_format::units::*;
use std::collections::HashSet;

pub(super) struct Rules<'a> {
    volume: &'a SquashfsVolume,
    /// Sets of attributes of inodes.
    pub(super) xattrs: HashSet<u32>,
    counts_entries: Tally,
    type_bits: Tally,
    whole_tails: Tally,
}

impl<'a> Rules<'a> {
    pub(super) fn new(volume: &'a SquashfsVolume) -> Self {
        Rules {
            volume,
            xattrs: HashSet::new(),
            counts_entries: Tally::default(),
            type_bits: Tally::default(),
            whole_tails: Tally::default(),
        }
    }

    fn mode(&mut self, path: &EntryPath<'_>, raw: &RawInode, report: &mut Report<'_>) {
        let type_bits = u32::from(raw.mode & !0o7777);
        if type_bits & !raw.file_type.mode_bits() != 0 {
            let (mode, word) = (raw.mode, raw.file_type.word());
            report.error(path, format_args!("mode {mode:#o} would make kernels take the {word} for another"));
        } else if type_bits != 0 {
            self.type_bits.add(|| format!("\"{path}\""));
        }
    }

    fn xattr_index(&mut self, path: &EntryPath<'_>, index: u32, report: &mut Report<'_>) {
        if index == SQUASHFS_INVALID_XATTR {
            return;
        }
        match self.volume.geometry.xattrs.as_ref().map(|tables| tables.sets.count) {
            None => report.note(path, format_args!("xattr set {index}, but the image has no sets")),
            Some(count) if index >= count => {
                report.error(path, format_args!("xattr set {index}, but the image has {count} sets"));
            }
            Some(_) => {
                self.xattrs.insert(index);
            }
        }
    }
}

impl TreeRules for Rules<'_> {
    fn inode(&mut self, path: &EntryPath<'_>, raw: &RawInode, report: &mut Report<'_>) {
        self.mode(path, raw, report);
        self.xattr_index(path, raw.xattr, report);
    }

    fn whole_tail(&mut self, path: &EntryPath<'_>) -> bool {
        self.whole_tails.add(|| format!("\"{path}\""));
        true
    }

    fn dir_links(&mut self, path: &EntryPath<'_>, nlink: u32, entries: u32) -> bool {
        let counts_entries = nlink == entries.plus(2);
        if counts_entries {
            self.counts_entries.add(|| format!("\"{path}\""));
        }
        counts_entries
    }

    fn finish(&mut self, report: &mut Report<'_>) {
        self.counts_entries.note(report, "link counts", "directories count every entry as a link");
        self.type_bits.note(report, "modes", "inodes have type bits in their mode");
        self.whole_tails.warn(
            report,
            "fragments",
            "files of whole blocks name a fragment, and newer kernels refuse to read those",
        );
    }
}
