//! The three ways to read agree with what a made-up volume says, for any number of workers, and survive damage.

use packfs_codec::{CodecSettings, encoder};
use packfs_core::codec::Algorithm;
use packfs_core::{
    BlockRef, DirCursor, DirEntry, Error, ErrorKind, Extent, ExtentFrom, Facts, FileType, Finding, Image,
    Inode, InodeId, InodeKind, Meta, Progress, Result, Silent, SpaceOwner, Volume, Xattrs,
};
use packfs_read::{Limits, Piece, PieceSink, ReadEngine, ReadOptions, Wanted};
use packfs_testkit::Random;
use std::io::{Read, Seek, SeekFrom};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

struct Bytes(Vec<u8>);

impl Image for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn name(&self) -> String {
        "made-up image".into()
    }
}

/// Files by extents, directories by entries: inode `n` is the `n`th of either.
#[derive(Default)]
struct MadeUp {
    dirs: Vec<Vec<DirEntry>>,
    files: Vec<Vec<Extent>>,
}

const FILE: u64 = 1 << 32;

impl MadeUp {
    fn len(&self, id: InodeId) -> u64 {
        self.files[(id.0 - FILE) as usize].iter().map(|extent| extent.len).sum()
    }
}

impl Volume for MadeUp {
    fn format_name(&self) -> &'static str {
        "made-up"
    }

    fn root(&self) -> InodeId {
        InodeId(0)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let kind = if id.0 < FILE { InodeKind::Directory } else { InodeKind::File { len: self.len(id) } };
        Ok(Inode { kind, meta: Meta::default(), links: 1, number: id.0, has_xattrs: false })
    }

    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        Ok(self.dirs[dir.0 as usize].iter().find(|entry| entry.name == name).map(|entry| entry.id))
    }

    fn read_dir(
        &self,
        dir: InodeId,
        _: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        for entry in &self.dirs[dir.0 as usize] {
            if visit(entry.clone(), DirCursor(0)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_link(&self, _: InodeId) -> Result<Vec<u8>> {
        Err(Error::failed("no links here"))
    }

    fn xattrs(&self, _: InodeId) -> Result<Xattrs> {
        Ok(Xattrs::new())
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        for extent in &self.files[(id.0 - FILE) as usize] {
            let (start, end) = (extent.offset.max(range.start), (extent.offset + extent.len).min(range.end));
            if start >= end {
                continue;
            }
            let skipped = start - extent.offset;
            let from = match extent.from {
                ExtentFrom::Hole => ExtentFrom::Hole,
                ExtentFrom::Stored(at) => ExtentFrom::Stored(at + skipped),
                ExtentFrom::Block { block, start } => {
                    ExtentFrom::Block { block, start: start + skipped as u32 }
                }
            };
            if visit(Extent { offset: start, len: end - start, from }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn inode_count_hint(&self) -> u64 {
        0
    }

    fn made_at(&self) -> Option<i64> {
        None
    }

    fn facts(&self) -> Result<Facts> {
        Ok(Facts::default())
    }

    fn space(&self) -> Result<Vec<SpaceOwner>> {
        Ok(Vec::new())
    }

    fn check(&self, _: &mut dyn FnMut(Finding)) -> Result<()> {
        Ok(())
    }
}

/// A made-up image of files that mix holes, stored bytes, blocks of their own and parts of shared blocks.
struct Made {
    image: Vec<u8>,
    volume: MadeUp,
    contents: Vec<Vec<u8>>,
}

fn made(seed: u64, file_count: usize) -> Made {
    let mut random = Random::new(seed);
    let mut image = random.noise(100);
    let mut codecs = [
        (Algorithm::Zstd, encoder(&CodecSettings::Zstd { level: 1 }).unwrap()),
        (Algorithm::Lz4, encoder(&CodecSettings::Lz4 { acceleration: 1 }).unwrap()),
    ];
    let mut blocks: Vec<(BlockRef, Vec<u8>)> = Vec::new();
    for _ in 0..file_count {
        let len = 1 + random.below(40_000) as usize;
        let raw = random.text(len);
        let (algorithm, encoder) = &mut codecs[random.below(2) as usize];
        let mut stored = vec![0; len + 1000];
        let stored_len = encoder.compress(&raw, &mut stored).unwrap().unwrap();
        let algorithm = Some(*algorithm);
        let (offset, decoded_len) = (image.len() as u64, len as u32);
        blocks.push((
            BlockRef { offset, stored_len: stored_len as u32, decoded_len, exact: true, algorithm },
            raw,
        ));
        image.extend_from_slice(&stored[..stored_len]);
        let gap = random.below(50) as usize;
        image.extend(random.noise(gap));
    }
    let (mut files, mut contents) = (Vec::new(), Vec::new());
    for _ in 0..file_count {
        let (mut extents, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..random.below(8) {
            let offset = bytes.len() as u64;
            let (len, from) = match random.below(4) {
                0 => {
                    let len = 1 + random.below(100_000);
                    bytes.resize(bytes.len() + len as usize, 0);
                    (len, ExtentFrom::Hole)
                }
                1 => {
                    let at = random.below(image.len() as u64 - 1);
                    let len = 1 + random.below((image.len() as u64 - at).min(300_000));
                    bytes.extend_from_slice(&image[at as usize..(at + len) as usize]);
                    (len, ExtentFrom::Stored(at))
                }
                _ => {
                    let (block, raw) = &blocks[random.below(blocks.len() as u64) as usize];
                    let start = random.below(raw.len() as u64);
                    let len = 1 + random.below(raw.len() as u64 - start);
                    bytes.extend_from_slice(&raw[start as usize..(start + len) as usize]);
                    (len, ExtentFrom::Block { block: *block, start: start as u32 })
                }
            };
            extents.push(Extent { offset, len, from });
        }
        files.push(extents);
        contents.push(bytes);
    }
    let entry = |index: usize| DirEntry {
        name: format!("{index}").into_bytes(),
        id: InodeId(FILE + index as u64),
        file_type: FileType::File,
    };
    let dirs = vec![(0..file_count).map(entry).collect()];
    Made { image, volume: MadeUp { dirs, files }, contents }
}

impl Made {
    fn wanted(&self) -> Vec<Wanted> {
        let row = |(index, bytes): (usize, &Vec<u8>)| Wanted {
            id: InodeId(FILE + index as u64),
            len: bytes.len() as u64,
        };
        self.contents.iter().enumerate().map(row).collect()
    }

    fn engine(&self, jobs: usize, cache_bytes: u64) -> Arc<ReadEngine> {
        let volume = MadeUp { dirs: self.volume.dirs.clone(), files: self.volume.files.clone() };
        let options = ReadOptions { jobs, cache_bytes, limits: Limits::default() };
        ReadEngine::new(Arc::new(Bytes(self.image.clone())), Arc::new(volume), options)
    }
}

/// Gathers pieces of all workers.
struct Gather<'a>(&'a Mutex<Vec<(Vec<u8>, u64, Option<u64>)>>);

impl PieceSink for Gather<'_> {
    fn expect(&mut self, file_index: usize, data_len: u64) {
        let expected = &mut self.0.lock().unwrap()[file_index].2;
        assert_eq!(*expected, None, "said once");
        *expected = Some(data_len);
    }

    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        let (content, received, expected) = &mut self.0.lock().unwrap()[file_index];
        assert!(expected.is_some(), "announced before it comes");
        content[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        *received += bytes.len() as u64;
        Ok(())
    }
}

#[test]
fn disk_order_delivers_every_byte_once_with_1_2_and_16_workers() {
    for (seed, jobs) in [(1, 1), (1, 2), (1, 16), (2, 2), (3, 16)] {
        let made = made(seed, 60);
        let blank = made.contents.iter().map(|bytes| (vec![0; bytes.len()], 0, None)).collect();
        let gathered = Mutex::new(blank);
        made.engine(jobs, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Gather(&gathered))).unwrap();
        for (index, (content, received, expected)) in gathered.into_inner().unwrap().into_iter().enumerate() {
            assert!(content == made.contents[index], "file {index}, {jobs} workers");
            assert_eq!(expected.unwrap_or(0), received, "file {index}");
        }
    }
}

#[test]
fn file_order_delivers_files_one_after_the_other() {
    for (jobs, cache_bytes) in [(1, 0), (2, 1 << 20), (16, 64 << 20)] {
        let made = made(4, 60);
        let mut got: Vec<Vec<u8>> = Vec::new();
        let mut open = false;
        let deliver = &mut |index: usize, piece: Piece<'_>| {
            if !open {
                assert_eq!(index, got.len());
                got.push(Vec::new());
                open = true;
            }
            let file = got.last_mut().unwrap();
            match piece {
                Piece::Data { offset, bytes } => {
                    assert_eq!(offset, file.len() as u64);
                    file.extend_from_slice(bytes);
                }
                Piece::Hole { offset, len } => {
                    assert_eq!(offset, file.len() as u64);
                    file.resize(file.len() + len as usize, 0);
                }
                Piece::End => open = false,
            }
            Ok(())
        };
        made.engine(jobs, cache_bytes).in_file_order(&made.wanted(), &Silent, deliver).unwrap();
        assert!(got == made.contents, "{jobs} workers");
    }
}

#[test]
fn random_reads_agree_from_many_threads() {
    let made = made(5, 40);
    let engine = made.engine(2, 1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, contents) = (&engine, &made.contents);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..300 {
                    let index = random.below(contents.len() as u64);
                    let bytes = &contents[index as usize];
                    let reader = engine.open_file(InodeId(FILE + index)).unwrap();
                    assert_eq!(reader.len(), bytes.len() as u64);
                    let offset = random.below(bytes.len() as u64 + 10);
                    let mut buf = vec![1; random.below(5000) as usize];
                    let len = reader.read_at(offset, &mut buf).unwrap();
                    let expected = bytes.get(offset as usize..).unwrap_or_default();
                    assert_eq!(buf[..len], expected[..len]);
                    assert_eq!(len, buf.len().min(expected.len()));
                }
            });
        }
    });
}

