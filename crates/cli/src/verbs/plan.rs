//! `packfs plan`: cuts a directory into shards that machines pack by themselves.

use crate::args::{self, Texts};
use crate::out::listed::words;
use crate::out::report::Out;
use crate::out::{Outcome, json, text};
use owo_colors::OwoColorize;
use packfs::shards::{self, Engine, ListFormat, Plan, PlanSource, Planning, Shards, Totals};
use packfs::{Error, Progress, Result, ResultExt};
use packfs_terminal::work::Answering;
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Memory for sorting, unless --memory is given.
const MEMORY: u64 = 256 << 20;

/// Plan shards of a directory, to pack it on many machines
///
/// Writes the folder PLAN: plan.json with all options, and for each shard the list of its entries
/// with their metadata. `packfs pack-shard` packs one shard, on any machine that has PLAN and SRC;
/// `packfs merge` makes one image of all, without decoding data.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Directory to plan
    #[arg(value_name = "SRC")]
    source: PathBuf,

    /// Set the size of shards, such as 32G, or their number
    ///
    /// A number without a unit is the number of shards. Sizes count file data before compression,
    /// and 20,000 bytes for each entry.
    #[arg(long, value_name = "SIZE|N", value_parser = parse_shards, required_unless_present = "like")]
    shards: Option<Shards>,

    /// Take options and cut points from an earlier plan
    ///
    /// Shards whose entries did not change keep their names, and are not packed again.
    #[arg(long, value_name = "PLAN", conflicts_with = "shards")]
    like: Option<PathBuf>,

    /// Write the plan to this folder, which must not exist
    ///
    /// A folder with the same plan is left as it is.
    #[arg(short, long, visible_alias = "output", value_name = "PLAN")]
    out: PathBuf,

    /// Read the entries from FILE instead of walking SRC
    ///
    /// Entries end with NULs or with line ends, in any order; missing directories above them are
    /// added. A FILE of - is standard input.
    #[arg(long, value_name = "FILE")]
    from_list: Option<PathBuf>,

    /// Set the form of --from-list: paths (default) or find
    ///
    /// paths has a path in each record, relative to SRC or absolute, and packfs reads the metadata
    /// of each. find has the output of
    /// find SRC -printf '%y %m %U %G %s %T@ %D %i %n %P\0', whose metadata is used.
    #[arg(long, value_name = "FORM", default_value = "paths", requires = "from_list",
        value_parser = words::<ListFormat>())]
    list_format: ListFormat,

    #[command(flatten)]
    options: Texts<args::Planning>,

    /// Sort in this much memory, such as 1G (default: 256M)
    ///
    /// More entries go through temporary files beside PLAN.
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    memory: Option<u64>,

    /// Write a job for slurm, kubernetes or aws-batch into PLAN
    #[arg(long, value_name = "ENGINE", value_parser = words::<Engine>())]
    emit: Option<Engine>,

    #[command(flatten)]
    answering: Answering,
}

const EXAMPLES: &str = "\
Examples:
  packfs plan /data --shards 32G --out plan --format erofs --codec zstd:9
  packfs pack-shard plan 0 --to /shared/store      # for each shard, anywhere
  packfs merge plan --from /shared/store -o data.erofs
  packfs plan /data --shards 64 --out plan --emit slurm
  find /data -printf '%y %m %U %G %s %T@ %D %i %n %P\\0' > list
  packfs plan /data --shards 1T --out plan --from-list list --list-format find";

fn parse_shards(text: &str) -> Result<Shards, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let count = text.parse().ok().filter(|count| (1..=100_000).contains(count));
        return count.map(Shards::Count).ok_or_else(|| "1 to 100000 shards, or a size such as 32G".into());
    }
    match text::parse_size(text)? {
        0 => Err("a size above 0 is needed".into()),
        size => Ok(Shards::Size(size)),
    }
}

impl Opts {
    /// Plans.
    pub fn run(self) -> Outcome {
        self.answering.shown(|bars| {
            let plan = self.plan(bars)?;
            let job = self.emit.map(|engine| engine.emit(&plan)).transpose()?;
            bars.finish();
            self.tell(&plan, job.as_deref())?;
            Ok(ExitCode::SUCCESS)
        })
    }

    fn plan(&self, progress: &dyn Progress) -> Result<Plan> {
        let (shards, recipe) = match (&self.like, &self.shards) {
            (Some(like), _) => {
                if let Some(info) = self.options.infos().next() {
                    let option = info.name;
                    return Err(Error::usage(format!(
                        "--{option} cannot be used with --like, which has the options"
                    )));
                }
                let like = Plan::read(like)?;
                (like.cuts()?, like.recipe)
            }
            (None, Some(shards)) => (shards.clone(), shards::recipe(self.options.iter())?),
            (None, None) => return Err(Error::usage("--shards or --like is needed")),
        };
        let input = match &self.from_list {
            None => PlanSource::Walk,
            Some(path) => {
                let reader: Box<dyn BufRead> = if path == Path::new("-") {
                    Box::new(BufReader::with_capacity(1 << 20, std::io::stdin()))
                } else {
                    let file = File::open(path).or_io(|| format!("cannot open {path:?}"))?;
                    Box::new(BufReader::with_capacity(1 << 20, file))
                };
                let format = self.list_format;
                PlanSource::List { reader, name: format!("{path:?}"), format }
            }
        };
        let memory = usize::try_from(self.memory.unwrap_or(MEMORY)).unwrap_or(usize::MAX);
        let (source, output) = (&*self.source, &*self.out);
        shards::plan(Planning { source, input, shards, recipe, memory, output }, progress)
    }

    fn tell(&self, plan: &Plan, job: Option<&Path>) -> Result<()> {
        let shards = plan.shards.len() as u64;
        if self.answering.json {
            let totals = &plan.totals;
            let job = job.map(|job| job.to_string_lossy().into_owned());
            return json::print(&Document { plan: json::Bytes::from(&self.out), shards, totals, job });
        }
        if self.answering.work.quiet {
            return Ok(());
        }
        let totals = &plan.totals;
        let mut out = Out::stdout();
        let (count, entries) = (text::counted(shards, "shard"), text::count(totals.entries));
        let size = text::size(totals.file_bytes);
        out.line(format_args!("{}: {count} of {entries} entries, {size}", "planned".green().bold()))?;
        if totals.split_links > 0 {
            let files = text::counted(totals.split_links, "hard-linked file");
            out.line(format_args!("  {files} may be stored several times"))?;
        }
        if totals.unreadable > 0 {
            out.line(format_args!("  {} left out", text::counted(totals.unreadable, "path")))?;
        }
        let (plan, last) = (self.out.display(), shards - 1);
        out.line(format_args!("  pack each, 0 to {last}: packfs pack-shard {plan} N --to STORE"))?;
        if let Some(job) = job {
            out.line(format_args!("  job: {}", job.display()))?;
        }
        out.finish()
    }
}

/// Document of `plan --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    plan: json::Bytes<'a, json::Plan>,
    /// Number of shards.
    shards: u64,
    #[serde(flatten)]
    totals: &'a Totals,
    /// File of the job, of `--emit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
}
