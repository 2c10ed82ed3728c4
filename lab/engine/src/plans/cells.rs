//! A session's plan, made of the cases of a plan with targets.

use std::path::PathBuf;

use super::file::{Case, PlanFile};
use super::verdict::judged;
use crate::one_line;
use crate::programs;
use crate::results::{Missing, Results, Settings};
use crate::session::{Plan, earlier_tree};
use crate::trees::planned;

/// Folder of a checkout that `cargo xtask corpus` leaves trees in.
const CORPORA: &str = "target/corpora";

/// Choices of the user beside the plan.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// Trees that lie elsewhere than in `target/corpora`: name and folder.
    pub trees: Vec<(String, PathBuf)>,
    /// Settings of the session; 0 runs for the plan's own number.
    pub settings: Settings,
    /// Devices instead of those of each case; empty for these.
    pub devices: Vec<String>,
}

/// Makes the plan of a session: the cells that verdicts look up. Trees that are not there are noted
/// in `missing`, and their cases are left out.
pub fn session_plan(file: &PlanFile, cases: &[Case], request: &PlanRequest) -> Plan {
    let mut plan =
        Plan { title: file.name.clone(), settings: request.settings.or_runs(file.runs), ..Plan::default() };
    let results = Results { settings: plan.settings.clone(), ..Results::default() };
    for cell in judged(cases, &request.devices, &results).1 {
        let earlier = cell.recipe.options.iter().filter_map(|word| earlier_tree(word));
        for tree in std::iter::once(&*cell.tree).chain(earlier) {
            add_tree(&mut plan, tree, request);
        }
        if plan.tree(&cell.tree).is_some() {
            plan.add(cell);
        }
    }
    plan
}

fn add_tree(plan: &mut Plan, name: &str, request: &PlanRequest) {
    let is_known = plan.tree(name).is_some() || plan.missing.iter().any(|missing| missing.what == name);
    if is_known {
        return;
    }
    let given = request.trees.iter().find(|(given, _)| given == name).map(|(_, dir)| dir.clone());
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
        Err(error) => plan.missing.push(Missing { what: name.into(), why: one_line(&error) }),
    }
}
