//! fsck.erofs of erofs-utils, which also unpacks, in one thread whatever it is told.

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::process::Invocation;
use crate::programs::Wanted;
use crate::results::{Missing, Program};

const UNPACKS: Unpacks = Unpacks { reads: |format| format == "erofs", command };

pub(super) fn find() -> Result<Unpacker, Missing> {
    let from = "Debian package erofs-utils, or `cargo xtask peers`";
    Unpacker::find(Wanted { name: "fsck.erofs", version_option: "-V", from }, UNPACKS)
}

fn command(program: &Program, task: &Unpack, image: &Path, _: u32) -> Option<Invocation> {
    let Unpack::Dir(dir) = task else { return None };
    let mut extract = std::ffi::OsString::from("--extract=");
    extract.push(dir);
    // Old ones extract no attributes, and are not to be told to.
    let xattrs = program.offers().has("xattrs").then_some("--xattrs");
    Some(program.invocation().arg(extract).args(xattrs).arg("-d0").arg(image))
}

#[cfg(test)]
mod tests {
    use super::super::tests::spelled;
    use super::*;

    #[test]
    fn spells_what_it_does() {
        let [tar, dir] = spelled("fsck.erofs", UNPACKS);
        assert_eq!(tar, None);
        assert_eq!(dir.unwrap(), "fsck.erofs --extract=d --xattrs -d0 i");
    }
}
