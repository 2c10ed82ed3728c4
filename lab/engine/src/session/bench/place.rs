//! The storage below images: the machine's own disk, its memory, or a simulated device.

use std::path::Path;

use packfs::Result;
use packfs_device::{Backing, DeviceSpec, builtin_names};

use super::simulated::Attached;
use crate::machine;
use crate::results::DeviceFacts;
use crate::scratch::Scratch;

/// Names of storage without a model.
const REAL: [&str; 2] = ["disk", "memory"];

#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The scratch.
    Disk,
    /// A filesystem in memory.
    Memory,
    /// A block device that answers as a model says.
    Simulated(Box<DeviceSpec>),
}

impl Place {
    /// Finds storage by its name, or by the file that describes it.
    ///
    /// Errors: `Usage` if there is none of this name or its file makes no sense; `Io` if that
    /// cannot be read.
    pub(super) fn find(name: &str) -> Result<Self> {
        match name {
            "disk" => Ok(Self::Disk),
            "memory" => Ok(Self::Memory),
            _ => packfs_device::find(name)
                .map(|spec| Self::Simulated(Box::new(spec)))
                .map_err(|error| error.hint("disk and memory are the machine's own")),
        }
    }

    pub(super) fn facts(&self, name: &str, scratch: &Scratch) -> DeviceFacts {
        let description = match self {
            Self::Disk => format!("the machine's own: {}", machine::here(scratch.dir()).scratch),
            Self::Memory => "a file system in memory (/dev/shm)".into(),
            Self::Simulated(spec) => format!("{} ({})", spec.title, spec.sources.join("; ")),
        };
        DeviceFacts { id: name.into(), description, simulated: matches!(self, Self::Simulated(_)) }
    }

    /// Puts an image on a simulated device; other images stay files.
    pub(super) fn attach(&self, image: &Path) -> Result<Option<Attached>> {
        match self {
            Self::Disk | Self::Memory => Ok(None),
            Self::Simulated(spec) => Attached::new(spec, Backing::Image(image)).map(Some),
        }
    }
}

/// Names of all devices there are, those of the machine first.
pub fn device_names() -> impl Iterator<Item = &'static str> {
    REAL.into_iter().chain(builtin_names())
}

/// Checks that there is a device of this name.
///
/// Errors: `Usage` if there is none or its file makes no sense; `Io` if that cannot be read.
pub fn check_device(name: &str) -> Result<()> {
    Place::find(name).map(drop)
}
