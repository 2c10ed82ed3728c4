//! The kernel's own drivers.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use packfs::mount::kernel::KernelMount;
use packfs::mount::{MountFlags, is_root};
use packfs::{Error, ImagePath, Result, ResultExt};

use super::Reader;
use crate::process::Within;
use crate::results::{Missing, Program};
use crate::scratch::{Mounted, loop_device_of};

/// Formats that some kernel has a driver for, by the driver's name, which is the format's.
const DRIVERS: [&str; 4] = ["squashfs", "erofs", "cramfs", "iso9660"];

/// Mounts by the kernel.
pub(super) struct Kernel {
    program: Program,
    /// Drivers of this kernel, built in or as a module.
    drivers: Vec<&'static str>,
}

impl Kernel {
    pub(super) fn find() -> Result<Self, Missing> {
        if !is_root() {
            let why = "only root mounts by the kernel; run this with sudo".into();
            return Err(Missing { what: "kernel".into(), why });
        }
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let drivers = DRIVERS.into_iter().filter(|name| has_driver(name, &release)).collect();
        Ok(Self { program: Program { name: "kernel".into(), version: release, path: None }, drivers })
    }
}

/// Whether a driver is loaded, or can be: the kernel loads it when it is first asked for.
pub(in crate::subject) fn has_driver(name: &str, release: &str) -> bool {
    let loaded = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if loaded.lines().any(|line| line.split_whitespace().last() == Some(name)) {
        return true;
    }
    let module = format!("/{}.ko", if name == "iso9660" { "isofs" } else { name });
    let modules = std::fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default();
    modules.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&module)))
}

impl Reader for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        self.drivers.contains(&format)
    }

    fn mount(&self, format: &str, image: &Path, at: &Path, _: &Within) -> Result<Mounted> {
        let Some(driver) = self.drivers.iter().find(|driver| **driver == format) else {
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
        let mount = KernelMount {
            format: driver,
            image: device,
            offset: 0,
            devices: vec![],
            subdir: ImagePath::root(),
            flags: MountFlags::default(),
        };
        mount.mount(&at)?;
        Ok(Mounted::new(&at, None, below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_drivers_that_are_there_from_those_that_are_not() {
        assert!(has_driver("proc", "none"));
        assert!(!has_driver("no-such-fs", "none"));
    }
}
