//! Each source file by itself: how long it is, and whether its crate forbids unsafe code.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::metadata::Workspace;

/// Crates that may hold unsafe code: C compressors, memory maps, and the edge to the operating system.
const MAY_BE_UNSAFE: [&str; 3] = ["packfs-codec", "packfs-image", "packfs-mount"];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// A file longer than this holds more than one idea.
const LINES_MAX: usize = 800;

/// Longer files that hold one idea all the same: path from the top, and the reason.
const LONGER: [(&str, &str); 0] = [];

pub fn check(workspace: &Workspace, root: &Path) -> Result<Vec<String>> {
    let mut faults = vec![];
    for package in workspace.members().filter(|package| !MAY_BE_UNSAFE.contains(&package.name.as_str())) {
        for source in &package.sources {
            let text = read(source)?;
            if !text.lines().any(|line| line.trim() == FORBID) {
                faults.push(format!("{} does not say {FORBID}", shown(source, root)));
            }
        }
    }
    for file in ["crates", "xtask", "fuzz"].iter().flat_map(|dir| rust_files(&root.join(dir))) {
        let (name, count) = (shown(&file, root), read(&file)?.lines().count());
        faults.extend(too_long(&name, count, &LONGER));
    }
    Ok(faults)
}

fn too_long(name: &str, count: usize, longer: &[(&str, &str)]) -> Option<String> {
    let excused = longer.iter().any(|(path, _)| *path == name);
    (count > LINES_MAX && !excused).then(|| format!("{name} has {count} lines, at most {LINES_MAX} allowed"))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return vec![] };
    let mut files = vec![];
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.ends_with("target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::too_long;

    #[test]
    fn refuses_a_file_of_more_than_800_lines_unless_it_is_excused() {
        assert_eq!(too_long("a.rs", 800, &[]), None);
        assert_eq!(too_long("a.rs", 801, &[]).as_deref(), Some("a.rs has 801 lines, at most 800 allowed"));
        assert_eq!(too_long("a.rs", 801, &[("a.rs", "one table")]), None);
    }
}
