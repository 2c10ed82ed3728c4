//! Simulated devices, taken away by the same steps as all else that a session makes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packfs::Result;
use packfs_device::{Backing, DeviceSpec, Simulated, Statistics};

use crate::results::{Run, Simulation};
use crate::undo::Undo;

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

    /// Returns its faithfulness to the model since `before`; none once it is taken away.
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

/// Measures a run, and notes how the device below, if it is a simulated one, kept to its model
/// meanwhile.
pub(super) fn probed(below: Option<&Probe>, run: impl FnOnce() -> Result<Run>) -> Result<Run> {
    let before = below.and_then(Probe::statistics);
    let run = run()?;
    let simulation = below.zip(before).and_then(|(probe, before)| probe.since(&before));
    Ok(Run { simulation, ..run })
}

impl Attached {
    /// Attaches a device of these figures, read-only if it holds an image.
    pub(super) fn new(spec: &DeviceSpec, backing: Backing<'_>) -> Result<Self> {
        let simulated = Simulated::attach(spec, backing)?;
        let path = simulated.path().to_owned();
        let probe = Probe(Arc::new(Mutex::new(Some(simulated))));
        let taken = probe.clone();
        let undo = Undo::new(format!("take away {path:?}"), move || {
            let device = taken.device().take();
            device.map_or(Ok(()), |device| device.detach().map(drop))
        });
        Ok(Self { path, probe, _undo: undo })
    }

    pub(super) fn probe(&self) -> &Probe {
        &self.probe
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
