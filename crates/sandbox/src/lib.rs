//! Gives up what reading an image does not need, before anything of the image is looked at: a
//! second line of defence, for the day on which a decoder has a hole.
//!
//! Owns the list of files that may be reached ([`Sandbox`], enforced by Landlock) and of system
//! calls that may be made (enforced by seccomp). Holds for the whole process from then on, for
//! threads that start later, and cannot be taken back. It must be applied while there is one
//! thread: Landlock reaches no others.
#![forbid(unsafe_code)]

mod calls;
mod files;

use packfs_core::{Error, Result};
use std::fmt;
use std::path::PathBuf;

/// What a process still wants to reach.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    read: Vec<PathBuf>,
    fill: Vec<PathBuf>,
    name_in: Vec<PathBuf>,
    scratch: Vec<PathBuf>,
    system_v: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Why files are not kept out of reach, if they are not.
    pub no_landlock: Option<String>,
    /// Why system calls are not kept back, if they are not.
    pub no_seccomp: Option<String>,
}

impl Applied {
    /// Whether both hold.
    pub fn is_whole(&self) -> bool {
        self.no_landlock.is_none() && self.no_seccomp.is_none()
    }
}

/// Such as `landlock, no seccomp (the kernel has none)`.
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
    /// Nothing but what is open already.
    pub fn new() -> Self {
        Sandbox::default()
    }

    /// This file, or all below this directory, may be opened for reading. What is not there is left
    /// out: opening it fails in the same way as without a sandbox.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Everything may be done to what is in this directory. It must be there.
    #[must_use]
    pub fn fill(mut self, dir: impl Into<PathBuf>) -> Self {
        self.fill.push(dir.into());
        self
    }

    /// What is in this directory may get other names, and lose them; nothing is opened for writing
    /// by name.
    #[must_use]
    pub fn name_in(mut self, dir: impl Into<PathBuf>) -> Self {
        self.name_in.push(dir.into());
        self
    }

    /// Files may be made in this directory, and written to, to be thrown away.
    #[must_use]
    pub fn scratch(mut self, dir: impl Into<PathBuf>) -> Self {
        self.scratch.push(dir.into());
        self
    }

    /// Messages and semaphores of System V may be used: fakeroot's library answers for the kernel
    /// by them.
    #[must_use]
    pub fn system_v(mut self) -> Self {
        self.system_v = true;
        self
    }

    /// Gives up everything else, as far as the kernel can enforce it; the answer says how far.
    ///
    /// Errors: `Io` for a directory that is not there; `Failed` if the kernel refuses what it
    /// should be able to do.
    pub fn apply(&self) -> Result<Applied> {
        let no_landlock = files::restrict(self)?;
        // Last: it keeps back the calls that the other one needs.
        let no_seccomp = calls::restrict(self)?;
        Ok(Applied { no_landlock, no_seccomp })
    }

    /// The same, or an error if the kernel cannot enforce all of it.
    ///
    /// Errors: as [`Sandbox::apply`]; `Failed` for what is missing, which then holds for nothing.
    pub fn apply_whole(&self) -> Result<Applied> {
        let applied = self.apply()?;
        if applied.is_whole() {
            return Ok(applied);
        }
        Err(Error::failed(format!("the sandbox that is required is not whole: {applied}"))
            .hint("Landlock needs Linux 5.19, and lsm=...,landlock where a list of modules is given at boot"))
    }
}
