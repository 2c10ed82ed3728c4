//! `packfs tar` and `packfs unpack`.

use std::path::Path;

use super::{Unpack, Unpacker, Unpacks};
use crate::process::Invocation;
use crate::results::{Missing, Program};
use crate::subject::makers::packfs_program;

const UNPACKS: Unpacks = Unpacks { reads: |format| packfs::formats::by_name(format).is_some(), command };

pub(super) fn find(path: &Path) -> Result<Unpacker, Missing> {
    Ok(Unpacker { name: "packfs", program: packfs_program(path)?, kind: UNPACKS })
}

fn command(program: &Program, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
    let command = program.invocation();
    let jobs = ["--jobs".to_owned(), jobs.to_string()];
    Some(match task {
        Unpack::Tar => command.arg("tar").arg(image).args(jobs),
        Unpack::Dir(dir) => command.arg("unpack").arg(image).arg(dir).args(jobs).arg("--quiet"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::spelled;
    use super::*;

    #[test]
    fn spells_both() {
        let [tar, dir] = spelled("packfs", UNPACKS);
        assert_eq!(tar.unwrap(), "packfs tar i --jobs 4");
        assert_eq!(dir.unwrap(), "packfs unpack i d --jobs 4 --quiet");
    }
}
