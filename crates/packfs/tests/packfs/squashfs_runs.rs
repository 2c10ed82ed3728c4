//! Files whose blocks are a run of another's, and tails that another's block begins with: stored
//! once, read by all programs, the same bytes for any number of threads.

use crate::common::{Wish, read_image, squash_report};
use packfs::{MadeAt, Pack};
use packfs_core::{ContentId, ContentReader, Contents, Error, Held, Result, Silent, Tree};
use packfs_format::PackSettings;
use packfs_pack::PackOptions;
use packfs_testkit::{Compare, Mount, Random, is_root, peer, snapshot_dir, snapshot_tree, tree_of};
use std::path::Path;

const BLOCK: usize = 16 << 10;

/// Files, by name, and how many of them store no blocks.
fn files() -> (Vec<(&'static str, Vec<u8>)>, u64) {
    let mut random = Random::new(3);
    let mut disk = random.noise(12 * BLOCK);
    disk[3 * BLOCK..5 * BLOCK].fill(0);
    let other = random.text(5 * BLOCK);
    let log = random.text(6 * BLOCK + 4321);
    let mut near = disk.clone();
    near[7 * BLOCK + 1] ^= 1;
    let rows = vec![
        ("a-beginning", disk[..2 * BLOCK].to_vec()),
        ("b-middle", disk[4 * BLOCK..7 * BLOCK].to_vec()),
        ("c-end", other[3 * BLOCK..].to_vec()),
        ("disk", disk.clone()),
        ("log", log.clone()),
        ("log-cut", log[..4 * BLOCK + 777].to_vec()),
        ("log-cut-more", log[..2 * BLOCK + 1].to_vec()),
        ("log-end", log[5 * BLOCK..].to_vec()),
        ("near", near[6 * BLOCK..].to_vec()),
        ("other", other.clone()),
        ("two", [disk.clone(), other].concat()),
        ("tail-again", log[..5000].to_vec()),
        ("tail-first", log[..5000].to_vec()),
        ("tail-last", log[6 * BLOCK..6 * BLOCK + 4000].to_vec()),
        ("tail-near", [&log[3 * BLOCK..3 * BLOCK + 4000], b"not"].concat()),
        ("tail-noise", disk[9 * BLOCK..10 * BLOCK - 1].to_vec()),
        ("tail-short", log[..500].to_vec()),
        ("unaligned", log[100..100 + 3 * BLOCK].to_vec()),
    ];
    // Among them `disk` and `other`, which are parts of `two`.
    (rows, 8)
}

/// All readers read this image.
#[track_caller]
fn all_read(image: &Path, tree: &Tree, contents: &Held, what: &str) {
    let wanted = snapshot_tree(tree, contents);
    let (found, findings) = read_image(image);
    assert!(findings.is_empty(), "{what}: {findings:?}");
    wanted.assert_same(&found, Compare::default(), what);
    if !is_root() {
        return;
    }
    let mounted = snapshot_dir(&Mount::new(image, "squashfs").unwrap().path());
    wanted.assert_same(&mounted, Compare::default(), &format!("{what}: kernel"));
    let folder = tempfile::tempdir().unwrap();
    let bytes_only = Compare { root: false, ..Compare::default() };
    if let Some(unsquashfs) = peer("unsquashfs") {
        let to = folder.path().join("unsquashfs");
        unsquashfs.run(&[&"-d", &to, &"-no-progress", &"-quiet", &image]);
        wanted.assert_same(&snapshot_dir(&to), bytes_only, &format!("{what}: unsquashfs"));
    }
    if let Some(rdsquashfs) = peer("rdsquashfs") {
        let to = folder.path().join("rdsquashfs");
        std::fs::create_dir(&to).unwrap();
        rdsquashfs.run(&[&"-q", &"-T", &"-C", &"-O", &"-u", &"/", &"-p", &to, &image]);
        wanted.assert_same(&snapshot_dir(&to), bytes_only, &format!("{what}: rdsquashfs"));
    }
    if let Some(squashfuse) = peer("squashfuse") {
        let mount = Mount::fuse(&squashfuse, image).unwrap();
        wanted.assert_same(&snapshot_dir(&mount.path()), bytes_only, &format!("{what}: squashfuse"));
    }
    if let Some(sqfs2tar) = peer("sqfs2tar") {
        let tar = folder.path().join("image.tar");
        let to = folder.path().join("sqfs2tar");
        std::fs::create_dir(&to).unwrap();
        let made = sqfs2tar.command(&[&image]).stdout(std::fs::File::create(&tar).unwrap()).status();
        assert!(made.unwrap().success(), "{what}: sqfs2tar");
        let mut unpack = std::process::Command::new("tar");
        assert!(unpack.arg("-xf").arg(&tar).arg("-C").arg(&to).status().unwrap().success(), "{what}");
        wanted.assert_same(&snapshot_dir(&to), bytes_only, &format!("{what}: sqfs2tar"));
    }
}

#[test]
fn runs_are_stored_once_and_everybody_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, in_others) = files();
    let (tree, contents) = tree_of(rows);
    for (codec, fragments, found) in [
        ("zstd:3", "on", in_others),
        ("gzip:1", "always", in_others),
        ("none", "on", in_others),
        ("lz4", "off", 6),
    ] {
        let options = [("fragments", fragments)];
        let wish = Wish { codec, block_len: BLOCK as u32, options: &options, ..Wish::default() };
        let (image, report) = squash_report(&tree, &contents, wish, folder.path(), "share");
        let what = format!("{codec} fragments={fragments}");
        assert_eq!(report.run_files, found, "{what}: {report:?}");
        // The cut log's, the first and its like as one, the last if that is a block of the log, and
        // noise.
        let lent = match fragments {
            "on" => (4, 777 + 5000 + 4000 + BLOCK as u64 - 1),
            "always" => (3, 777 + 5000 + BLOCK as u64 - 1),
            _ => (0, 0),
        };
        assert_eq!((report.duplicate_tails, report.duplicate_tail_bytes), lent, "{what}: {report:?}");
        all_read(&image, &tree, &contents, &what);

        let options = [("fragments", fragments), ("duplicates", "files")];
        let apart = Wish { options: &options, ..wish };
        let (_, whole) = squash_report(&tree, &contents, apart, folder.path(), "files");
        assert_eq!((whole.run_files, whole.run_bytes), (0, 0));
        // What is noise for certain: ten blocks of `disk` that are no zeros, and four in parts of
        // it.
        assert!(report.data_len + 14 * BLOCK as u64 <= whole.data_len, "{what}: {report:?} {whole:?}");
    }
}

