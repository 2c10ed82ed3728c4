//! Readers, which show an image as a tree: the kernel's drivers, and the programs that serve images
//! through FUSE.

pub(super) mod kernel;

use std::path::Path;

use packfs::Result;

use super::Installed;
use super::table::{Mounting, Row, TABLE};
use super::template::{call, word};
use crate::process::Confinement;
use crate::results::Missing;
use crate::scratch::Mounted;

/// Shows images as trees.
pub type Reader = Installed<Mounts>;

/// A way to mount: a FUSE server, or the kernel's drivers.
pub struct Mounts(pub(super) Option<&'static Mounting>);

impl Reader {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        self.kind.0.map_or_else(|| kernel::reads(format), |server| server.reads(format))
    }

    /// Mounts `image`, a file or a block device, on `at`, a directory that exists, and returns when
    /// it answers.
    ///
    /// The kernel mounts a file through a loop device, also where it could mount EROFS straight
    /// from the file: what is compared are formats, and each meets the same device below it.
    ///
    /// A server runs `within` a limit; the kernel works in the reading process, or in
    /// threads that nothing limits.
    ///
    /// Errors: a format that it does not read, and those of the mounting program.
    pub fn mount(&self, format: &str, image: &Path, at: &Path, within: &Confinement) -> Result<Mounted> {
        let Some(server) = self.kind.0 else { return kernel::mount(format, image, at) };
        let command = call(&self.program, &server.mount, &[word("image", image), word("at", at)]);
        Mounted::served(&within.of(&command), at)
    }
}

pub(super) fn find(packfs: &Path) -> Vec<Result<Reader, Missing>> {
    let served = |found: Result<Installed<&'static _>, Missing>| {
        found.map(|Installed { name, program, kind }| Reader { name, program, kind: Mounts(Some(kind)) })
    };
    let own = TABLE.own_readers.iter();
    let own = own.map(|row| {
        need_fuse(&row.name)?;
        need_switch(row)?;
        served(row.find_own(packfs))
    });
    let rivals = TABLE.readers.iter();
    let rivals = rivals.map(|row| need_fuse(&row.name).and_then(|()| served(row.find())));
    std::iter::once(kernel::find()).chain(own).chain(rivals).collect()
}

/// Checks that the kernel's switch for a server is on.
fn need_switch(row: &Row<Mounting>) -> Result<(), Missing> {
    let Some(switch) = &row.kind.switch else { return Ok(()) };
    match std::fs::read_to_string(switch) {
        Ok(text) if text.trim() == "Y" => Ok(()),
        _ => Err(Missing { what: row.name.clone(), why: format!("{switch} is not Y") }),
    }
}

fn need_fuse(what: &str) -> Result<(), Missing> {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing { what: what.into(), why: format!("/dev/fuse cannot be opened: {error}") }),
    }
}
