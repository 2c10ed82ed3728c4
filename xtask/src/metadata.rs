//! Metadata of the workspace by cargo: crates, dependencies, and licenses.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Normal,
    Build,
    /// Used only by tests, benches, and examples, which are not shipped.
    Dev,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// Index of the dependency in `Workspace::packages`.
    pub package: usize,
    pub kind: Kind,
}

#[derive(Debug)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub is_member: bool,
    pub folder: PathBuf,
    /// Root files of its libraries and programs, such as `lib.rs` and `main.rs`.
    pub sources: Vec<PathBuf>,
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub struct Workspace {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

impl Workspace {
    /// Runs `cargo metadata` for all features and platforms.
    pub fn read() -> Result<Self> {
        Self::of(&["--all-features"])
    }

    /// Runs `cargo metadata` for all features and platforms of the package in a folder of the
    /// checkout, which is a workspace of its own.
    pub fn read_beside(folder: &str) -> Result<Self> {
        Self::of(&["--all-features", "--locked", "--manifest-path", &format!("{folder}/Cargo.toml")])
    }

    /// Runs `cargo metadata` for one target, without default features of the workspace's packages.
    pub fn read_for(target: &str) -> Result<Self> {
        Self::of(&["--filter-platform", target, "--no-default-features"])
    }

    fn of(options: &[&str]) -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1"]).args(options).current_dir(workspace::root());
        let text = shell::capture(&mut command)?;
        let json =
            serde_json::from_str(&text).map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
        Self::from_json(&json).ok_or_else(|| Failure::new("cargo metadata: unexpected JSON"))
    }

    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_member)
    }

    fn from_json(json: &Value) -> Option<Self> {
        let members: Vec<_> =
            json["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
        let packages = json["packages"].as_array()?;
        let mut packages = packages.iter().map(|json| package(json, &members)).collect::<Option<Vec<_>>>()?;
        let indexes: std::collections::HashMap<_, _> =
            packages.iter().enumerate().map(|(index, package)| (package.id.clone(), index)).collect();
        for node in json["resolve"]["nodes"].as_array()? {
            let dependencies = node["deps"].as_array()?.iter().map(|json| edges(json, &indexes));
            let dependencies = dependencies.collect::<Option<Vec<_>>>()?.concat();
            packages[*indexes.get(node["id"].as_str()?)?].dependencies = dependencies;
        }
        Some(Self { packages, target_directory: json["target_directory"].as_str()?.into() })
    }
}

pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn package(json: &Value, members: &[&str]) -> Option<Package> {
    let id = json["id"].as_str()?.to_owned();
    let is_shipped = |target: &&Value| {
        let kinds = target["kind"].as_array().into_iter().flatten();
        kinds
            .filter_map(Value::as_str)
            .any(|kind| matches!(kind, "lib" | "bin" | "proc-macro" | "rlib" | "cdylib"))
    };
    let targets = json["targets"].as_array()?.iter().filter(is_shipped);
    Some(Package {
        name: json["name"].as_str()?.to_owned(),
        version: json["version"].as_str()?.to_owned(),
        license: json["license"].as_str().map(str::to_owned),
        is_member: members.contains(&id.as_str()),
        folder: Path::new(json["manifest_path"].as_str()?).parent()?.into(),
        sources: targets.filter_map(|target| target["src_path"].as_str()).map(PathBuf::from).collect(),
        dependencies: vec![],
        id,
    })
}

fn edges(json: &Value, indexes: &std::collections::HashMap<String, usize>) -> Option<Vec<Dependency>> {
    let package = *indexes.get(json["pkg"].as_str()?)?;
    let kinds = json["dep_kinds"].as_array()?.iter().map(|json| match json["kind"].as_str() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    });
    Some(kinds.map(|kind| Dependency { package, kind }).collect())
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a package of version 1.0.0, which is a member if its name says so.
    pub fn package(name: &str, dependencies: &[(usize, Kind)]) -> Package {
        let edge = |(package, kind): &(usize, Kind)| Dependency { package: *package, kind: *kind };
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT/Apache-2.0".to_owned()),
            is_member: name.starts_with("packfs"),
            folder: PathBuf::new(),
            sources: vec![],
            dependencies: dependencies.iter().map(edge).collect(),
        }
    }

    #[test]
    fn reads_packages_and_the_kinds_of_their_dependencies() {
        let kinds = json!([{"kind": null}, {"kind": "dev"}]);
        let target = json!({"kind": ["lib"], "src_path": "/w/a/src/lib.rs"});
        let test = json!({"kind": ["test"], "src_path": "/w/a/tests/t.rs"});
        let workspace = Workspace::from_json(&json!({
            "workspace_members": ["a 1"],
            "target_directory": "/w/target",
            "packages": [
                {"id": "a 1", "name": "a", "version": "1", "license": "MIT", "manifest_path": "/w/a/Cargo.toml", "targets": [target, test]},
                {"id": "b 2", "name": "b", "version": "2", "license": null, "manifest_path": "/w/b/Cargo.toml", "targets": []},
            ],
            "resolve": {"nodes": [
                {"id": "a 1", "deps": [{"pkg": "b 2", "dep_kinds": kinds}]},
                {"id": "b 2", "deps": []},
            ]},
        }))
        .unwrap();
        let [a, b] = &workspace.packages[..] else { panic!("two packages") };
        assert!(a.is_member && !b.is_member);
        assert_eq!(a.sources, [PathBuf::from("/w/a/src/lib.rs")]);
        let edge = |kind| Dependency { package: 1, kind };
        assert_eq!(a.dependencies, [edge(Kind::Normal), edge(Kind::Dev)]);
        assert_eq!((a.license.as_deref(), b.license.as_deref()), (Some("MIT"), None));
    }

    #[test]
    fn refuses_metadata_of_another_shape() {
        assert!(Workspace::from_json(&json!({"packages": []})).is_none());
    }
}
