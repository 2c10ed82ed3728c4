//! Simulated devices, taken away by the same steps as all else that a session makes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packfs::Result;
use packfs_device::{Backing, DeviceSpec, Simulated, Statistics};

use crate::results::{DeviceFacts, Run, Simulation};
use crate::undo::Undo;

/// A device's figures.
pub(super) type Spec = DeviceSpec;

/// A device that is attached, as long as this lives.
#[derive(Debug)]
pub(super) struct Attached {
    path: PathBuf,
    probe: Probe,
    _undo: Undo,
}

/// Tells what a device was asked for, as long as it is attached.
#[derive(Clone)]
pub(super) struct Probe(Arc<Mutex<Option<Simulated>>>);

impl std::fmt::Debug for Probe {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Probe").finish_non_exhaustive()
    }
}

impl Probe {
    fn device(&self) -> MutexGuard<'_, Option<Simulated>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.device().as_ref().map(Simulated::statistics)
    }

    /// How it kept to its model from `before` on; none once it is taken away.
    fn since(&self, before: &Statistics) -> Option<Simulation> {
        let device = self.device();
        let (device, after) = device.as_ref().map(|device| (device, device.statistics()))?;
        Some(Simulation {
            requests: after.requests() - before.requests(),
            late: after.late - before.late,
            lateness: std::time::Duration::from_nanos(after.lateness - before.lateness).as_secs_f64(),
            in_memory: device.is_in_memory(),
            refused_attributes: u32::try_from(device.refused_attributes().len()).unwrap_or(u32::MAX),
        })
    }
}

/// Measures a run, and notes how the device below, if it is a simulated one, kept to its model meanwhile.
pub(super) fn probed(below: Option<&Probe>, run: impl FnOnce() -> Result<Run>) -> Result<Run> {
    let before = below.and_then(Probe::statistics);
    let run = run()?;
    let simulation = below.zip(before).and_then(|(probe, before)| probe.since(&before));
    Ok(Run { simulation, ..run })
}

impl Attached {
    fn new(simulated: Simulated) -> Self {
        let path = simulated.path().to_owned();
        let probe = Probe(Arc::new(Mutex::new(Some(simulated))));
        let taken = probe.clone();
        let undo = Undo::new(format!("take away {path:?}"), move || {
            let device = taken.device().take();
            device.map_or(Ok(()), |device| device.detach().map(drop))
        });
        Self { path, probe, _undo: undo }
    }

    /// What tells how it does.
    pub(super) fn probe(&self) -> &Probe {
        &self.probe
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
