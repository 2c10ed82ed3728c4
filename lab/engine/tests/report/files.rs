//! Reports as files.

use packfs::ErrorKind;
use packfs_lab::report::{Format, Terminal, parse, read, report, write_all};

use crate::made_up;

#[test]
fn a_session_is_read_as_it_was_written() {
    let results = made_up::results();
    let folder = tempfile::tempdir().unwrap();
    let files = write_all(&results, &folder.path().join("a/b")).unwrap();
    assert_eq!(read(&files[0]).unwrap(), results);
    for file in &files {
        assert!(file.is_file(), "{file:?}");
    }
    assert_eq!(folder.path().join("a/b").read_dir().unwrap().count(), files.len());
}

#[test]
fn another_schema_version_is_reported_with_a_hint() {
    let text = report(&made_up::results(), Format::Json, Terminal::default()).unwrap();
    let error = parse(text.replacen("packfs-lab/1", "packfs-lab/7", 1).as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("packfs-lab/7"), "{error}");
    assert_eq!(error.hints().len(), 1);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = write_all(&made_up::results(), &file.path().join("out")).unwrap_err();
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
