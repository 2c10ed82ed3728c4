//! Source files of the checkout, and checks of their lengths and unsafe code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::metadata::Workspace;

/// Crates that may hold unsafe code: C compressors, system calls, pointers of C programs.
const MAY_BE_UNSAFE: [&str; 4] = ["packfs-capi", "packfs-codec", "packfs-integrity", "packfs-mount"];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// Maximum lines of a file: a longer one holds more than one idea.
const LINES_MAX: usize = 800;

/// Exceptions: longer files with one idea, by path, with the reason.
const LONGER: [(&str, &str); 0] = [];

#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns true for files that hold only tests.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Returns the number of lines before the tests.
    pub fn code(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| line.trim() != "#[cfg(test)]" || !self.ends_with_tests())
    }

    /// Returns true if the last module of the file holds its tests.
    fn ends_with_tests(&self) -> bool {
        let tests = ["mod tests {", "pub(super) mod tests {", "pub(crate) mod tests {"];
        tests.iter().any(|module| self.text.contains(&format!("#[cfg(test)]\n{module}")))
    }
}

pub fn read_all(root: &Path) -> Result<Vec<File>> {
    let paths =
        ["crates", "lab", "xtask", "fuzz", "python/src"].iter().flat_map(|dir| rust_files(&root.join(dir)));
    paths.map(|path| Ok(File::new(&shown(&path, root), &read(&path)?))).collect()
}

pub fn forbid(workspace: &Workspace, root: &Path) -> Result<Vec<String>> {
    let mut faults = vec![];
    for package in workspace.members().filter(|package| !MAY_BE_UNSAFE.contains(&package.name.as_str())) {
        for source in &package.sources {
            if !forbids(&read(source)?) {
                faults.push(format!("{} lacks {FORBID}", shown(source, root)));
            }
        }
    }
    Ok(faults)
}

fn forbids(text: &str) -> bool {
    text.lines().any(|line| line.trim() == FORBID)
}

pub fn too_long(files: &[File]) -> Vec<String> {
    files.iter().filter_map(|file| longer(&file.path, file.text.lines().count(), &LONGER)).collect()
}

pub fn unsafe_files(root: &Path, files: &[File]) -> Result<Vec<String>> {
    let found: BTreeSet<String> =
        files.iter().filter(|file| holds_unsafe(&file.text)).map(|file| file.path.clone()).collect();
    let listed = listed(&read(&root.join("SECURITY.md"))?);
    let missing = found
        .difference(&listed)
        .map(|file| format!("SECURITY.md does not list {file}, which holds unsafe code"));
    let gone =
        listed.difference(&found).map(|file| format!("SECURITY.md lists {file}, which holds no unsafe code"));
    Ok(missing.chain(gone).collect())
}

/// Returns the files in the first column of the table.
fn listed(document: &str) -> BTreeSet<String> {
    let section = document.split("\n## Unsafe code\n").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// Returns true if a line of code has the keyword before a brace or an item.
fn holds_unsafe(source: &str) -> bool {
    source.lines().any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let plain: String = code.split('"').step_by(2).collect();
        let mut words =
            plain.split(|c: char| c.is_whitespace() || c == '(').skip_while(|word| *word != "unsafe");
        let follows = words.nth(1);
        follows.is_some_and(|word| ["{", "fn", "impl", "extern", "trait"].contains(&word))
    })
}

fn longer(name: &str, count: usize, longer: &[(&str, &str)]) -> Option<String> {
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
    use super::*;

    #[test]
    fn a_crate_without_the_attribute_or_with_it_in_a_comment_forbids_nothing() {
        assert!(forbids("//! Words.\n#![forbid(unsafe_code)]\n\nmod a;\n"));
        assert!(!forbids("//! Words.\n\nmod a;\n"));
        assert!(!forbids("// #![forbid(unsafe_code)]\n#![deny(unsafe_code)]\n"));
    }

    #[test]
    fn distinguishes_unsafe_code_from_comments_about_it() {
        for code in [
            "unsafe { call() }",
            "    pub unsafe fn f() {}",
            "let x = unsafe { *p }; // short",
            "unsafe impl Send for S {}",
        ] {
            assert!(holds_unsafe(code), "{code}");
        }
        for code in
            ["// unsafe {", "#[allow(unsafe_code)]", "//! The only unsafe code.", "all unsafe code is listed"]
        {
            assert!(!holds_unsafe(code), "{code}");
        }
    }

    #[test]
    fn rows_of_one_section_are_the_list() {
        let document = "| `a.rs` | no |\n## Unsafe code\n\n| file | why |\n|---|---|\n| `b.rs` | calls `c.rs` |\n\n## Next\n| `d.rs` | |\n";
        assert_eq!(listed(document).into_iter().collect::<Vec<_>>(), ["b.rs"]);
    }

    #[test]
    fn refuses_a_file_of_more_than_800_lines_unless_it_is_excused() {
        assert_eq!(longer("a.rs", 800, &[]), None);
        assert_eq!(longer("a.rs", 801, &[]).as_deref(), Some("a.rs has 801 lines, at most 800 allowed"));
        assert_eq!(longer("a.rs", 801, &[("a.rs", "one table")]), None);
    }
}
