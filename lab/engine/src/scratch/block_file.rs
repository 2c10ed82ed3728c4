//! Files as block devices.

use std::fs::File;
use std::path::{Path, PathBuf};

use packfs::mount::{LoopDevice, LoopOptions};
use packfs::{Result, ResultExt};

use crate::undo::Undo;

/// A sparse file behind a loop device that can be written; both are gone when this is dropped.
#[derive(Debug)]
pub struct BlockFile {
    device: PathBuf,
    // Dropped in this order.
    _loop_device: Undo,
    _removal: Undo,
}

impl BlockFile {
    /// Makes a file of `len` bytes, which holds nothing yet, and a block device of it. Needs root.
    ///
    /// Errors: `Io` if there is a file of this name, or no loop device.
    pub fn new(file: &Path, len: u64) -> Result<Self> {
        let made = File::create_new(file).or_io(|| format!("cannot make {file:?}"))?;
        let own = file.to_owned();
        let removal = Undo::new(format!("remove {file:?}"), move || {
            std::fs::remove_file(&own).or_io(|| format!("cannot remove {own:?}"))
        });
        made.set_len(len).or_io(|| format!("cannot make {file:?} {len} bytes long"))?;
        let device = LoopDevice::new(file, &LoopOptions { is_writable: true, ..LoopOptions::default() })?;
        let path = device.path().to_owned();
        let loop_device = keep(device);
        Ok(Self { device: path, _loop_device: loop_device, _removal: removal })
    }

    /// The block device.
    pub fn device(&self) -> &Path {
        &self.device
    }
}

/// Puts an image behind a loop device that cannot be written. Needs root. The device is there until
/// the step is taken and nothing is mounted from it.
pub fn loop_device_of(image: &Path) -> Result<(PathBuf, Undo)> {
    let device = LoopDevice::new(image, &LoopOptions::default())?;
    Ok((device.path().to_owned(), keep(device)))
}

fn keep(device: LoopDevice) -> Undo {
    Undo::new(format!("free {:?}", device.path()), move || {
        drop(device);
        Ok(())
    })
}