#[test]
fn a_reader_reads_and_seeks_like_any_file() {
    let made = made(6, 40);
    let index = made.contents.iter().position(|bytes| bytes.len() > 1000).unwrap();
    let mut reader = made.engine(1, 0).open_file(InodeId(FILE + index as u64)).unwrap();
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert!(all == made.contents[index]);
    assert_eq!(reader.seek(SeekFrom::End(-3)).unwrap(), all.len() as u64 - 3);
    let mut end = String::from("bytes: ").into_bytes();
    reader.read_to_end(&mut end).unwrap();
    assert_eq!(end[7..], all[all.len() - 3..]);
    assert!(reader.seek(SeekFrom::Current(i64::MIN)).is_err());
}

#[test]
fn contents_know_their_holes() {
    use packfs_core::{ContentId, Contents};
    let made = made(7, 60);
    let engine = made.engine(1, 0);
    for (index, extents) in made.volume.files.iter().enumerate() {
        let mut reader = engine.open(ContentId(FILE + index as u64)).unwrap();
        let mut offset = 0;
        let mut data = 0;
        while let Some(run) = reader.next_data(offset).unwrap() {
            assert!(run.start >= offset && run.end > run.start);
            data += run.end - run.start;
            offset = run.end;
        }
        let stored: u64 = extents.iter().filter(|e| e.from != ExtentFrom::Hole).map(|e| e.len).sum();
        assert_eq!(data, stored, "file {index}");
    }
}

