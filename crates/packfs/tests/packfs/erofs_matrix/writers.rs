//! Writers of images.

use super::rows::Row;
use packfs_testkit::{Peer, peer};
use std::path::Path;

pub enum Writer {
    MkfsErofs(Peer),
    Packfs,
}

impl Writer {
    /// None, and the test skipped, where a program is missing.
    pub fn all() -> Option<[Self; 2]> {
        Some([Writer::MkfsErofs(peer("mkfs.erofs")?), Writer::Packfs])
    }

    pub fn name(&self) -> &'static str {
        match self {
            Writer::MkfsErofs(_) => "mkfs.erofs",
            Writer::Packfs => "packfs",
        }
    }

    /// Makes an image of a directory as the row asks for; the error is what the writer says.
    pub fn write(&self, row: &Row, source: &Path, image: &Path) -> Result<(), String> {
        match self {
            Writer::MkfsErofs(mkfs) => {
                let mut command = mkfs.command(&[&"--quiet"]);
                command.args(row.mkfs).arg(image).arg(source);
                let output = command.output().map_err(|e| e.to_string())?;
                if output.status.success() {
                    return Ok(());
                }
                Err(String::from_utf8_lossy(&output.stderr).trim().into())
            }
            Writer::Packfs => {
                let (codec, cluster_len, options) = row.packfs;
                let mut pack =
                    packfs::pack(source, image).format("erofs").codec(codec).block_size(cluster_len);
                for (name, value) in options {
                    pack = pack.option(*name, *value);
                }
                pack.jobs(2).sync(false).run().map(|_| ()).map_err(|e| e.to_string())
            }
        }
    }
}
