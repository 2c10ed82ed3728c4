//! Check of dependencies between crates of the workspace against the import table.

use super::table::Allowed;
use crate::metadata::{Kind, Package, Workspace};

/// Crate of test helpers: tests of any crate may use it, no crate may.
const TESTKIT: &str = "testkit";

/// Returns one line for each fault: an import that the table forbids, or a row without a crate.
pub fn check(workspace: &Workspace, allowed: &Allowed) -> Vec<String> {
    let mut faults = vec![];
    for package in workspace.members() {
        let Some(may) = allowed.get(layer(package)) else {
            faults.push(format!("{} has no row in the import table", layer(package)));
            continue;
        };
        for dependency in &package.dependencies {
            let import = &workspace.packages[dependency.package];
            let for_tests = dependency.kind == Kind::Dev && layer(import) == TESTKIT;
            if import.is_member && !for_tests && !may.iter().any(|name| name == layer(import)) {
                faults.push(format!("{} must not import {}", layer(package), layer(import)));
            }
        }
    }
    for name in allowed.keys() {
        if !workspace.members().any(|package| layer(package) == name) {
            faults.push(format!("the import table has a row for {name}, which is no crate"));
        }
    }
    faults
}

fn layer(package: &Package) -> &str {
    package.name.strip_prefix("packfs-").unwrap_or(&package.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::tests::package;

    fn faults(of_core: &[(usize, Kind)], of_read: &[(usize, Kind)]) -> Vec<String> {
        let packages = vec![
            package("packfs-core", of_core),
            package("packfs-read", of_read),
            package("packfs-testkit", &[(0, Kind::Normal)]),
            package("serde", &[]),
        ];
        let workspace = Workspace { packages, target_directory: "/t".into() };
        let row =
            |name: &str, may: &[&str]| (name.to_owned(), may.iter().map(|name| (*name).to_owned()).collect());
        check(
            &workspace,
            &Allowed::from([row("core", &[]), row("read", &["core"]), row("testkit", &["core"])]),
        )
    }

    #[test]
    fn allows_what_the_table_allows_and_crates_of_others() {
        assert_eq!(faults(&[(3, Kind::Normal)], &[(0, Kind::Normal), (2, Kind::Dev)]), [""; 0]);
    }

    #[test]
    fn refuses_an_import_to_the_right() {
        assert_eq!(faults(&[(1, Kind::Normal)], &[]), ["core must not import read"]);
        assert_eq!(faults(&[(1, Kind::Build)], &[]), ["core must not import read"]);
        assert_eq!(faults(&[(1, Kind::Dev)], &[]), ["core must not import read"]);
    }

    #[test]
    fn refuses_the_testkit_outside_of_tests() {
        assert_eq!(faults(&[], &[(2, Kind::Normal)]), ["read must not import testkit"]);
    }

    #[test]
    fn refuses_crates_without_row_and_rows_without_crate() {
        let workspace =
            Workspace { packages: vec![package("packfs-core", &[])], target_directory: "/t".into() };
        let found = check(&workspace, &Allowed::from([("gone".to_owned(), vec![])]));
        let wanted =
            ["core has no row in the import table", "the import table has a row for gone, which is no crate"];
        assert_eq!(found, wanted);
    }
}
