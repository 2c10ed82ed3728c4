//! Programs that are timed: packfs and those it is compared with, one file each.
//!
//! A file tells how its program is asked to do a task, and which version it is. What is measured, and how often, is
//! decided elsewhere.

mod erofsfuse;
mod fsck_erofs;
mod mkfs_erofs;
mod mksquashfs;
mod packfs;
mod sqfs2tar;
mod squashfuse_ll;
mod unsquashfs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::peers;

pub use erofsfuse::ErofsFuse;
pub use fsck_erofs::FsckErofs;
pub use mkfs_erofs::MkfsErofs;
pub use mksquashfs::Mksquashfs;
pub use packfs::Packfs;
pub use sqfs2tar::Sqfs2tar;
pub use squashfuse_ll::SquashfuseLl;
pub use unsquashfs::Unsquashfs;

/// A format of images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Squashfs,
    Erofs,
}

impl Format {
    pub const ALL: [Self; 2] = [Self::Squashfs, Self::Erofs];

    /// As packfs spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Squashfs => "squashfs",
            Self::Erofs => "erofs",
        }
    }
}

/// What is shared between files beyond what a format's tools share without being asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Nothing, and every file's end has blocks of its own.
    Plain,
    /// Nothing; ends of files lie beside their inodes in EROFS.
    InlineTails,
    /// Tails and small files share clusters of EROFS.
    Fragments,
    /// Equal ranges of different files are stored once.
    Dedupe,
}

impl Sharing {
    /// How it is named behind a case; empty where there is nothing to say.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::InlineTails => "inline tails",
            Self::Fragments => "fragments",
            Self::Dedupe => "dedupe",
        }
    }
}

/// A compressor, with the level that is given to every program alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codec {
    /// As packfs spells it.
    pub name: &'static str,
    /// None where the compressor has none, or where its default is what everybody uses.
    pub level: Option<u32>,
}

impl Codec {
    /// `NAME` or `NAME:LEVEL`.
    pub fn label(self) -> String {
        self.level.map_or_else(|| self.name.to_owned(), |level| format!("{}:{level}", self.name))
    }
}

/// One thing to do, in as many threads as `jobs`.
#[derive(Clone, Debug)]
pub enum Task {
    Pack {
        source: PathBuf,
        image: PathBuf,
        format: Format,
        sharing: Sharing,
        codec: Codec,
        block_len: u32,
        jobs: usize,
    },
    Unpack {
        image: PathBuf,
        dir: PathBuf,
        jobs: usize,
    },
    /// To standard output.
    Tar {
        image: PathBuf,
        jobs: usize,
    },
    /// By FUSE, until it is unmounted.
    Mount {
        image: PathBuf,
        dir: PathBuf,
    },
}

/// A program that can do some of the tasks.
pub trait Rival {
    fn name(&self) -> &'static str;

    /// As the program's makers count.
    fn version(&self) -> &str;

    /// The words that run it on a task; none if it does no such task.
    fn command(&self, task: &Task) -> Option<Vec<OsString>>;
}

/// The words of a command line, from pieces of different types.
fn words(start: &[OsString], rest: &[&dyn AsRef<std::ffi::OsStr>]) -> Vec<OsString> {
    let rest = rest.iter().map(|word| word.as_ref().to_owned());
    start.iter().cloned().chain(rest).collect()
}

/// A program of Debian: how it is run, and its version.
struct DebianProgram {
    command: Vec<OsString>,
    version: String,
}

impl DebianProgram {
    fn find(program: &str) -> Result<Self> {
        let (command, peer) = peers::command(program)?;
        Ok(Self { command, version: peer.upstream_version().to_owned() })
    }
}

/// A command as one would type it: a peer by its name, without the loader it is run by.
pub fn spelled(command: &[OsString]) -> String {
    let root = crate::workspace::root();
    let shown = |word: &OsString| {
        let path = Path::new(word);
        let short = path.strip_prefix(&root).unwrap_or(path);
        crate::shell::quoted(short.as_os_str())
    };
    let program = command.iter().rposition(is_program).unwrap_or(0);
    let name = command.get(program).map(|word| Path::new(word).file_name().unwrap_or(word).to_owned());
    let rest = command.iter().skip(program + 1).map(shown);
    name.iter().map(|name| crate::shell::quoted(name)).chain(rest).collect::<Vec<_>>().join(" ")
}

fn is_program(word: &OsString) -> bool {
    let root = crate::workspace::peers().join("root/usr/bin");
    Path::new(word).starts_with(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_a_codec_as_packfs_spells_it() {
        assert_eq!(Codec { name: "gzip", level: Some(9) }.label(), "gzip:9");
        assert_eq!(Codec { name: "lz4", level: None }.label(), "lz4");
    }

    #[test]
    fn spells_a_peer_without_its_loader() {
        let root = crate::workspace::peers().join("root/usr");
        let command: Vec<OsString> = vec![
            root.join("lib64/ld-linux.so.2").into(),
            "--library-path".into(),
            root.join("lib").into(),
            root.join("bin/mksquashfs").into(),
            crate::workspace::corpora().join("debian").into(),
            "-noappend".into(),
        ];
        assert_eq!(spelled(&command), "mksquashfs target/corpora/debian -noappend");
        assert_eq!(spelled(&["/a/packfs".into(), "tar".into()]), "packfs tar");
    }
}
