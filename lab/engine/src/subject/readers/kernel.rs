//! The kernel's own drivers.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::LazyLock;

use packfs::mount::is_root;
use packfs::mount::kernel::KernelMount;
use packfs::{Error, LinuxDriver, Result, ResultExt};

use super::{Mounts, Reader};
use crate::results::{Missing, Program};
use crate::scratch::{Mounted, loop_device_of};
use crate::subject::drivers::{has_driver, kernel_release};

/// Formats that this kernel has a driver for, built in or as a module, by the driver's name, which
/// is the format's.
static DRIVERS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let some_have = ["squashfs", "erofs", "cramfs", "iso9660"];
    some_have.into_iter().filter(|name| has_driver(name)).collect()
});

pub(super) fn find() -> Result<Reader, Missing> {
    if !is_root() {
        let why = "only root mounts by the kernel; run this with sudo".into();
        return Err(Missing { what: "kernel".into(), why });
    }
    let program = Program { name: "kernel".into(), version: kernel_release(), path: None };
    Ok(Reader { name: "kernel", program, kind: Mounts(None) })
}

/// Returns true if this kernel has a driver for a format.
pub(in crate::subject) fn reads(format: &str) -> bool {
    DRIVERS.contains(&format)
}

pub(in crate::subject) fn mount(format: &str, image: &Path, at: &Path) -> Result<Mounted> {
    let Some(driver) = DRIVERS.iter().find(|driver| **driver == format) else {
        return Err(Error::failed(format!("this kernel has no driver for {format}")));
    };
    let at = at.canonicalize().or_io(|| format!("cannot find {at:?}"))?;
    let kind = std::fs::metadata(image).or_io(|| format!("cannot open {image:?}"))?.file_type();
    let (device, below) = if kind.is_block_device() {
        (image.to_owned(), vec![])
    } else {
        let (device, undo) = loop_device_of(image)?;
        (device, vec![undo])
    };
    KernelMount::new(LinuxDriver { name: driver, mounts_files: false }, device).mount(&at)?;
    Ok(Mounted::new(&at, None, below))
}
