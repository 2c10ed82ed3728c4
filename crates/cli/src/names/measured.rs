//! Files whose compression is measured: below a path of a mounted btrfs, which is read from its
//! devices, or in an image.

use packfs::mount::table::Mounted;
use packfs::{CompressionCount, Error, ImagePath, InodeKind, OpenOptions, Opened, Result, ResultExt, Walked};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files to measure.
pub struct Measured {
    /// The image, or the devices of a mounted filesystem.
    pub devices: Vec<PathBuf>,
    /// Path of this machine that is measured, and its place in the filesystem; `None` for all of
    /// an image.
    place: Option<(PathBuf, ImagePath)>,
}

impl Measured {
    /// Finds the files below a path of a mounted btrfs; `None` on any other filesystem.
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

    /// All files of an image.
    pub fn image(path: &Path) -> Self {
        Measured { devices: vec![path.to_owned()], place: None }
    }

    fn open(&self) -> Result<Opened> {
        let [first, others @ ..] = &self.devices[..] else { return Err(Error::failed("no device")) };
        let options = others.iter().fold(OpenOptions::new(), OpenOptions::device);
        let options = if self.place.is_some() { options.subvolume("/") } else { options };
        options.open(first)
    }

    /// Adds the files to a count, as those of the filesystem with this number, without what is
    /// mounted below if `one_filesystem` is set.
    ///
    /// Errors: as [`CompressionCount::add`].
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

/// Writes out what the kernel holds back of a filesystem.
fn synced(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// Returns all devices of a mounted btrfs, that of the mount table first, and lets the kernel
/// forget what it has read of them.
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
        // Only a hint: without it, blocks that were read before may be old.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
    Ok(found)
}
