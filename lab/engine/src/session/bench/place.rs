//! What images lie on: the machine's own disk, its memory, or a simulated device.

use std::path::Path;

use packfs::Result;
use packfs_device::{Backing, DeviceSpec, builtin_names};

use super::simulated::Attached;
use crate::machine;
use crate::results::{DeviceFacts, Missing};
use crate::scratch::Scratch;
use crate::told;

/// The names of what there is without a model.
const REAL: [&str; 2] = ["disk", "memory"];

/// Where an image lies.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In the scratch.
    Disk,
    /// In a file system in memory.
    Memory,
    /// On a block device that answers as a model says.
    Simulated(Box<DeviceSpec>),
}

impl Place {
    /// The one of this name, or of this file; or why there is none.
    pub(super) fn find(name: &str) -> Result<Self, Missing> {
        match name {
            "disk" => Ok(Self::Disk),
            "memory" => Ok(Self::Memory),
            _ => {
                let found = simulated(name);
                let missing = |error| Missing { what: name.into(), why: told(&error) };
                found.map(|spec| Self::Simulated(Box::new(spec))).map_err(missing)
            }
        }
    }

    /// What reports say of it, by the name it was asked for.
    pub(super) fn facts(&self, name: &str, scratch: &Scratch) -> DeviceFacts {
        match self {
            Self::Disk => DeviceFacts {
                id: "disk".into(),
                description: format!("the machine's own: {}", machine::here(scratch.dir()).scratch),
                simulated: false,
            },
            Self::Memory => DeviceFacts {
                id: "memory".into(),
                description: "a file system in memory (/dev/shm)".into(),
                simulated: false,
            },
            Self::Simulated(spec) => DeviceFacts {
                id: name.into(),
                description: format!("{} ({})", spec.title, spec.sources.join("; ")),
                simulated: true,
            },
        }
    }

    /// Puts an image on it, if it is a device; none for files.
    pub(super) fn attach(&self, image: &Path) -> Result<Option<Attached>> {
        match self {
            Self::Disk | Self::Memory => Ok(None),
            Self::Simulated(spec) => Attached::new(spec, Backing::Image(image)).map(Some),
        }
    }
}

/// Names of all devices there are, those of the machine first.
pub fn device_names() -> Vec<String> {
    REAL.into_iter().chain(builtin_names()).map(str::to_owned).collect()
}

/// That there is such a device.
///
/// Errors: `Usage` if there is none of this name or its file makes no sense; `Io` if that cannot be
/// read.
pub fn check_device(name: &str) -> Result<()> {
    if REAL.contains(&name) { Ok(()) } else { simulated(name).map(drop) }
}

/// Returns the simulated device of this name, or of this file.
fn simulated(name: &str) -> Result<DeviceSpec> {
    packfs_device::find(name).map_err(|error| error.hint("disk and memory are the machine's own"))
}
