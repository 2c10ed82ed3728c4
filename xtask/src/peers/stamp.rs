//! The list of programs in `target/peers`, in `versions.json`.
//!
//! It is written last, so it marks complete peers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::workspace;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Peer {
    pub program: String,
    pub package: String,
    /// Version of the Debian package, such as `1:4.7.5-1`.
    pub version: String,
}

impl Peer {
    pub fn wrapper(&self) -> PathBuf {
        workspace::peers().join("bin").join(&self.program)
    }

    /// Returns the upstream version: without Debian's epoch and revision.
    pub fn upstream_version(&self) -> &str {
        let version = self.version.split_once(':').map_or(self.version.as_str(), |(_, rest)| rest);
        version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Stamp {
    pub mirror: String,
    pub peers: Vec<Peer>,
}

impl Stamp {
    fn path() -> PathBuf {
        workspace::peers().join("versions.json")
    }

    /// Reads the list; none if it is missing or invalid.
    pub fn read() -> Option<Self> {
        let text = std::fs::read_to_string(Self::path()).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub fn write(&self) -> Result<()> {
        let path = Self::path();
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::io("write", &path, error))?;
        std::fs::write(&path, text + "\n").map_err(|error| Failure::io("write", &path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(version: &str) -> Peer {
        Peer { program: "mksquashfs".into(), package: "squashfs-tools".into(), version: version.into() }
    }

    #[test]
    fn takes_epoch_and_revision_off_a_version() {
        assert_eq!(peer("1:4.7.5-1").upstream_version(), "4.7.5");
        assert_eq!(peer("0.5.2-0.3+b1").upstream_version(), "0.5.2");
        assert_eq!(peer("2.0").upstream_version(), "2.0");
    }
}
