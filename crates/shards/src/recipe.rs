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
    /// Names and texts, as on the command line; those that no table has are options of the format.
    pub options: Vec<(String, String)>,
    /// Files that options name, and the SHA-256 of each.
    pub files: Vec<(String, String)>,
    /// Latest modification time in seconds since 1970, by the environment of the plan.
    pub epoch: Option<i64>,
}

impl Recipe {
    /// Returns the SHA-256 of the options and of the version of packfs, in hexadecimal.
    ///
    /// Errors: `Failed`.
    pub fn digest(&self) -> Result<String> {
        Ok(digest::of_bytes(&json::text(&(TOOL_VERSION, self))?))
    }
}
