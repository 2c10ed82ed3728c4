//! Destination of an image: a file renamed at the end, a block device, or a pipe.
//!
//! The front of an image is written last. A pipe therefore gets the image once it is complete;
//! until then it is kept in an unnamed temporary file. A block device is written in place.

use crate::size_limit::{Place, unwritten};
use packfs_core::new_file::{create_temporary, name_it};
use packfs_core::{Error, Progress, Result, ResultExt, copy_exactly, shown_place, url_scheme};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Path that stands for standard output.
const STDOUT: &str = "-";
/// Bytes cleared at the start of a block device first, so that old contents are not taken for the
/// new image after a failure.
const HEAD_LEN: u64 = 4096;
const COPY_LEN: u64 = 1 << 20;

pub(crate) enum Destination {
    /// A file; `temporary` is `None` as long as the file has no name.
    File { path: PathBuf, temporary: Option<PathBuf> },
    /// A block device and its length; `waiting` is the device if the image is first written to
    /// another file until it is known to fit.
    Device { path: PathBuf, len: u64, waiting: Option<File> },
    /// A pipe, or standard output of any type.
    Pipe { name: String, pipe: File },
}

impl Destination {
    pub(crate) fn open(path: &Path) -> Result<(Self, File)> {
        let cannot = || format!("cannot write to {path:?}");
        if path == Path::new(STDOUT) {
            let name = "standard output".to_owned();
            let stdout = io::stdout();
            if stdout.is_terminal() {
                let error = Error::usage("cannot write an image to the terminal");
                return Err(error.hint("name a file, or redirect standard output"));
            }
            let pipe = stdout.as_fd().try_clone_to_owned().or_io(|| format!("cannot write to {name}"))?;
            return Ok((Destination::Pipe { name, pipe: pipe.into() }, nameless_file(path)?));
        }
        if url_scheme(path).is_some() {
            let error = Error::usage(format!("cannot write to {}: a file is needed", shown_place(path)));
            return Err(error.hint("packfs pack writes to s3://BUCKET/KEY"));
        }
        match std::fs::metadata(path).ok().map(|found| found.file_type()) {
            Some(found) if found.is_block_device() => {
                let exclusive = OFlags::EXCL.bits() as i32;
                let file = File::options()
                    .read(true)
                    .write(true)
                    .custom_flags(exclusive)
                    .open(path)
                    .or_io(cannot)?;
                let len = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
                    .or_io(|| format!("cannot determine the length of {path:?}"))?;
                Ok((Destination::Device { path: path.into(), len, waiting: None }, file))
            }
            Some(found) if found.is_fifo() => {
                let pipe = File::options().write(true).open(path).or_io(cannot)?;
                let name = format!("{path:?}");
                Ok((Destination::Pipe { name, pipe }, nameless_file(path)?))
            }
            Some(found) if !found.is_file() => Err(Error::usage(format!(
                "cannot write an image to {path:?}: not a regular file, block device or pipe"
            ))),
            _ => {
                let (file, temporary) = create_temporary(path, 0o666)?;
                Ok((Destination::File { path: path.into(), temporary }, file))
            }
        }
    }

