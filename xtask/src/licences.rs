//! `cargo xtask check-licences`: nothing is linked that is not permissively licensed.
//!
//! The rules are those of deny.toml, which cargo-deny also reads; this check needs nothing installed. It looks at what
//! is linked or runs in a build. What only tests use is part of nothing we ship.

mod expression;
mod rules;

use std::collections::BTreeSet;

use crate::failure::{Failure, Result};
use crate::metadata::{Kind, Package, Workspace};
use crate::{args, workspace};

use expression::Expression;
use rules::Rules;

pub const HELP: &str = "\
Usage: cargo xtask check-licences

Checks every crate that is linked into a program or runs in a build against deny.toml: its licence
must be satisfiable by the list `licenses.allow`, and it must not be in `bans.deny`.";

pub fn run(args: args::Args) -> Result<()> {
    args.finish_empty()?;
    let rules = Rules::read(&workspace::root().join("deny.toml"))?;
    let workspace = Workspace::read()?;
    let linked = linked(&workspace);
    let faults: Vec<_> =
        linked.iter().filter_map(|index| fault(&workspace.packages[*index], &rules)).collect();
    if faults.is_empty() {
        println!("licences: {} linked crates are permissively licensed", linked.len());
        return Ok(());
    }
    Err(Failure::new(format!("{} crates\n  {}", faults.len(), faults.join("\n  "))))
}

/// All crates reached from the workspace without passing through a dependency for tests.
fn linked(workspace: &Workspace) -> BTreeSet<usize> {
    let is_member = |index: &usize| workspace.packages[*index].is_member;
    let mut waiting: Vec<_> = (0..workspace.packages.len()).filter(is_member).collect();
    let mut linked = BTreeSet::new();
    while let Some(index) = waiting.pop() {
        if linked.insert(index) {
            let edges = workspace.packages[index].dependencies.iter();
            waiting.extend(edges.filter(|edge| edge.kind != Kind::Dev).map(|edge| edge.package));
        }
    }
    linked
}

fn fault(package: &Package, rules: &Rules) -> Option<String> {
    let named = format!("{} {}", package.name, package.version);
    if rules.denied.contains(&package.name) {
        return Some(format!("{named} is in bans.deny"));
    }
    let Some(licence) = &package.licence else { return Some(format!("{named} states no licence")) };
    match Expression::parse(licence) {
        Err(why) => Some(format!("{named}: licence {licence:?}: {why}")),
        Ok(expression) if expression.is_satisfied(&rules.allowed) => None,
        Ok(_) => Some(format!("{named}: licence {licence:?} needs more than licenses.allow")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, licence: Option<&str>, dependencies: &[(usize, Kind)]) -> Package {
        let edge = |(package, kind): &(usize, Kind)| Dependency { package: *package, kind: *kind };
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            is_member: name == "packfs",
            sources: vec![],
            dependencies: dependencies.iter().map(edge).collect(),
        }
    }

    fn rules() -> Rules {
        Rules { allowed: vec!["MIT".to_owned()], denied: vec!["minilzo".to_owned()] }
    }

    #[test]
    fn follows_what_is_linked_and_not_what_only_tests_use() {
        let packages = vec![
            package("packfs", None, &[(1, Kind::Normal), (3, Kind::Dev)]),
            package("a", None, &[(2, Kind::Build)]),
            package("b", None, &[]),
            package("only-in-tests", None, &[]),
        ];
        let workspace = Workspace { packages, target_directory: "/t".into() };
        assert_eq!(linked(&workspace), BTreeSet::from([0, 1, 2]));
    }

    #[test]
    fn refuses_a_banned_crate_whatever_licence_it_states() {
        let found = fault(&package("minilzo", Some("MIT"), &[]), &rules());
        assert_eq!(found.as_deref(), Some("minilzo 1.0.0 is in bans.deny"));
    }

    #[test]
    fn refuses_other_missing_and_unreadable_licences() {
        assert_eq!(fault(&package("a", Some("MIT OR GPL-2.0-only"), &[]), &rules()), None);
        for licence in [Some("GPL-2.0-only"), Some("MIT AND GPL-2.0-only"), Some("MIT OR"), None] {
            assert!(fault(&package("a", licence, &[]), &rules()).is_some(), "{licence:?}");
        }
    }
}
