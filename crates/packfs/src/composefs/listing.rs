//! Images as dumps, and the objects that they name.

use crate::objects::ObjectDirs;
use crate::{Opened, Walked};
use packfs_core::{Error, ImagePath, Result, ResultExt, escaped, usize_of};
use packfs_format::{Format, InodeId, InodeKind, Object};
use packfs_formats::composefs::{Composefs, Inode, Line};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::path::PathBuf;

/// Most bytes of a file in an image.
const CONTENT_LEN_MAX: u64 = 5000;

/// An object, and a file that has its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectUse {
    /// The object.
    pub object: Object,
    /// Path of the first file with it.
    pub path: ImagePath,
}

fn check(opened: &Opened) -> Result<()> {
    let (name, wanted) = (opened.format().name(), Composefs.info().name);
    if name == wanted {
        Ok(())
    } else {
        Err(Error::failed(format!("{} is a {name} image, not {wanted}", opened.image().name())))
    }
}

/// Writes an image as a dump (composefs-dump(5)), from which the same image can be made again.
/// Attributes are sorted by name, and directories have the size 0.
///
/// Errors: `Corrupt`; `Failed` for an image of another format; `Unsupported` for digests other than
/// SHA-256, which a dump cannot state; `Io`.
pub fn dump(opened: &Opened, out: &mut dyn Write) -> Result<()> {
    dump_where(opened, &|_| true, out)
}

/// Writes a dump like [`dump`], of the paths for which `takes` returns true.
///
/// Errors: as there.
pub fn dump_where(opened: &Opened, takes: &dyn Fn(&ImagePath) -> bool, out: &mut dyn Write) -> Result<()> {
    check(opened)?;
    let mut paths: HashMap<InodeId, Vec<u8>> = HashMap::new();
    let mut text = Vec::new();
    for walked in opened.walk() {
        let walked = walked?;
        if !takes(&walked.path) {
            continue;
        }
        let path = [b"/", walked.path.as_bytes()].concat();
        let inode = inode_of(opened, &walked).map_err(|error| error.at(format!("{:?}", walked.path)))?;
        let link = paths.get(&walked.id).map(Vec::as_slice);
        text.clear();
        Line { path: &path, inode: &inode, link }.write(&mut text);
        out.write_all(&text).or_io(|| "cannot write the dump")?;
        if walked.inode.kind != InodeKind::Directory {
            paths.entry(walked.id).or_insert(path);
        }
    }
    Ok(())
}

fn inode_of(opened: &Opened, walked: &Walked) -> Result<Inode> {
    let (volume, found) = (opened.volume(), &walked.inode);
    let mut inode = Inode::new(found.kind.file_type(), found.meta.mode);
    inode.links = found.links;
    (inode.owner, inode.mtime) = (found.meta.owner, found.meta.mtime);
    inode.xattrs = volume.xattrs(walked.id)?;
    match found.kind {
        InodeKind::File { len } => {
            inode.size = len;
            if let Some(object) = volume.object(walked.id)? {
                let digest = object.digest.map(|digest| digest.try_into()).transpose();
                inode.file.digest = digest.map_err(|_| {
                    Error::unsupported("request", "a dump can state no digest other than SHA-256")
                })?;
                inode.file.object = object.path;
            } else if (1..=CONTENT_LEN_MAX).contains(&len) {
                let mut content = vec![0; usize_of(len)];
                let cannot = || "cannot read contents in the image";
                opened.open_id(walked.id)?.read_exact(&mut content).or_io(cannot)?;
                inode.file.content = Some(content.into());
            }
        }
        InodeKind::Symlink => {
            inode.target = volume.read_link(walked.id)?;
            inode.size = inode.target.len() as u64;
        }
        InodeKind::BlockDevice(number) | InodeKind::CharDevice(number) => inode.device = number.encode(),
        InodeKind::Directory | InodeKind::Fifo | InodeKind::Socket => {}
    }
    Ok(inode)
}

/// Returns the objects of an image, each once, by their paths.
///
/// Errors: `Corrupt`, `Io`; `Failed` for an image of another format.
pub fn objects(opened: &Opened) -> Result<Vec<ObjectUse>> {
    check(opened)?;
    let mut uses: BTreeMap<Vec<u8>, ObjectUse> = BTreeMap::new();
    for walked in opened.walk() {
        let walked = walked?;
        let object = opened.volume().object(walked.id);
        if let Some(object) = object.map_err(|error| error.at(format!("{:?}", walked.path)))? {
            let path = walked.path;
            uses.entry(object.path.clone()).or_insert(ObjectUse { object, path });
        }
    }
    Ok(uses.into_values().collect())
}

/// Returns those objects that are in none of some directories.
///
/// Errors: `Unsupported` for an object whose path is no digest; `Usage`, `Io` for the directories.
pub fn missing(objects: Vec<ObjectUse>, dirs: &[PathBuf]) -> Result<Vec<ObjectUse>> {
    let dirs = ObjectDirs::open(dirs)?;
    let mut missing = Vec::new();
    for used in objects {
        if dirs
            .find(&used.object)
            .map_err(|error| error.at(format!("\"{}\"", escaped(used.path.as_bytes()))))?
            .is_none()
        {
            missing.push(used);
        }
    }
    Ok(missing)
}
