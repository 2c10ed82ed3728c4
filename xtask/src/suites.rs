//! `cargo xtask suites`: the test suites of other tools, run twice: with their names as links to
//! packfs, and with the originals as a control.
//!
//! The suites, most of them GPL code, are cloned below `target/suites`, and never linked.

mod erofs;
mod ng;
mod reasons;
mod run;
mod squashfuse;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{shell, workspace};
use run::{Side, Verdict};

/// Run the test suites of other tools with packfs under their names
///
/// Suites: erofs-utils, squashfs-tools-ng, squashfuse. squashfs-tools has none in its repository.
/// Needs root, cc, git, and the originals of `cargo xtask peers`. Fails if packfs fails a test that
/// the original passes, and xtask/src/suites/reasons.rs has no reason for it.
#[derive(clap::Args)]
pub struct Options {
    /// The suites; all if none is named
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
    /// Clone the suite from this checkout or bare repository, not from the project's own address
    #[arg(long, value_name = "SUITE=DIR")]
    checkout: Vec<String>,
    /// Program to test (default: target/release/packfs)
    #[arg(long, value_name = "PROGRAM")]
    packfs: Option<PathBuf>,
    /// Print the table as docs/guide/callers.md has it
    #[arg(long)]
    markdown: bool,
}

struct Suite {
    name: &'static str,
    address: &'static str,
    branch: &'static str,
    run: fn(&Path, &Side) -> Result<Vec<Outcome>>,
}

const SUITES: [Suite; 3] = [
    Suite {
        name: "erofs-utils",
        address: "https://github.com/erofs/erofs-utils",
        branch: "experimental-tests",
        run: erofs::run,
    },
    Suite {
        name: "squashfs-tools-ng",
        address: "https://github.com/AgentD/squashfs-tools-ng",
        branch: "master",
        run: ng::run,
    },
    Suite {
        name: "squashfuse",
        address: "https://github.com/vasi/squashfuse",
        branch: "master",
        run: squashfuse::run,
    },
];

struct Outcome {
    test: String,
    verdict: Verdict,
}

struct Row {
    suite: &'static str,
    test: String,
    ours: Verdict,
    theirs: Verdict,
}

pub fn run(options: Options) -> Result<()> {
    let mut checkouts = Vec::new();
    for text in &options.checkout {
        let (name, dir) = text.split_once('=').ok_or_else(|| Failure::usage("--checkout needs SUITE=DIR"))?;
        checkouts.push((suite(name)?.name, dir.to_owned()));
    }
    let program = options.packfs.unwrap_or_else(|| workspace::target().join("release/packfs"));
    let chosen: Vec<&Suite> = if options.suites.is_empty() {
        SUITES.iter().collect()
    } else {
        options.suites.iter().map(|name| suite(name)).collect::<Result<_>>()?
    };
    if !shell::is_root() {
        return Err(Failure::new("the suites mount images: run this as root"));
    }
    let mut rows = Vec::new();
    for suite in chosen {
        let given = checkouts.iter().find(|(name, _)| *name == suite.name).map(|(_, dir)| dir.as_str());
        rows.extend(suite.compare(&program, given.unwrap_or(suite.address))?);
    }
    print!("{}", if options.markdown { markdown(&rows) } else { listing(&rows) });
    let unexplained: Vec<String> = rows.iter().filter(|row| row.is_unexplained()).map(Row::name).collect();
    if unexplained.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("only packfs fails, for no known reason: {}", unexplained.join(", "))))
    }
}

fn suite(name: &str) -> Result<&'static Suite> {
    let names = || SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
    let found = SUITES.iter().find(|suite| suite.name == name);
    found.ok_or_else(|| Failure::usage(format!("no suite {name:?}\nhint: suites: {}", names())))
}

