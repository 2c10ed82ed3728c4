//! The bill of materials of a program: a CycloneDX document of all crates linked into it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::metadata::{Kind, Package, Workspace};
use crate::workspace;

/// Package of the program.
const PROGRAM: &str = "packfs-cli";

pub struct Sbom {
    workspace: Workspace,
    linked: BTreeSet<usize>,
    checksums: HashMap<(String, String), String>,
}

impl Sbom {
    pub fn read(target: &str) -> Result<Self> {
        let path = workspace::root().join("Cargo.lock");
        let lock = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
        Self::new(Workspace::read_for(target)?, &lock)
    }

    fn new(workspace: Workspace, lock: &str) -> Result<Self> {
        let program = workspace.packages.iter().position(|package| package.name == PROGRAM);
        let program = program.ok_or_else(|| Failure::new(format!("cargo metadata has no {PROGRAM}")))?;
        let mut linked = BTreeSet::new();
        let mut waiting = vec![program];
        while let Some(index) = waiting.pop() {
            if linked.insert(index) {
                let edges = workspace.packages[index].dependencies.iter();
                waiting.extend(edges.filter(|edge| edge.kind == Kind::Normal).map(|edge| edge.package));
            }
        }
        Ok(Self { workspace, linked, checksums: checksums(lock) })
    }

    pub fn version(&self) -> &str {
        let program = self.workspace.packages.iter().find(|package| package.name == PROGRAM);
        program.map_or("", |package| &package.version)
    }

    pub fn linked(&self) -> impl Iterator<Item = &Package> {
        self.linked.iter().map(|index| &self.workspace.packages[*index])
    }

    pub fn text(&self, target: &str, time: u64) -> String {
        let sorted: BTreeMap<_, _> =
            self.linked().map(|package| ((&package.name, &package.version), package)).collect();
        let others = sorted.values().filter(|package| package.name != PROGRAM);
        let components: Vec<Value> = others.map(|package| self.component(package)).collect();
        let dependencies: Vec<Value> = sorted.values().map(|package| self.dependencies(package)).collect();
        let program = json!({
            "type": "application", "bom-ref": format!("{PROGRAM}@{}", self.version()), "name": "packfs",
            "version": self.version(), "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "properties": [{"name": "target", "value": target}],
        });
        let timestamp = jiff::Timestamp::from_second(time as i64).unwrap_or_default();
        let document = json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"timestamp": timestamp.to_string(), "component": program},
            "components": components, "dependencies": dependencies,
        });
        format!("{document:#}\n")
    }

    fn component(&self, package: &Package) -> Value {
        let (name, version) = (&package.name, &package.version);
        let mut component =
            json!({"type": "library", "bom-ref": reference(package), "name": name, "version": version});
        if let Some(license) = &package.license {
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        if let Some(checksum) = self.checksums.get(&(name.clone(), version.clone())) {
            component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    }

    fn dependencies(&self, package: &Package) -> Value {
        let edges = package.dependencies.iter().filter(|edge| edge.kind == Kind::Normal);
        let names: BTreeSet<String> =
            edges.map(|edge| reference(&self.workspace.packages[edge.package])).collect();
        json!({"ref": reference(package), "dependsOn": names})
    }
}

fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

fn checksums(lock: &str) -> HashMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let rows = blocks.filter_map(|block| {
        Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::tests::package;

    #[test]
    fn lists_linked_crates_with_checksums_and_nothing_of_builds_and_tests() {
        let packages = vec![
            package(PROGRAM, &[(1, Kind::Normal), (2, Kind::Build), (3, Kind::Dev)]),
            package("linked", &[]),
            package("of-builds", &[]),
            package("of-tests", &[]),
        ];
        let workspace = Workspace { packages, target_directory: "/t".into() };
        let lock = "version = 4\n\n[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";
        let text = Sbom::new(workspace, lock).unwrap().text("x86_64-unknown-linux-musl", 0);
        let document: Value = serde_json::from_str(&text).unwrap();
        let components = document["components"].as_array().unwrap();
        assert_eq!(components.len(), 1);
        assert_eq!(components[0]["purl"], "pkg:cargo/linked@1.0.0");
        assert_eq!(components[0]["hashes"][0]["content"], "ab");
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"][1]["dependsOn"], json!(["linked@1.0.0"]));
        assert_eq!(document["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
    }
}
