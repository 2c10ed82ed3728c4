//! `packfs lab run`: a session of the user's own.

use std::path::{Path, PathBuf};

use packfs_lab::results::Recipe;
use packfs_lab::session::{Depth, OwnRequest, own_plan, parse_recipe};
use packfs_lab::subject::Subjects;
use packfs_lab::trees;
use packfs_lab::workload::Workload;
use packfs_terminal::Outcome;

use crate::common::{Common, packfs_program, with_hints};

/// Measure a tree: its images, by packfs and by others, built and read
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The tree: a directory, or a tar where nothing needs its files one by one
    #[arg(value_name = "TREE")]
    tree: PathBuf,

    /// Measure MAKER:FORMAT[:CODEC[:LEVEL][:BLOCK]][+OPTION...]; again for more [default: those
    /// that are here]
    #[arg(long, value_name = "SPEC", value_parser = recipe)]
    subject: Vec<Recipe>,

    /// Read by kernel, packfs-fuse, packfs, squashfuse, ...; again for more [default: kernel and
    /// packfs-fuse]
    #[arg(long, value_name = "NAME")]
    reader: Vec<String>,

    /// Run this workload, see `packfs lab list`; again for more
    #[arg(long, value_name = "NAME", value_parser = workload)]
    workload: Vec<Workload>,

    /// A few subjects, one run of each: minutes
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// Every subject and workload there is
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab run /srv/tree --quick
  packfs lab run /srv/tree --subject packfs:squashfs:zstd:15:128K --subject mksquashfs:squashfs:zstd:15:128K --runs 5
  packfs lab run /srv/tree --reader kernel --workload sequential-data --device disk --device memory --output results
  packfs lab run /srv/tree --device sd --cpus 0.5 --output weak
An interrupted session goes on when the same command is given again.";

fn recipe(text: &str) -> Result<Recipe, String> {
    with_hints(parse_recipe(text))
}

fn workload(name: &str) -> Result<Workload, String> {
    with_hints(Workload::named(name))
}

impl Opts {
    /// Measures.
    pub fn run(self) -> Outcome {
        self.common.check()?;
        let tree = trees::planned(Path::new(&self.tree), None, None)?;
        let depth = match (self.quick, self.full) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Full,
            _ => Depth::Usual,
        };
        // A signal from here on ends the limit, too.
        let watcher = self.common.watcher();
        let limit = self.common.limit()?;
        let request = OwnRequest {
            subjects: self.subject,
            readers: self.reader,
            workloads: self.workload,
            devices: self.common.device.clone(),
            depth,
            settings: self.common.settings(limit.as_ref()),
        };
        let subjects = Subjects::find(&packfs_program());
        let plan = own_plan(tree, &request, &subjects);
        self.common.carry_out(&plan, subjects, limit, &watcher, |_| ())
    }
}
