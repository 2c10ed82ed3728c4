//! Programs that decode a whole image without a mount.

use std::path::{Path, PathBuf};

use super::Found;
use super::table::Unpacks;
use super::template::{call, word};
use crate::process::{Invocation, quoted};

/// Destination of unpacked contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpack {
    /// To standard output, as a tar.
    Tar,
    /// Into a directory, which does not exist yet.
    Dir(PathBuf),
}

/// Decodes whole images.
pub type Unpacker = Found<&'static Unpacks>;

impl Unpacker {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        self.kind.reads(format)
    }

    /// Returns the command, in `jobs` threads where it can be told; none if it does no such thing.
    pub fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let values = [word("image", image), word("jobs", jobs.to_string())];
        let Unpack::Dir(dir) = task else {
            return Some(call(&self.program, self.kind.tar.as_ref()?, &values));
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
