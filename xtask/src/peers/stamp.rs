//! The list of programs in `target/peers`, in `versions.json`.
//!
//! It is written last, so it marks complete peers.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::workspace;

/// One program of another project.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    pub program: String,
    pub package: String,
    /// Version of the Debian package, such as `1:4.7.5-1`.
    pub version: String,
}

impl Peer {
    /// Script that runs the program.
    pub fn wrapper(&self) -> PathBuf {
        workspace::peers().join("bin").join(&self.program)
    }

    /// Returns the upstream version: without Debian's epoch and revision.
    pub fn upstream_version(&self) -> &str {
        let version = self.version.split_once(':').map_or(self.version.as_str(), |(_, rest)| rest);
        version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
    }
}

/// All peers and their origin.
#[derive(Debug, PartialEq)]
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
        Self::from_json(&serde_json::from_str(&text).ok()?)
    }

    pub fn write(&self) -> Result<()> {
        let path = Self::path();
        let text = format!("{:#}\n", self.to_json());
        std::fs::write(&path, text).map_err(|error| Failure::io("write", &path, error))
    }

    fn to_json(&self) -> Value {
        let peer =
            |peer: &Peer| json!({"program": peer.program, "package": peer.package, "version": peer.version});
        json!({"mirror": self.mirror, "peers": self.peers.iter().map(peer).collect::<Vec<_>>()})
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
        let peer = |value: &Value| {
            let (program, package) = (text(value, "program")?, text(value, "package")?);
            Some(Peer { program, package, version: text(value, "version")? })
        };
        let peers = value["peers"].as_array()?.iter().map(peer).collect::<Option<Vec<_>>>()?;
        Some(Self { mirror: text(value, "mirror")?, peers })
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

    #[test]
    fn reads_back_what_it_wrote() {
        let stamp = Stamp { mirror: "http://a.example/debian".into(), peers: vec![peer("1:4.7.5-1")] };
        assert_eq!(Stamp::from_json(&stamp.to_json()), Some(stamp));
    }
}
