//! Check that paths and `cargo xtask` verbs in documents exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Folders of dated records, whose paths may be gone.
const RECORDS: [&str; 1] = ["docs/notebook"];

/// Prefixes of paths in the checkout. Other text in backticks is a word, an option, or a path of
/// the host.
const TOPS: [&str; 11] = [
    "crates/",
    "lab/",
    "docs/",
    "xtask/",
    "testdata/",
    "fuzz/",
    "python/",
    "integration/",
    ".ci/",
    ".cargo/",
    ".github/",
];

pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = vec![];
    for path in documents(root)? {
        let text = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
        let folder = path.parent().unwrap_or(root);
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        let named = quoted(&text).map(|name| (root.join(&name), name));
        let linked = linked(&text).map(|name| (folder.join(&name), name));
        let missing: BTreeSet<String> =
            named.chain(linked).filter(|(path, _)| !path.exists()).map(|(_, name)| name).collect();
        faults.extend(missing.into_iter().map(|name| format!("{shown} names {name}, which does not exist")));
        faults.extend(unknown_verbs(&text).map(|verb| format!("{shown}: cargo xtask has no verb {verb}")));
    }
    Ok(faults)
}

/// Returns words after `cargo xtask` that are not verbs.
fn unknown_verbs(text: &str) -> impl Iterator<Item = &str> {
    let tasks = <crate::Task as clap::CommandFactory>::command();
    let is_verb = move |name: &str| tasks.find_subcommand(name).is_some();
    let end = |c: char| !(c.is_ascii_lowercase() || c == '-');
    let names = text.split("cargo xtask ").skip(1).filter_map(move |rest| rest.split(end).next());
    names.filter(move |name| !name.is_empty() && !name.starts_with('-') && !is_verb(name))
}

/// Returns documents at the top and below docs/, without the changelog and dated records.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (vec![], vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_record = RECORDS.iter().any(|record| path == root.join(record));
            let is_below_docs = path.starts_with(root.join("docs"));
            if path.is_dir() && is_below_docs && !is_record {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && !path.ends_with("CHANGELOG.md")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn quoted(text: &str) -> impl Iterator<Item = String> {
    let words = text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    words.filter(|word| looks_like_path(word)).map(clean).filter(|path| !path.is_empty())
}

fn linked(text: &str) -> impl Iterator<Item = String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
    links.map(clean).filter(|path| !path.is_empty())
}

fn clean(word: &str) -> String {
    word.split(['#', ':']).next().unwrap_or(word).to_owned()
}

fn looks_like_path(word: &str) -> bool {
    // A last component in capitals is a placeholder, as in `devices/NAME.toml`.
    let last = word.rsplit_once('/').map_or("", |(_, last)| last.split('.').next().unwrap_or(last));
    let stands_for_a_name = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_pattern = stands_for_a_name || word.contains(['*', '<', '{', '$']);
    let is_top_file = !word.contains('/')
        && (word.ends_with(".md") || word.ends_with(".toml"))
        && word.starts_with(|c: char| c.is_ascii_uppercase());
    !is_pattern && (is_top_file || TOPS.iter().any(|top| word.starts_with(top)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        quoted(text).chain(linked(text)).collect()
    }

    #[test]
    fn takes_paths_in_backticks_and_links() {
        let text = "See `crates/core/src/lib.rs:12`, `docs/` and [the page](docs/benchmarks.md#time).";
        assert_eq!(found(text), ["crates/core/src/lib.rs", "docs/", "docs/benchmarks.md"]);
    }

    #[test]
    fn takes_each_word_of_a_command() {
        assert_eq!(found("```\ncargo install --path crates/cli\n```"), ["crates/cli"]);
    }

    #[test]
    fn passes_over_words_patterns_and_places_elsewhere() {
        let text = "`packfs`, `crates/format-*`, `docs/NAME.md`, `own.toml`, `/etc/fstab`, `target/peers`, [site](https://a.example/x.md), [up](#top)";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn verbs_that_are_gone_are_found() {
        let text = "`cargo xtask ci`, `cargo xtask bench goals`, `cargo xtask VERB` and\ncargo xtask --help";
        assert_eq!(unknown_verbs(text).collect::<Vec<_>>(), ["bench"]);
    }

    #[test]
    fn takes_documents_at_the_top() {
        assert_eq!(found("`CHANGELOG.md` and `*.md`"), ["CHANGELOG.md"]);
    }
}
