//! `packfs advise`: measures which image suits a tree on a device, and says how to make it.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::common::terminal;
use packfs::{Error, Result};
use packfs_lab::advise::{Answer, Kernel, Question, Want, advise};
use packfs_terminal::listed::{any, formats, listed};
use packfs_terminal::report::Out;
use packfs_terminal::text::parse_size;
use packfs_terminal::work::Work;
use packfs_terminal::{Outcome, json};

/// Say which format, codec and block size suit a tree on a device, as a command to run
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Source of the image: a directory, or anything else that `packfs pack` takes
    #[arg(value_name = "DIR")]
    tree: PathBuf,

    /// Device below the image: sd, emmc, hdd, usb3-ssd, nvme, cloud-3000iops, http-20ms, cdrom-48x,
    /// or a TOML file of your own
    #[arg(long, value_name = "NAME|FILE", value_parser = listed(any, || packfs_device::builtin_names().collect()), hide_possible_values = true)]
    device: String,

    /// Purpose of the image: as few bytes as possible (size), files read one after the other in the
    /// order of the tree (boot), files read here and there (random), or a short time to make it
    /// (build)
    #[arg(long, value_name = "size|boot|random|build", value_parser = parse_want)]
    want: Want,

    /// The Linux that is to mount it, such as 6.1; without it the one that runs here is assumed,
    /// and the answer says so
    #[arg(long, value_name = "VERSION", value_parser = parse_kernel)]
    kernel: Option<Kernel>,

    /// Consider images of at most SIZE bytes only, such as 16M
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,

    /// Measure fewer candidates on smaller samples
    #[arg(long)]
    quick: bool,

    /// Consider this format only; may be given several times. Without it squashfs and erofs are
    /// considered
    #[arg(short, long, value_name = "NAME", value_parser = listed(any, formats), hide_possible_values = true)]
    format: Vec<String>,

    /// Files that are read, and placed in front, unless random files are wanted: one path a line,
    /// as `packfs mount --record` writes it
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Seed of random choices: the same number chooses the same samples and files
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Make the first two images of the whole tree, have the kernel read them on the simulated
    /// device, and print how far off the forecast was; needs root for reading
    #[arg(long)]
    check: bool,

    /// Folder for images that are measured and removed again: room for two images of the tree
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Print the answer as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs advise rootfs --device sd --want boot --kernel 6.1
  packfs advise rootfs --device cloud-3000iops --want size --quick --json
  packfs advise rootfs --device mine.toml --want random --format erofs
  sudo packfs advise rootfs --device nvme --want boot --check";

impl Opts {
    /// Answers.
    pub fn run(self) -> Outcome {
        self.work.shown(self.json, |bars| {
            let answer = advise(&self.question()?, bars)?;
            bars.finish();
            self.print(&answer)?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn question(&self) -> Result<Question> {
        Ok(Question {
            tree: self.tree.clone(),
            device: packfs_device::find(&self.device)?,
            device_name: self.device.clone(),
            want: self.want,
            kernel: self.kernel,
            quick: self.quick,
            max_size: self.max_size,
            formats: self.format.clone(),
            trace: self.trace.clone(),
            scratch: self.scratch.clone(),
            jobs: self.work.jobs(),
            seed: self.seed,
            check: self.check,
        })
    }

    fn print(&self, answer: &Answer) -> Result<()> {
        if self.json {
            let value =
                serde_json::to_value(answer).map_err(|error| Error::failed(format!("JSON: {error}")))?;
            return json::print(&value);
        }
        let mut out = Out::stdout();
        out.line(answer.text(terminal()).trim_end())?;
        out.finish()
    }
}

fn parse_want(text: &str) -> Result<Want, String> {
    let names = || Want::ALL.map(Want::name).join(", ");
    Want::named(text).ok_or_else(|| format!("{text:?} is nothing to want; write {}", names()))
}

fn parse_kernel(text: &str) -> Result<Kernel, String> {
    Kernel::parse(text).map_err(|error| error.to_string())
}
