//! Paths that documents name exist.

use std::path::Path;

use crate::failure::{Failure, Result};

const DOCUMENTS: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// What a path of the checkout begins with. Anything else in backticks is a word, an option or a place on the host.
const TOPS: [&str; 8] = ["crates/", "lab/", "docs/", "xtask/", "testdata/", "fuzz/", ".ci/", ".cargo/"];

pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = vec![];
    for document in DOCUMENTS {
        let path = root.join(document);
        let text = std::fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, error))?;
        let named: std::collections::BTreeSet<_> = paths(&text).collect();
        let missing = named.into_iter().filter(|named| !root.join(named).exists());
        faults.extend(missing.map(|named| format!("{document} names {named}, which does not exist")));
    }
    Ok(faults)
}

/// Paths of the checkout in backticks or as targets of links.
fn paths(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let linked = linked.filter(|link| !link.contains("://") && !link.starts_with('#'));
    let quoted = quoted.filter(|word| looks_like_path(word));
    let clean = |word: &str| word.split(['#', ':']).next().unwrap_or(word).to_owned();
    quoted.chain(linked).map(clean).filter(|path| !path.is_empty()).collect::<Vec<_>>().into_iter()
}

fn looks_like_path(word: &str) -> bool {
    let is_pattern = word.contains(['*', '<', '{', '$']);
    let is_top_file = !word.contains('/')
        && (word.ends_with(".md") || word.ends_with(".toml"))
        && word.starts_with(|c: char| c.is_ascii_alphabetic());
    !is_pattern && (is_top_file || TOPS.iter().any(|top| word.starts_with(top)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        paths(text).collect()
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
        let text = "`packfs`, `crates/format-*`, `/etc/fstab`, `target/peers`, [site](https://a.example/x.md), [up](#top)";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn takes_documents_at_the_top() {
        assert_eq!(found("`CHANGELOG.md` and `*.md`"), ["CHANGELOG.md"]);
    }
}
