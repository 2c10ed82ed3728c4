//! Reading in the order of a list.

use super::*;
use crate::advise::bench::Bench;

/// A list of paths.
fn listed(paths: &str) -> tempfile::NamedTempFile {
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(list.path(), paths).unwrap();
    list
}

#[test]
fn a_trace_is_what_is_read_and_what_is_packed_in_front() {
    let (tree, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // They have in common what does not compress: in one shared block it is stored once, and twice
    // if some lie apart.
    let same = noise(9, 20_000);
    for n in 0..5_u8 {
        fs::write(tree.path().join(format!("file{n}")), [&same[..], &[n; 50]].concat()).unwrap();
    }
    let list = listed("file3\nfile1\n");
    let traced = Question { trace: Some(list.path().into()), ..question(tree.path(), Want::Boot) };
    let answer = advise(&traced, &Silent).unwrap();
    assert!(answer.workload.contains("the 2 files of the trace"), "{}", answer.workload);
    assert!(answer.command.contains("--trace"), "{}", answer.command);
    let best = &answer.rows[0];
    let made = |trace: Option<&Path>| made(&best.candidate, tree.path(), trace, folder.path());
    assert_eq!(best.size.bytes, made(Some(list.path())));
    assert_ne!(best.size.bytes, made(None), "{}", best.candidate);
}

#[test]
fn a_trace_of_files_that_are_drawn_is_neither_read_nor_packed() {
    let tree = small_tree();
    let list = listed("dir1/file5\n");
    let traced = Question { trace: Some(list.path().into()), ..question(tree.path(), Want::Random) };
    let answer = advise(&traced, &Silent).unwrap();
    assert!(!answer.command.contains("--trace"), "{}", answer.command);
    assert!(answer.notes.iter().any(|note| note.starts_with("The trace was not used")), "{:?}", answer.notes);
}

#[test]
fn a_trace_that_names_nothing_is_refused() {
    let tree = small_tree();
    fs::write(tree.path().join("empty"), "").unwrap();
    for words in ["nothing/here\n", "empty\n"] {
        let list = listed(words);
        let traced = Question { trace: Some(list.path().into()), ..question(tree.path(), Want::Boot) };
        assert!(advise(&traced, &Silent).unwrap_err().to_string().contains("names no file"), "{words}");
    }
}

#[test]
fn all_that_a_trace_lists_is_read_of_a_tree_that_is_cut_down() {
    let tree = small_tree();
    let all: String = (0..40).map(|n| format!("dir{}/file{n}\n", n % 4)).collect();
    let list = listed(&all);
    let traced = Question { trace: Some(list.path().into()), ..question(tree.path(), Want::Boot) };
    fs::write(tree.path().join("long"), noise(1, 9 << 20)).unwrap();
    let loaded = load(tree.path());
    let bench = Bench::with_budget(&traced, Kernel(6, 12), &loaded, 1 << 20).unwrap();
    assert!(bench.times > 1.0, "{}", bench.times);
    assert_eq!(bench.files.len(), 40);
    assert!(bench.files.iter().all(|path| bench.whole.tree.find(path).is_some()));
}
