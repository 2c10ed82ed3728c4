//! `--sandbox`: what a verb that reads may still reach once it begins. Applied before anything of
//! the input is looked at, and before any other thread starts.

use crate::out::{Output, report};
use packfs::{Result, Source};
use packfs_sandbox::Sandbox;

/// Mode of the sandbox.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum When {
    /// Apply those that the kernel supports
    Auto,
    /// Fail unless the kernel supports both
    Require,
}

/// The option.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SandboxArg {
    /// Restrict files and system calls before reading
    ///
    /// Landlock restricts files to those that are read and written, seccomp restricts system calls
    /// to those that reading needs. Both apply before the input is parsed. A line on standard error
    /// reports which of them are active. --sandbox alone is --sandbox=auto.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    sandbox: Option<When>,
}

/// Files that C and time zones need, whatever is read.
const ALWAYS_READ: [&str; 2] = ["/etc/localtime", "/usr/share/zoneinfo"];

impl SandboxArg {
    /// True if a sandbox was requested.
    pub fn is_wanted(self) -> bool {
        self.sandbox.is_some()
    }

    /// Gives up all but what `reach` adds, if that was asked for.
    ///
    /// Errors: those of [`Sandbox::apply`], and with `require` what the kernel cannot do.
    pub fn enter(self, reach: impl FnOnce(Sandbox) -> Sandbox) -> Result<()> {
        let Some(when) = self.sandbox else { return Ok(()) };
        let mut sandbox = reach(ALWAYS_READ.into_iter().fold(Sandbox::new(), Sandbox::read));
        if crate::interposer::fakeroot_answers() {
            sandbox = sandbox.system_v();
        }
        let applied = match when {
            When::Auto => sandbox.apply()?,
            When::Require => sandbox.apply_whole()?,
        };
        report::note(format_args!("sandbox: {applied}"));
        Ok(())
    }
}

/// Adds what writing to an output needs.
pub fn writing(sandbox: Sandbox, output: &Output<'_>) -> Sandbox {
    output.names_in().into_iter().fold(sandbox, Sandbox::name_in)
}

/// Adds what reading a source needs.
pub fn reading(sandbox: Sandbox, source: &Source) -> Sandbox {
    match source {
        // A compressed disk is decoded there.
        Source::Image(path) if packfs::OpenOptions::new().is_compressed(path) => {
            sandbox.read(path).scratch(packfs::temporary_folder())
        }
        Source::Directory(path) | Source::Image(path) => sandbox.read(path),
        Source::Entries(paths) | Source::Merged(paths) => paths.iter().fold(sandbox, Sandbox::read),
        // Layers are decoded there.
        Source::Oci(path) => sandbox.read(path).scratch(packfs::temporary_folder()),
        // Contents of what comes from start to end are kept there.
        Source::Tar(path) => sandbox.read(path).scratch(packfs::temporary_folder()),
        Source::TarStdin => sandbox.scratch(packfs::temporary_folder()),
        // Files that it names lie beside it.
        Source::Manifest(path) => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => sandbox.read(folder),
            _ => sandbox.read("."),
        },
        _ => sandbox,
    }
}
