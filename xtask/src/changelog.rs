//! `cargo xtask changelog`: the changes of a release, from a file for each change.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::workspace;

/// Merge the files of changelog.d into CHANGELOG.md
///
/// Writes their entries below a heading with VERSION and the date, after those of the section
/// "Unreleased" if there is one, and removes the files.
#[derive(clap::Args)]
pub struct Options {
    /// Version of the workspace; a "v" before it, as in tags, is ignored
    version: String,
    /// Print the changes of VERSION instead, without headings of the document
    #[arg(long)]
    print: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sections of a version, in their order. The first lists changes that alter images.
const SECTIONS: [&str; 8] = [
    "Changed images",
    "Formats",
    "Packing",
    "Reading",
    "Integrity and security",
    "Measuring",
    "Libraries",
    "Installation",
];

const UNRELEASED: &str = "## Unreleased";

/// Length of a line that still fits editors beside their neighbors.
const MAX_COLUMNS: usize = 160;

pub fn run(Options { version, print }: Options) -> Result<()> {
    let version = version.strip_prefix('v').unwrap_or(&version);
    if version != VERSION {
        return Err(Failure::new(format!(
            "the version is {VERSION}, not {version}\nhint: `version` in Cargo.toml is that of all packages"
        )));
    }
    let root = workspace::root();
    let path = root.join("CHANGELOG.md");
    let text = read(&path)?;
    if print {
        let notes = released(&text, version).ok_or_else(|| {
            let hint = format!("`cargo xtask changelog {version}` writes it");
            Failure::new(format!("CHANGELOG.md has no section {version}\nhint: {hint}"))
        })?;
        print!("{notes}");
        return Ok(());
    }
    if released(&text, version).is_some() {
        return Err(Failure::new(format!("CHANGELOG.md has a section {version} already")));
    }
    let faults = check(&root)?;
    if !faults.is_empty() {
        return Err(Failure::new(faults.join("\n")));
    }
    let files = files(&root)?;
    let changes = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    std::fs::write(&path, merged(&text, &format!("## {version} - {date}"), &changes))
        .map_err(|error| Failure::io("write", &path, error))?;
    files.iter().try_for_each(|file| {
        std::fs::remove_file(file).map_err(|error| Failure::io("remove", file, error))
    })?;
    println!("CHANGELOG.md: {version} with {} files of changelog.d", files.len());
    Ok(())
}

/// Returns the faults of the files that wait for a release.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut faults = vec![];
    for path in files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        faults.extend(faults_of(&read(&path)?).into_iter().map(|fault| format!("{name}{fault}")));
    }
    Ok(faults)
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("changelog.d");
    if folder.exists() { workspace::files_below(&folder) } else { Ok(vec![]) }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

fn faults_of(text: &str) -> Vec<String> {
    let (before, sections) = sections(text);
    let mut faults = vec![];
    if !before.trim().is_empty() || sections.is_empty() {
        faults.push(format!(": opens with a heading, such as \"### {}\"", SECTIONS[1]));
    }
    for (title, body) in &sections {
        if !SECTIONS.contains(title) {
            faults.push(format!(": section {title:?} is none of {SECTIONS:?}"));
        }
        // Blank lines end the list of entries: each is a line "- " and those that continue it.
        let entries: Vec<_> = format!("\n{}", body.trim()).split("\n- ").map(str::to_owned).collect();
        if entries.len() < 2 || !entries[0].is_empty() {
            faults.push(format!(": section {title:?} is a list of entries \"- \""));
        }
        for entry in &entries[1..] {
            if !entry.ends_with('.') || entry.lines().skip(1).any(|line| !line.starts_with("  ")) {
                faults.push(format!(": entry {entry:?} is no sentence, or is not indented by two blanks"));
            }
        }
    }
    let long = text.lines().zip(1..).filter(|(line, _)| line.chars().count() > MAX_COLUMNS);
    faults.extend(long.map(|(_, at)| format!(":{at} has more than {MAX_COLUMNS} columns")));
    faults
}

/// Splits the text of a version into what precedes its sections, and titles with bodies.
fn sections(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut starts: Vec<_> = text.match_indices("### ").map(|(at, _)| at).collect();
    starts.retain(|at| *at == 0 || text[..*at].ends_with('\n'));
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let split = |(start, end): (&usize, usize)| {
        let section = &text[start + 4..end];
        section.split_once('\n').unwrap_or((section, ""))
    };
    let first = starts.first().copied().unwrap_or(text.len());
    (&text[..first], starts.iter().zip(ends).map(split).collect())
}

