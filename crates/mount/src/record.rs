//! Records of what packfs mounted: one small file a mount, so that anybody can tell what is
//! mounted, from what, by whom.
//!
//! They lie in `/run/packfs` for root and in `$XDG_RUNTIME_DIR/packfs` for others, root of a user
//! namespace among them, and are gone after a restart. The table of mounts has the last word: a
//! record without its mount is removed by whoever meets it, unless it was made in another mount
//! namespace, whose table cannot be seen from here. A mount works without its record, too.

use crate::table::{self, Mounted, escape, unescape};
use packfs_core::{Error, Result, ResultExt};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest record that is read.
const LEN_MAX: u64 = 64 << 10;
/// First line of a record.
const MAGIC: &str = "packfs-mount 1";

/// Who serves a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The kernel's own driver.
    Kernel,
    /// A process of packfs, through FUSE.
    Fuse {
        /// Its id.
        pid: u32,
    },
}

/// One mount that packfs made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where; absolute, without links.
    pub at: PathBuf,
    /// The image; absolute.
    pub image: PathBuf,
    /// Where the image begins in its file, in bytes.
    pub offset: u64,
    /// Its format; `None` where only the table of mounts tells of the mount.
    pub format: Option<String>,
    /// Who serves it; `None` as for the format.
    pub server: Option<Server>,
    /// When it was mounted, seconds since 1970; `None` as for the format.
    pub since: Option<u64>,
}

/// Writes a record of what is mounted at `record.at` now; `since` is filled in. Paths are taken as
/// they are: to follow them might lead into the mount, which nobody could unmount meanwhile.
///
/// Errors: `Io` if no folder for records can be written, `Failed` if nothing is mounted there.
pub fn write(record: &Record) -> Result<Written> {
    let mounted = table::topmost(&record.at)?;
    let mounted = mounted.ok_or_else(|| Error::failed(format!("nothing is mounted at {:?}", record.at)))?;
    let path = own_folder()?.join(name(&mounted));
    let server = match record.server {
        Some(Server::Fuse { pid }) => format!("fuse {pid}"),
        _ => "kernel".into(),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let text = format!(
        "{MAGIC}\nat {}\nimage {}\noffset {}\nformat {}\nserver {server}\nsince {since}\n",
        escape(&record.at),
        escape(&record.image),
        record.offset,
        record.format.as_deref().unwrap_or("unknown"),
    );
    fs::write(&path, text).or_io(|| format!("cannot write {path:?}"))?;
    Ok(Written(path))
}

/// A record that was written; it stays when this is dropped.
#[derive(Debug)]
pub struct Written(PathBuf);

impl Written {
    /// Removes it, if nobody else has.
    pub fn remove(self) {
        let _ = fs::remove_file(self.0);
    }
}

/// Everything packfs mounted that is mounted still, in the order of the table of mounts. Removes
/// records of what is not.
///
/// Errors: `Io` where the table of mounts cannot be read.
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
                // Another process removes it at the same time, or it is not ours to remove.
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

/// The process that serves a mount, if its record tells.
pub(crate) fn server_of(mounted: &Mounted) -> Option<Server> {
    folders().iter().find_map(|folder| read(&folder.join(name(mounted)))?.server)
}

/// Whether a mount is one that packfs serves, by its type.
pub(crate) fn is_served(mounted: &Mounted) -> bool {
    mounted.fs_type == "fuse.packfs"
}

fn untold_record(mounted: &Mounted) -> Record {
    Record {
        at: mounted.at.clone(),
        image: mounted.source.clone(),
        offset: 0,
        format: None,
        server: None,
        since: None,
    }
}

/// The records made in this mount namespace.
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
        since: field("since")?.parse().ok(),
    })
}

/// A mount is known by the number of its file system, which no two have at a time, and the
/// namespace it is seen in.
fn name(mounted: &Mounted) -> String {
    let (major, minor) = mounted.device;
    format!("{major}-{minor}-{}.mount", namespace())
}

/// Number of the mount namespace of this process; 0 where that cannot be found out.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |found| found.ino())
}

/// Where records may lie that concern this process.
fn folders() -> Vec<PathBuf> {
    let mut all = own_paths();
    if !all.iter().any(|path| path == Path::new(ROOT)) {
        all.push(ROOT.into());
    }
    all
}

const ROOT: &str = "/run/packfs";

/// Where this user's records may lie, the best place first. Root of a user namespace has no right
/// to root's folder and takes what other users take.
fn own_paths() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let users = match runtime {
        Some(runtime) => runtime.join("packfs"),
        None => std::env::temp_dir().join(format!("packfs-{}", uid.as_raw())),
    };
    if uid.is_root() { vec![ROOT.into(), users] } else { vec![users] }
}

/// The folder for what this user mounts; made if need be.
///
/// Errors: `Io` if it cannot be made, `Failed` if it is somebody else's.
pub(crate) fn own_folder() -> Result<PathBuf> {
    let mut error = None;
    for path in own_paths() {
        match make_own(&path) {
            Ok(()) => return Ok(path),
            Err(this) => error = error.or(Some(this)),
        }
    }
    Err(error.unwrap_or_else(|| Error::failed("there is no folder for records")))
}

fn make_own(path: &Path) -> Result<()> {
    let uid = rustix::process::geteuid();
    let mode = if path == Path::new(ROOT) { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Error::io(format!("cannot make {path:?}"), error));
        }
        _ => {}
    }
    // In a folder that all may write, somebody else may have been first.
    let found = fs::symlink_metadata(path).or_io(|| format!("cannot read {path:?}"))?;
    if !found.is_dir() || found.uid() != uid.as_raw() {
        return Err(Error::failed(format!("{path:?} belongs to somebody else")));
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
            at: "/nowhere at all".into(),
            fs_type: "fuse.packfs".into(),
            source: "x".into(),
        };
        let path = folder.join(name(&gone));
        let text = format!(
            "{MAGIC}\nat /nowhere\\040at\\040all\nimage /x\noffset 0\nformat erofs\nserver fuse 12\nsince 5\n"
        );
        fs::write(&path, text).unwrap();
        let read_back = read(&path).unwrap();
        assert_eq!(read_back.at, Path::new("/nowhere at all"));
        assert_eq!(read_back.server, Some(Server::Fuse { pid: 12 }));
        assert!(list().unwrap().iter().all(|record| record.at != gone.at));
        assert!(!path.exists());
    }

    #[test]
    fn a_record_that_is_damaged_is_nobodys() {
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
