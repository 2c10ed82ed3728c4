//! dwarfsextract of DwarFS.

use std::path::Path;

use super::super::{Unpack, Unpacker};
use crate::process::{Invocation, quoted};
use crate::programs::Wanted;
use crate::results::{Missing, Program};

/// dwarfsextract.
pub(super) struct Dwarfsextract {
    program: Program,
}

impl Dwarfsextract {
    pub(super) fn find() -> Result<Self, Missing> {
        let from = "https://github.com/mhx/dwarfs/releases";
        let program = Wanted { name: "dwarfsextract", version_option: "--help", from }.find()?;
        Ok(Self { program })
    }
}

impl Unpacker for Dwarfsextract {
    fn name(&self) -> &'static str {
        "dwarfsextract"
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn reads(&self, format: &str) -> bool {
        format == "dwarfs"
    }

    fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let command = self.program.invocation().arg("-i").arg(image);
        let rest = ["-n", &jobs.to_string(), "--log-level=error"];
        Some(match task {
            Unpack::Tar => command.args(["-f", "gnutar"]).args(rest),
            // Its directory has to exist.
            Unpack::Dir(dir) => {
                let command = command.arg("-o").arg(dir).args(rest);
                Invocation::shell(&format!("mkdir {} && {}", quoted(dir.as_os_str()), command.quoted()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{program, spelled};
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled(&Dwarfsextract { program: program("dwarfsextract") });
        assert_eq!(tar.unwrap(), "dwarfsextract -i i -f gnutar -n 4 --log-level=error");
        assert_eq!(dir.unwrap(), "sh -c 'mkdir d && /bin/dwarfsextract -i i -o d -n 4 --log-level=error'");
    }
}
