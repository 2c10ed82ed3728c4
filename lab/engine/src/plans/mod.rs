//! Plans with targets: what packfs has to reach beside its rivals, as data in `plans/*.toml`.
//!
//! `file` reads one, `target` its limits, `cells` makes a session's plan of its cases, and
//! `verdict` holds what the session measured against the targets.

mod cells;
mod file;
mod target;
mod verdict;

pub use cells::{PlanRequest, session_plan};
pub use file::{Case, PlanFile, Side};
pub use target::Target;
pub use verdict::{Verdicts, judge};

use std::path::Path;

use packfs::{Error, Result, ResultExt};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../plans/", $name, ".toml")))),*]
    };
}

/// Plans that come with the lab: name and text.
const PLANS: [(&str, &str); 11] = built_in![
    "pack",
    "pack-slow",
    "unpack",
    "disks",
    "mount",
    "kernel",
    "reading",
    "goals",
    "sizes",
    "legacy",
    "growth"
];

/// All plans that come with the lab.
///
/// Errors: `Usage` for one that breaks the rules, which a test rules out.
pub fn built_in() -> Result<Vec<PlanFile>> {
    PLANS.iter().map(|(name, text)| PlanFile::parse(name, text)).collect()
}

/// A plan by its name, or from a file (.toml).
///
/// Errors: `Usage` if there is none of this name or it breaks the rules; `Io` if the file cannot be
/// read.
pub fn find(name: &str) -> Result<PlanFile> {
    if let Some((name, text)) = PLANS.iter().find(|(known, _)| *known == name) {
        return PlanFile::parse(name, text);
    }
    if !name.ends_with(".toml") {
        let known = PLANS.map(|(name, _)| name).join(", ");
        let error = Error::usage(format!("there is no plan {name:?}"));
        return Err(error.hint(format!("there are {known}; a file ends with .toml")));
    }
    let text = std::fs::read_to_string(name).or_io(|| format!("cannot read {name:?}"))?;
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    PlanFile::parse(&stem, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_come_with_the_lab_keep_the_rules_and_name_no_case_twice() {
        for plan in built_in().unwrap() {
            let mut labels: Vec<_> = plan.cases.iter().map(Case::label).collect();
            labels.sort();
            let count = labels.len();
            labels.dedup();
            assert_eq!(labels.len(), count, "{}", plan.name);
        }
    }

    #[test]
    fn an_unknown_plan_is_refused_with_those_there_are() {
        assert!(find("packing").unwrap_err().hints()[0].contains("pack, pack-slow"));
        assert_eq!(find("no/such.toml").unwrap_err().kind(), packfs::ErrorKind::Io);
    }
}
