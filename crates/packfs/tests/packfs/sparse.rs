//! Files that are holes but for a few bytes cost what their data costs, whatever their length: what
//! is read, how often a file is opened and what is written are counted.

use crate::common::engine;
use packfs_core::{
    ContentId, ContentReader, Contents, FileImage, ImagePath, Limits, Meta, NodeKind, Result, Silent, Tree,
    TreeBuilder, Xattrs,
};
use packfs_format::PackSettings;
use packfs_pack::{PackOptions, pack};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_testkit::{Mount, Random, SparseFiles, is_root, skip};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TIB: u64 = 1 << 40;
const GIB: u64 = 1 << 30;

/// Counts what is asked of a source.
#[derive(Default)]
struct Counted {
    files: SparseFiles,
    opened: AtomicU64,
    read_len: AtomicU64,
}

struct CountedReader<'a>(Box<dyn ContentReader + 'a>, &'a Counted);

impl Contents for Counted {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        self.opened.fetch_add(1, Relaxed);
        Ok(Box::new(CountedReader(self.files.open(id)?, self)))
    }
}

impl ContentReader for CountedReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.1.read_len.fetch_add(buf.len() as u64, Relaxed);
        self.0.read_exact_at(offset, buf)
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        self.0.next_data(offset)
    }
}

/// A file, and what of it is not zero.
struct Sparse {
    len: u64,
    islands: Vec<(u64, Vec<u8>)>,
}

impl Sparse {
    fn hole(len: u64) -> Self {
        Sparse { len, islands: Vec::new() }
    }

    /// One island near each end, and one amid.
    fn islands(len: u64) -> Self {
        let mut random = Random::new(len);
        let starts = [12345, len / 2 - 50, len - 7001];
        Sparse { len, islands: starts.map(|start| (start, random.noise(5000))).into() }
    }
}

fn tree(files: &[Sparse]) -> (Tree, Counted) {
    let mut builder = TreeBuilder::new(Meta::default());
    let mut contents = Counted::default();
    for (index, file) in files.iter().enumerate() {
        let content = contents.files.push(file.len, file.islands.clone());
        let path = ImagePath::parse(index.to_string().as_bytes()).unwrap();
        let kind = NodeKind::File { len: file.len, content };
        builder.add(&path, kind, Meta { mode: 0o644, ..Meta::default() }, Xattrs::new()).unwrap();
    }
    (builder.finish().unwrap(), contents)
}

fn packed(
    (format, codec, options): (&str, &str, &[(&str, &str)]),
    (tree, contents): (&Tree, &dyn Contents),
    folder: &Path,
) -> Result<PathBuf> {
    let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = PackSettings { codec: Some(codec.into()), options, ..PackSettings::default() };
    let format = packfs_formats::by_name(format).unwrap();
    let path = folder.join("image");
    let options = PackOptions { jobs: 2, sync: false, ..PackOptions::default() };
    pack(tree, contents, &*format.packer(&settings)?, &path, &options, &Silent)?;
    Ok(path)
}

/// Opens an image without a limit of its length.
fn engine_of(path: &Path) -> Arc<ReadEngine> {
    let options = ReadOptions { limits: Limits::none(), ..ReadOptions::default() };
    engine(Arc::new(FileImage::open(path).unwrap()), options).unwrap()
}

/// Compares islands and zeros around them, read by `read` of a file's number.
fn compare(files: &[Sparse], read: &dyn Fn(usize, u64, &mut [u8]), what: &str) {
    for (index, file) in files.iter().enumerate() {
        for (start, bytes) in &file.islands {
            let from = start - 5000;
            let mut wanted = vec![0; (start + bytes.len() as u64 + 2001 - from) as usize];
            wanted[5000..][..bytes.len()].copy_from_slice(bytes);
            let mut found = vec![0xff; wanted.len()];
            read(index, from, &mut found);
            assert!(found == wanted, "{what}: file {index} at {start}");
        }
        for from in [0, file.len / 3, file.len - 2000] {
            let mut found = [0xff; 2000];
            read(index, from, &mut found);
            assert!(found == [0; 2000], "{what}: file {index} at {from}");
        }
    }
}