#[test]
fn runs_are_the_same_for_1_2_and_16_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, _) = files();
    let (tree, contents) = tree_of(rows);
    for options in [&[][..], &[("fragments", "always")], &[("fragments", "off"), ("holes", "off")]] {
        let image = |jobs| {
            let wish = Wish { codec: "zstd:1", block_len: BLOCK as u32, options, jobs };
            std::fs::read(squash_report(&tree, &contents, wish, folder.path(), "image").0).unwrap()
        };
        let one = image(1);
        assert!(one == image(2), "{options:?}: 1 and 2 threads differ");
        assert!(one == image(16), "{options:?}: 1 and 16 threads differ");
    }
}

#[test]
fn runs_stay_where_an_image_is_made_on_another() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let (rows, in_others) = files();
    for (name, bytes) in &rows {
        std::fs::write(source.join(name), bytes).unwrap();
    }
    let path = |name: &str| folder.path().join(name);
    let wished = |pack: Pack| {
        let pack = pack.format("squashfs").codec("zstd:3").block_size(BLOCK as u32);
        pack.made_at(MadeAt::Seconds(1_700_000_000)).jobs(2).sync(false)
    };
    let old = wished(packfs::pack(&source, path("old"))).run().unwrap();
    assert_eq!(old.run_files, in_others);
    let again = packfs::repack(path("old"), path("again")).sync(false).run().unwrap();
    assert_eq!((again.run_files, again.run_bytes), (old.run_files, old.run_bytes));
    assert_eq!(
        (again.duplicate_tails, again.duplicate_tail_bytes),
        (old.duplicate_tails, old.duplicate_tail_bytes)
    );
    assert!(again.image_len <= old.image_len, "{again:?}");

    let mut log = std::fs::read(source.join("log")).unwrap();
    log.extend_from_slice(&Random::new(8).text(3 * BLOCK));
    std::fs::write(source.join("log"), log).unwrap();
    let based = wished(packfs::pack(&source, path("based"))).base(path("old")).run().unwrap();
    let full = wished(packfs::pack(&source, path("full"))).run().unwrap();
    assert_eq!((based.run_files, based.run_bytes), (full.run_files, full.run_bytes));
    assert_eq!(
        (based.duplicate_tails, based.duplicate_tail_bytes),
        (full.duplicate_tails, full.duplicate_tail_bytes)
    );
    assert!(based.base_blocks > 10, "{based:?}");
    let (found, findings) = read_image(&path("based"));
    assert!(findings.is_empty(), "{findings:?}");
    read_image(&path("full")).0.assert_same(&found, Compare::default(), "based");
}

