//! Import cycles among the modules of one folder, at any depth of a crate.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::File;

/// Path of a module in its crate, root first.
type Path<'a> = Vec<&'a str>;
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub fn check(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Path<'_>, &File>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        if let Some((folder, inner)) = file.path.split_once("/src/") {
            crates.entry(folder).or_default().insert(module(inner), file);
        }
    }
    let mut faults = vec![];
    for (folder, modules) in &crates {
        for (parent, graph) in graphs(modules) {
            let found = in_circles(&graph).into_iter().collect::<Vec<_>>().join(", ");
            if !found.is_empty() {
                faults.push(format!("{}: {found}", [&[*folder, "src"], &parent[..]].concat().join("/")));
            }
        }
    }
    faults
}

/// Returns the module path of a file below `src/`.
fn module(inner: &str) -> Path<'_> {
    let mut path: Path<'_> = inner.trim_end_matches(".rs").split('/').collect();
    if matches!(path.last(), Some(&"mod" | &"lib" | &"main")) {
        path.pop();
    }
    path
}

/// Returns the imports among the children of each module; a name below a child counts as the child.
fn graphs<'a>(modules: &BTreeMap<Path<'a>, &'a File>) -> BTreeMap<Path<'a>, Graph<'a>> {
    let mut graphs: BTreeMap<Path<'a>, Graph<'a>> = BTreeMap::new();
    for (own, file) in modules {
        let lines = file.code().filter(|line| !line.trim_start().starts_with("//"));
        let code = lines.collect::<Vec<_>>().join("\n");
        for named in named(&code) {
            let Some(named) = from_root(own, &named) else { continue };
            // The longest prefix that is a module; the rest are items.
            let known = (0..=named.len())
                .rev()
                .find_map(|len| modules.keys().find(|module| module.iter().eq(&named[..len])));
            let Some(target) = known else { continue };
            let common = own.iter().zip(target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (own.get(common), target.get(common)) {
                graphs.entry(own[..common].to_vec()).or_default().entry(from).or_default().insert(to);
            }
        }
    }
    graphs
}

/// Returns a path of code in `own`, such as `super::a::B`, from the root of the crate on.
fn from_root(own: &[&str], named: &[String]) -> Option<Vec<String>> {
    let ups = named.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match named.first()?.as_str() {
        "crate" => (&own[..0], &named[1..]),
        "self" => (own, &named[1..]),
        _ => (own.get(..own.len().checked_sub(ups)?)?, &named[ups..]),
    };
    Some(base.iter().map(|name| (*name).to_owned()).chain(rest.iter().cloned()).collect())
}

/// Returns paths that begin with `crate`, `self`, or `super`, one for each branch of a `use`.
fn named(code: &str) -> Vec<Vec<String>> {
    let mut found = vec![];
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                branches(&code[at..], &[], &mut found);
            }
        }
    }
    found
}

/// Adds the branches of the `use` tree at the start of `text` below `prefix`; returns the rest of
/// the text.
fn branches<'a>(mut text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = prefix.to_vec();
    loop {
        text = text.trim_start();
        if let Some(mut inner) = text.strip_prefix('{') {
            while let Some(c) = inner.trim_start().chars().next() {
                inner = match c {
                    '}' => return &inner.trim_start()[1..],
                    ',' => &inner.trim_start()[1..],
                    c if c.is_alphanumeric() || matches!(c, '_' | '*' | '{') => branches(inner, &path, found),
                    _ => return inner,
                };
            }
            return inner;
        }
        let len = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '*'))).unwrap_or(text.len());
        path.push(text[..len].to_owned());
        match text[len..].strip_prefix("::") {
            Some(rest) if len > 0 => text = rest,
            _ => break,
        }
        // `::<`, as in a call with type arguments, ends the path.
        if text.starts_with('<') {
            break;
        }
        if text.trim_start().is_empty() {
            break;
        }
    }
    let len = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '*'))).unwrap_or(text.len());
    found.push(path);
    let rest = &text[len..];
    // `as NAME` is not part of the path.
    match rest.trim_start().strip_prefix("as ") {
        Some(renamed) => renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ' '),
        None => rest,
    }
}

/// Returns modules that import themselves through others.
fn in_circles<'a>(graph: &Graph<'a>) -> BTreeSet<&'a str> {
    let leads_back = |start: &str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![start]);
        while let Some(at) = left.pop() {
            for next in graph.get(at).into_iter().flatten() {
                if *next == start {
                    return true;
                }
                if seen.insert(*next) {
                    left.push(next);
                }
            }
        }
        false
    };
    graph.keys().copied().filter(|name| leads_back(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> File {
        File::new(&format!("crates/x/src/{name}.rs"), text)
    }

    #[test]
    fn finds_circles_for_every_form_of_imports() {
        let straight = [file("a", "use crate::{b::B, c};\n"), file("b", "use super::c::C;\n"), file("c", "")];
        assert_eq!(check(&straight), [""; 0]);
        for back in [
            "use crate::a::A;\n",
            "use super::a;\n",
            "use crate::{d::{E, F}, a::A};\n",
            "use crate::{d::{E as G, F}, a as other};\n",
            "fn f() { crate::a::f::<u8>() }\n",
        ] {
            let round = [file("a", "use crate::{d, b::B};\n"), file("b", back), file("d", "")];
            let fault = "crates/x/src: a, b";
            assert_eq!(check(&round), [fault], "{back}");
        }
        let tests =
            [file("a", "use crate::b::B;\n"), file("b", "#[cfg(test)]\nmod tests { use crate::a::A; }\n")];
        assert_eq!(check(&tests), [""; 0]);
    }

    #[test]
    fn circles_inside_a_module_are_found_and_those_of_its_parent_are_its_own() {
        let round = [
            file("m/mod", "mod a;\nmod b;\n"),
            file("m/a", "use super::b::B;\n"),
            file("m/b", "use crate::m::a::A;\n"),
            file("n", "use crate::m::a::A;\n"),
        ];
        assert_eq!(check(&round), ["crates/x/src/m: a, b"]);
        let up = [file("m/a", "use super::super::n::N;\n"), file("n", "use crate::m::a::A;\n")];
        assert_eq!(check(&[file("m/mod", ""), up[0].clone(), up[1].clone()]).len(), 1);
    }
}