/// Counts files of which a part failed.
struct Failing<'a>(&'a Mutex<Vec<usize>>);

impl PieceSink for Failing<'_> {
    fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        self.0.lock().unwrap().push(file_index);
        Ok(())
    }
}

/// A volume with one file in one block, and a second file that is sound.
fn with_damaged_block(change: impl Fn(&mut BlockRef, &mut Vec<u8>)) -> Made {
    let mut made = made(8, 30);
    let block = |extents: &Vec<Extent>| {
        extents
            .iter()
            .find_map(|e| if let ExtentFrom::Block { block, .. } = e.from { Some(block) } else { None })
    };
    let sound = made.volume.files.iter().find_map(block).unwrap();
    let mut damaged = sound;
    change(&mut damaged, &mut made.image);
    let extent = |block| Extent { offset: 0, len: 1, from: ExtentFrom::Block { block, start: 0 } };
    let stored = Extent { offset: 0, len: 1, from: ExtentFrom::Stored(0) };
    made.volume.files = vec![vec![extent(damaged)], vec![stored]];
    made.contents = vec![vec![0], vec![made.image[0]]];
    made
}

#[test]
fn a_damaged_block_fails_its_files_and_no_others() {
    for (what, made) in [
        ("length", with_damaged_block(|block, _| block.decoded_len += 1)),
        ("decoded too long", with_damaged_block(|block, _| block.decoded_len -= 1)),
        ("outside", with_damaged_block(|block, image| block.offset = image.len() as u64 - 1)),
        ("far outside", with_damaged_block(|block, _| block.offset = u64::MAX - 10)),
        ("garbage", with_damaged_block(|block, image| image[block.offset as usize..][..9].fill(0xff))),
        ("huge", with_damaged_block(|block, _| block.decoded_len = u32::MAX)),
        ("huge stored", with_damaged_block(|block, _| block.stored_len = u32::MAX)),
    ] {
        for jobs in [1, 4] {
            let engine = made.engine(jobs, 1 << 20);
            let failed = Mutex::new(Vec::new());
            engine.in_disk_order(&made.wanted(), &Silent, &|| Ok(Failing(&failed))).unwrap();
            assert_eq!(failed.into_inner().unwrap(), [0], "{what}");
            let error = engine.in_file_order(&made.wanted(), &Silent, &mut |_, _| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            let reader = engine.open_file(InodeId(FILE)).unwrap();
            assert!(reader.read_at(0, &mut [0]).is_err(), "{what}");
            assert!(reader.read_at(0, &mut [0]).is_err(), "{what}, asked again");
            assert_eq!(
                engine.open_file(InodeId(FILE + 1)).unwrap().read_at(0, &mut [0]).unwrap(),
                1,
                "{what}"
            );
        }
    }
}

#[test]
fn an_error_of_the_sink_ends_the_work() {
    struct Refuses;
    impl PieceSink for Refuses {
        fn piece(&mut self, _: usize, _: u64, _: &[u8]) -> Result<()> {
            Err(Error::failed("the sink is full"))
        }
    }
    let made = made(9, 40);
    for jobs in [1, 8] {
        let error = made.engine(jobs, 0).in_disk_order(&made.wanted(), &Silent, &|| Ok(Refuses)).unwrap_err();
        assert_eq!(error.to_string(), "the sink is full");
        let error =
            made.engine(jobs, 0).in_file_order(&made.wanted(), &Silent, &mut |_, _| Err(Error::cancelled()));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn stops_when_the_user_says_so() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let made = made(10, 40);
    let engine = made.engine(4, 0);
    let gathered = Mutex::new(made.contents.iter().map(|bytes| (vec![0; bytes.len()], 0, None)).collect());
    let error = engine.in_disk_order(&made.wanted(), &Stop, &|| Ok(Gather(&gathered))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let error = engine.in_file_order(&made.wanted(), &Stop, &mut |_, _| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

fn dir(name: &str, id: u64) -> DirEntry {
    DirEntry { name: name.into(), id: InodeId(id), file_type: FileType::Directory }
}

fn load(dirs: Vec<Vec<DirEntry>>, limits: Limits) -> Result<u32> {
    let volume = MadeUp { dirs, files: Vec::new() };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let engine = ReadEngine::new(Arc::new(Bytes(Vec::new())), Arc::new(volume), options);
    engine.load_tree(&Silent).map(|loaded| loaded.tree.node_count())
}

#[test]
fn refuses_directories_that_are_reached_twice() {
    for (what, dirs) in [
        ("a circle", vec![vec![dir("a", 1)], vec![dir("b", 0)]]),
        ("itself", vec![vec![dir("a", 0)]]),
        ("a diamond", vec![vec![dir("a", 1), dir("b", 1)], vec![]]),
    ] {
        let error = load(dirs, Limits::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("twice"), "{what}: {error}");
    }
}

#[test]
fn refuses_names_that_stand_twice_or_lead_elsewhere() {
    let error =
        load(vec![vec![dir("a", 1), dir("b", 2), dir("a", 3)], vec![], vec![], vec![]], Limits::default());
    assert!(error.unwrap_err().to_string().contains("stands twice"));
    for name in ["..", ".", "a/b", "", "a\0b"] {
        let error = load(vec![vec![dir(name, 1)], vec![]], Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
    }
}

#[test]
fn loads_10_000_levels_and_stops_at_the_limits() {
    let levels = |count: u64| (1..=count).map(|id| vec![dir("d", id)]).chain([vec![]]).collect::<Vec<_>>();
    assert_eq!(load(levels(10_000), Limits::default()).unwrap(), 10_001);
    let error = load(levels(11), Limits { depth_max: 10, ..Limits::default() }).unwrap_err();
    assert!(error.to_string().contains("10 deep"), "{error}");
    let error = load(levels(11), Limits { entries_max: 10, ..Limits::default() }).unwrap_err();
    assert!(error.to_string().contains("10 entries"), "{error}");
}
