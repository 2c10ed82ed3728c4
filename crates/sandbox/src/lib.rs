//! Drops access that reading an image does not need, before its first byte is parsed: a second line
//! of defense against vulnerable decoders.
//!
//! Contains the list of accessible files ([`Sandbox`], enforced by Landlock) and of allowed system
//! calls (enforced by seccomp). The restrictions apply to the whole process, including later
//! threads, and cannot be removed. They must be applied while there is only one thread, because
//! Landlock does not affect others.
#![forbid(unsafe_code)]

// Machines that seccompiler compiles lists of calls for.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod calls;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[path = "no_calls.rs"]
mod calls;
mod files;

use packfs_core::{Error, Result, is_reference};
use std::fmt;
use std::path::PathBuf;

/// Access that a process keeps.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    read: Vec<PathBuf>,
    fill: Vec<PathBuf>,
    name_in: Vec<PathBuf>,
    scratch: Vec<PathBuf>,
    system_v: bool,
    serves: bool,
    reads_url: bool,
}

/// Restrictions that were applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Reason why files are not restricted; `None` if they are.
    pub no_landlock: Option<String>,
    /// Reason why system calls are not restricted; `None` if they are.
    pub no_seccomp: Option<String>,
}

impl Applied {
    /// Returns true if both are restricted.
    pub fn is_whole(&self) -> bool {
        self.no_landlock.is_none() && self.no_seccomp.is_none()
    }
}

/// Formats such as `landlock, no seccomp (the kernel has none)`.
impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, why)) in
            [("landlock", &self.no_landlock), ("seccomp", &self.no_seccomp)].into_iter().enumerate()
        {
            let comma = if index > 0 { ", " } else { "" };
            match why {
                None => write!(f, "{comma}{name}")?,
                Some(why) => write!(f, "{comma}no {name} ({why})")?,
            }
        }
        Ok(())
    }
}

impl Sandbox {
    /// Creates a sandbox with access only to open files.
    pub fn new() -> Self {
        Sandbox::default()
    }

    /// Allows reading this file, or everything below this directory. A missing path is ignored:
    /// opening it fails anyway.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.reads_url |= is_reference(&path);
        self.read.push(path);
        self
    }

    /// Allows all operations in this directory, which must exist.
    #[must_use]
    pub fn fill(mut self, dir: impl Into<PathBuf>) -> Self {
        self.fill.push(dir.into());
        self
    }

    /// Allows renaming and removing names in this directory, but not opening files for writing by
    /// name.
    #[must_use]
    pub fn name_in(mut self, dir: impl Into<PathBuf>) -> Self {
        self.name_in.push(dir.into());
        self
    }

    /// Allows creating and writing temporary files in this directory.
    #[must_use]
    pub fn scratch(mut self, dir: impl Into<PathBuf>) -> Self {
        self.scratch.push(dir.into());
        self
    }

    /// Allows messages and semaphores of System V, which fakeroot's library uses.
    #[must_use]
    pub fn system_v(mut self) -> Self {
        self.system_v = true;
        self
    }

    /// Allows accepting connections at listening sockets.
    #[must_use]
    pub fn serves(mut self) -> Self {
        self.serves = true;
        self
    }

    /// Drops all other access, as far as the kernel can enforce it; returns the restrictions
    /// applied.
    ///
    /// Errors: `Usage` if a URL is to be read; `Io` for a missing directory; `Failed` if the kernel
    /// refuses a supported restriction.
    pub fn apply(&self) -> Result<Applied> {
        if self.reads_url {
            let error =
                Error::usage("cannot read a URL or an OCI image in a sandbox, which closes the network");
            return Err(error.hint("omit --sandbox, or download the image first"));
        }
        let no_landlock = files::restrict(self)?;
        // Last, because it blocks calls that Landlock needs.
        let no_seccomp = calls::restrict(self)?;
        Ok(Applied { no_landlock, no_seccomp })
    }

    /// Drops all other access, or fails if the kernel cannot enforce all of it.
    ///
    /// Errors: as [`Sandbox::apply`]; `Failed` for a missing restriction.
    pub fn apply_whole(&self) -> Result<Applied> {
        let applied = self.apply()?;
        if applied.is_whole() {
            return Ok(applied);
        }
        Err(Error::failed(format!("cannot apply the required sandbox: {applied}"))
            .hint("Landlock needs Linux 5.19, and lsm=...,landlock where a list of modules is given at boot"))
    }
}
