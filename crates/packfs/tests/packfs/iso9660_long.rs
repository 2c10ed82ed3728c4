//! Files of 4 GiB and more in ISO 9660: several extents, or zisofs 2, reported as one file by all
//! reads.
//!
//! Files are holes but for a few bytes where extents begin and end. Images with several extents are
//! laid out around them, so that nothing of that length is written.

use crate::common::open_image;
use packfs_core::{ImagePath, Meta, NodeKind, Silent, Tree, TreeBuilder, Xattrs};
use packfs_format::{AnyLayout, BlockForm, FilePlace, PackFormat, PackSettings, Placed};
use packfs_pack::{PackOptions, pack};
use packfs_read::ReadEngine;
use packfs_source::{Shape, TarInput, load_tar};
use packfs_testkit::{Compare, OldKernel, Random, SparseFiles, peer, snapshot_tree};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Most bytes of one extent: whole sectors below 4 GiB.
const EXTENT_LEN: u64 = (1 << 32) - 2048;

/// A file, and the bytes in it that are not zero.
struct Long {
    name: &'static str,
    len: u64,
    runs: Vec<(u64, Vec<u8>)>,
}

impl Long {
    fn new(name: &'static str, len: u64) -> Self {
        let mut random = Random::new(len);
        let ends = (0..=len / EXTENT_LEN).map(|index| index * EXTENT_LEN).chain([len]);
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for end in ends {
            let behind = runs.last().map_or(0, |(start, bytes)| start + bytes.len() as u64);
            let (start, until) = (end.saturating_sub(60).max(behind), (end + 60).min(len));
            if start < until {
                runs.push((start, random.noise((until - start) as usize)));
            }
        }
        Long { name, len, runs }
    }
}

/// One extent that is full, one byte more, and three extents; and what comes behind.
fn files() -> Vec<Long> {
    let long =
        [("a-full", EXTENT_LEN), ("b-over", EXTENT_LEN + 1), ("c-three", (9 << 30) + 1), ("d-small", 6)];
    long.map(|(name, len)| Long::new(name, len)).into()
}

fn tree(files: &[Long]) -> (Tree, SparseFiles) {
    let mut builder = TreeBuilder::new(Meta::default());
    let mut contents = SparseFiles::default();
    for file in files {
        let content = contents.push(file.len, file.runs.clone());
        let path = ImagePath::parse(file.name.as_bytes()).unwrap();
        let kind = NodeKind::File { len: file.len, content };
        builder.add(&path, kind, Meta { mode: 0o644, ..Meta::default() }, Xattrs::new()).unwrap();
    }
    (builder.finish().unwrap(), contents)
}

fn packer(codec: &str, options: &[(&str, &str)]) -> Box<dyn PackFormat> {
    let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = PackSettings { codec: Some(codec.into()), options, ..PackSettings::default() };
    packfs_formats::by_name("iso9660").unwrap().packer(&settings).unwrap()
}

/// An image of stored files whose holes are holes of the image's own file.
fn laid_out(files: &[Long], folder: &Path) -> PathBuf {
    let (tree, _) = tree(files);
    let packer = packer("none", &[("joliet", "on")]);
    let AnyLayout::Blocks(layout) = packer.layout() else { panic!("iso9660 stores blocks") };
    let plan = layout.plan(&tree, &[]).unwrap();
    let path = folder.join("long.iso");
    let image = File::create(&path).unwrap();
    let mut placed = Placed { files: vec![FilePlace::default(); tree.nodes().count()], ..Placed::default() };
    placed.data_end = plan.data_start;
    for (job, file) in plan.files.iter().zip(files) {
        let start = placed.data_end.next_multiple_of(plan.data.file_align.into());
        placed.files[job.node.index()] = FilePlace { start, form: BlockForm::Flat, ..FilePlace::default() };
        placed.data_end = start + file.len;
        for (at, bytes) in &file.runs {
            image.write_all_at(bytes, start + at).unwrap();
        }
    }
    let mut end = 0;
    let mut put = |section: packfs_format::Section| {
        end = end.max(section.offset + section.bytes.len() as u64);
        image.write_all_at(&section.bytes, section.offset).unwrap();
        Ok(())
    };
    layout.lay_out(&tree, &plan, &placed, &mut put).unwrap();
    image.set_len(end.next_multiple_of(packer.padding())).unwrap();
    path
}

