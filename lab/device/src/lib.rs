//! Simulated storage devices: block devices that answer as slowly as a CD-ROM, an SD card or a disk
//! in a cloud does.
//!
//! A [`DeviceSpec`] holds the figures of a device (built in: [`builtin()`]; one's own: a TOML
//! file). A [`Model`] turns it into times of completion, without a clock of its own. [`Simulated`]
//! is the block device: a file served through FUSE, each request answered no earlier than the model
//! says, behind a loop device that reads and writes it directly, so that the kernel's drivers,
//! schedulers and readahead meet the device and no second cache. [`check`] measures such a device
//! and holds it against its own figures. [`cpu`] makes a weak machine of a strong one.
//!
//! Invariants: a model is deterministic (same requests at the same times: same answers); whatever
//! ends the process, no mount, bound loop device or temporary file is left behind.
#![forbid(unsafe_code)]

mod aligned;
mod backing;
mod builtin;
pub mod check;
mod clock;
pub mod cpu;
mod delayed;
mod format;
mod model;
mod path_cost;
mod queue;
mod simulated;
mod spec;
mod units;

pub use backing::{Backing, available_memory};
pub use builtin::{builtin, builtin_names, find};
pub use model::{Due, Model, Operation, Request, Statistics, Ticket};
pub use simulated::Simulated;
pub use spec::{Access, Bus, DeviceSpec, Limits, Medium, Order, Queue, Scheduler, Seek, Stated};
pub use units::Nanos;
