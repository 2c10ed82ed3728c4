//! `packfs lab` and `packfs advise`: what measures is a program of its own, `packfs-lab`, which
//! takes this one's place.

use crate::out::Outcome;
use packfs::Error;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Measure formats, codecs, and other programs on a tree
///
/// The program packfs-lab does it; `packfs lab --help` shows its verbs.
#[derive(clap::Args)]
#[command(after_help = LAB_EXAMPLES, disable_help_flag = true)]
pub struct Opts {
    #[command(flatten)]
    rest: Rest,
}

const LAB_EXAMPLES: &str = "\
Examples:
  packfs lab run /srv/tree --quick
  packfs lab seed erofs-perf --quick --output results
  packfs lab list";

/// Recommend format, codec, and block size for a tree
///
/// The program packfs-lab does it; `packfs advise --help` shows its options.
#[derive(clap::Args)]
#[command(after_help = ADVISE_EXAMPLES, disable_help_flag = true)]
pub struct AdviseOpts {
    #[command(flatten)]
    rest: Rest,
}

const ADVISE_EXAMPLES: &str = "\
Examples:
  packfs advise rootfs --device sd --want boot --kernel 6.1
  packfs advise rootfs --device cloud-3000iops --want size --quick --json";

/// A command line that the other program takes apart.
#[derive(clap::Args)]
struct Rest {
    /// Arguments of packfs-lab
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Opts {
    /// Becomes `packfs-lab`.
    pub fn run(self) -> Outcome {
        // Its help and its records show the command as it was typed.
        become_lab("packfs lab", &[], &self.rest.arguments)
    }
}

impl AdviseOpts {
    /// Becomes `packfs-lab advise`.
    pub fn run(self) -> Outcome {
        become_lab("packfs", &["advise"], &self.rest.arguments)
    }
}

/// The program as it is called: with its folder if it lies beside this one, else to be looked for
/// on `PATH`.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("packfs-lab"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("packfs-lab"))
}

fn become_lab(name: &str, verb: &[&str], arguments: &[OsString]) -> Outcome {
    let error = Command::new(program()).arg0(name).args(verb).args(arguments).exec();
    if error.kind() == ErrorKind::NotFound {
        let how = "cargo install --locked --path crates/cli --features lab installs it beside packfs";
        return Err(Error::failed("packfs-lab is not installed").hint(how));
    }
    Err(Error::io("cannot run packfs-lab", error))
}
