//! Filters, renames and changes applied to a source while it becomes a tree.

use crate::archive_kind::ArchiveKind;
use crate::file_contexts::FileContexts;
use crate::manifest::Additions;
use crate::mode::ModeChange;
use crate::selection::Selection;
use crate::whiteouts::Whiteouts;
use packfs_core::{Error, ImagePath, Implied, Result, Timestamp};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

/// Changes applied to a source. The default changes nothing.
///
/// Globs follow `.gitignore`: without a slash they match a name at any depth, with one they start
/// at the root; `*` stops at slashes, `**` does not, a final slash restricts to directories, `!`
/// negates an earlier match.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Globs to exclude, with everything below.
    pub exclude: Vec<String>,
    /// Globs to include, with everything below and the directories above; empty means everything.
    pub include: Vec<String>,
    /// Names of ignore files, which contain further globs to exclude in their directory.
    pub ignore_files: Vec<String>,
    /// Selection by the caller, applied before the globs.
    pub select: Option<Selection>,
    /// Leading components that are removed; entries with no more than these are dropped. If
    /// everything kept is in a single such directory, its owner, permissions, time and attributes
    /// become the root's.
    pub strip_components: usize,
    /// Directory to keep, which becomes the root.
    pub strip_prefix: ImagePath,
    /// Directory prepended to every path.
    pub prefix: ImagePath,
    /// User id of all entries.
    pub uid: Option<u32>,
    /// Group id of all entries.
    pub gid: Option<u32>,
    /// Mapping of user ids.
    pub uid_map: Vec<IdMap>,
    /// Mapping of group ids.
    pub gid_map: Vec<IdMap>,
    /// Change of the permissions of all entries but directories and symlinks.
    pub file_mode: Option<ModeChange>,
    /// Change of the permissions of directories.
    pub dir_mode: Option<ModeChange>,
    /// Metadata of directories that the source does not describe, including its root.
    /// [`Shape::mtime_max`] replaces a missing time.
    pub implied: Implied,
    /// Set for a layer: hard links to files not yet seen in the source lead to lower layers, and
    /// are resolved by [`crate::stack()`] or [`crate::with_linked_files`].
    pub links_below: bool,
    /// Time of all entries.
    pub mtime: Option<Timestamp>,
    /// Latest time: later ones are clamped, as for `SOURCE_DATE_EPOCH`.
    pub mtime_max: Option<Timestamp>,
    /// Globs of full names of extended attributes to exclude.
    pub xattr_exclude: Vec<String>,
    /// Globs of full names of extended attributes to include; empty means all.
    pub xattr_include: Vec<String>,
    /// Target format of whiteouts, applied last; `None` keeps them unchanged, and counts those of
    /// AUFS in [`crate::Notes`].
    pub whiteouts: Option<Whiteouts>,
    /// Entries added last: see [`Additions`].
    pub additions: Additions,
    /// SELinux labels by path in the image; they replace those of the source, whatever the
    /// attribute filters.
    pub file_contexts: Option<Arc<FileContexts>>,
    /// Set to exclude other filesystems; their mount points remain as empty directories.
    pub one_file_system: bool,
    /// Set to replace symbolic links by their targets.
    pub follow_symlinks: bool,
    /// Set to skip and report unreadable files instead of failing.
    pub keep_going: bool,
    /// Files that are never packed, by device and inode, such as the image that is being replaced.
    pub skip: Vec<(u64, u64)>,
    /// The only kind of archives that is read; `None` means all.
    pub archives: Option<ArchiveKind>,
    /// Dialects and lists accepted in tar archives.
    pub tar: TarReading,
}

/// Options of reading tar archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TarReading {
    /// Set to continue after blocks of zeros with the next valid header, as in concatenated
    /// archives.
    pub ignore_zeros: bool,
    /// Set to give directories that the archive does not describe owner, time, and write
    /// permissions of the directory above, if that comes before.
    pub implied_inherit: bool,
    /// Set for a list of headers without file data, which reads as zeros.
    pub headers_only: bool,
    /// Set to skip members of unknown types, which are regular files otherwise.
    pub skip_unknown: bool,
    /// Set to prefer names of users and groups that this machine knows to the numbers.
    pub names: bool,
}

impl Shape {
    /// Returns true if names are filtered, changed or added, which requires a source with names.
    pub fn moves_names(&self) -> bool {
        let globs = [&self.exclude, &self.include].iter().any(|globs| !globs.is_empty());
        let paths = [&self.strip_prefix, &self.prefix].iter().any(|path| !path.is_root());
        globs || paths || self.select.is_some() || self.strip_components > 0 || !self.additions.is_empty()
    }
}

/// A mapping of a range of ids: `FROM:TO` or `FROM-LAST:TO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap {
    from: RangeInclusive<u32>,
    to: u32,
}

impl IdMap {
    /// Returns the mapped id; `None` outside the range.
    pub fn apply(&self, id: u32) -> Option<u32> {
        self.from.contains(&id).then(|| self.to + (id - self.from.start()))
    }
}

pub(crate) fn mapped(maps: &[IdMap], id: u32) -> u32 {
    maps.iter().find_map(|map| map.apply(id)).unwrap_or(id)
}

impl FromStr for IdMap {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("id map {text:?}: FROM:TO or FROM-LAST:TO is allowed, such as 0-999:100000"))
        };
        let (from, to) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (first, last) = from.split_once('-').unwrap_or((from, from));
        let (first, last, to) = (number(first)?, number(last)?, number(to)?);
        if first > last || to.checked_add(last - first).is_none() {
            return Err(wrong());
        }
        Ok(IdMap { from: first..=last, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_ranges_of_ids_and_leaves_others_alone() {
        let maps: Vec<IdMap> = ["0-9:100000", "1000:0"].iter().map(|text| text.parse().unwrap()).collect();
        let ids = [0, 9, 10, 1000].map(|id| mapped(&maps, id));
        assert_eq!(ids, [100_000, 100_009, 10, 0]);
    }

    #[test]
    fn refuses_maps_that_lead_out_of_the_ids() {
        for wrong in ["", "1", "1:", "a:1", "5-1:0", "0-10:4294967290", "-1:0"] {
            assert!(wrong.parse::<IdMap>().is_err(), "{wrong}");
        }
    }
}
