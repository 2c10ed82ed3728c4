//! `packfs lab tree`: makes the trees that documents measure on.

use std::path::PathBuf;

use packfs_lab::trees::{TREES, TreeKind};

use crate::common::with_hints;
use crate::watch::Watcher;
use packfs_terminal::Outcome;
use packfs_terminal::report::{self, Out};

/// Make a tree to measure on, by documented commands
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// debian, desktop, linux, large, or media; without one all are listed
    #[arg(value_name = "NAME", value_parser = kind, requires = "dir")]
    name: Option<TreeKind>,

    /// Folder of the tree; must not exist
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// The tree that large takes its pieces of
    #[arg(long, value_name = "TREE")]
    from: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  packfs lab tree                                   what there is, and the commands that make it
  packfs lab tree debian /srv/debian
  packfs lab tree large /srv/large --from /srv/debian";

fn kind(name: &str) -> Result<TreeKind, String> {
    with_hints(TreeKind::named(name))
}

impl Opts {
    /// Makes it.
    pub fn run(self) -> Outcome {
        let (Some(kind), Some(dir)) = (self.name, self.dir) else {
            let mut out = Out::stdout();
            for row in TREES.iter() {
                out.line(format_args!("{}: {}\n    {}", row.name, row.about, row.made_by))?;
            }
            out.finish()?;
            return Watcher::done();
        };
        let watcher = Watcher::new(false, None);
        report::note(format_args!("making {} in {}", kind.row().name, dir.display()));
        watcher.or_stopped(kind.make(&dir, self.from.as_deref()).and_then(|()| Watcher::done()))
    }
}
