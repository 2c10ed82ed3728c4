//! Files whose compression is measured: below a path of a mounted btrfs, read from its devices, or
//! in an image.

use packfs::mount::table::Mounted;
use packfs::{CompressionCount, Error, ImagePath, InodeKind, OpenOptions, Opened, Result, ResultExt, Walked};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files whose compression is measured.
pub struct Measured {
    /// Devices of the filesystem, or the image.
    pub devices: Vec<PathBuf>,
    /// Measured path of this machine, and its path in the filesystem; `None` for a whole image.
    place: Option<(PathBuf, ImagePath)>,
}

impl Measured {
    /// Returns the files below a path of this machine; `None` unless the filesystem is btrfs.
    ///
    /// Errors: `Io`.
    pub fn mounted(path: &Path, mounts: &[Mounted]) -> Result<Option<Self>> {
        let cannot = || format!("open(\"{}\")", path.display());
        let host = path.canonicalize().or_io(cannot)?;
        // Later mounts cover earlier ones.
        let mounted = mounts.iter().rev().find(|mounted| host.starts_with(&mounted.at));
        let Some(mounted) = mounted.filter(|mounted| mounted.fs_type == "btrfs") else { return Ok(None) };
        let below = host.strip_prefix(&mounted.at).unwrap_or(Path::new(""));
        let place = ImagePath::parse(mounted.root.join(below).as_os_str().as_bytes())?;
        synced(&host).or_io(cannot)?;
        Ok(Some(Measured { devices: devices(&mounted.source)?, place: Some((host, place)) }))
    }

    /// Returns all files of an image.
    pub fn image(path: &Path) -> Self {
        Measured { devices: vec![path.to_owned()], place: None }
    }

    fn open(&self) -> Result<Opened> {
        let [first, others @ ..] = &self.devices[..] else { return Err(Error::failed("no device")) };
        let options = others.iter().fold(OpenOptions::new(), OpenOptions::device);
        let options = if self.place.is_some() { options.subvolume("/") } else { options };
        options.open(first)
    }

    /// Adds the files to `count`; `number` is that of the filesystem. With `one_filesystem`, mounts
    /// below are excluded.
    ///
    /// Errors: those of opening and reading the filesystem.
    pub fn count(&self, number: usize, one_filesystem: bool, count: &mut CompressionCount) -> Result<()> {
        let opened = self.open()?;
        let Some((host, top)) = &self.place else { return count.add(number, &opened, |_| true) };
        let device = host.symlink_metadata().map(|found| found.dev()).ok();
        let mut left_out: Option<ImagePath> = None;
        count.add(number, &opened, |walked: &Walked| {
            if !walked.path.starts_with(top)
                || left_out.as_ref().is_some_and(|above| walked.path.starts_with(above))
            {
                return false;
            }
            if one_filesystem && walked.inode.kind == InodeKind::Directory {
                let below = walked.path.as_bytes().strip_prefix(top.as_bytes()).unwrap_or_default();
                let below = below.strip_prefix(b"/").unwrap_or(below);
                let found = host.join(OsStr::from_bytes(below)).symlink_metadata().map(|found| found.dev());
                if found.ok() != device {
                    left_out = Some(walked.path.clone());
                    return false;
                }
            }
            true
        })
    }
}

/// Writes dirty pages of a filesystem to disk.
fn synced(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// The device of the mount table comes first. Drops cached pages of all devices.
fn devices(source: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot open {source:?}");
    let source = source.canonicalize().or_io(cannot)?;
    let mut found = vec![source.clone()];
    let name = source.file_name().unwrap_or_default();
    for filesystem in std::fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten() {
        let folder = filesystem.path().join("devices");
        if folder.join(name).exists() {
            let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let others = names.map(|entry| entry.file_name()).filter(|other| other != name);
            found.extend(others.map(|other| Path::new("/dev").join(other)));
        }
    }
    for device in &found {
        let file = File::open(device).or_io(|| format!("cannot open {device:?}"))?;
        // Only a hint: without it, blocks read before may be outdated.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    Ok(found)
}
