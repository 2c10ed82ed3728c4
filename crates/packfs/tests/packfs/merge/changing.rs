//! Inputs that another program changes while they are read.

use packfs::{Pack, Progress, Stage};
use packfs_testkit::Random;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Gives a file another length once data is moved.
struct Changes(PathBuf, fn(u64) -> u64);

impl Progress for Changes {
    fn begin(&self, stage: Stage, _files: u64, _bytes: u64) {
        if stage == Stage::Data {
            let file = File::options().write(true).open(&self.0).unwrap();
            file.set_len(self.1(file.metadata().unwrap().len())).unwrap();
        }
    }
}

/// Packs a file of noise.
fn image(folder: &Path, name: &str, seed: u64) -> PathBuf {
    let image = folder.join(name);
    let noise = Random::new(seed).noise(3 << 20);
    packfs::pack_files([(name, noise)], &image).unwrap().run().unwrap();
    image
}

#[track_caller]
fn refused<T>(outcome: packfs::Result<T>, output: &Path) {
    let Err(error) = outcome else { panic!("{output:?} was made") };
    assert!(!output.exists(), "{error}");
}

#[test]
fn a_merge_of_an_input_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let changes: [fn(u64) -> u64; 4] = [|_| 0, |len| len / 2, |len| len - 4096, |len| len + 1];
    for (index, change) in changes.into_iter().enumerate() {
        for format in ["sqfs", "erofs"] {
            let a = image(folder, &format!("a{index}.{format}"), 1);
            let b = image(folder, &format!("b.{format}"), 2);
            let output = folder.join(format!("merged.{format}"));
            let merge = packfs::merge([&a, &b], &output).progress(Changes(a, change));
            refused(merge.run(), &output);
        }
    }
}

#[test]
fn other_work_on_an_image_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tree = folder.join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("a.sqfs"), Random::new(1).noise(3 << 20)).unwrap();
    type Work = fn(&Path, &Path, &Path) -> Pack;
    let works: [(&str, Work); 3] = [
        ("converted.erofs", |image, output, _| packfs::pack(image, output)),
        ("wrapped.cloop", |image, output, _| packfs::pack(image, output)),
        ("repacked.sqfs", |image, output, tree| packfs::pack(tree, output).base(image)),
    ];
    for (name, work) in works {
        let image = image(folder, "a.sqfs", 1);
        let output = folder.join(name);
        let work = || work(&image, &output, &tree);
        work().run().unwrap();
        std::fs::remove_file(&output).unwrap();
        refused(work().progress(Changes(image.clone(), |len| len + 1)).run(), &output);
    }
}
