//! One file per program that decodes whole images.

mod dwarfsextract;
mod fsck_erofs;
mod packfs;
mod sqfs2tar;
mod unsquashfs;

use std::path::Path;

use super::Unpacker;
use crate::results::Missing;

/// All that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Box<dyn Unpacker>, Missing>> {
    vec![
        packfs::Packfs::find(packfs).map(|unpacker| Box::new(unpacker) as _),
        unsquashfs::Unsquashfs::find().map(|unpacker| Box::new(unpacker) as _),
        sqfs2tar::Sqfs2tar::find().map(|unpacker| Box::new(unpacker) as _),
        fsck_erofs::FsckErofs::find().map(|unpacker| Box::new(unpacker) as _),
        dwarfsextract::Dwarfsextract::find().map(|unpacker| Box::new(unpacker) as _),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::results::Program;
    use crate::subject::Unpack;

    pub(super) fn program(name: &str) -> Program {
        Program { name: name.into(), version: "1.0".into(), path: Some(format!("/bin/{name}")) }
    }

    /// What is typed to make a tar, and a directory `d`, of the image `i` in four threads.
    pub(super) fn spelled(unpacker: &dyn Unpacker) -> [Option<String>; 2] {
        [Unpack::Tar, Unpack::Dir(PathBuf::from("d"))]
            .map(|task| unpacker.command(&task, Path::new("i"), 4).map(|command| command.spelled()))
    }
}
