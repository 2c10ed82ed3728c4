//! sqfs2tar of squashfs-tools-ng, which works in one thread whatever it is told.

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

const UNPACKS: Unpacks = Unpacks { reads: |format| format == "squashfs", command };

pub(super) fn find() -> Result<Unpacker, Missing> {
    let from = "Debian package squashfs-tools-ng, or `cargo xtask peers`";
    Unpacker::find(Wanted { name: "sqfs2tar", version_option: "--version", from }, UNPACKS)
}

fn command(program: &Program, task: &Unpack, image: &Path, _: u32) -> Option<Invocation> {
    (*task == Unpack::Tar).then(|| program.invocation().arg(image))
}

#[cfg(test)]
mod tests {
    use super::super::tests::spelled;
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled("sqfs2tar", UNPACKS);
        assert_eq!(tar.unwrap(), "sqfs2tar i");
        assert_eq!(dir, None);
    }
}