/// Contents of which one file cannot be read any more by who wants a whole block.
struct Vanishing<'a>(&'a Held, ContentId);

struct VanishingReader<'a>(Box<dyn ContentReader + 'a>, bool);

impl Contents for Vanishing<'_> {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        Ok(Box::new(VanishingReader(self.0.open(id)?, id == self.1)))
    }
}

impl ContentReader for VanishingReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.1 && buf.len() == SMALL_BLOCK {
            Err(Error::failed("the file is gone"))
        } else {
            self.0.read_exact_at(offset, buf)
        }
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<std::ops::Range<u64>>> {
        self.0.next_data(offset)
    }
}

/// No comparison reads so much.
const SMALL_BLOCK: usize = 8 << 10;

#[test]
fn what_lies_in_a_file_that_cannot_be_read_is_empty_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(4);
    let host = random.text(5 * SMALL_BLOCK);
    let rows = [
        ("host", host.clone()),
        ("other", random.text(3 * SMALL_BLOCK + 100)),
        ("run", host[SMALL_BLOCK..3 * SMALL_BLOCK + 700].to_vec()),
        ("tail", host[SMALL_BLOCK..SMALL_BLOCK + 1000].to_vec()),
    ];
    let (tree, contents) = tree_of(rows);
    let settings = PackSettings {
        codec: Some("zstd:1".into()),
        block_size: Some(SMALL_BLOCK as u32),
        made_at: 1,
        ..PackSettings::default()
    };
    let packer = packfs_formats::by_name("squashfs").unwrap().packer(&settings).unwrap();
    let path = folder.path().join("image");
    let pack = |keep_going| {
        let options = PackOptions { jobs: 2, sync: false, keep_going, ..PackOptions::default() };
        let contents = Vanishing(&contents, ContentId(0));
        packfs_pack::pack(&tree, &contents, &*packer, &path, &options, &Silent)
    };
    assert!(pack(false).unwrap_err().to_string().contains("the file is gone"));
    let report = pack(true).unwrap();
    assert_eq!(report.skipped.len(), 1);
    let (found, findings) = read_image(&path);
    assert!(findings.is_empty(), "{findings:?}");
    let lens = ["host", "other", "run", "tail"].map(|name| found.0[name.as_bytes()].len);
    assert_eq!(lens, [0, 3 * SMALL_BLOCK as u64 + 100, 0, 0]);
}
