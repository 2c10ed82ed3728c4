//! Programs that decode a whole image without a mount.

use std::path::{Path, PathBuf};

use super::Installed;
use super::table::{TABLE, Unpacks};
use super::template::{call, word};
use crate::process::{Invocation, quoted};
use crate::results::Missing;

/// Destination of unpacked contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpack {
    /// To standard output, as a tar.
    Tar,
    /// Into a directory, which does not exist yet.
    Dir(PathBuf),
    /// All entries with their facts, to standard output.
    List,
}

/// Decodes whole images.
pub type Unpacker = Installed<&'static Unpacks>;

impl Unpacker {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        self.kind.reads(format)
    }

    /// Returns the command, in `jobs` threads where it can be told; none if it does no such thing.
    pub fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let values = [word("image", image), word("jobs", jobs.to_string())];
        let dir = match task {
            Unpack::Tar => return Some(call(&self.program, self.kind.tar.as_ref()?, &values)),
            Unpack::List => return Some(call(&self.program, self.kind.list.as_ref()?, &values)),
            Unpack::Dir(dir) => dir,
        };
        let template = self.kind.dir.as_ref()?;
        // Old programs extract no attributes, and refuse the option.
        let xattrs = template.contains("{xattrs}") && self.program.offers().has("xattrs");
        let xattrs = ("xattrs", xattrs.then(|| "--xattrs".into()).into_iter().collect());
        let [image, jobs] = values;
        let command = call(&self.program, template, &[image, jobs, word("dir", dir), xattrs]);
        Some(if self.kind.needs_dir {
            Invocation::shell(&format!("mkdir {} && {}", quoted(dir.as_os_str()), command.quoted()))
        } else {
            command
        })
    }
}

pub(super) fn find(packfs: &Path) -> Vec<Result<Unpacker, Missing>> {
    let own = TABLE.own_unpackers.iter().map(|row| row.find_own(packfs));
    own.chain(TABLE.unpackers.iter().map(|row| row.find())).collect()
}

/// Returns true if there is an unpacker of this name, here or elsewhere.
pub fn is_unpacker(name: &str) -> bool {
    TABLE.own_unpackers.iter().chain(&TABLE.unpackers).any(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_its_name() {
        for one in find(Path::new("/bin/true")) {
            let name = one.map_or_else(|missing| missing.what, |unpacker| unpacker.name().to_owned());
            assert!(is_unpacker(&name), "{name}");
        }
    }
}
