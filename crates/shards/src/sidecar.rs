//! Sidecar of a packed shard: written last, it says that the shard is complete.

use crate::{Ends, Plan, PlannedShard, TOOL_VERSION, json};
use packfs_core::{Error, Result, escaped};
use serde::{Deserialize, Serialize};

/// Version of the format of sidecars.
const VERSION: u32 = 1;

/// Sidecar of a packed shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Version of the format of sidecars.
    pub packfs_shard: u32,
    /// Version of packfs that packed the shard.
    pub tool_version: String,
    /// SHA-256 of the options and of the version of packfs.
    pub recipe_sha256: String,
    /// SHA-256 of the list.
    pub list_sha256: String,
    /// Length of the shard in bytes.
    pub size: u64,
    /// SHA-256 of the shard.
    pub sha256: String,
    /// SHA-256 of its first and last 64 KiB.
    pub ends_sha256: String,
    /// Entries of every type, with shared directories; hard links count once.
    pub nodes: u64,
    /// Regular files; hard links count once.
    pub files: u64,
    /// Their length in bytes.
    pub file_bytes: u64,
    /// Files and directories that could not be read, and are missing or empty.
    pub unreadable: u64,
}

impl Sidecar {
    /// Returns the sidecar of a shard with this length and these digests, without counts.
    pub fn new(plan: &Plan, shard: &PlannedShard, ends: Ends, sha256: String) -> Self {
        Sidecar {
            packfs_shard: VERSION,
            tool_version: TOOL_VERSION.to_owned(),
            recipe_sha256: plan.recipe_sha256.clone(),
            list_sha256: shard.list_sha256.clone(),
            size: ends.size,
            sha256,
            ends_sha256: ends.sha256,
            nodes: 0,
            files: 0,
            file_bytes: 0,
            unreadable: 0,
        }
    }

    /// Returns the text of the sidecar.
    ///
    /// Errors: `Failed`.
    pub fn text(&self) -> Result<Vec<u8>> {
        json::text(self)
    }

    /// Reads a sidecar, and compares it with the plan.
    ///
    /// Errors: `Corrupt` for what is none, and for that of another shard.
    pub fn parse(text: &[u8], plan: &Plan, shard: &PlannedShard) -> Result<Self> {
        let sidecar: Sidecar = json::parse("sidecar", text)?;
        let rows = [
            ("tool_version", &sidecar.tool_version, &plan.tool_version),
            ("recipe_sha256", &sidecar.recipe_sha256, &plan.recipe_sha256),
            ("list_sha256", &sidecar.list_sha256, &shard.list_sha256),
        ];
        if sidecar.packfs_shard != VERSION {
            let found = sidecar.packfs_shard;
            return Err(Error::unsupported("sidecar", format!("version {found}, {VERSION} is known")));
        }
        match rows.iter().find(|(_, found, planned)| found != planned) {
            None => Ok(sidecar),
            Some((key, found, planned)) => {
                let found = escaped(found.as_bytes());
                Err(Error::corrupt("sidecar", format!("{key} is {found}, the plan has {planned}")))
            }
        }
    }
}
