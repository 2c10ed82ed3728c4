//! `cargo xtask api`: the public items of the library, beside the stored listing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::metadata::{self, Kind, Package, Workspace};
use crate::{shell, workspace};

/// Compare the public items of the library with those in testdata/api
///
/// A file has the items of a crate with all features, a line each, without implementations that are
/// derived, automatic, or blanket.
#[derive(clap::Args)]
pub struct Options {
    /// Write the listings
    #[arg(long)]
    write: bool,
}

/// Version of rustdoc's JSON that the crate `public-api` reads.
const FORMAT: u64 = 57;

/// Lines of differences that a message has.
const SHOWN: usize = 40;

pub fn run(Options { write }: Options) -> Result<()> {
    let why = compare(write)?;
    why.map_or(Ok(()), |why| Err(Failure::new(why)))
}

/// Returns why there are no listings, if the toolchain has another form of them.
pub fn compare(write: bool) -> Result<Option<String>> {
    let workspace = Workspace::read()?;
    let crates = library(&workspace)?;
    let documented = document(&crates)?;
    let folder = workspace::root().join("testdata/api");
    workspace::make_dir(&folder)?;
    let mut changed = stale(&folder, &crates, write)?;
    for krate in &crates {
        let json = documented.join(format!("{}.json", krate.name.replace('-', "_")));
        if let Some(why) = other_format(&json)? {
            return Ok(Some(why));
        }
        let items = items(&json)?;
        let path = folder.join(format!("{}.txt", krate.name));
        if write {
            std::fs::write(&path, items).map_err(|error| Failure::io("write", &path, error))?;
            continue;
        }
        let stored = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
        changed.extend(differences(&stored, &items).map(|line| format!("{}: {line}", krate.name)));
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let more = changed.len().saturating_sub(SHOWN);
    changed.truncate(SHOWN);
    if more > 0 {
        changed.push(format!("and {more} more"));
    }
    let changed = changed.join("\n  ");
    Err(Failure::new(format!(
        "public items are not those of testdata/api (- removed, + added):\n  {changed}\n\
         `cargo xtask api --write` stores them; users need a line in changelog.d if an item is \
         removed or changed, and the release another minor version"
    )))
}

fn stale(folder: &Path, crates: &[&Package], write: bool) -> Result<Vec<String>> {
    let mut lines = vec![];
    for path in workspace::files_below(folder)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if crates.iter().any(|krate| krate.name == name) {
            continue;
        }
        if write {
            std::fs::remove_file(&path).map_err(|error| Failure::io("remove", &path, error))?;
        } else {
            lines.push(format!("{name}: - all, because the library has no such crate"));
        }
    }
    Ok(lines)
}

/// Returns `packfs` and the crates that it depends on; the rest serves the program.
fn library(workspace: &Workspace) -> Result<Vec<&Package>> {
    let packages = &workspace.packages;
    let door = packages.iter().position(|package| package.is_member && package.name == "packfs");
    let mut crates = vec![door.ok_or_else(|| Failure::new("there is no crate packfs"))?];
    let mut next = 0;
    while let Some(&krate) = crates.get(next) {
        let shipped = packages[krate].dependencies.iter().filter(|edge| edge.kind == Kind::Normal);
        for edge in shipped.filter(|edge| packages[edge.package].is_member) {
            if !crates.contains(&edge.package) {
                crates.push(edge.package);
            }
        }
        next += 1;
    }
    Ok(crates.into_iter().map(|index| &packages[index]).collect())
}

fn document(crates: &[&Package]) -> Result<PathBuf> {
    let target = workspace::target();
    // JSON is not stable. The variable that allows it must not reach build scripts: they would be
    // built anew.
    let rustdoc = target.join("rustdoc-json");
    workspace::make_dir(&target)?;
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    std::fs::write(&rustdoc, script).map_err(|error| Failure::io("write", &rustdoc, error))?;
    std::fs::set_permissions(&rustdoc, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| Failure::io("make executable", &rustdoc, error))?;
    let mut command = metadata::cargo();
    command.args(["doc", "--quiet", "--no-deps", "--all-features", "--lib", "--target-dir"]).arg(&target);
    command.args(crates.iter().flat_map(|krate| ["--package", &krate.name]));
    command.env("RUSTDOC", &rustdoc);
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow");
    shell::run(command.current_dir(workspace::root()))?;
    Ok(target.join("doc"))
}

fn other_format(json: &Path) -> Result<Option<String>> {
    let text = std::fs::read(json).map_err(|error| Failure::io("read", json, error))?;
    let version = serde_json::from_slice::<serde_json::Value>(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", json.display())))?["format_version"]
        .as_u64();
    let why = || format!("rustdoc writes JSON of version {version:?}, and the listings need {FORMAT}");
    Ok((version != Some(FORMAT)).then(why))
}

fn items(json: &Path) -> Result<String> {
    let builder = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true);
    let api = builder.build().map_err(|error| Failure::new(format!("{}: {error}", json.display())))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

fn differences<'a>(old: &'a str, new: &'a str) -> impl Iterator<Item = String> + 'a {
    let only = |a: &'a str, b: &'a str, sign| {
        let has: std::collections::HashSet<_> = b.lines().collect();
        a.lines().filter(move |line| !has.contains(line)).map(move |line| format!("{sign} {line}"))
    };
    only(old, new, '-').chain(only(new, old, '+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_item_is_told_on_both_sides() {
        let lines: Vec<_> = differences("pub fn a\npub fn b\n", "pub fn a\npub fn c\n").collect();
        assert_eq!(lines, ["- pub fn b", "+ pub fn c"]);
    }
}
