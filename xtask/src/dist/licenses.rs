//! The licenses of everything in a program: crates, their C libraries, and the standard libraries.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{build, sbom::Sbom, tools};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];

/// Depth of the licenses of bundled C libraries below the folder of a crate.
const DEPTH: usize = 2;

/// Writes a file for all crates, and one for each library that is no crate.
pub fn write(sbom: &Sbom, folder: &Path) -> Result<()> {
    workspace::make_dir(folder)?;
    super::write(&folder.join("crates.txt"), crates(sbom)?.as_bytes())?;
    let rust = shell::capture(Command::new(build::rustc()).args(["--print", "sysroot"]))?;
    let rust = Path::new(rust.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    super::copy(&rust, &folder.join("rust-library.html"))?;
    let musl = tools::zig_library().map(|library| library.join("libc/musl/COPYRIGHT"));
    let musl = musl.filter(|path| path.is_file()).unwrap_or("/usr/share/doc/musl-dev/copyright".into());
    super::copy(&musl, &folder.join("musl.txt"))
}

/// Returns each text once, with the names of the crates that have it.
fn crates(sbom: &Sbom) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in sbom.linked().filter(|package| !package.is_member) {
        let found = texts_of(&package.folder)?;
        if found.is_empty() {
            return Err(Failure::new(format!("{} has no file with its license", package.id)));
        }
        let license = package.license.as_deref().unwrap_or_default();
        for text in found {
            let name = format!("{} {} ({license})", package.name, package.version);
            texts.entry(text).or_default().push(name);
        }
    }
    let mut parts: Vec<_> = texts.into_iter().map(|(text, names)| (names, text)).collect();
    parts.sort();
    let rule = "=".repeat(80);
    let part =
        |(names, text): (Vec<String>, String)| format!("{rule}\n{}\n{rule}\n{text}\n", names.join("\n"));
    Ok(parts.into_iter().map(part).collect())
}

fn texts_of(folder: &Path) -> Result<Vec<String>> {
    let is_license = |path: &&std::path::PathBuf| {
        let below = path.strip_prefix(folder).unwrap_or(path);
        let name = below.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_named = NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".sh");
        below.components().count() <= DEPTH + 1 && is_named
    };
    let files = workspace::files_below(folder)?;
    let texts = files.iter().filter(is_license).map(|path| super::read(path));
    let mut texts = texts.collect::<Result<Vec<_>>>()?;
    texts.iter_mut().for_each(|text| text.truncate(text.trim_end().len()));
    // zstd is BSD or GPL; scripts of xz and programs of lz4, which are not linked, are GPL.
    texts.retain(|text| !text.chars().take(120).collect::<String>().to_uppercase().contains("GNU "));
    texts.sort();
    texts.dedup();
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses_of_bundled_libraries_are_found_and_those_of_their_programs_are_not() {
        let folder = std::env::temp_dir().join(format!("packfs-licenses-{}", std::process::id()));
        let gpl = "                    GNU GENERAL PUBLIC LICENSE\n";
        let files = [
            ("LICENSE-MIT", "MIT\n"),
            ("src/lib.rs", "code"),
            ("lib/COPYING", "BSD"),
            ("lib/programs/COPYING", gpl),
            ("a/b/c/LICENSE", "too deep"),
        ];
        for (name, text) in files {
            workspace::make_dir(folder.join(name).parent().unwrap()).unwrap();
            std::fs::write(folder.join(name), text).unwrap();
        }
        let found = texts_of(&folder);
        workspace::remove_dir(&folder).unwrap();
        assert_eq!(found.unwrap(), ["BSD", "MIT"]);
    }
}