/// Returns the changelog with a version on top.
fn merged(changelog: &str, heading: &str, changes: &[String]) -> String {
    let top = changelog.find("\n## ").map_or(changelog.len(), |at| at + 1);
    let (intro, versions) = changelog.split_at(top);
    let is_open = versions.starts_with(UNRELEASED);
    let end = if is_open { versions[1..].find("\n## ").map_or(versions.len(), |at| at + 2) } else { 0 };
    let (open, versions) = versions.split_at(end);
    let (lead, mut rows) = sections(open.split_once('\n').map_or("", |(_, body)| body));
    for change in changes {
        rows.extend(sections(change).1);
    }
    let mut text = format!("{}\n\n{heading}\n\n", intro.trim_end());
    if !lead.trim().is_empty() {
        text += &format!("{}\n\n", lead.trim());
    }
    for title in SECTIONS {
        let bodies = rows.iter().filter(|(of, _)| *of == title).map(|(_, body)| body.trim());
        let entries: Vec<_> = bodies.collect();
        if !entries.is_empty() {
            text += &format!("### {title}\n\n{}\n\n", entries.join("\n"));
        }
    }
    format!("{}\n", (text + versions).trim_end())
}

/// Returns the text of a version, without its heading.
fn released<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let start = changelog.find(&format!("\n## {version} - "))?;
    let (_, text) = changelog[start + 1..].split_once("\n\n")?;
    Some(text.split_once("\n\n## ").map_or(text, |(text, _)| text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKING: &str = "### Packing\n\n- `--a` does\n  one thing.\n- `--b`.\n";

    #[test]
    fn entries_follow_those_of_the_open_version_in_the_order_of_sections() {
        let open = "# Changelog\n\nIntro.\n\n## Unreleased: 0.2.0\n\nLead.\n\n### Reading\n\n- Old.\n\n## 0.1.0 - 2026-01-01\n\n- First.\n";
        let changes = [PACKING.to_owned(), "### Reading\n\n- New.\n".to_owned()];
        let text = merged(open, "## 0.2.0 - 2026-02-02", &changes);
        let notes =
            "Lead.\n\n### Packing\n\n- `--a` does\n  one thing.\n- `--b`.\n\n### Reading\n\n- Old.\n- New.";
        let first = "## 0.1.0 - 2026-01-01\n\n- First.\n";
        assert_eq!(text, format!("# Changelog\n\nIntro.\n\n## 0.2.0 - 2026-02-02\n\n{notes}\n\n{first}"));
        assert_eq!(released(&text, "0.2.0"), Some(notes));
        assert_eq!(released(&text, "0.1.0"), Some("- First.\n"));
        assert_eq!(released(&text, "0.3.0"), None);

        let next = merged(&text, "## 0.3.0 - 2026-03-03", &[PACKING.to_owned()]);
        let released = &text["# Changelog\n\nIntro.\n\n".len()..];
        assert_eq!(next, format!("# Changelog\n\nIntro.\n\n## 0.3.0 - 2026-03-03\n\n{PACKING}\n{released}"));
    }

    #[test]
    fn files_have_known_sections_and_sentences() {
        assert_eq!(faults_of(PACKING), [""; 0]);
        let long = format!("### Packing\n\n- {}.\n", "a".repeat(MAX_COLUMNS));
        for (text, fault) in [
            ("- Entry.\n", "opens with a heading"),
            ("### Speed\n\n- Entry.\n", "section \"Speed\" is none of"),
            ("### Packing\n\nText.\n", "is a list of entries"),
            ("### Packing\n\n- Entry\n", "is no sentence"),
            ("### Packing\n\n- One.\n\nText.\n", "is not indented"),
            (&long, ":3 has more than 160 columns"),
        ] {
            let faults = faults_of(text);
            assert!(faults.len() == 1 && faults[0].contains(fault), "{text:?}: {faults:?}");
        }
    }

    #[test]
    fn packages_outside_the_workspace_have_its_version() {
        for (file, line) in [
            ("python/Cargo.toml", format!("version = \"{VERSION}\"")),
            ("integration/buildroot/package/packfs/packfs.mk", format!("HOST_PACKFS_VERSION = {VERSION}")),
        ] {
            let text = read(&workspace::root().join(file)).unwrap();
            assert!(text.lines().any(|it| it == line), "{file} has no line {line}");
        }
    }

    #[test]
    fn every_section_of_the_open_version_is_known() {
        let text = read(&workspace::root().join("CHANGELOG.md")).unwrap();
        let (_, rows) = sections(text.split_once("\n## ").unwrap().1.split("\n## ").next().unwrap());
        assert!(rows.iter().all(|(title, _)| SECTIONS.contains(title)), "{rows:?}");
    }
}
