//! The rule about changes of bytes, and the message about a violation.

use super::rows::{Row, VERSION, repository};
use std::fmt::Write;

/// Words of a line in the changelog about changed bytes, which names the formats, too.
const MARK: &str = "image bytes change";

/// CHANGELOG.md, and the changes in changelog.d that wait for a release.
pub struct Changelog {
    text: String,
    waiting: String,
}

impl Changelog {
    pub fn read() -> Self {
        let text = std::fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
        let files = std::fs::read_dir(repository().join("changelog.d")).into_iter().flatten().flatten();
        let waiting = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
        Changelog { text, waiting }
    }

    /// Versions with a heading, newest first, without `## Unreleased: 0.1.0`.
    pub fn released(&self) -> impl Iterator<Item = &str> {
        let headings = self.text.lines().filter_map(|line| line.strip_prefix("## "));
        let words = headings.filter_map(|heading| heading.split([' ', ']']).next());
        words
            .map(|word| word.trim_start_matches('['))
            .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    }

    pub fn has_released(&self, version: &str) -> bool {
        self.released().any(|released| released == version)
    }

    /// Returns true if a line about changed bytes names the format, after a release.
    fn declares(&self, format: &str, release: &str) -> bool {
        let is_heading =
            |line: &&str| line.starts_with("## ") && line.split([' ', '[', ']']).any(|word| word == release);
        let lines = self.text.lines().take_while(|line| !is_heading(line)).chain(self.waiting.lines());
        let mut lines = lines.map(str::to_lowercase);
        lines.any(|line| {
            line.contains(MARK)
                && line.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == format)
        })
    }
}

/// Judges the images that this version makes.
///
/// Errors: what has to be done about other bytes than those recorded, or than those of the release
/// before without a line of the changelog.
pub fn judge(
    found: &[Row],
    recorded: &[Row],
    before: Option<&(String, Vec<Row>)>,
    log: &Changelog,
) -> Result<(), String> {
    let differs =
        |row: &&Row, other: &[Row]| other.iter().any(|it| it.name == row.name && it.image != row.image);
    let mut fault = String::new();
    let other: Vec<&Row> = found.iter().filter(|row| !recorded.contains(row)).collect();
    if !other.is_empty() {
        let _ =
            writeln!(fault, "testdata/releases/{VERSION}/images.txt records other bytes of these images:");
        for row in &other {
            let is_read = recorded.iter().any(|it| it.name == row.name && it.tree_read == row.tree_read);
            let tree =
                if is_read { "the tree in it is the same" } else { "the tree in it differs, too, or is new" };
            let _ = writeln!(fault, "  {} ({tree})", row.name);
        }
    }
    let (release, of_release) = before.map_or(("", &[][..]), |(version, rows)| (version.as_str(), rows));
    let changed = found.iter().filter(|row| differs(row, of_release));
    let gone = of_release.iter().filter(|row| !found.iter().any(|it| it.name == row.name));
    let mut formats: Vec<&str> = changed.chain(gone).map(Row::format).collect();
    formats.retain(|format| !log.declares(format, release));
    formats.sort_unstable();
    formats.dedup();
    if !formats.is_empty() {
        let formats = formats.join(", ");
        let _ = writeln!(
            fault,
            "Bytes differ from those of {release}, and the changelog does not say so: {formats}"
        );
    }
    if fault.is_empty() {
        return Ok(());
    }
    fault += "One version gives the same bytes for the same source. If the change is an accident, undo it. If not:\n";
    if log.has_released(VERSION) {
        let _ =
            writeln!(fault, "- {VERSION} is released and stays as it is: give Cargo.toml the next version;");
    }
    let named = other.first().map_or("erofs", |row| row.format());
    let _ = writeln!(
        fault,
        "- tell users by a line in changelog.d such as \"Image bytes change ({named}): ...\";"
    );
    fault += "- run PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs releases::, and commit testdata/releases.";
    Err(fault)
}

mod tests {
    use super::*;

    fn rows(bytes: [&str; 2]) -> Vec<Row> {
        let [squashfs, erofs] = bytes;
        super::super::rows::parsed(&format!(
            "a few format=squashfs {squashfs} t\nb few format=erofs codec=lz4 {erofs} t\n"
        ))
    }

    fn log(text: &str, waiting: &str) -> Changelog {
        Changelog { text: text.into(), waiting: waiting.into() }
    }

    #[track_caller]
    fn refused(verdict: Result<(), String>, words: &[&str]) {
        let fault = verdict.unwrap_err();
        assert!(words.iter().all(|word| fault.contains(word)), "{fault}");
    }

    #[test]
    fn other_bytes_than_recorded_are_refused_with_the_command_that_records_them() {
        let log = log("## Unreleased\n", "");
        assert_eq!(judge(&rows(["1", "2"]), &rows(["1", "2"]), None, &log), Ok(()));
        let verdict = judge(&rows(["1", "3"]), &rows(["1", "2"]), None, &log);
        refused(
            verdict,
            &["\n  b (the tree in it is the same)", "(erofs)", "PACKFS_WRITE_DOCUMENTS=1", "changelog.d"],
        );
        refused(judge(&rows(["1", "2"]), &[], None, &log), &["\n  a (", "\n  b ("]);
    }

    #[test]
    fn other_bytes_than_of_the_release_before_need_a_line_that_names_the_format() {
        let before = ("0.0.9".to_owned(), rows(["1", "2"]));
        let verdict = |log: &Changelog| judge(&rows(["1", "3"]), &rows(["1", "3"]), Some(&before), log);
        let line = "- Image bytes change (erofs): tails are sorted.\n";
        let released = "\n## 0.0.9 (2026-01-01)\n";
        for log in [
            log(released, ""),
            log(released, "- Image bytes change (squashfs, erofs-utils).\n"),
            // A line of the release before says nothing of this one.
            log(&format!("{released}{line}"), ""),
        ] {
            refused(verdict(&log), &["those of 0.0.9", "does not say so: erofs\n"]);
        }
        assert_eq!(verdict(&log(released, line)), Ok(()));
        assert_eq!(verdict(&log(&format!("## Unreleased: 0.1.0\n{line}{released}"), "")), Ok(()));
        let gone = judge(&rows(["1", "2"])[1..], &rows(["1", "2"])[1..], Some(&before), &log(released, ""));
        refused(gone, &["does not say so: squashfs\n"]);
    }

    #[test]
    fn a_released_version_keeps_its_bytes() {
        let log = log(&format!("## Unreleased: 99.0.0\n\n## [{VERSION}] - 2026-12-01\n\n## 0.0.9\n"), "");
        assert_eq!(log.released().collect::<Vec<_>>(), [VERSION, "0.0.9"]);
        refused(
            judge(&rows(["1", "3"]), &rows(["1", "2"]), None, &log),
            &["is released", "the next version"],
        );
    }
}
