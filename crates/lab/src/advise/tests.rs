//! From a tree to an answer, on trees that are made up.

use super::forecast::size::{Pair, Whole};
use super::sample::Sample;
use super::*;
use crate::workload::Random;
use packfs::Silent;
use packfs::source::Loaded;
use std::fs;
use std::path::Path;
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

#[test]
fn a_short_tree_is_packed_as_a_whole_and_its_size_is_exact() {
    let tree = small_tree();
    let answer = advise(&question(tree.path(), Want::Boot), &Silent).unwrap();
    assert!(answer.looked.whole);
    let best = &answer.rows[0];
    assert_eq!(best.size.error, 0.0);
    let output = tree.path().join("../advised.img");
    let loaded = Arc::new(Source::detect(tree.path()).unwrap().load(&Shape::default(), &Silent).unwrap());
    let made = measure::pack(&loaded, &best.candidate, &output, 1, &Silent).unwrap();
    fs::remove_file(&output).unwrap();
    assert_eq!(made.image_len, best.size.bytes);
    assert!(best.read.seconds > 0.0 && best.read.requests > 0, "{:?}", best.read);
    assert!(answer.rows.len() > 3);
    assert!(answer.command.starts_with("packfs pack "), "{}", answer.command);
    assert!(answer.lines().iter().any(|line| line.contains("Measured: every candidate packed all")));
}

#[test]
fn the_same_seed_reads_the_same_files_and_another_others() {
    let tree = small_tree();
    let loaded = Source::detect(tree.path()).unwrap().load(&Shape::default(), &Silent).unwrap();
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
fn samples_stand_for_the_whole() {
    let tree = tempfile::tempdir().unwrap();
    // Half in long files that do not compress, the rest in short ones that do.
    for n in 0..2 {
        fs::write(tree.path().join(format!("long{n}")), noise(n, 6 << 20)).unwrap();
    }
    for n in 0..400 {
        let dir = tree.path().join(format!("dir{:02}", n / 20));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("file{n}")), text(n, 30_000)).unwrap();
    }
    let loaded = Arc::new(Source::detect(tree.path()).unwrap().load(&Shape::default(), &Silent).unwrap());
    let samples = sample::take(&loaded, 6 << 20, 2, 7).unwrap();
    assert_eq!(samples.len(), 2);
    let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
    assert!((4 << 20..10 << 20).contains(&bytes), "{bytes}");
    for sample in &samples {
        let of = |long: bool| {
            let files = sample
                .loaded
                .tree
                .nodes()
                .filter(|(id, _)| sample.loaded.tree.first_name(*id).starts_with(b"long") == long);
            files.map(|(id, _)| want::len_of(&sample.loaded.tree, id)).sum::<u64>()
        };
        assert!(of(true) > 0 && of(false) > 0, "every sample has both");
    }
    let again = sample::take(&loaded, 6 << 20, 2, 7).unwrap();
    let names = |sample: &Sample| {
        let tree = &sample.loaded.tree;
        tree.nodes().map(|(id, _)| tree.path(id)).collect::<Vec<_>>()
    };
    assert_eq!(names(&samples[0]), names(&again[0]));

    // What is forecast from them is what the whole comes to.
    let (kept, _) = candidates::candidates(Want::Boot, &["squashfs".into()], Kernel(6, 12), true).unwrap();
    let candidate = kept.iter().find(|it| it.codec.as_deref() == Some("lz4hc:12")).unwrap();
    let image = tree.path().join("../sampled.img");
    let pack = |loaded: &Arc<Loaded>, candidate: &Candidate| {
        let packed = measure::pack(loaded, candidate, &image, 1, &Silent).unwrap();
        fs::remove_file(&image).unwrap();
        packed
    };
    let reference = candidate.reference();
    let pairs: Vec<Pair> = samples
        .iter()
        .map(|sample| Pair {
            reference: pack(&sample.loaded, &reference),
            candidate: pack(&sample.loaded, candidate),
        })
        .collect();
    let whole = Whole { packed: pack(&loaded, &reference), times: 1.0 };
    let expected = forecast::size::forecast(&whole, &pairs);
    let truth = pack(&loaded, candidate).image_len;
    let error = expected.bytes as f64 / truth as f64 - 1.0;
    assert!(error.abs() < 0.03, "{expected:?} for {truth}");
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
fn a_trace_is_what_is_read() {
    let tree = small_tree();
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(list.path(), "dir1/file5\ndir0/file8\n").unwrap();
    let traced = Question { trace: Some(list.path().into()), ..question(tree.path(), Want::Boot) };
    let answer = advise(&traced, &Silent).unwrap();
    assert!(answer.workload.contains("the 2 files of the trace"), "{}", answer.workload);
    assert!(answer.command.contains("--trace"), "{}", answer.command);
    fs::write(list.path(), "nothing/here\n").unwrap();
    assert!(advise(&traced, &Silent).unwrap_err().to_string().contains("names no file"));
}

#[test]
fn a_stopped_answer_leaves_nothing() {
    struct Stopped;
    impl Progress for Stopped {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let tree = small_tree();
    let scratch = tempfile::tempdir().unwrap();
    let asked = Question { scratch: Some(scratch.path().into()), ..question(tree.path(), Want::Boot) };
    let error = advise(&asked, &Stopped).unwrap_err();
    assert_eq!(error.kind(), packfs::ErrorKind::Cancelled);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}
