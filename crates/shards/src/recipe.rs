//! Options that all shards of a plan are packed with.

use crate::{TOOL_VERSION, digest, json};
use packfs_core::Result;
use serde::{Deserialize, Serialize};

/// Options that all shards of a plan are packed with. What is not set follows from the format and
/// the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the format.
    pub format: String,
    /// Codec as `NAME[:LEVEL][,KEY=VALUE...]`.
    pub codec: Option<String>,
    /// Block size in bytes.
    pub block_size: Option<u32>,
    /// Name of the goal.
    pub optimize: String,
    /// Options of the format, by name and value.
    pub options: Vec<(String, String)>,
    /// Order of small files.
    pub order: Option<Placement>,
    /// Least saving of compressed data, in percent.
    pub min_gain: Option<u8>,
    /// Set to search for the smallest result for each block.
    pub effort_max: bool,
    /// Set to leave out files that cannot be read.
    pub keep_going: bool,
    /// Set to lose attributes that the format cannot hold.
    pub lossy: bool,
    /// Globs of paths that the plan excludes.
    pub exclude: Vec<String>,
    /// Set to exclude other filesystems from the plan.
    pub one_file_system: bool,
    /// Owner and group of everything.
    pub owner: Option<(u32, u32)>,
    /// Latest modification time, in seconds since 1970.
    pub mtime_max: Option<i64>,
    /// Globs of extended attributes to exclude.
    pub xattr_exclude: Vec<String>,
}

/// Order of small files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Tree order.
    Path,
    /// Extension, then name.
    Kind,
    /// Similarity within this range, in bytes; `None`: the range that the format reads well.
    Similarity(Option<u64>),
}

impl Recipe {
    /// Returns the SHA-256 of the options and of the version of packfs, in hexadecimal.
    ///
    /// Errors: `Failed`.
    pub fn digest(&self) -> Result<String> {
        Ok(digest::of_bytes(&json::text(&(TOOL_VERSION, self))?))
    }
}
