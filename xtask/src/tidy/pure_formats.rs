//! Check that formats only map bytes, and that their parsers deny truncating casts, indexing, and
//! arithmetic that may overflow.

use super::sources::File;

/// Modules of the standard library that access the host or start threads.
const EDGES: [&str; 5] = ["std::thread", "std::fs", "std::process", "std::net", "std::env"];
const LINTS: [&str; 3] =
    ["clippy::indexing_slicing", "clippy::cast_possible_truncation", "clippy::arithmetic_side_effects"];
/// Denied by the frame of all formats, which computes with figures of images, too.
const FRAME_LINTS: [&str; 1] = ["clippy::arithmetic_side_effects"];

pub fn check(files: &[File]) -> Vec<String> {
    let formats = files.iter().filter(|file| is_of_format(&file.path) && !file.is_test());
    formats.flat_map(|file| edges(file).chain(without_lints(file)).collect::<Vec<_>>()).collect()
}

fn is_of_format(path: &str) -> bool {
    (path.starts_with("crates/format/") || path.starts_with("crates/formats/")) && path.contains("/src/")
}

fn edges(file: &File) -> impl Iterator<Item = String> {
    let code = file.code().filter(|line| !line.trim_start().starts_with("//"));
    let named = code.flat_map(|line| EDGES.iter().filter(move |edge| line.contains(**edge)));
    named.map(|edge| format!("{} names {edge}", file.path))
}

/// Returns a fault if the root file of a format, or of their frame, does not deny the lints.
fn without_lints(file: &File) -> Option<String> {
    let of = file.path.strip_prefix("crates/")?.strip_suffix("/src/lib.rs")?;
    let lints: &[&str] = match of {
        "format" => &FRAME_LINTS,
        _ if of.starts_with("formats/") => &LINTS,
        _ => return None,
    };
    let denies = |lint: &&str| file.text.contains("deny(") && file.text.contains(*lint);
    (!lints.iter().all(denies)).then(|| format!("{} does not deny {}", file.path, lints.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_files_and_missing_lints_are_faults() {
        let faults = |path: &str, text: &str| check(&[File::new(path, text)]);
        let denies = format!("#![deny({})]\n", LINTS.join(", "));
        assert_eq!(faults("crates/formats/new/src/lib.rs", &denies), [""; 0]);
        assert_eq!(faults("crates/formats/new/src/lib.rs", "mod a;\n").len(), 1);
        let fewer = format!("#![deny({}, {})]\n", LINTS[0], LINTS[1]);
        assert_eq!(faults("crates/formats/new/src/lib.rs", &fewer).len(), 1);
        assert_eq!(faults("crates/format/src/lib.rs", &fewer).len(), 1);
        assert_eq!(
            faults("crates/format/src/lib.rs", "#![deny(clippy::arithmetic_side_effects)]\n"),
            [""; 0]
        );
        let threads = "use std::thread;\n// std::fs is a word here\n";
        assert_eq!(
            faults("crates/formats/new/src/a.rs", threads),
            ["crates/formats/new/src/a.rs names std::thread"]
        );
        assert_eq!(faults("crates/read/src/a.rs", threads), [""; 0]);
        assert_eq!(faults("crates/formats/new/src/tests.rs", threads), [""; 0]);
    }
}
