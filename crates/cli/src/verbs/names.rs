//! `packfs as` and `packfs install-names`.

use crate::out::Outcome;
use crate::out::report::Out;
use packfs::{Error, Result, ResultExt};
use packfs_names::TOOLS;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run as another tool, such as mksquashfs
///
/// Reads the command line of that tool, with its exit codes. `packfs as` alone lists the tools.
/// docs/guide/names.md has what differs.
#[derive(clap::Args)]
#[command(after_help = AS_EXAMPLES)]
pub struct AsOpts {
    /// Name of the tool, and its arguments
    #[arg(value_name = "NAME", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

const AS_EXAMPLES: &str = "\
Examples:
  packfs as mksquashfs rootfs root.sqfs -comp zstd -noappend
  packfs as unsquashfs -s root.sqfs";

/// Install links under the names of other tools
#[derive(clap::Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallNamesOpts {
    /// Directory that gets the links, such as /usr/local/bin
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Link only this tool; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Replace existing files
    #[arg(long)]
    force: bool,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  packfs install-names /usr/local/bin
  packfs install-names --only mksquashfs --only unsquashfs ~/bin";

impl AsOpts {
    pub fn run(self) -> Outcome {
        let Some((name, args)) = self.command.split_first() else {
            let mut out = Out::stdout();
            TOOLS.iter().try_for_each(|tool| out.line(tool.name))?;
            out.finish()?;
            return Ok(ExitCode::SUCCESS);
        };
        match packfs_names::tool(name) {
            Some(tool) => Ok(tool.run(args)),
            None => {
                let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
                Err(Error::usage(format!("no tool {name:?}; there are {}", names.join(", "))))
            }
        }
    }
}

impl InstallNamesOpts {
    pub fn run(self) -> Outcome {
        let program = std::env::current_exe().or_io(|| "cannot find this program")?;
        if let Some(name) = self.only.iter().find(|name| !TOOLS.iter().any(|tool| tool.name == **name)) {
            return Err(Error::usage(format!("no tool {name:?}; packfs as lists them")));
        }
        let wanted = TOOLS
            .iter()
            .filter(|tool| self.only.is_empty() || self.only.iter().any(|name| name == tool.name));
        let places: Vec<PathBuf> = wanted.map(|tool| self.dir.join(tool.name)).collect();
        std::fs::create_dir_all(&self.dir).or_io(|| format!("cannot create {:?}", self.dir))?;
        for place in &places {
            self.make_room(place)?;
        }
        for place in &places {
            std::os::unix::fs::symlink(&program, place).or_io(|| format!("cannot create {place:?}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn make_room(&self, place: &PathBuf) -> Result<()> {
        if place.symlink_metadata().is_err() {
            return Ok(());
        }
        if !self.force {
            let error = Error::usage(format!("cannot create {place:?}: it exists"));
            return Err(error.hint("--force replaces it"));
        }
        std::fs::remove_file(place).or_io(|| format!("cannot remove {place:?}"))
    }
}
