//! Options that all sessions share, how they are carried out, and the reports that they leave.

use std::path::{Path, PathBuf};

use packfs::Result;
use packfs_lab::process::Limit;
use packfs_lab::programs::locate;
use packfs_lab::report::{Terminal, text, write_all};
use packfs_lab::results::{FILE, Results, Settings};
use packfs_lab::session::{self, Lab, LabOptions, Plan, check_device, device_names};
use packfs_lab::subject::Subjects;
use packfs_terminal::Outcome;
use packfs_terminal::listed::{any, listed};
use packfs_terminal::report::{self, Out, columns};

use crate::watch::Watcher;

/// Options of all sessions.
#[derive(clap::Args)]
pub struct Common {
    /// Folder of results and reports [default: packfs-lab-results]
    #[arg(long, value_name = "DIR", default_value = "packfs-lab-results", hide_default_value = true)]
    pub output: PathBuf,

    /// Device below images: disk, memory, or a simulated device; again for more
    #[arg(long, value_name = "NAME", value_parser = listed(any, || device_names().collect()), hide_possible_values = true)]
    pub device: Vec<String>,

    /// Measured runs of each cell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,

    /// Folder that images are made and mounted in [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,

    /// Processors for makers, unpackers, FUSE servers and what reads, 0.5 for example, as a weaker
    /// machine has; the kernel's own threads are not limited [default: all]
    #[arg(long, value_name = "N")]
    pub cpus: Option<f64>,

    /// Most threads of programs; as many as --cpus, or all processors, if not given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Go on with the session in the output folder, or fail if there is none
    #[arg(long)]
    pub resume: bool,

    /// No lines about what is being measured
    #[arg(short, long)]
    pub quiet: bool,
}

impl Common {
    /// Refuses what can be known to be wrong before anything is done.
    pub fn check(&self) -> Result<()> {
        self.device.iter().try_for_each(|device| check_device(device))?;
        if self.resume && !self.output.join(FILE).exists() {
            let error = format!("there is no session to go on with in {:?}", self.output);
            return Err(packfs::Error::failed(error).hint("leave --resume out to begin one"));
        }
        Ok(())
    }

    /// Most threads: as many as a machine with these processors would have.
    pub fn jobs(&self) -> u32 {
        let here = packfs::processor_count();
        let given = self.cpus.map_or(here, |cpus| cpus.ceil() as usize).clamp(1, here);
        self.jobs.map_or_else(|| u32::try_from(given).unwrap_or(1), u32::from)
    }

    /// Settings of a session; 0 runs where the user leaves their number open.
    pub fn settings(&self, limit: Option<&Limit>) -> Settings {
        Settings {
            command: command_line(),
            quick: false,
            runs: self.runs.unwrap_or(0),
            seed: self.seed,
            cpu_limit: limit.map(|limit| limit.facts().clone()),
            jobs: Some(self.jobs()),
        }
    }

    /// Puts the limit of programs in force, if the user wants one.
    pub fn limit(&self) -> Result<Option<Limit>> {
        self.cpus.map(Limit::new).transpose()
    }

    /// A watcher that tells how to go on.
    pub fn watcher(&self) -> Watcher {
        let hint = format!("the same command goes on; what was measured is in {:?}", self.output);
        Watcher::new(self.quiet, Some(hint))
    }

    /// Carries out a plan, adds what `tables` makes of it, writes all reports and prints the one
    /// for people.
    pub fn carry_out(
        &self,
        plan: &Plan,
        subjects: Subjects,
        limit: Option<Limit>,
        watcher: &Watcher,
        tables: impl FnOnce(&mut Results),
    ) -> Outcome {
        let outcome = self.measure(plan, subjects, limit, watcher).and_then(|mut results| {
            tables(&mut results);
            self.show(&results)
        });
        watcher.or_stopped(outcome)
    }

    fn measure(
        &self,
        plan: &Plan,
        subjects: Subjects,
        limit: Option<Limit>,
        watcher: &Watcher,
    ) -> Result<Results> {
        let options = LabOptions {
            lab: own_program()?,
            scratch: self.scratch.clone(),
            jobs: self.jobs(),
            seed: self.seed,
        };
        let mut lab = Lab::new(&options, subjects, &plan.trees, limit)?;
        session::run(plan, &self.output, &mut lab, watcher)
    }

    fn show(&self, results: &Results) -> Outcome {
        let written = write_all(results, &self.output)?;
        let mut out = Out::stdout();
        out.line(text(results, terminal()).trim_end())?;
        out.finish()?;
        for path in written {
            report::note(format_args!("wrote {}", path.display()));
        }
        Watcher::done()
    }
}

/// Standard output for reports. Colours that it cannot show are taken out later.
pub fn terminal() -> Terminal {
    Terminal { width: columns(std::io::stdout()), colours: true }
}

/// An error as clap shows it, which knows no hints.
pub fn with_hints<T>(outcome: Result<T>) -> Result<T, String> {
    outcome.map_err(|error| packfs_lab::one_line(&error))
}

/// The command line as it was typed, for the record.
fn command_line() -> String {
    let words = std::env::args_os().enumerate().map(|(index, word)| match index {
        0 => Path::new(&word).file_name().unwrap_or(&word).to_string_lossy().into_owned(),
        _ => packfs_lab::process::quoted(&word),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the program `packfs` that is measured: the one beside this program, or the first on
/// `PATH`.
pub fn packfs_program() -> PathBuf {
    let beside = own_program().ok().map(|program| program.with_file_name("packfs"));
    let found = beside.filter(|path| path.is_file()).or_else(|| locate("packfs"));
    // Without either, the name is what the message about the missing program says.
    found.unwrap_or_else(|| PathBuf::from("packfs"))
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| packfs::Error::io("cannot find this program", error))
}
