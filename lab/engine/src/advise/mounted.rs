//! An image mounted by the kernel for as long as it is measured.

use packfs::mount::kernel::KernelMount;
use packfs::{Error, ImagePath, Progress, Result, ResultExt};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use crate::scratch;

/// Bytes of a read, equal to those of `cat`.
const BUFFER_LEN: usize = 128 << 10;

pub(crate) struct Mounted(scratch::Mounted);

impl Mounted {
    /// Mounts `image`, a file or block device, on a new directory in `folder`. Needs root.
    ///
    /// Errors: `Io` with the kernel's own words.
    pub(crate) fn new(format: &'static str, image: &Path, folder: &Path) -> Result<Mounted> {
        let at = folder.join("mounted");
        std::fs::create_dir_all(&at).or_io(|| format!("cannot make {at:?}"))?;
        let driver = packfs::formats::by_name(format).and_then(|format| format.info().driver);
        let driver = driver.ok_or_else(|| Error::failed(format!("Linux has no driver for {format}")))?;
        KernelMount::new(driver, image).mount(&at)?;
        Ok(Mounted(scratch::Mounted::new(&at, None, Vec::new())))
    }

    /// Reads files from beginning to end, one after the other; how many seconds that took.
    ///
    /// Errors: `Io` naming the file, `Cancelled`.
    pub(crate) fn read(&self, files: &[ImagePath], progress: &dyn Progress) -> Result<f64> {
        let mut buffer = vec![0; BUFFER_LEN];
        self.walk(files, progress, |path| {
            let mut file = File::open(path)?;
            // One long file takes minutes on a slow device.
            while !progress.cancelled() && file.read(&mut buffer)? > 0 {}
            Ok(())
        })
    }

    /// Looks files up without opening them, one after the other; how many seconds that took.
    ///
    /// Errors: as [`Mounted::read`].
    pub(crate) fn look_up(&self, files: &[ImagePath], progress: &dyn Progress) -> Result<f64> {
        self.walk(files, progress, |path| std::fs::symlink_metadata(path).map(drop))
    }

    fn walk(
        &self,
        files: &[ImagePath],
        progress: &dyn Progress,
        mut visit: impl FnMut(&Path) -> std::io::Result<()>,
    ) -> Result<f64> {
        let start = Instant::now();
        for path in files {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let path = self.0.at().join(OsStr::from_bytes(path.as_bytes()));
            visit(&path).or_io(|| format!("cannot read {path:?}"))?;
        }
        // The last may have been left in its midst.
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        Ok(start.elapsed().as_secs_f64())
    }
}
