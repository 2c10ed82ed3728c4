//! Records of mounts made by packfs: one small file each, with mount point, image and server.
//!
//! Records are in `/run/packfs` for root and in `$XDG_RUNTIME_DIR/packfs` for others, including
//! root of a user namespace, and do not survive a restart. The mount table is authoritative: a
//! record without its mount is removed when found, unless it was made in another mount namespace,
//! whose table is not visible. A mount works without its record.

use crate::Channel;
use crate::process::Process;
use crate::table::{self, Mounted, escape, unescape};
use packfs_core::{Error, Result, ResultExt};
use rustix::io::Errno;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest record that is read.
const LEN_MAX: u64 = 64 << 10;
/// Type of mounts through FUSE behind `fuse.`, unless another one is asked for.
pub(crate) const SUBTYPE: &str = "packfs";
/// First line of a record.
const MAGIC: &str = "packfs-mount 1";

/// Server of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The kernel's own driver.
    Kernel,
    /// A process of packfs, through FUSE.
    Fuse {
        /// Process id.
        pid: u32,
    },
}

/// A mount made by packfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Mount point; absolute, without links.
    pub at: PathBuf,
    /// The image; absolute.
    pub image: PathBuf,
    /// Offset of the image in its file, in bytes.
    pub offset: u64,
    /// Format; `None` if only the mount table lists the mount.
    pub format: Option<String>,
    /// Server; `None` as for the format.
    pub server: Option<Server>,
    /// Channel between the kernel and the server, classic or io_uring; `None` without a server
    /// through FUSE.
    pub channel: Option<Channel>,
    /// Time of mounting, in seconds since 1970; `None` as for the format.
    pub since: Option<u64>,
}

/// Writes a record of the mount at `record.at`; `since` is filled in. Paths are not resolved: that
/// might open the mount, and block unmounting meanwhile.
///
/// Errors: `Io` if no directory for records is writable, `Failed` if nothing is mounted there.
pub fn write(record: &Record) -> Result<Written> {
    let mounted = table::topmost(&record.at)?;
    let mounted = mounted.ok_or_else(|| Error::failed(format!("nothing is mounted at {:?}", record.at)))?;
    let path = own_folder()?.join(name(&mounted));
    let server = match record.server {
        Some(Server::Fuse { pid }) => format!("fuse {pid}"),
        _ => "kernel".into(),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let channel = record.channel.map_or("none", Channel::word);
    let text = format!(
        "{MAGIC}\nat {}\nimage {}\noffset {}\nformat {}\nserver {server}\nchannel {channel}\nsince {since}\n",
        escape(&record.at),
        escape(&record.image),
        record.offset,
        record.format.as_deref().unwrap_or("unknown"),
    );
    fs::write(&path, text).or_io(|| format!("cannot write {path:?}"))?;
    Ok(Written(path))
}

/// A record that was written; dropping this keeps it.
#[derive(Debug)]
pub struct Written(PathBuf);

impl Written {
    /// Removes it, if it still exists.
    pub fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

/// Returns everything packfs has mounted, in the order of the mount table. Removes records of
/// mounts that are gone.
///
/// Errors: `Io` if the mount table cannot be read.
pub fn list() -> Result<Vec<Record>> {
    let table = table::read()?;
    let mut found: Vec<Record> = Vec::new();
    let mut taken = vec![false; table.len()];
    for folder in folders() {
        for path in record_paths(&folder) {
            let Some(record) = read(&path) else { continue };
            let index =
                table.iter().position(|mounted| path.ends_with(name(mounted)) && mounted.at == record.at);
            match index {
                Some(index) if !taken[index] => {
                    taken[index] = true;
                    found.push(record);
                }
                // Another process removes it at the same time, or we may not remove it.
                _ => drop(fs::remove_file(&path)),
            }
        }
    }
    let untold = table.iter().zip(&taken).filter(|(mounted, taken)| !**taken && is_served(mounted));
    found.extend(untold.map(|(mounted, _)| untold_record(mounted)));
    let place = |record: &Record| table.iter().position(|mounted| mounted.at == record.at);
    found.sort_by_key(place);
    Ok(found)
}

/// Removes the record of a mount that is gone.
pub(crate) fn remove(mounted: &Mounted) {
    for folder in folders() {
        let _ = fs::remove_file(folder.join(name(mounted)));
    }
}

/// Returns the process that serves a mount, or the kernel, if recorded.
pub(crate) fn server_of(mounted: &Mounted) -> Option<Server> {
    let records = folders().into_iter().filter_map(|folder| read(&folder.join(name(mounted))));
    records.filter(|record| record.at == mounted.at).find_map(|record| record.server)
}

/// Returns true if packfs serves a mount, judged by its type, or by its record if another type was
/// asked for.
pub(crate) fn is_served(mounted: &Mounted) -> bool {
    let subtype = mounted.fs_type.strip_prefix("fuse.");
    subtype == Some(SUBTYPE) || subtype.is_some() && matches!(server_of(mounted), Some(Server::Fuse { .. }))
}

/// Returns true if the server of a mount through FUSE has ended. A server that lives may be slow to
/// answer.
pub(crate) fn is_disconnected(at: &Path) -> bool {
    matches!(rustix::fs::statfs(at), Err(Errno::NOTCONN))
}

impl Record {
    /// Returns true if the server has ended, and left a mount that fails with `Transport endpoint
    /// is not connected`.
    pub fn has_ended(&self) -> bool {
        let is_alive = match self.server {
            Some(Server::Kernel) => true,
            // The mount is not accessed, as its server may be stopped.
            Some(Server::Fuse { pid }) => Process::open(pid).is_some_and(|server| !server.has_ended()),
            None => false,
        };
        !is_alive && is_disconnected(&self.at)
    }
}

fn untold_record(mounted: &Mounted) -> Record {
    Record {
        at: mounted.at.clone(),
        image: mounted.source.clone(),
        offset: 0,
        format: None,
        server: None,
        channel: None,
        since: None,
    }
}

/// Returns the records made in this mount namespace.
fn record_paths(folder: &Path) -> Vec<PathBuf> {
    let end = format!("-{}.mount", namespace());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(&end));
    ours.map(|entry| entry.path()).collect()
}

fn read(path: &Path) -> Option<Record> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > LEN_MAX {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return None;
    }
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
    let field = |key: &str| fields.iter().find(|(found, _)| *found == key).map(|(_, value)| *value);
    let server = field("server")?;
    Some(Record {
        at: unescape(field("at")?.as_bytes()),
        image: unescape(field("image")?.as_bytes()),
        offset: field("offset")?.parse().ok()?,
        format: field("format").map(str::to_owned),
        server: Some(match server.strip_prefix("fuse ") {
            Some(pid) => Server::Fuse { pid: pid.parse().ok()? },
            None => Server::Kernel,
        }),
        channel: field("channel").and_then(|word| word.parse().ok()),
        since: field("since")?.parse().ok(),
    })
}

