//! packfs itself, as its own program: what users run is what is measured.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Format, Rival, Sharing, Task, words};
use crate::failure::{Failure, Result};
use crate::{metadata, shell, workspace};

pub struct Packfs {
    program: PathBuf,
    version: String,
    /// What makes it do no more than its rivals do: they do not read back what they wrote.
    not_verified: &'static str,
}

impl Packfs {
    /// Builds the program as it is released.
    pub fn build() -> Result<Self> {
        let mut cargo = metadata::cargo();
        cargo.args(["build", "--release", "--quiet", "--package", "packfs-cli"]);
        shell::run(cargo.current_dir(workspace::root()))?;
        Self::at(metadata::Workspace::read()?.target_directory.join("release/packfs"))
    }

    /// The program that was named; without a name one that is built.
    pub fn named(program: Option<PathBuf>) -> Result<Self> {
        program.map_or_else(Self::build, Self::at)
    }

    /// Where it is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The words that pack as rivals do, before any option.
    pub fn start_packing(&self) -> Vec<OsString> {
        let words = ["pack", self.not_verified].into_iter().filter(|word| !word.is_empty());
        std::iter::once(self.program.clone().into_os_string()).chain(words.map(OsString::from)).collect()
    }

    /// The words that undo a mount, whatever became of its process.
    pub fn unmount_command(&self, dir: &Path) -> Vec<OsString> {
        words(&[self.program.clone().into_os_string()], &[&"umount", &dir])
    }

    /// Takes a program that is already there.
    pub fn at(program: PathBuf) -> Result<Self> {
        let said = shell::capture(Command::new(&program).arg("--version"))?;
        let version = said.split_whitespace().nth(1);
        let version = version.ok_or_else(|| Failure::new("packfs --version tells no version"))?.to_owned();
        // Older ones never did.
        let help = shell::capture(Command::new(&program).args(["pack", "--help"]))?;
        let not_verified = if help.contains("--no-verify") { "--no-verify" } else { "" };
        Ok(Self { program, version, not_verified })
    }
}

impl Rival for Packfs {
    fn name(&self) -> &'static str {
        "packfs"
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn command(&self, task: &Task) -> Option<Vec<OsString>> {
        let program = [self.program.clone().into_os_string()];
        Some(match task {
            Task::Pack { source, image, format, sharing, codec, block_len, jobs } => {
                let (codec, block_len) = (codec.label(), block_len.to_string());
                let rest: [&dyn AsRef<_>; 11] = [
                    source,
                    image,
                    &"--format",
                    &format.name(),
                    &"--codec",
                    &codec,
                    &"--block-size",
                    &block_len,
                    &"--jobs",
                    &jobs.to_string(),
                    &"--quiet",
                ];
                words(&words(&self.start_packing(), &rest), sharing_options(*format, *sharing))
            }
            Task::Unpack { image, dir, jobs } => {
                words(&program, &[&"unpack", image, dir, &"--jobs", &jobs.to_string(), &"--quiet"])
            }
            Task::Mount { image, dir } => {
                words(&program, &[&"mount", &"--fuse", &"--foreground", image, dir])
            }
            Task::Tar { image, jobs } => words(&program, &[&"tar", image, &"--jobs", &jobs.to_string()]),
        })
    }
}

/// What makes an image of packfs hold what the rival's holds: only then do their sizes say anything.
fn sharing_options(format: Format, sharing: Sharing) -> &'static [&'static dyn AsRef<std::ffi::OsStr>] {
    match (format, sharing) {
        (Format::Squashfs, _) => &[],
        (Format::Erofs, Sharing::Plain) => &[&"--option", &"fragments=off", &"--option", &"inline-tails=off"],
        (Format::Erofs, Sharing::InlineTails) => {
            &[&"--option", &"fragments=off", &"--option", &"inline-tails=on"]
        }
        (Format::Erofs, Sharing::Fragments) => &[&"--option", &"fragments=tails"],
        (Format::Erofs, Sharing::Dedupe) => {
            &[&"--option", &"fragments=off", &"--option", &"inline-tails=off", &"--option", &"dedupe=ranges"]
        }
    }
}