/// Compares what is known of a file with what an image says: its length, and bytes on both sides of
/// each border.
#[track_caller]
fn compare(engine: &ReadEngine, files: &[Long]) {
    let loaded = engine.load_tree(&Silent).unwrap();
    assert_eq!(loaded.tree.nodes().count(), files.len() + 1);
    for file in files {
        let node = loaded.tree.find(&ImagePath::parse(file.name.as_bytes()).unwrap()).unwrap();
        let NodeKind::File { len, content } = loaded.tree.node(node).kind else { panic!("{}", file.name) };
        assert_eq!(len, file.len, "{}", file.name);
        let mut reader = packfs_core::Contents::open(engine, content).unwrap();
        for (start, bytes) in &file.runs {
            // With some of the zeros around.
            let (from, until) = (start.saturating_sub(5000), (start + bytes.len() as u64 + 5000).min(len));
            let mut wanted = vec![0; (until - from) as usize];
            wanted[(start - from) as usize..][..bytes.len()].copy_from_slice(bytes);
            let mut found = vec![0xff; wanted.len()];
            reader.read_exact_at(from, &mut found).unwrap();
            assert!(found == wanted, "{} at {start}", file.name);
        }
        assert!(reader.read_exact_at(len, &mut [0]).is_err(), "{}", file.name);
    }
}

#[test]
fn files_of_several_extents_are_one_file() {
    let (files, folder) = (files(), tempfile::tempdir().unwrap());
    let image = laid_out(&files, folder.path());
    let engine = open_image(&image);
    compare(&engine, &files);
    let mut findings = Vec::new();
    engine.volume().check(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
}

#[test]
fn others_take_several_extents_for_one_file() {
    // Some of them read all that they pass, so there is but one long file.
    let files = [Long::new("over", EXTENT_LEN + 1), Long::new("small", 6)];
    let folder = tempfile::tempdir().unwrap();
    let image = laid_out(&files, folder.path());
    let text = |tool: &str, arguments: &[&dyn AsRef<std::ffi::OsStr>]| {
        Some(String::from_utf8_lossy(&peer(tool)?.run(arguments).stdout).into_owned())
    };
    let lists = [
        ("bsdtar", text("bsdtar", &[&"-tvf", &image])),
        ("7zz", text("7zz", &[&"l", &"-tiso", &image])),
        ("xorriso", text("xorriso", &[&"-indev", &image, &"-find", &"/", &"-exec", &"lsdl"])),
    ];
    for (tool, list) in lists.into_iter().filter_map(|(tool, list)| Some((tool, list?))) {
        for file in &files {
            let lines: Vec<&str> = list.lines().filter(|line| line.contains(file.name)).collect();
            let len = file.len.to_string();
            let has_len = |line: &&str| line.split_whitespace().any(|word| word == len);
            assert!(lines.len() == 1 && lines.iter().all(has_len), "{tool} of {}: {list}", file.name);
        }
    }
    // The same bytes, from there on where the second extent begins.
    let Some(xorriso) = peer("xorriso") else { return };
    let (cut, file) = (folder.path().join("cut"), &files[0]);
    let (start, bytes) = &file.runs[1];
    assert_eq!(*start, EXTENT_LEN - 60);
    let (at, len) = (start.to_string(), bytes.len().to_string());
    let name = format!("/{}", file.name);
    xorriso.run(&[&"-osirrox", &"on", &"-indev", &image, &"-extract_cut", &name, &at, &len, &cut]);
    assert!(std::fs::read(&cut).unwrap() == *bytes);
}

#[test]
fn zisofs_2_holds_long_files() {
    let (files, folder) = (files(), tempfile::tempdir().unwrap());
    let (tree, contents) = tree(&files);
    let image = folder.path().join("long.iso");
    let options = PackOptions { jobs: 2, sync: false, ..PackOptions::default() };
    let packer = packer("gzip:1", &[]);
    pack(&tree, &contents, &*packer, &image, &options, &Silent).unwrap();
    assert!(std::fs::metadata(&image).unwrap().len() < 4 << 20);
    compare(&open_image(&image), &files);
    let Some(xorriso) = peer("xorriso") else { return };
    let list = xorriso.run(&[&"-indev", &image, &"-find", &"/", &"-exec", &"lsdl"]).stdout;
    let list = String::from_utf8_lossy(&list).into_owned();
    for file in &files {
        assert!(list.contains(&file.len.to_string()), "{}: {list}", file.name);
    }
}

/// Copies 4.5 GiB in an emulated machine, which takes minutes.
#[test]
#[ignore = "writes 4.5 GiB twice; cargo test -p packfs iso9660_long:: -- --ignored"]
fn a_kernel_takes_several_extents_for_one_file() {
    let Some(kernel) = OldKernel::find_with_module("6.1", "isofs") else { return };
    let (files, folder) = ([Long::new("long", (9 << 29) + 1)], tempfile::tempdir().unwrap());
    let image = laid_out(&files, folder.path());
    let tars = kernel.tars_in(folder.path(), "iso9660", &[image]);
    let copied = load_tar(TarInput::File(tars[0].clone()), &Shape::default(), &Silent).unwrap();
    let (tree, contents) = tree(&files);
    let compare = Compare { xattrs: false, dir_links: false, ..Compare::default() };
    let copied = snapshot_tree(&copied.tree, &*copied.contents);
    snapshot_tree(&tree, &contents).assert_same(&copied, compare, "a file of two extents");
}
