//! `cargo xtask check-licenses`: linked crates have permissive licenses, and occur in one version.
//!
//! The rules are those of deny.toml, which cargo-deny also reads; this check needs no installed
//! tools. It covers crates that are linked or run in a build. Crates that only tests use are not
//! shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use spdx::{Expression, ParseMode};
use toml::Value;

use crate::failure::{Failure, Result};
use crate::metadata::{Kind, Package, Workspace};
use crate::workspace;

/// Check that linked crates have permissive licenses
///
/// Checks all crates that are linked into a program or run in a build against deny.toml, in the
/// workspace and in the Python package. A crate's license must be satisfied by `licenses.allow`,
/// the crate must not be in `bans.deny`, and it must have a single version unless it is in
/// `bans.skip`. For vulnerabilities, see `cargo deny check advisories`.
#[derive(clap::Args)]
pub struct Options;

/// Packages beside the workspace that are shipped.
const BESIDE: [&str; 1] = ["python"];

/// Rules of deny.toml for linked crates.
struct Rules {
    /// Names of licenses, with their exception.
    allowed: Vec<String>,
    denied: Vec<String>,
    /// `name@version` of crates that may have further versions; a prefix of the version suffices.
    skipped: Vec<String>,
}

impl Rules {
    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
        Self::parse(&text).map_err(|why| Failure::new(format!("{}: {why}", path.display())))
    }

    /// Parses the lists. An empty one would allow everything, or nothing.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let rules: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |section: &str, key: &str| {
            let list = rules.get(section)?.get(key)?.as_array()?.iter();
            let name = |entry: &Value| entry.get("crate").unwrap_or(entry).as_str().map(str::to_owned);
            list.map(name).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty())
        };
        let needed = |section: &str, key: &str| {
            list(section, key).ok_or_else(|| format!("{section}.{key} is missing or empty"))
        };
        let skipped = list("bans", "skip").unwrap_or_default();
        Ok(Self { allowed: needed("licenses", "allow")?, denied: needed("bans", "deny")?, skipped })
    }
}

pub fn run(_: Options) -> Result<()> {
    let rules = Rules::read(&workspace::root().join("deny.toml"))?;
    check("workspace", &Workspace::read()?, &rules)?;
    BESIDE.into_iter().try_for_each(|folder| check(folder, &Workspace::read_beside(folder)?, &rules))
}

fn check(name: &str, workspace: &Workspace, rules: &Rules) -> Result<()> {
    let linked = linked(workspace);
    let packages = || linked.iter().map(|index| &workspace.packages[*index]);
    let mut faults: Vec<_> = packages().filter_map(|package| fault(package, rules)).collect();
    faults.extend(duplicates(packages(), rules));
    if faults.is_empty() {
        println!("licenses of {name}: {} linked crates, permissive, one version each", linked.len());
        return Ok(());
    }
    Err(Failure::new(format!("{name}: {} crates\n  {}", faults.len(), faults.join("\n  "))))
}

/// Returns all crates that the workspace depends on, without dependencies of tests.
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

fn duplicates<'a>(packages: impl Iterator<Item = &'a Package>, rules: &Rules) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let is_skipped = |skipped: &String| {
            let (name, version) = skipped.split_once('@').unwrap_or((skipped, ""));
            let rest = package.version.strip_prefix(version);
            name == package.name
                && rest.is_some_and(|rest| version.is_empty() || rest.is_empty() || rest.starts_with('.'))
        };
        if !rules.skipped.iter().any(is_skipped) {
            versions.entry(&package.name).or_default().push(&package.version);
        }
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several.map(|(name, versions)| format!("{name} has the versions {}", versions.join(" and "))).collect()
}

fn fault(package: &Package, rules: &Rules) -> Option<String> {
    let named = format!("{} {}", package.name, package.version);
    if rules.denied.contains(&package.name) {
        return Some(format!("{named} is in bans.deny"));
    }
    let Some(license) = &package.license else { return Some(format!("{named} states no license")) };
    // Cargo accepts the older `MIT/Apache-2.0` as well.
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(why) => Some(format!("{named}: license {license:?}: {}", why.reason)),
        Ok(found) if found.evaluate(|license| rules.allowed.contains(&license.to_string())) => None,
        Ok(_) => Some(format!("{named}: license {license:?} is not satisfied by licenses.allow")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, license: Option<&str>, dependencies: &[(usize, Kind)]) -> Package {
        let license = license.map(str::to_owned);
        Package { license, ..crate::metadata::tests::package(name, dependencies) }
    }

    fn rules() -> Rules {
        let skipped = vec!["syn@2".to_owned()];
        Rules { allowed: vec!["MIT".to_owned()], denied: vec!["minilzo".to_owned()], skipped }
    }

    #[test]
    fn refuses_a_crate_in_two_versions_unless_it_is_an_exception() {
        let of = |name: &str, versions: &[&str]| -> Vec<Package> {
            let package =
                |version: &&str| Package { version: (*version).to_owned(), ..package(name, None, &[]) };
            versions.iter().map(package).collect()
        };
        let found = |packages: &[Package]| duplicates(packages.iter(), &rules());
        assert_eq!(found(&of("syn", &["2.0.1", "3.0.0"])), [""; 0]);
        assert_eq!(found(&of("syn", &["20.0.1", "3.0.0"])), ["syn has the versions 20.0.1 and 3.0.0"]);
        assert_eq!(found(&of("log", &["0.4.1"])), [""; 0]);
        assert_eq!(found(&of("log", &["0.4.1", "0.5.0"])), ["log has the versions 0.4.1 and 0.5.0"]);
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
    fn refuses_rules_without_one_of_the_lists() {
        let good = "[licenses]\nallow = ['MIT']\n[bans]\nskip = [{ crate = 'syn@2' }]\ndeny = [{ crate = 'lzo-sys' }]\n";
        let rules = Rules::parse(good).unwrap();
        assert_eq!([rules.allowed, rules.denied, rules.skipped].concat(), ["MIT", "lzo-sys", "syn@2"]);
        for (part, without) in [("allow =", "allowed ="), ("[bans]", "[ban]"), ("['MIT']", "[]")] {
            assert!(Rules::parse(&good.replace(part, without)).is_err(), "{without}");
        }
    }

    #[test]
    fn refuses_a_banned_crate_with_any_license() {
        let found = fault(&package("minilzo", Some("MIT"), &[]), &rules());
        assert_eq!(found.as_deref(), Some("minilzo 1.0.0 is in bans.deny"));
    }

    #[test]
    fn refuses_other_missing_and_unreadable_licenses() {
        for license in ["MIT OR GPL-2.0-only", "MIT/Apache-2.0", "GPL-2.0-only OR (MIT AND MIT)"] {
            assert_eq!(fault(&package("a", Some(license), &[]), &rules()), None, "{license}");
        }
        for license in [
            Some("GPL-2.0-only"),
            Some("MIT WITH LLVM-exception"),
            Some("MIT AND GPL-2.0-only"),
            Some("MIT OR"),
            None,
        ] {
            assert!(fault(&package("a", license, &[]), &rules()).is_some(), "{license:?}");
        }
    }
}
