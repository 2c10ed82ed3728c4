//! unsquashfs of squashfs-tools.

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

const UNPACKS: Unpacks = Unpacks { reads: |format| format == "squashfs", command };

pub(super) fn find() -> Result<Unpacker, Missing> {
    let from = "Debian package squashfs-tools, or `cargo xtask peers`";
    Unpacker::find(Wanted { name: "unsquashfs", version_option: "-version", from }, UNPACKS)
}

fn command(program: &Program, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
    let Unpack::Dir(dir) = task else { return None };
    let command = program.invocation().arg("-d").arg(dir);
    Some(command.args(["-processors", &jobs.to_string(), "-no-progress", "-quiet"]).arg(image))
}

#[cfg(test)]
mod tests {
    use super::super::tests::spelled;
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled("unsquashfs", UNPACKS);
        assert_eq!(tar, None);
        assert_eq!(dir.unwrap(), "unsquashfs -d d -processors 4 -no-progress -quiet i");
    }
}
