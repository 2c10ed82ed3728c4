//! All subjects of this machine.

use std::path::Path;

use super::{Installed, Maker, Reader, Unpacker, WritableFs};
use super::{makers, readers, unpackers, writable};
use crate::results::{Missing, Program};

/// Subjects that are here, and those that are not.
pub struct Subjects {
    /// Programs that make images.
    pub makers: Vec<Maker>,
    /// Those who mount images.
    pub readers: Vec<Reader>,
    /// Programs that decode images without a mount.
    pub unpackers: Vec<Unpacker>,
    /// File systems that can be written.
    pub writable: Vec<WritableFs>,
    /// Programs, drivers and rights that are not here, by the names that recipes and measurements
    /// use.
    pub missing: Vec<Missing>,
}

impl Subjects {
    /// Looks for all of them. `packfs` is the program that stands for packfs.
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
    pub fn maker(&self, name: &str) -> Result<&Maker, Missing> {
        self.named(&self.makers, name, name)
    }

    /// The reader of this name, or why there is none.
    pub fn reader(&self, name: &str) -> Result<&Reader, Missing> {
        self.named(&self.readers, name, name)
    }

    /// The unpacker of this name, or why there is none.
    pub fn unpacker(&self, name: &str) -> Result<&Unpacker, Missing> {
        self.named(&self.unpackers, name, name)
    }

    /// The file system whose maker (`mkfs.btrfs`) or name (`btrfs`) this is, or why there is none.
    pub fn writable(&self, name: &str) -> Result<&WritableFs, Missing> {
        let plain = name.strip_prefix("mkfs.").unwrap_or(name);
        self.named(&self.writable, plain, &format!("mkfs.{plain}"))
    }

    /// All programs, each once.
    pub fn programs(&self) -> Vec<Program> {
        let makers = self.makers.iter().map(Installed::program);
        let readers = self.readers.iter().map(Installed::program);
        let unpackers = self.unpackers.iter().map(Installed::program);
        let writable = self.writable.iter().map(Installed::program);
        let mut programs: Vec<Program> = Vec::new();
        for program in makers.chain(readers).chain(unpackers).chain(writable) {
            if !programs.contains(program) {
                programs.push(program.clone());
            }
        }
        programs
    }

    /// The one of this name, or why `program`, which it is, is not here.
    fn named<'a, K>(
        &self,
        all: &'a [Installed<K>],
        name: &str,
        program: &str,
    ) -> Result<&'a Installed<K>, Missing> {
        all.iter().find(|found| found.name() == name).ok_or_else(|| {
            let known = self.missing.iter().find(|missing| missing.what == program).cloned();
            known.unwrap_or_else(|| Missing {
                what: program.into(),
                why: "packfs knows no such program".into(),
            })
        })
    }
}

/// Those that are here; the others are noted.
fn present<T>(found: Vec<Result<T, Missing>>, missing: &mut Vec<Missing>) -> Vec<T> {
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
