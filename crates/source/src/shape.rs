//! What is left out, renamed or changed on the way from a source into a tree.

use crate::file_contexts::FileContexts;
use crate::manifest::Additions;
use crate::mode::ModeChange;
use crate::whiteouts::Whiteouts;
use packfs_core::{Error, ImagePath, Result, Timestamp};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

/// How a source is shaped. The default changes nothing.
///
/// Globs are written as in `.gitignore`: without a slash they match a name at any depth, with one
/// they start at the root; `*` stops at slashes, `**` does not, a slash at the end means
/// directories only, `!` takes an earlier match back.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Globs of what is left out, with all below it.
    pub exclude: Vec<String>,
    /// Globs of what is kept, with all below it, and the directories that lead there; empty:
    /// everything.
    pub include: Vec<String>,
    /// Names of files in source directories that hold more globs to leave out, for the directory
    /// they lie in.
    pub ignore_files: Vec<String>,
    /// Leading components that are cut off; what has no more than these is left out. If all that is
    /// kept lies in a single directory of just these, that one's owner, permissions, time and
    /// attributes become the root's.
    pub strip_components: usize,
    /// Only what lies below this is kept, and this is cut off.
    pub strip_prefix: ImagePath,
    /// Put before every path.
    pub prefix: ImagePath,
    /// User of everything.
    pub uid: Option<u32>,
    /// Group of everything.
    pub gid: Option<u32>,
    /// Users that become others.
    pub uid_map: Vec<IdMap>,
    /// Groups that become others.
    pub gid_map: Vec<IdMap>,
    /// Changes to the permissions of everything but directories and symlinks.
    pub file_mode: Option<ModeChange>,
    /// Changes to the permissions of directories.
    pub dir_mode: Option<ModeChange>,
    /// Time of everything.
    pub mtime: Option<Timestamp>,
    /// Latest time: later ones become this one, as `SOURCE_DATE_EPOCH` asks.
    pub mtime_max: Option<Timestamp>,
    /// Globs of full names of extended attributes to leave out.
    pub xattr_exclude: Vec<String>,
    /// Globs of full names of extended attributes to keep; empty: all.
    pub xattr_include: Vec<String>,
    /// Spelling of the marks of what layers below hold and this one hides, once everything has its
    /// place; `None` keeps them as they are, and counts those of AUFS in [`crate::Notes`].
    pub whiteouts: Option<Whiteouts>,
    /// Entries that are laid over the source, once everything has its place: see [`Additions`].
    pub additions: Additions,
    /// SELinux labels by path in the image; they replace those of the source, whatever is said of
    /// attributes.
    pub file_contexts: Option<Arc<FileContexts>>,
    /// Whether what lies on other file systems is left out; their mount points stay, empty.
    pub one_file_system: bool,
    /// Whether symbolic links are replaced by what they lead to.
    pub follow_symlinks: bool,
    /// Whether what cannot be read is left out and noted instead of ending the work.
    pub keep_going: bool,
    /// Files that are never packed, by device and inode: such as the image that is about to be
    /// replaced.
    pub skip: Vec<(u64, u64)>,
}

impl Shape {
    /// True if names are left out, cut, moved or added: what makes no sense for a source without
    /// names.
    pub fn moves_names(&self) -> bool {
        let globs = [&self.exclude, &self.include].iter().any(|globs| !globs.is_empty());
        let paths = [&self.strip_prefix, &self.prefix].iter().any(|path| !path.is_root());
        globs || paths || self.strip_components > 0 || !self.additions.is_empty()
    }
}

/// A range of ids that becomes another: `FROM:TO` or `FROM-LAST:TO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap {
    from: RangeInclusive<u32>,
    to: u32,
}

impl IdMap {
    /// What an id becomes; `None` if it is outside of the range.
    pub fn apply(&self, id: u32) -> Option<u32> {
        self.from.contains(&id).then(|| self.to + (id - self.from.start()))
    }
}

/// What an id becomes by the first map that knows it.
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
