//! dwarfsextract of DwarFS.

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::process::{Invocation, quoted};
use crate::programs::Wanted;
use crate::results::{Missing, Program};

const UNPACKS: Unpacks = Unpacks { reads: |format| format == "dwarfs", command };

pub(super) fn find() -> Result<Unpacker, Missing> {
    let from = "https://github.com/mhx/dwarfs/releases";
    Unpacker::find(Wanted { name: "dwarfsextract", version_option: "--help", from }, UNPACKS)
}

fn command(program: &Program, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
    let command = program.invocation().arg("-i").arg(image);
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

#[cfg(test)]
mod tests {
    use super::super::tests::spelled;
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled("dwarfsextract", UNPACKS);
        assert_eq!(tar.unwrap(), "dwarfsextract -i i -f gnutar -n 4 --log-level=error");
        assert_eq!(
            dir.unwrap(),
            "sh -c 'mkdir d && /nowhere/bin/dwarfsextract -i i -o d -n 4 --log-level=error'"
        );
    }
}
