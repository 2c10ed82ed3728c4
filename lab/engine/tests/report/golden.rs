//! Each report, letter by letter. `PACKFS_BLESS=1 cargo test -p packfs-lab` takes what there is as
//! right; look at the difference.

use std::path::Path;

use packfs_lab::report::{Format, Terminal, report};

use crate::made_up;

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PACKFS_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    for (index, (line, known)) in text.lines().zip(known.lines()).enumerate() {
        assert_eq!(line, known, "{name}, line {}", index + 1);
    }
    assert_eq!(text, known, "{name}: one is longer than the other");
}

#[test]
fn wide_terminals() {
    let terminal = Terminal { width: Some(100), colours: false };
    compare("wide.txt", &report(&made_up::results(), Format::Text, terminal).unwrap());
}

#[test]
fn narrow_terminals_without_tables_of_the_session() {
    let mut results = made_up::results();
    results.tables.clear();
    let terminal = Terminal { width: Some(60), colours: false };
    let text = report(&results, Format::Text, terminal).unwrap();
    compare("narrow.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 60));
}

#[test]
fn markdown() {
    compare("report.md", &report(&made_up::results(), Format::Markdown, Terminal::default()).unwrap());
}

#[test]
fn csv() {
    let text = report(&made_up::results(), Format::Csv, Terminal::default()).unwrap();
    compare("report.csv", &text);
    let runs: usize = made_up::results().measurements.iter().map(|measurement| measurement.runs.len()).sum();
    assert_eq!(text.matches("\r\n").count(), runs + 1);
    // The same number of fields in each row, if what is quoted counts as one.
    let fields = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    assert!(text.lines().all(|line| fields(line) == 26), "{text}");
}
