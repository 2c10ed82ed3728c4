//! Circles of imports between the modules at the top of a crate.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::File;

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn check(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        if let Some((folder, _)) = file.path.split_once("/src/") {
            crates.entry(folder).or_default().push(file);
        }
    }
    let faults = crates.into_iter().filter_map(|(folder, files)| {
        let found = in_circles(&graph(folder, &files));
        let names = found.iter().cloned().collect::<Vec<_>>().join(", ");
        (!found.is_empty()).then(|| format!("{folder}: {names}"))
    });
    faults.collect()
}

/// Modules at the top of a crate, and those that each names as `crate::MODULE` or, at the top itself, as `super::MODULE`.
fn graph(folder: &str, files: &[&File]) -> Graph {
    let module = |file: &File| {
        let inner = file.path.strip_prefix(folder)?.strip_prefix("/src/")?;
        let name = inner.split('/').next()?.trim_end_matches(".rs");
        (!matches!(name, "lib" | "main" | "bin")).then(|| name.to_owned())
    };
    let modules: BTreeSet<String> = files.iter().filter_map(|file| module(file)).collect();
    let mut graph = Graph::new();
    for file in files {
        let Some(own) = module(file) else { continue };
        let is_top = file.path.matches('/').count() == folder.matches('/').count() + 2;
        let code: String = file.code().filter(|line| !line.trim_start().starts_with("//")).collect();
        let mut named = named(&code, "crate::");
        if is_top {
            named.extend(self::named(&code, "super::"));
        }
        named.retain(|name| *name != own && modules.contains(name));
        graph.entry(own).or_default().extend(named);
    }
    graph
}

/// First names after each `prefix`, and after each comma of a brace that follows it.
fn named(code: &str, prefix: &str) -> BTreeSet<String> {
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned);
    let mut found = BTreeSet::new();
    for rest in code.split(prefix).skip(1) {
        let Some(inner) = rest.strip_prefix('{') else {
            found.extend(word(rest));
            continue;
        };
        let mut depth = 0;
        let parts = inner.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        let ended = inner.split(';').next().unwrap_or_default().len();
        let mut at = 0;
        for part in parts {
            if at > ended {
                break;
            }
            found.extend(word(part.trim_start()));
            at += part.len() + 1;
        }
    }
    found
}

/// Modules that lead back to themselves.
fn in_circles(graph: &Graph) -> BTreeSet<String> {
    let leads_back = |start: &String| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![start]);
        while let Some(at) = left.pop() {
            for next in graph.get(at).into_iter().flatten() {
                if next == start {
                    return true;
                }
                if seen.insert(next) {
                    left.push(next);
                }
            }
        }
        false
    };
    graph.keys().filter(|name| leads_back(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_whatever_way_its_imports_are_written() {
        let file = |name: &str, text: &str| File::new(&format!("crates/x/src/{name}.rs"), text);
        let straight = [file("a", "use crate::{b::B, c};\n"), file("b", "use super::c::C;\n"), file("c", "")];
        assert_eq!(check(&straight), [""; 0]);
        for back in [
            "use crate::a::A;\n",
            "use super::a;\n",
            "use crate::{d::{E, F}, a::A};\n",
            "fn f() { crate::a::f() }\n",
        ] {
            let round = [file("a", "use crate::{d, b::B};\n"), file("b", back), file("d", "")];
            assert_eq!(check(&round), ["crates/x: a, b"], "{back}");
        }
        let tests =
            [file("a", "use crate::b::B;\n"), file("b", "#[cfg(test)]\nmod tests { use crate::a::A; }\n")];
        assert_eq!(check(&tests), [""; 0]);
    }
}