impl Suite {
    fn compare(&'static self, program: &Path, from: &str) -> Result<Vec<Row>> {
        let folder = workspace::target().join("suites").join(self.name);
        let mut sides = Vec::new();
        for side in
            [Side::packfs(program, &folder.join("packfs"))?, Side::originals(&folder.join("original"))?]
        {
            let checkout = self.cloned(from, side.folder())?;
            eprintln!("{}: {}", self.name, side.name());
            sides.push((self.run)(&checkout, &side)?);
        }
        let theirs = sides.pop().unwrap_or_default();
        let ours = sides.pop().unwrap_or_default();
        let pairs = ours.into_iter().zip(theirs);
        Ok(pairs
            .map(|(ours, theirs)| Row {
                suite: self.name,
                test: ours.test,
                ours: ours.verdict,
                theirs: theirs.verdict,
            })
            .collect())
    }

    fn cloned(&self, from: &str, folder: &Path) -> Result<PathBuf> {
        let checkout = folder.join("checkout");
        workspace::remove_dir(&checkout)?;
        workspace::make_dir(folder)?;
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--no-tags", "--single-branch", "--branch", self.branch]);
        shell::run_quietly(git.arg(from).arg(&checkout))?;
        Ok(checkout)
    }
}

impl Row {
    fn name(&self) -> String {
        format!("{} {}", self.suite, self.test)
    }

    fn reason(&self) -> Option<&'static str> {
        reasons::of(self.suite, &self.test)
    }

    fn is_unexplained(&self) -> bool {
        matches!((&self.ours, &self.theirs), (Verdict::Failed(_), Verdict::Passed)) && self.reason().is_none()
    }

    fn result(&self) -> &'static str {
        match (&self.ours, &self.theirs) {
            (Verdict::Passed, Verdict::Passed) => "passed by both",
            (Verdict::NotRun(_), _) | (_, Verdict::NotRun(_)) => "not applicable",
            (Verdict::Passed, Verdict::Failed(_)) => "passed by packfs alone",
            (Verdict::Failed(_), Verdict::Failed(_)) => "failed by both",
            (Verdict::Failed(_), Verdict::Passed) => "failed by packfs alone",
        }
    }
}

fn listing(rows: &[Row]) -> String {
    let mut table = Table::new(&["test", "result", "packfs", "original"], 4);
    for row in rows {
        table.row(vec![row.name(), row.result().into(), row.ours.text(), row.theirs.text()]);
    }
    table.text()
}

/// Returns the table of the guide: a row for each result of a suite, with reasons.
fn markdown(rows: &[Row]) -> String {
    const RESULTS: [&str; 5] = [
        "passed by both",
        "passed by packfs alone",
        "failed by packfs alone",
        "failed by both",
        "not applicable",
    ];
    let mut text = String::from("| suite | result | tests |\n|---|---|---|\n");
    for suite in &SUITES {
        for result in RESULTS {
            let found = rows.iter().filter(|row| row.suite == suite.name && row.result() == result);
            let told: Vec<String> = found
                .map(|row| match (result, row.reason()) {
                    ("passed by both", _) | (_, None) => row.test.clone(),
                    (_, Some(reason)) => format!("{} ({reason})", row.test),
                })
                .collect();
            if !told.is_empty() {
                text += &format!("| {} | {result} | {}: {} |\n", suite.name, told.len(), told.join(", "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(suite: &'static str, test: &str, ours: Verdict, theirs: Verdict) -> Row {
        Row { suite, test: test.into(), ours, theirs }
    }

    #[test]
    fn a_test_that_only_packfs_fails_needs_a_reason() {
        let failed = || Verdict::Failed("exit code 1".into());
        assert!(row("erofs-utils", "999", failed(), Verdict::Passed).is_unexplained());
        assert!(!row("erofs-utils", "029", failed(), Verdict::Passed).is_unexplained());
        assert!(!row("erofs-utils", "999", failed(), failed()).is_unexplained());
    }

    #[test]
    fn the_table_counts_each_result_of_a_suite() {
        let rows = [
            row("erofs-utils", "001", Verdict::Passed, Verdict::Passed),
            row("erofs-utils", "002", Verdict::Passed, Verdict::Passed),
            row("squashfuse", "a.sh", Verdict::NotRun("no".into()), Verdict::Passed),
        ];
        let text = markdown(&rows);
        assert!(text.contains("| erofs-utils | passed by both | 2: 001, 002 |\n"), "{text}");
        assert!(text.contains("| squashfuse | not applicable | 1: a.sh |\n"), "{text}");
    }
}
