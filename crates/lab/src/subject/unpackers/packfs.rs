//! `packfs tar` and `packfs unpack`.

use std::path::Path;

use super::super::makers::packfs_program;
use super::super::{Unpack, Unpacker};
use crate::process::Invocation;
use crate::results::{Missing, Program};

/// packfs itself.
pub(super) struct Packfs {
    program: Program,
}

impl Packfs {
    pub(super) fn find(path: &Path) -> Result<Self, Missing> {
        packfs_program(path).map(|program| Self { program })
    }
}

impl Unpacker for Packfs {
    fn name(&self) -> &'static str {
        "packfs"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        packfs::formats::by_name(format).is_some()
    }

    fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let command = self.program.invocation();
        let jobs = ["--jobs".to_owned(), jobs.to_string()];
        Some(match task {
            Unpack::Tar => command.arg("tar").arg(image).args(jobs),
            Unpack::Dir(dir) => command.arg("unpack").arg(image).arg(dir).args(jobs).arg("--quiet"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, spelled};
    use super::*;

    #[test]
    fn spells_both() {
        let [tar, dir] = spelled(&Packfs { program: program("packfs") });
        assert_eq!(tar.unwrap(), "packfs tar i --jobs 4");
        assert_eq!(dir.unwrap(), "packfs unpack i d --jobs 4 --quiet");
    }
}