    /// Replaces a device by a temporary file if the image may not fit; returns the file to write
    /// to.
    ///
    /// Errors: `Failed` if there is no space for the temporary file and the image has a limit of
    /// its own. Otherwise the device is written in place, with a warning.
    pub(crate) fn stage(&mut self, file: File, place: &Place, progress: &dyn Progress) -> Result<File> {
        let Destination::Device { path, len, waiting } = self else { return Ok(file) };
        if !place.may_lack_room_on(*len) {
            return Ok(file);
        }
        let folder = temporary_folder();
        let needed = place.len_max_on(*len).min(place.len_bound);
        let free =
            rustix::fs::statvfs(&folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
        if free >= needed {
            *waiting = Some(file);
            return nameless_file(Path::new(STDOUT));
        }
        let lack = format!("cannot test if the image fits in {path:?}: not enough space in {folder:?}");
        if place.size_limit.max_size.is_some() {
            let error = Error::failed(format!("{lack}, {free} bytes are free, up to {needed} are needed"));
            return Err(
                error.hint("set TMPDIR to a directory with more space, or omit --max-size to write in place")
            );
        }
        progress.warn(&format!("{lack}; if it does not, the previous contents are lost"));
        Ok(file)
    }

    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Destination::Device { waiting: None, .. })
    }

    pub(crate) fn keep_beginning(&self, file: &File, base: u64) -> Result<()> {
        match self {
            Destination::File { path, .. } if base > 0 && path.exists() => {
                let name = || format!("cannot copy the first {base} bytes of {path:?}");
                let old = File::open(path).or_io(name)?;
                io::copy(&mut io::Read::take(&old, base), &mut &*file).or_io(name)?;
            }
            Destination::Device { waiting: None, len, .. } => self.clear_head(file, base, *len)?,
            _ => {}
        }
        Ok(())
    }

    fn clear_head(&self, device: &File, base: u64, len: u64) -> Result<()> {
        let head = vec![0; HEAD_LEN.min(len.saturating_sub(base)) as usize];
        device.write_all_at(&head, base).or_io(|| format!("cannot write {}", self.name()))
    }

    /// Clears the front of a device so that a wrong image is not taken for a valid one. Other
    /// destinations have no name yet.
    pub(crate) fn spoil(&self, file: &File, base: u64) {
        if self.is_in_place() {
            // The error that led here is reported instead.
            let _ = self.keep_beginning(file, base);
        }
    }

    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Destination::Device { len, .. } => Some(*len),
            Destination::File { .. } | Destination::Pipe { .. } => None,
        }
    }

    pub(crate) fn lengthen(&self, file: &File, len: u64) -> Result<()> {
        let cannot = || format!("cannot write {}", self.name());
        if !self.is_in_place() && file.metadata().or_io(cannot)?.len() < len {
            file.set_len(len).or_io(cannot)?;
        }
        Ok(())
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Destination::File { path, .. } | Destination::Device { path, .. } => format!("{path:?}"),
            Destination::Pipe { name, .. } => name.clone(),
        }
    }

    pub(crate) fn check_device(&self, end: u64) -> Result<()> {
        let Destination::Device { path, len, .. } = self else { return Ok(()) };
        if end <= *len {
            return Ok(());
        }
        let message = format!("cannot write to {path:?}: it has {len} bytes, at least {end} are needed");
        let error = Error::too_large(message);
        if self.is_in_place() {
            return Err(error.hint("its previous contents are lost"));
        }
        Err(error.hint(unwritten(self.name())).hint("--fit tries denser codecs and larger blocks"))
    }

    /// Copies an image that fits to its device, its beginning last, so that a partial copy is not
    /// taken for an image.
    fn copy_to_device(&self, file: &File, device: &File, image: Range<u64>) -> Result<()> {
        let cannot = || format!("cannot write {}", self.name());
        let head_end = image.end.min(image.start + HEAD_LEN);
        self.clear_head(device, image.start, image.end)?;
        let mut buffer = vec![0; COPY_LEN as usize];
        let mut copy = |range: Range<u64>| -> Result<()> {
            let mut at = range.start;
            while at < range.end {
                let part = &mut buffer[..COPY_LEN.min(range.end - at) as usize];
                file.read_exact_at(part, at).or_io(cannot)?;
                device.write_all_at(part, at).or_io(cannot)?;
                at += part.len() as u64;
            }
            Ok(())
        };
        copy(head_end..image.end)?;
        device.sync_data().or_io(cannot)?;
        copy(image.start..head_end)
    }

    pub(crate) fn finish(&mut self, file: &File, base: u64, len: u64, sync: bool) -> Result<()> {
        if let Destination::Device { waiting: Some(device), .. } = &*self {
            self.copy_to_device(file, device, base..base + len)?;
            return device.sync_data().or_io(|| format!("cannot write {} to the disk", self.name()));
        }
        let len = base + len;
        if let Destination::Pipe { name, pipe } = self {
            let cannot = || format!("cannot write to {name}");
            let mut file = file;
            file.rewind().or_io(cannot)?;
            return copy_exactly(&mut file, pipe, len).or_io(cannot);
        }
        if sync {
            file.sync_data().or_io(|| format!("cannot write {} to the disk", self.name()))?;
        }
        match self {
            Destination::File { path, temporary } => name_it(file, path, temporary.take()),
            _ => Ok(()),
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Destination::File { temporary: Some(temporary), .. } = self {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Returns the directory for large temporary files: `TMPDIR`, or `/var/tmp`, which is rarely in
/// memory.
pub fn temporary_folder() -> PathBuf {
    let large = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && large.is_dir() { large.into() } else { std::env::temp_dir() }
}

/// Creates an unnamed file for spooled data, in the directory of `path` if that is or will be a
/// file.
pub(crate) fn nameless_file(path: &Path) -> Result<File> {
    let is_file = std::fs::metadata(path).map_or(path != Path::new(STDOUT), |found| found.is_file());
    let beside = if is_file { path.to_owned() } else { temporary_folder().join("packfs") };
    let (file, temporary) = create_temporary(&beside, 0o666)?;
    if let Some(temporary) = temporary {
        std::fs::remove_file(&temporary).or_io(|| format!("cannot remove {temporary:?}"))?;
    }
    Ok(file)
}
