//! `packfs umount`: takes mounts away, also those whose server is gone.

use crate::out::Outcome;
use std::path::PathBuf;
use std::process::ExitCode;

/// Unmount images that packfs mounted
#[derive(clap::Args)]
#[command(visible_alias = "unmount", after_help = EXAMPLES)]
pub struct Opts {
    /// Directories to unmount
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,

    /// Unmount at once, even if in use
    ///
    /// Processes that use the mount may finish.
    #[arg(short, long)]
    lazy: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs umount /mnt
  packfs umount --lazy /mnt                even if in use
  packfs mount --list                      mounts of packfs";

impl Opts {
    /// Unmounts.
    pub fn run(self) -> Outcome {
        let drivers = packfs::formats::drivers();
        let unmount = |dir: &PathBuf| packfs::mount::unmount(dir, &drivers, self.lazy);
        let outcomes: Vec<_> = self.dirs.iter().map(unmount).collect();
        let mut failed = ExitCode::SUCCESS;
        for error in outcomes.into_iter().filter_map(Result::err) {
            failed = crate::out::report::failure(&error);
        }
        Ok(failed)
    }
}
