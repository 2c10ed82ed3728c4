//! From a tree to an answer, on trees that are made up.

mod parts;
mod trace;

use super::*;
use crate::workload::Random;
use packfs::Silent;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Text that compresses, different for each seed.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let words = ["image ", "block ", "inode ", "codec ", "reads ", "tail\n"];
    let mut text = Vec::with_capacity(len + 8);
    while text.len() < len {
        text.extend_from_slice(words[(random.next() % 6) as usize].as_bytes());
    }
    text.truncate(len);
    text
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(len).collect()
}

fn question(tree: &Path, want: Want) -> Question {
    Question {
        tree: tree.into(),
        device: packfs_device::find("sd").unwrap(),
        device_name: "sd".into(),
        want,
        kernel: Some(Kernel(6, 12)),
        quick: true,
        max_size: None,
        formats: Vec::new(),
        trace: None,
        scratch: None,
        jobs: 1,
        seed: 1,
        check: false,
    }
}

fn small_tree() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..40 {
        let dir = folder.path().join(format!("dir{}", n % 4));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("file{n}")), text(n, 9000)).unwrap();
    }
    folder
}

fn load(tree: &Path) -> Arc<Loaded> {
    Arc::new(Source::detect(tree).unwrap().load(&Shape::default(), &Silent).unwrap())
}

/// Length of the image that the command makes.
fn made(candidate: &Candidate, tree: &Path, trace: Option<&Path>, folder: &Path) -> u64 {
    let packing = candidate.apply(packfs::pack(tree, folder.join("image")));
    let packing = if let Some(trace) = trace { packing.trace(trace) } else { packing };
    packing.run().unwrap().image_len
}

#[test]
fn a_short_tree_is_packed_as_a_whole_and_its_size_is_exact() {
    let tree = small_tree();
    let answer = advise(&question(tree.path(), Want::Boot), &Silent).unwrap();
    assert!(answer.looked.whole);
    let best = &answer.rows[0];
    assert_eq!(best.size.error, 0.0);
    let folder = tempfile::tempdir().unwrap();
    let made = made(&best.candidate, tree.path(), None, folder.path());
    assert_eq!(made, best.size.bytes);
    assert!(best.read.seconds > 0.0 && best.read.requests > 0, "{:?}", best.read);
    assert!(answer.rows.len() > 3);
    assert!(answer.command.starts_with("packfs pack "), "{}", answer.command);
    let text = |colours| answer.text(crate::report::Terminal { width: None, colours });
    assert!(text(false).contains("Measured: every candidate packed all"), "{}", text(false));
    assert!(text(true).contains("\x1b[1mcandidate") && !text(false).contains("\x1b"), "{}", text(true));
}

#[test]
fn the_same_seed_reads_the_same_files_and_another_others() {
    let tree = small_tree();
    let loaded = load(tree.path());
    for want in [Want::Boot, Want::Random] {
        let files = |seed| want.files(&loaded.tree, &[], seed);
        assert_eq!(files(1), files(1));
        assert_ne!(files(1), files(2));
    }
    let random = Want::Random.files(&loaded.tree, &[], 1);
    assert_eq!(random.len(), 40);
    let boot = Want::Boot.files(&loaded.tree, &[], 1);
    assert!(boot.is_sorted() && (1..20).contains(&boot.len()), "{boot:?}");
}

#[test]
fn noise_is_to_be_stored() {
    let tree = tempfile::tempdir().unwrap();
    for n in 0..4 {
        fs::write(tree.path().join(format!("noise{n}")), noise(n, 300_000)).unwrap();
    }
    let answer = advise(&question(tree.path(), Want::Size), &Silent).unwrap();
    assert!(answer.command.contains("--codec none"), "{}", answer.command);
}

#[test]
fn an_empty_tree_and_a_bad_scratch_folder_are_refused() {
    let tree = tempfile::tempdir().unwrap();
    let error = advise(&question(tree.path(), Want::Boot), &Silent).unwrap_err();
    assert!(error.to_string().contains("holds no file with a byte"), "{error}");
    let tree = small_tree();
    let nowhere =
        Question { scratch: Some("/nonexistent/scratch".into()), ..question(tree.path(), Want::Boot) };
    let error = advise(&nowhere, &Silent).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/scratch"), "{error}");
    assert!(error.hints().iter().any(|hint| hint.contains("--scratch")));
}

#[test]
fn losses_are_reported_and_accepted_by_the_command() {
    let tree = small_tree();
    std::os::unix::fs::symlink("dir0/", tree.path().join("link")).unwrap();
    let asked = Question { formats: vec!["iso9660".into()], ..question(tree.path(), Want::Boot) };
    let answer = advise(&asked, &Silent).unwrap();
    assert!(answer.command.ends_with(" --lossy"), "{}", answer.command);
    let words = "Lost, as iso9660 cannot hold it: link targets lose the slash at their end";
    assert!(answer.notes.iter().any(|note| note.starts_with(words) && note.contains("(link)")), "{answer:?}");
    let answer = advise(&question(tree.path(), Want::Boot), &Silent).unwrap();
    assert!(!answer.command.contains("--lossy"), "{}", answer.command);
    let least = answer.rows.iter().map(|row| row.size.bytes).min();
    let limited = Question { max_size: least, ..question(tree.path(), Want::Boot) };
    let answer = advise(&limited, &Silent).unwrap();
    assert!(answer.command.ends_with(&format!(" --max-size {}", least.unwrap())), "{}", answer.command);
    assert!(answer.rows.iter().all(|row| Some(row.size.bytes) == least), "{answer:?}");
    assert!(answer.left_out.iter().any(|left| left.reason.contains("are allowed")), "{answer:?}");
}

/// Counts how often it is asked, says stop from one time on, and looks whether there is anything in
/// the scratch folder then.
struct StopsAt<'a> {
    number: usize,
    asked: AtomicUsize,
    scratch: &'a Path,
    /// At which question there was a folder first.
    folder_at: AtomicUsize,
}

impl<'a> StopsAt<'a> {
    fn new(number: usize, scratch: &'a Path) -> Self {
        StopsAt { number, asked: AtomicUsize::new(0), scratch, folder_at: AtomicUsize::new(usize::MAX) }
    }
}

impl Progress for StopsAt<'_> {
    fn cancelled(&self) -> bool {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if fs::read_dir(self.scratch).unwrap().count() > 0 {
            self.folder_at.fetch_min(number, Ordering::SeqCst);
        }
        number >= self.number
    }
}

#[test]
fn a_stopped_answer_leaves_nothing() {
    let tree = small_tree();
    let scratch = tempfile::tempdir().unwrap();
    let asked = Question { scratch: Some(scratch.path().into()), ..question(tree.path(), Want::Boot) };
    let whole = StopsAt::new(usize::MAX, scratch.path());
    advise(&asked, &whole).unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    let (first, last) = (whole.folder_at.into_inner(), whole.asked.into_inner());
    assert!(first < last);
    for part in 0..4 {
        let stops = StopsAt::new(first + 1 + (last - first) * part / 5, scratch.path());
        let error = advise(&asked, &stops).unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Cancelled);
        assert!(stops.folder_at.into_inner() <= stops.number, "stopped before there was anything to leave");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