/// Returns the name of a mount's record: its device number, which is unique at a time, and its
/// namespace.
fn name(mounted: &Mounted) -> String {
    let (major, minor) = mounted.device;
    format!("{major}-{minor}-{}.mount", namespace())
}

/// Returns the number of this process's mount namespace; 0 if unknown.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |found| found.ino())
}

/// Returns the directories with records that concern this process.
fn folders() -> Vec<PathBuf> {
    let mut all = own_paths();
    if !all.iter().any(|path| path == Path::new(ROOT)) {
        all.push(ROOT.into());
    }
    all
}

const ROOT: &str = "/run/packfs";

/// Returns the directories for this user's records, the best one first. Root of a user namespace
/// has no access to root's directory and uses those of other users.
fn own_paths() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let users = match runtime {
        Some(runtime) => runtime.join("packfs"),
        None => std::env::temp_dir().join(format!("packfs-{}", uid.as_raw())),
    };
    if uid.is_root() { vec![ROOT.into(), users] } else { vec![users] }
}

/// Returns the directory for this user's mounts; creates it if needed.
///
/// Errors: `Io` if it cannot be created, `Failed` if it belongs to another user.
pub(crate) fn own_folder() -> Result<PathBuf> {
    let mut error = None;
    for path in own_paths() {
        match make_own(&path) {
            Ok(()) => return Ok(path),
            Err(this) => error = error.or(Some(this)),
        }
    }
    Err(error.unwrap_or_else(|| Error::failed("cannot find a directory for records")))
}

fn make_own(path: &Path) -> Result<()> {
    let uid = rustix::process::geteuid();
    let mode = if path == Path::new(ROOT) { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Error::io(format!("cannot create {path:?}"), error));
        }
        _ => {}
    }
    // In a world-writable directory, another user may have created it first.
    let found = fs::symlink_metadata(path).or_io(|| format!("cannot read {path:?}"))?;
    if !found.is_dir() || found.uid() != uid.as_raw() {
        return Err(Error::failed(format!("cannot use {path:?}: it belongs to another user")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_mount_that_is_gone_is_not_listed_and_is_removed() {
        let Ok(folder) = own_folder() else { return packfs_testkit::skip("no folder for records") };
        let gone = Mounted {
            device: (4_000_000, 7),
            root: "/".into(),
            at: "/nowhere at all".into(),
            fs_type: "fuse.packfs".into(),
            source: "x".into(),
        };
        let path = folder.join(name(&gone));
        let text = format!(
            "{MAGIC}\nat /nowhere\\040at\\040all\nimage /x\noffset 0\nformat erofs\nserver fuse 12\nchannel uring\nsince 5\n"
        );
        fs::write(&path, text).unwrap();
        let read_back = read(&path).unwrap();
        assert_eq!(read_back.at, Path::new("/nowhere at all"));
        assert_eq!(read_back.server, Some(Server::Fuse { pid: 12 }));
        assert_eq!(read_back.channel, Some(Channel::Uring));
        assert!(list().unwrap().iter().all(|record| record.at != gone.at));
        assert!(!path.exists());
    }

    #[test]
    fn ignores_a_damaged_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for text in [
            "",
            "packfs-mount 2\n",
            "packfs-mount 1\nat /x\n",
            "packfs-mount 1\nat /x\nimage /y\noffset q\nserver kernel\nsince 1\n",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path), None, "{text:?}");
        }
    }
}
