//! A session's plan, made of the cases of a plan with targets.

use std::path::PathBuf;

use super::file::{Case, PlanFile, Side};
use crate::programs;
use crate::results::{Missing, Settings};
use crate::session::{Cell, Plan, earlier_tree};
use crate::told;
use crate::trees::planned;
use crate::workload::{Need, Workload};

/// Where `cargo xtask corpus` leaves trees, in a checkout.
const CORPORA: &str = "target/corpora";

/// What the user asks for beside the plan.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Trees that lie elsewhere than in `target/corpora`: name and folder.
    pub trees: Vec<(String, PathBuf)>,
    /// Settings of the session; 0 runs for the plan's own number.
    pub settings: Settings,
    /// Devices instead of the plan's own; empty for that.
    pub devices: Vec<String>,
}

/// Makes the plan of a session. Trees that are not there are noted with their cases in `missing`.
pub fn session_plan(file: &PlanFile, cases: &[Case], asked: &Asked) -> Plan {
    let mut plan =
        Plan { title: file.name.clone(), settings: asked.settings.or_runs(file.runs), ..Plan::default() };
    let devices = if asked.devices.is_empty() { std::slice::from_ref(&file.device) } else { &asked.devices };
    for case in cases {
        for side in std::iter::once(&case.packfs).chain(&case.rival) {
            let earlier = side.recipe.options.iter().filter_map(|word| earlier_tree(word));
            for tree in std::iter::once(&*side.tree).chain(earlier) {
                add_tree(&mut plan, tree, asked);
            }
            for device in devices {
                plan.add(cell(side, case.workload, device, asked.settings.jobs));
            }
        }
    }
    plan.cells.retain(|cell| plan.trees.iter().any(|tree| tree.facts.id == cell.tree));
    plan
}

/// The cell of one side of a case.
pub(super) fn cell(side: &Side, workload: Workload, device: &str, jobs: Option<u32>) -> Cell {
    Cell {
        tree: side.tree.clone(),
        recipe: side.recipe.clone(),
        reader: side.reader.clone(),
        workload,
        device: device.to_owned(),
        jobs: jobs.filter(|_| workload.need() == Need::Maker),
    }
}

fn add_tree(plan: &mut Plan, name: &str, asked: &Asked) {
    let is_known = plan.tree(name).is_some() || plan.missing.iter().any(|missing| missing.what == name);
    if is_known {
        return;
    }
    let given = asked.trees.iter().find(|(given, _)| given == name).map(|(_, dir)| dir.clone());
    let corpus = name.split('/').next().unwrap_or(name);
    let Some(path) = given.or_else(|| programs::in_checkout(&format!("{CORPORA}/{name}"))) else {
        let why = format!(
            "it is not in {CORPORA}: `cargo xtask corpus {corpus}` makes it; --tree {name}=DIR names one"
        );
        plan.missing.push(Missing { what: name.into(), why });
        return;
    };
    match planned(&path, Some(name), Some(&format!("cargo xtask corpus {corpus}"))) {
        Ok(tree) => plan.trees.push(tree),
        Err(error) => plan.missing.push(Missing { what: name.into(), why: told(&error) }),
    }
}
