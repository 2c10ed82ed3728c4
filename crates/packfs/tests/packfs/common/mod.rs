//! Packing trees of the testkit.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod damage;

use packfs_core::{Contents, Error, FileImage, Image, Result, Silent, Timestamp, Tree};
use packfs_format::{Finding, PackSettings, Severity, Volume};
use packfs_pack::{PackOptions, PackReport, pack};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_testkit::{Compare, Snapshot, peer, snapshot_dir, snapshot_tree};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Options of a test's image.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub codec: &'a str,
    pub block_len: u32,
    pub options: &'a [(&'a str, &'a str)],
    pub jobs: usize,
}

impl Default for Wish<'_> {
    fn default() -> Self {
        Wish { codec: "gzip", block_len: 4096, options: &[], jobs: 2 }
    }
}

/// Packs a tree into `folder/name.sqfs`.
#[track_caller]
pub fn squash(tree: &Tree, contents: &dyn Contents, wish: Wish<'_>, folder: &Path, name: &str) -> PathBuf {
    squash_report(tree, contents, wish, folder, name).0
}

/// The same, with the report.
#[track_caller]
pub fn squash_report(
    tree: &Tree,
    contents: &dyn Contents,
    wish: Wish<'_>,
    folder: &Path,
    name: &str,
) -> (PathBuf, PackReport) {
    let path = folder.join(format!("{name}.sqfs"));
    let report = packed("squashfs", tree, contents, wish, &path);
    (path, report)
}

/// Packs a tree into `folder/name.erofs`.
#[track_caller]
pub fn erofs(tree: &Tree, contents: &dyn Contents, wish: Wish<'_>, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}.erofs"));
    packed("erofs", tree, contents, wish, &path);
    path
}

/// Packs a tree into `folder/name.cramfs`.
#[track_caller]
pub fn cramfs(tree: &Tree, contents: &dyn Contents, wish: Wish<'_>, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}.cramfs"));
    packed("cramfs", tree, contents, wish, &path);
    path
}

#[track_caller]
fn packed(format: &str, tree: &Tree, contents: &dyn Contents, wish: Wish<'_>, path: &Path) -> PackReport {
    let options = wish.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = PackSettings {
        codec: Some(wish.codec.into()),
        block_size: Some(wish.block_len),
        made_at: 1_700_000_000,
        options,
        ..PackSettings::default()
    };
    let format = packfs_formats::by_name(format).unwrap();
    let packer = format.packer(&settings).unwrap_or_else(|e| panic!("{e}"));
    let pack_options = PackOptions { jobs: wish.jobs, sync: false, ..PackOptions::default() };
    let report = pack(tree, contents, &*packer, path, &pack_options, &Silent)
        .unwrap_or_else(|e| panic!("{} {:?}: {e}", wish.codec, wish.options));
    assert_eq!(report.image_len, std::fs::metadata(path).unwrap().len());
    report
}

/// Opens an image in the format that knows it.
pub fn engine(image: Arc<dyn Image>, options: ReadOptions) -> Result<Arc<ReadEngine>> {
    let format = packfs_formats::probe(&*image)?;
    let format = format.ok_or_else(|| Error::unsupported("image", "no format knows it"))?;
    let volume: Arc<dyn Volume> = format.open(Arc::clone(&image))?.into();
    Ok(ReadEngine::new(image, volume, options))
}

/// Opens an image.
#[track_caller]
pub fn open_image(path: &Path) -> Arc<ReadEngine> {
    let image = Arc::new(FileImage::open(path).unwrap());
    engine(image, ReadOptions::default()).unwrap_or_else(|e| panic!("{path:?}: {e}"))
}

/// Everything in an image, and what its check finds worse than a note.
#[track_caller]
pub fn read_image(path: &Path) -> (Snapshot, Vec<Finding>) {
    let engine = open_image(path);
    let loaded = engine.load_tree(&Silent).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let mut findings = Vec::new();
    engine.volume().check(&mut |finding| findings.push(finding)).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    findings.retain(|finding| finding.severity > Severity::Note);
    (snapshot_tree(&loaded.tree, &*engine), findings)
}

/// Has 7-Zip extract an image, and compares names, types, the owner's permissions, contents and
/// targets with `expected`. Skipped where it is missing.
#[track_caller]
pub fn seven_zip_agrees(image: &Path, expected: &Snapshot, what: &str) {
    let Some(tool) = peer("7zz") else { return };
    let to = tempfile::tempdir().unwrap();
    let mut option = std::ffi::OsString::from("-o");
    option.push(to.path());
    // -snl: symlinks as they are.
    tool.run(&[&"x", &"-y", &"-snl", &option, &image]);
    // Set-id bits and what the mask of new files takes are not restored, and times only of some
    // formats.
    let restored = |snapshot: &Snapshot| {
        let mut snapshot = snapshot.clone();
        for row in snapshot.0.values_mut() {
            row.mtime = Timestamp::default();
            row.mode &= 0o700;
        }
        snapshot
    };
    let compare =
        Compare { root: false, owners: false, xattrs: false, hard_links: false, ..Compare::default() };
    restored(expected).assert_same(&restored(&snapshot_dir(to.path())), compare, &format!("7-Zip of {what}"));
}

/// Runs a program that succeeds.
#[track_caller]
pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A tree that `cargo xtask corpus` made.
pub fn corpus(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpora").join(name);
    path.is_dir().then_some(path)
}
