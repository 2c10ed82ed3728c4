//! Import cycles among the modules of one folder, at any depth of a crate. A name that a module
//! takes from another one, such as a re-export of the crate root, is an import of that other one.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::File;

/// Path of a module in its crate, root first.
type Path<'a> = Vec<&'a str>;
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;
type Modules<'a> = BTreeMap<Path<'a>, &'a File>;
/// Names that modules have by `use`, with their paths from the root of the crate.
type Taken<'a> = BTreeMap<Path<'a>, BTreeMap<String, Vec<String>>>;

/// Names that lead to each other, as in a circle of re-exports, are followed so far.
const STEPS_MAX: usize = 8;

pub fn check(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
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
fn graphs<'a>(modules: &Modules<'a>) -> BTreeMap<Path<'a>, Graph<'a>> {
    let codes: Vec<(&Path<'a>, String)> = modules.iter().map(|(own, file)| (own, code(file))).collect();
    let taken: Taken<'a> =
        codes.iter().map(|(own, code)| ((*own).clone(), names_by_use(own, code, modules))).collect();
    let mut graphs: BTreeMap<Path<'a>, Graph<'a>> = BTreeMap::new();
    for (own, code) in &codes {
        for path in named(code) {
            let Some(path) = from_root(own, &path) else { continue };
            let Some(target) = module_of(path, modules, &taken) else { continue };
            let common = own.iter().zip(target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (own.get(common), target.get(common)) {
                graphs.entry(own[..common].to_vec()).or_default().entry(from).or_default().insert(to);
            }
        }
    }
    graphs
}

fn code(file: &File) -> String {
    file.code().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns the module that defines what a path from the root names: the longest prefix of it that
/// is a module, unless the next name is one that this has from elsewhere.
fn module_of<'m, 'a>(
    mut path: Vec<String>,
    modules: &'m Modules<'a>,
    taken: &Taken<'a>,
) -> Option<&'m Path<'a>> {
    for _ in 0..STEPS_MAX {
        let mut prefixes = (0..=path.len()).rev();
        let found = prefixes.find_map(|len| modules.keys().find(|module| module.iter().eq(&path[..len])))?;
        let (name, rest) = match &path[found.len()..] {
            [name, rest @ ..] => (name, rest),
            [] => return Some(found),
        };
        match taken.get(found).and_then(|names| names.get(name)) {
            Some(origin) => path = [&origin[..], rest].concat(),
            None => return Some(found),
        }
    }
    None
}

/// Returns the names that a module has by `use`, of any visibility, since its children see all.
fn names_by_use(own: &Path<'_>, code: &str, modules: &Modules<'_>) -> BTreeMap<String, Vec<String>> {
    let mut found = vec![];
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        if line.is_empty() || line.starts_with("pub") {
            branches(&code[at + "use ".len()..], &[], &mut found);
        }
    }
    let is_own = |path: &[String]| matches!(path[0].as_str(), "crate" | "self" | "super");
    let below = |name: &str| own.iter().copied().chain([name]).map(str::to_owned).collect::<Vec<_>>();
    let origin = |Named { path, name }| {
        if is_own(&path) {
            return Some((name, from_root(own, &path)?));
        }
        let child = below(&path[0]);
        let is_child = modules.keys().any(|module| module.iter().eq(&child));
        is_child.then(|| (name, [&child[..], &path[1..]].concat()))
    };
    found.into_iter().filter_map(origin).collect()
}

/// A path in code, and the name that it has there.
struct Named {
    path: Vec<String>,
    name: String,
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
    found.into_iter().map(|named| named.path).collect()
}

/// Adds the branches of the `use` tree at the start of `text` below `prefix`; returns the rest of
/// the text.
fn branches<'a>(mut text: &'a str, prefix: &[String], found: &mut Vec<Named>) -> &'a str {
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
    let rest = &text[len..];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (name, rest) = match rest.trim_start().strip_prefix("as ") {
        Some(renamed) => renamed.split_at(renamed.find(|c| !is_word(c)).unwrap_or(renamed.len())),
        None => (path.last().map_or("", String::as_str), rest),
    };
    found.push(Named { name: name.to_owned(), path });
    rest
}

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
    fn names_that_another_module_lends_are_imports_of_their_own_module() {
        let found = |root: &str, files: &[(&str, &str)]| {
            let files = files.iter().map(|(name, text)| file(name, text));
            check(&[file("lib", root)].into_iter().chain(files).collect::<Vec<_>>())
        };
        let root = "mod a;\nmod b;\npub use a::{A, Other as B};\n";
        let fault = ["crates/x/src: a, b"];
        for import in ["use crate::A;\n", "use crate::{self as all, B};\n", "fn f() -> super::A {}\n"] {
            assert_eq!(found(root, &[("a", "use crate::b::F;\n"), ("b", import)]), fault, "{import}");
            assert_eq!(found(root, &[("a", "use crate::c::F;\n"), ("b", import)]), [""; 0], "{import}");
        }
        let private = "mod a;\nmod b;\nuse a::A;\n";
        assert_eq!(found(private, &[("a", "use super::b::F;\n"), ("b", "use super::A;\n")]), fault);
        let twice = "mod a;\nmod b;\npub use a::A;\npub(crate) use self::b::C;\n";
        assert_eq!(found(twice, &[("a", "use crate::C;\n"), ("b", "pub use crate::A;\n")]), fault);
        assert_eq!(
            found("pub use crate::A as B;\npub use crate::B as A;\n", &[("a", "use crate::A;\n")]),
            [""; 0]
        );
        assert_eq!(found("mod a;\npub use other::A;\n", &[("a", "use crate::A;\n")]), [""; 0]);
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
