//! The kernel's switch for FUSE over io_uring, which root may turn.

use crate::peers::{is_root, skip};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// The switch as a test needs it, turned back when this is dropped. One test at a time has it.
pub struct UringSwitch {
    before: String,
    _lock: File,
}

impl UringSwitch {
    /// Turns the switch; reports a skip where there is none, before Linux 6.14, or this process may
    /// not turn it.
    pub fn turn(is_on: bool) -> Option<Self> {
        let lock = File::create(std::env::temp_dir().join("packfs-test-enable-uring")).ok();
        let before = std::fs::read_to_string(SWITCH).ok();
        let (Some(lock), Some(_), true) = (lock, before, is_root()) else {
            skip("FUSE over io_uring needs Linux 6.14 and root");
            return None;
        };
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let before = std::fs::read_to_string(SWITCH).unwrap();
        std::fs::write(SWITCH, if is_on { "Y" } else { "N" }).unwrap();
        Some(UringSwitch { before, _lock: lock })
    }
}

impl Drop for UringSwitch {
    fn drop(&mut self) {
        let _ = std::fs::write(SWITCH, self.before.trim());
    }
}
