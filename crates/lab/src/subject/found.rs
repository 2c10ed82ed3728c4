//! All subjects of this machine.

use std::path::Path;

use super::{Maker, Reader, Unpacker, WritableFs};
use super::{makers, readers, unpackers, writable};
use crate::results::{Missing, Program};

/// What is here, and what is not.
pub struct Subjects {
    /// Programs that make images.
    pub makers: Vec<Box<dyn Maker>>,
    /// Those who mount images.
    pub readers: Vec<Box<dyn Reader>>,
    /// Programs that decode images without a mount.
    pub unpackers: Vec<Box<dyn Unpacker>>,
    /// File systems that can be written.
    pub writable: Vec<Box<dyn WritableFs>>,
    /// Programs, drivers and rights that are not here, by the names that recipes and measurements use.
    pub missing: Vec<Missing>,
}

impl Subjects {
    /// Looks for all of them. `packfs` is the program that stands for packfs: best the one that is running.
    pub fn find(packfs: &Path) -> Self {
        let mut missing: Vec<Missing> = writable::missing_helpers();
        Self {
            makers: present(makers::find(packfs), &mut missing),
            readers: present(readers::find(packfs), &mut missing),
            unpackers: present(unpackers::find(packfs), &mut missing),
            writable: present(writable::find(), &mut missing),
            missing,
        }
    }

    /// The maker of this name, or why there is none.
    pub fn maker(&self, name: &str) -> Result<&dyn Maker, Missing> {
        let found = self.makers.iter().find(|maker| maker.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| self.why(name))
    }

    /// The reader of this name, or why there is none.
    pub fn reader(&self, name: &str) -> Result<&dyn Reader, Missing> {
        let found = self.readers.iter().find(|reader| reader.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| self.why(name))
    }

    /// The unpacker of this name, or why there is none.
    pub fn unpacker(&self, name: &str) -> Result<&dyn Unpacker, Missing> {
        let found = self.unpackers.iter().find(|unpacker| unpacker.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| self.why(name))
    }

    /// The file system whose maker (`mkfs.btrfs`) or name (`btrfs`) this is, or why there is none.
    pub fn writable(&self, name: &str) -> Result<&dyn WritableFs, Missing> {
        let plain = name.strip_prefix("mkfs.").unwrap_or(name);
        let found = self.writable.iter().find(|writable| writable.name() == plain);
        found.map(AsRef::as_ref).ok_or_else(|| self.why(&format!("mkfs.{plain}")))
    }

    /// All programs, each once.
    pub fn programs(&self) -> Vec<Program> {
        let makers = self.makers.iter().map(|maker| maker.program());
        let readers = self.readers.iter().map(|reader| reader.program());
        let unpackers = self.unpackers.iter().map(|unpacker| unpacker.program());
        let writable = self.writable.iter().map(|writable| writable.program());
        let mut programs: Vec<Program> = Vec::new();
        for program in makers.chain(readers).chain(unpackers).chain(writable) {
            if !programs.contains(program) {
                programs.push(program.clone());
            }
        }
        programs
    }

    fn why(&self, name: &str) -> Missing {
        let known = self.missing.iter().find(|missing| missing.what == name);
        known
            .cloned()
            .unwrap_or_else(|| Missing { what: name.into(), why: "packfs knows no such program".into() })
    }
}

/// Those that are here; the others are noted.
fn present<T: ?Sized>(found: Vec<Result<Box<T>, Missing>>, missing: &mut Vec<Missing>) -> Vec<Box<T>> {
    let mut present = Vec::new();
    for one in found {
        match one {
            Ok(one) => present.push(one),
            Err(why) if missing.contains(&why) => {}
            Err(why) => missing.push(why),
        }
    }
    present
}
