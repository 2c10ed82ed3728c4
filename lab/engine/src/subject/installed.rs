//! A program that was found on this machine.

use crate::programs::Wanted;
use crate::results::{Missing, Program};

/// A program, or the kernel's drivers, of this machine, with its version; `K` is what it does, and
/// how it is asked to.
pub struct Installed<K> {
    pub(super) name: &'static str,
    pub(super) program: Program,
    pub(super) kind: K,
}

impl<K> Installed<K> {
    pub(super) fn find(wanted: Wanted, kind: K) -> Result<Self, Missing> {
        Ok(Self { name: wanted.name, program: wanted.find()?, kind })
    }

    /// Returns the name in recipes and measurements: `mksquashfs`, `kernel`, `packfs-fuse`; of a
    /// filesystem its own, `ext4`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the program; of the kernel its version.
    pub fn program(&self) -> &Program {
        &self.program
    }

    #[cfg(test)]
    pub(super) fn in_bin(name: &'static str, kind: K) -> Self {
        let path = Some(format!("/nowhere/bin/{name}"));
        Self { name, program: Program { name: name.into(), version: "1.0".into(), path }, kind }
    }
}
