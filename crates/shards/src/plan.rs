//! Plan of a directory: the options of all shards, and a list for each. It is a folder with
//! `plan.json` and the lists, and never changes once it has its name.

use crate::cuts::{Cut, SHARDS_MAX, Shards};
use crate::{Recipe, TOOL_VERSION, entry, json, list, read_list};
use packfs_core::{Error, ErrorKind, ImagePath, Result, ResultExt};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// File of a plan that describes it.
pub(crate) const FILE_NAME: &str = "plan.json";

/// Longest `plan.json`, in bytes.
const LEN_MAX: u64 = 128 << 20;

/// Version of the format of plans.
pub(crate) const VERSION: u32 = 1;

/// Plan of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the format of plans.
    pub packfs_plan: u32,
    /// Version of packfs that made the plan, and that must pack its shards.
    pub tool_version: String,
    /// Directory that was planned.
    pub source: PathBuf,
    /// Options of all shards.
    pub recipe: Recipe,
    /// SHA-256 of the options and of the version of packfs.
    pub recipe_sha256: String,
    /// Metadata of the directory.
    pub root: Root,
    /// Sums of all shards.
    pub totals: Totals,
    /// Shards, in the order of the tree.
    pub shards: Vec<PlannedShard>,
    /// Folder of the plan.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Metadata of the directory that was planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Permissions in octal.
    pub mode: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Modification time in seconds since 1970.
    pub mtime: String,
}

/// Sums of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Totals {
    /// Entries of every type.
    pub entries: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Their length in bytes.
    pub file_bytes: u64,
    /// Hard-linked files whose names may be in different shards, because memory had no room for
    /// more; their data may be stored several times.
    pub split_links: u64,
    /// Entries that could not be read while planning, and are in no shard.
    pub unreadable: u64,
}

/// Shard of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedShard {
    /// SHA-256 of its list.
    pub list_sha256: String,
    /// Path of its first entry, with escapes; `/` for the root, empty for a shard without entries.
    pub first: String,
    /// Entries that no earlier shard has.
    pub entries: u64,
    /// Directories of its list that an earlier shard has, too.
    pub shared_directories: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Their length in bytes.
    pub file_bytes: u64,
}

impl Plan {
    /// Returns true if there is a plan in a folder.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE_NAME).is_file()
    }

    /// Reads a plan.
    ///
    /// Errors: `Io`; `Corrupt` for what is none; `Usage` for a plan of another version of packfs.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        let cannot = || format!("cannot read {path:?}");
        let mut text = Vec::new();
        let file = File::open(&path)
            .or_io(cannot)
            .map_err(|error| error.hint("packfs plan SRC --shards 32G --out PLAN makes a plan"))?;
        file.take(LEN_MAX).read_to_end(&mut text).or_io(cannot)?;
        let checked = json::parse("plan", &text).and_then(|plan: Plan| plan.check().map(|()| plan));
        let plan = checked.map_err(|error| match error.kind() {
            ErrorKind::Corrupt => {
                error.at(format!("{path:?}")).hint("a plan is never changed; make it again")
            }
            _ => error.at(format!("{path:?}")),
        })?;
        Ok(Plan { folder: folder.to_owned(), ..plan })
    }

    fn check(&self) -> Result<()> {
        if self.packfs_plan != VERSION {
            let found = self.packfs_plan;
            return Err(Error::unsupported("plan", format!("version {found}, {VERSION} is known")));
        }
        if self.tool_version != TOOL_VERSION {
            let (found, own) = (packfs_core::escaped(self.tool_version.as_bytes()), TOOL_VERSION);
            let error = Error::usage(format!("the plan is of packfs {found}, and this is packfs {own}"));
            return Err(error.hint("other versions may write other bytes: use that version, or plan again"));
        }
        let found = self.recipe.digest()?;
        if found != self.recipe_sha256 {
            let says = packfs_core::escaped(self.recipe_sha256.as_bytes());
            return Err(Error::corrupt(
                "plan",
                format!("SHA-256 of the recipe is {found}, the plan says {says}"),
            ));
        }
        if self.shards.is_empty() || self.shards.len() > SHARDS_MAX {
            let count = self.shards.len();
            return Err(Error::corrupt("plan", format!("{count} shards, 1 to {SHARDS_MAX} allowed")));
        }
        Ok(())
    }

    /// Returns a shard by its number.
    ///
    /// Errors: `Usage` for a number that the plan has not.
    pub fn shard(&self, index: usize) -> Result<&PlannedShard> {
        self.shards.get(index).ok_or_else(|| {
            let last = self.shards.len() - 1;
            Error::usage(format!("no shard {index} in {:?}: 0 to {last} allowed", self.folder))
        })
    }

    /// Returns the name that a packed shard has in a store, without an extension: a digest of the
    /// options, the version of packfs, and the list.
    pub fn name_of(&self, shard: &PlannedShard) -> String {
        list::shard_name(&self.recipe_sha256, &shard.list_sha256)
    }

    /// Returns the beginnings of the shards, for a plan of the same directory later.
    ///
    /// Errors: as [`read_list`].
    pub fn cuts(&self) -> Result<Shards> {
        let cut = |(index, shard): (usize, &PlannedShard)| -> Result<Cut> {
            for listed in read_list(&self.list_path(index), &shard.list_sha256)? {
                let listed = listed?;
                if !listed.is_shared {
                    return Ok(Cut(Some(entry::key(&listed.entry.path))));
                }
            }
            Ok(Cut(None))
        };
        Ok(Shards::Like(self.shards.iter().enumerate().map(cut).collect::<Result<_>>()?))
    }

    /// Returns a judge of paths, which is true for those that another shard than this one has.
    ///
    /// Errors: as [`read_list`].
    pub fn elsewhere(&self, index: usize) -> Result<impl Fn(&ImagePath) -> bool + Send + Sync + 'static> {
        let Shards::Like(cuts) = self.cuts()? else { return Err(Error::failed("internal: no cuts")) };
        let firsts: Vec<(usize, Vec<u8>)> =
            (0..).zip(cuts).filter_map(|(at, cut)| Some((at, cut.0?))).collect();
        Ok(move |path: &ImagePath| {
            let key = entry::key(path);
            let before = firsts.partition_point(|(_, first)| *first <= key);
            firsts.get(before.saturating_sub(1)).is_some_and(|(owner, _)| *owner != index)
        })
    }

    /// Returns the path of a shard's list.
    pub fn list_path(&self, index: usize) -> PathBuf {
        self.folder.join(list::name(index))
    }
}
