//! Simulated devices, taken away by the same steps as all else that a session makes.

use std::path::{Path, PathBuf};

use packfs::Result;
use packfs_device::{Backing, DeviceSpec, Simulated};

use crate::results::DeviceFacts;
use crate::scratch::Undo;

/// A device's figures.
pub(super) type Spec = DeviceSpec;

/// A device that is attached, as long as this lives.
#[derive(Debug)]
pub(super) struct Attached {
    path: PathBuf,
    _undo: Undo,
}

impl Attached {
    fn new(simulated: Simulated) -> Self {
        let path = simulated.path().to_owned();
        let undo = Undo::new(format!("take away {path:?}"), move || simulated.detach().map(drop));
        Self { path, _undo: undo }
    }

    /// The block device.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Names of those that come with packfs, slowest first.
pub(super) fn names() -> Vec<String> {
    packfs_device::builtin_names().map(str::to_owned).collect()
}

/// The one of this name, or of this file.
///
/// Errors: `Usage` if there is none or its file makes no sense, `Io` if that cannot be read.
pub(super) fn find(name: &str) -> Result<Spec> {
    packfs_device::find(name).map_err(|error| error.hint("disk and memory are the machine's own"))
}

/// What reports say of it; `id` is what it was asked for by.
pub(super) fn facts(id: &str, spec: &Spec) -> DeviceFacts {
    let description = format!("{} ({})", spec.title, spec.sources.join("; "));
    DeviceFacts { id: id.into(), description, simulated: true }
}

/// Puts an image on it, read-only.
pub(super) fn attach_image(spec: &Spec, image: &Path) -> Result<Attached> {
    Simulated::attach(spec, Backing::Image(image)).map(Attached::new)
}

/// Has it hold a file that is written in place.
pub(super) fn attach_file(spec: &Spec, file: &Path) -> Result<Attached> {
    Simulated::attach(spec, Backing::File(file)).map(Attached::new)
}
