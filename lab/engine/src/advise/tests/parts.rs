//! Parts of trees, and what stands for the whole.

use super::*;
use crate::advise::forecast::size::{Pair, Whole};
use crate::advise::sample::Sample;

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
    let loaded = load(tree.path());
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
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let pack = |loaded: &Arc<Loaded>, candidate: &Candidate| {
        let packed = measure::pack(loaded, candidate, None, &image, 1, &Silent).unwrap();
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

fn paths(loaded: &Loaded) -> Vec<String> {
    let tree = &loaded.tree;
    tree.nodes().map(|(id, _)| String::from_utf8_lossy(tree.path(id).as_bytes()).into_owned()).collect()
}

#[test]
fn what_is_kept_is_in_the_part_as_a_whole_and_once() {
    let tree = small_tree();
    fs::write(tree.path().join("long"), noise(1, 9 << 20)).unwrap();
    fs::write(tree.path().join("other"), noise(2, 9 << 20)).unwrap();
    let loaded = load(tree.path());
    let find = |path: &str| loaded.tree.find(&packfs::ImagePath::parse(path.as_bytes()).unwrap()).unwrap();
    let kept = [find("long"), find("dir3/file7")];
    // Everything else is in it, too.
    let part = sample::part(&loaded, u64::MAX >> 8, &kept, 5).unwrap();
    assert_eq!(part.bytes, loaded.tree.bytes_total());
    let paths_of_all = paths(&part.loaded);
    assert!(
        paths_of_all.iter().any(|path| path == "long") && !paths_of_all.iter().any(|path| path == "long.0")
    );
    assert!(paths_of_all.iter().any(|path| path == "other.4"), "{paths_of_all:?}");
    // Next to nothing else is.
    let part = sample::part(&loaded, 1, &kept, 5).unwrap();
    let found = paths(&part.loaded);
    assert!(found.iter().any(|path| path == "long") && found.iter().any(|path| path == "dir3/file7"));
    assert!(part.bytes < loaded.tree.bytes_total());
}

#[test]
fn a_piece_overwrites_no_existing_name() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("log"), noise(1, 5 << 20)).unwrap();
    fs::write(tree.path().join("log.1"), text(1, 5000)).unwrap();
    fs::create_dir(tree.path().join("log.2")).unwrap();
    fs::write(tree.path().join("log.2/file"), text(2, 5000)).unwrap();
    let loaded = load(tree.path());
    let part = sample::part(&loaded, u64::MAX >> 8, &[], 5).unwrap();
    assert_eq!(part.bytes, loaded.tree.bytes_total());
    let mut found = paths(&part.loaded);
    found.sort();
    assert_eq!(found, ["", "log..1", "log..2", "log.0", "log.1", "log.2", "log.2/file"]);
}
