//! Reports, letter by letter, and as files. `PACKFS_BLESS=1 cargo test -p packfs-lab` takes what
//! there is as right; look at the difference.

use std::path::Path;

use packfs::ErrorKind;
use packfs_lab::report::{Format, Terminal, csv, markdown, text, write_all};
use packfs_lab::results::Results;

use super::made_up;

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PACKFS_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    for (index, (line, known)) in text.lines().zip(known.lines()).enumerate() {
        assert_eq!(line, known, "{name}, line {}", index + 1);
    }
    assert_eq!(text, known, "{name}: one is longer than the other");
}

#[test]
fn terminals_and_markdown_show_the_same_session() {
    let mut results = made_up::results();
    let at = |width| Terminal { width: Some(width), colours: false };
    compare("wide.txt", &text(&results, at(100)));
    compare("report.md", &markdown(&results));
    results.tables.clear();
    results.measurements.truncate(9);
    let narrow = text(&results, at(60));
    compare("narrow.txt", &narrow);
    assert!(narrow.lines().all(|line| line.chars().count() <= 60));
}

#[test]
fn each_run_is_a_row_of_values() {
    let results = made_up::results();
    let text = csv(&results);
    let runs: usize = results.measurements.iter().map(|measurement| measurement.runs.len()).sum();
    assert_eq!(text.matches("\r\n").count(), runs + 1);
    // The same number of fields in each row, if what is quoted counts as one.
    let fields = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert!(text.lines().all(|line| fields(line) == 26), "{text}");
}

#[test]
fn a_session_is_read_as_it_was_written() {
    let results = made_up::results();
    let folder = tempfile::tempdir().unwrap();
    let files = write_all(&results, &folder.path().join("a/b")).unwrap();
    assert_eq!(Results::read(&files[0]).unwrap(), results);
    assert_eq!(folder.path().join("a/b").read_dir().unwrap().count(), files.len());
    let error = write_all(&results, &files[0].join("out")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("out"), "{error}");
}

#[test]
fn forms_are_called_as_users_type_them() {
    for name in ["text", "markdown", "csv", "html", "json"] {
        assert!(name.parse::<Format>().is_ok(), "{name}");
    }
    assert!("pdf".parse::<Format>().unwrap_err().contains("markdown"));
}