/// Packs files and holds what it took against `taken_max`, the bytes that the image may take on the
/// disk; packfs and, where `mounted` says as which type, the kernel find every island.
#[track_caller]
fn costs_nothing(
    how: (&str, &str, &[(&str, &str)]),
    files: &[Sparse],
    taken_max: u64,
    mounted: Option<&str>,
) {
    let what = format!("{how:?}");
    let (tree, contents) = tree(files);
    let folder = tempfile::tempdir().unwrap();
    let image = packed(how, (&tree, &contents), folder.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (opened, read_len) = (contents.opened.load(Relaxed), contents.read_len.load(Relaxed));
    assert!(opened <= 30 * files.len() as u64, "{what}: files were opened {opened} times");
    assert!(read_len <= (64 << 20) * files.len() as u64, "{what}: {read_len} bytes were read");
    let taken = image.metadata().unwrap().blocks() * 512;
    assert!(taken <= taken_max, "{what}: the image takes {taken} bytes");

    let engine = engine_of(&image);
    let loaded = engine.load_tree(&Silent).unwrap();
    let read = |index: usize, offset: u64, buf: &mut [u8]| {
        let node = loaded.tree.find(&ImagePath::parse(index.to_string().as_bytes()).unwrap()).unwrap();
        let NodeKind::File { len, content } = loaded.tree.node(node).kind else { panic!("{what}") };
        assert_eq!(len, files[index].len, "{what}");
        engine.open(content).unwrap().read_exact_at(offset, buf).unwrap();
    };
    compare(files, &read, &what);
    let Some(driver) = mounted else { return };
    if !is_root() {
        return skip("mounting needs root");
    }
    let mount = Mount::new(&image, driver).unwrap_or_else(|e| panic!("{what}: {e}"));
    let read = |index: usize, offset: u64, buf: &mut [u8]| {
        let file = File::open(mount.path().join(index.to_string())).unwrap();
        assert_eq!(file.metadata().unwrap().len(), files[index].len, "{what}");
        file.read_exact_at(buf, offset).unwrap();
    };
    compare(files, &read, &what);
}

#[test]
fn a_tebibyte_of_hole_is_a_list_of_blocks_in_squashfs() {
    let files = [Sparse::islands(TIB), Sparse::hole(TIB), Sparse::hole(TIB - 1)];
    costs_nothing(("squashfs", "gzip", &[]), &files, 2 << 20, Some("squashfs"));
    costs_nothing(("squashfs", "none", &[("fragments", "off")]), &files, 110 << 20, None);
    costs_nothing(("squashfs-legacy", "gzip", &[]), &files[1..], 2 << 20, None);
}

#[test]
fn blocks_of_zeros_are_compressed_once_where_there_are_no_holes() {
    let files = [Sparse::islands(4 * GIB)];
    costs_nothing(("squashfs", "gzip", &[("holes", "off")]), &files, 40 << 20, Some("squashfs"));
    costs_nothing(("squashfs-legacy", "gzip", &[("version", "3.0")]), &files, 40 << 20, None);
}

#[test]
fn files_of_holes_are_chunks_in_erofs_with_every_codec() {
    let files = [Sparse::islands(TIB), Sparse::hole(TIB), Sparse::hole((8 << 60) - 4096)];
    for options in [
        &[][..],
        &[("fragments", "all")],
        &[("fragments", "off"), ("inline-tails", "on")],
        &[("dedupe", "ranges")],
        &[("48bit", "on")],
        &[("byte-aligned", "on")],
        &[("rule", "0=none")],
        &[("rule", "/0=none"), ("chunk-indexes", "on")],
    ] {
        costs_nothing(("erofs", "lz4", options), &files, 32 << 20, Some("erofs"));
    }
    costs_nothing(("erofs", "none", &[]), &files, 32 << 20, Some("erofs"));
}

#[test]
fn files_that_are_half_holes_stay_compressed_in_erofs() {
    let mut random = Random::new(1);
    let islands = (0..40).map(|index| (index * (8 << 20), random.text(1 << 20))).collect();
    let files = [Sparse { len: 1 << 30, islands }];
    let (tree, contents) = tree(&files);
    let folder = tempfile::tempdir().unwrap();
    let image = packed(("erofs", "lz4", &[]), (&tree, &contents), folder.path()).unwrap();
    assert!(image.metadata().unwrap().len() < 36 << 20, "{}", image.metadata().unwrap().len());
}

#[test]
fn holes_that_old_kernels_do_not_know_are_holes_of_the_image() {
    let files = [Sparse::islands(64 * GIB)];
    costs_nothing(("erofs", "none", &[("kernel", "5.10")]), &files, 32 << 20, Some("erofs"));
    let error = {
        let (tree, contents) = tree(&[Sparse::hole(8 << 59)]);
        let folder = tempfile::tempdir().unwrap();
        packed(("erofs", "none", &[("kernel", "5.10")]), (&tree, &contents), folder.path()).unwrap_err()
    };
    assert!(error.to_string().starts_with("cannot store \"0\" without holes"), "{error}");
}

#[test]
fn refuses_a_file_that_no_map_lists_before_anything_is_read() {
    let (tree, contents) = tree(&[Sparse::islands(4 << 60)]);
    let folder = tempfile::tempdir().unwrap();
    for codec in ["lz4", "none"] {
        let error = packed(("erofs", codec, &[]), (&tree, &contents), folder.path()).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot store \"0\": it has 4611686018427387904 bytes"),
            "{error}"
        );
        assert_eq!(contents.read_len.load(Relaxed), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn holes_are_pointers_or_holes_of_the_image_in_iso9660() {
    let files = [Sparse::islands(32 * GIB), Sparse::hole(32 * GIB)];
    costs_nothing(("iso9660", "gzip", &[]), &files, 16 << 20, None);
    costs_nothing(("iso9660", "none", &[]), &files, 16 << 20, None);
}

#[test]
fn a_cloop_of_zeros_is_made_and_checked_without_coding_each_block() {
    let mut builder = TreeBuilder::new(Meta::default());
    let mut contents = Counted::default();
    let (len, meta) = (16 * GIB, Meta { mode: 0o444, ..Meta::default() });
    let content = contents.files.push(len, vec![(5 * GIB + 77, b"island".to_vec())]);
    let path = ImagePath::parse(b"disk.img").unwrap();
    builder.add(&path, NodeKind::File { len, content }, meta, Xattrs::new()).unwrap();
    let tree = builder.finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let image = packed(("cloop", "gzip", &[]), (&tree, &contents), folder.path()).unwrap();
    let (opened, read_len) = (contents.opened.load(Relaxed), contents.read_len.load(Relaxed));
    assert!(opened <= 30 && read_len <= 4 << 20, "{opened} times, {read_len} bytes");
    assert!(image.metadata().unwrap().len() < 32 << 20);

    let engine = engine_of(&image);
    let loaded = engine.load_tree(&Silent).unwrap();
    let report =
        packfs_check::content(&engine, &loaded, &Silent, &mut |finding| panic!("{finding:?}")).unwrap();
    assert_eq!(report.file_bytes, len);
    let decodes = engine.counters().decodes;
    assert!(decodes < 1000, "{decodes} blocks were decoded");
    let NodeKind::File { content, .. } = loaded.tree.node(loaded.tree.find(&path).unwrap()).kind else {
        panic!()
    };
    let mut found = [0xff; 10];
    engine.open(content).unwrap().read_exact_at(5 * GIB + 75, &mut found).unwrap();
    assert_eq!(&found, b"\0\0island\0\0");
}

#[test]
fn sums_of_lengths_saturate() {
    let (tree, contents) = tree(&[0, 1, 2, 3].map(|index| Sparse::hole((8 << 60) - 4096 * (1 + index / 2))));
    assert_eq!(tree.bytes_total(), u64::MAX);
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &[("dedupe", "off")], &[("byte-aligned", "on")]] {
        let image = packed(("erofs", "lz4", options), (&tree, &contents), folder.path()).unwrap();
        let engine = engine_of(&image);
        let loaded = engine.load_tree(&Silent).unwrap();
        let fail = &mut |finding| panic!("{finding:?}");
        assert_eq!(packfs_check::content(&engine, &loaded, &Silent, fail).unwrap().file_bytes, u64::MAX);
    }
    assert!(contents.read_len.load(Relaxed) < 64 << 10);
}
