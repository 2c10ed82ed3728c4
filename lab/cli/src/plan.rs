//! `packfs lab plan`: what packfs has to reach beside its rivals, measured and judged.

use std::path::PathBuf;
use std::process::ExitCode;

use packfs::{Error, Result};
use packfs_lab::plans::{self, Case, PlanFile, PlanRequest, Verdicts, judge, session_plan};
use packfs_lab::subject::Subjects;
use packfs_terminal::Outcome;
use packfs_terminal::report::{self, Out};

use crate::common::{Common, packfs_program, with_hints};
use crate::watch::Watcher;

/// Measure plans with targets, and judge whether packfs meets them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(subcommand)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab plan list                             the plans there are
  packfs lab plan list pack                        the cases of one
  sudo packfs lab plan run pack gzip               its cases in whose names this word is
  sudo packfs lab plan run mine.toml --tree debian=/srv/debian --runs 3";

#[derive(clap::Subcommand)]
enum Work {
    /// List plans, or the cases and targets of one
    List {
        /// Name of a plan, or a file (.toml)
        #[arg(value_name = "PLAN", value_parser = plan)]
        plan: Option<PlanFile>,
    },
    Run(Box<RunOpts>),
}

/// Measure a plan; exit code 1 unless all targets are met
///
/// An image that packfs does not make is a missed target; a plan of which nothing could be judged
/// is not met. Trees lie in target/corpora of a checkout, where `cargo xtask corpus` makes them.
/// Cases whose tree, program or right is missing are skipped by name.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct RunOpts {
    /// Name of a plan, or a file (.toml)
    #[arg(value_name = "PLAN", value_parser = plan)]
    plan: PlanFile,

    /// Only cases in whose names all of these are
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Use DIR as the tree NAME instead of target/corpora/NAME; again for more
    #[arg(long, value_name = "NAME=DIR", value_parser = tree)]
    tree: Vec<(String, PathBuf)>,

    #[command(flatten)]
    common: Common,
}

fn plan(name: &str) -> Result<PlanFile, String> {
    with_hints(plans::find(name))
}

fn tree(typed: &str) -> Result<(String, PathBuf), String> {
    let (name, dir) = typed.split_once('=').ok_or("write NAME=DIR")?;
    Ok((name.to_owned(), dir.into()))
}

impl Opts {
    /// Lists or measures.
    pub fn run(self) -> Outcome {
        match self.work {
            Work::List { plan } => list(plan),
            Work::Run(opts) => opts.run(),
        }
    }
}

fn list(plan: Option<PlanFile>) -> Outcome {
    let mut out = Out::stdout();
    match plan {
        None => {
            for plan in plans::built_in()? {
                out.line(format_args!("{:10} {} ({} cases)", plan.name, plan.title, plan.cases.len()))?;
            }
        }
        Some(plan) => {
            for case in &plan.cases {
                out.line(packfs::printable(&format!("{}: {}", case.label(), case.target)))?;
            }
        }
    }
    out.finish()?;
    Watcher::done()
}

impl RunOpts {
    fn run(self) -> Outcome {
        self.common.check()?;
        let is_wanted = |case: &&Case| self.words.iter().all(|word| case.label().contains(word));
        let cases: Vec<Case> = self.plan.cases.iter().filter(is_wanted).cloned().collect();
        if cases.is_empty() {
            return Err(Error::usage("no case of the plan is all of that"));
        }
        let watcher = self.common.watcher();
        let limit = self.common.limit()?;
        let settings = self.common.settings(limit.as_ref());
        let request = PlanRequest { trees: self.tree, settings, devices: self.common.device.clone() };
        let plan = session_plan(&self.plan, &cases, &request);
        let mut verdicts = Verdicts::default();
        let subjects = Subjects::find(&packfs_program());
        let outcome = self.common.carry_out(&plan, subjects, limit, &watcher, |results| {
            verdicts = judge(&cases, &request.devices, results);
            results.tables = vec![verdicts.table(&self.plan.title)];
        });
        outcome
            .map(|code| if verdicts.are_met() { code } else { ExitCode::FAILURE })
            .inspect(|_| tell(&verdicts))
    }
}

/// Prints what became of the targets, on standard error as all that stands beside the report.
fn tell(verdicts: &Verdicts) {
    let named = [("missed", &verdicts.missed), ("skipped", &verdicts.skipped)];
    for (word, line) in named.into_iter().flat_map(|(word, lines)| lines.iter().map(move |line| (word, line)))
    {
        report::note(format_args!("{word}: {line}"));
    }
    let (met, missed, skipped) = (verdicts.met, verdicts.missed.len(), verdicts.skipped.len());
    report::note(format_args!("targets: {met} met, {missed} missed; {skipped} cases skipped"));
}
