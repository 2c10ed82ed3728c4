//! Whether all contents can be decoded.

use packfs_check::{ContentReport, content};
use packfs_core::codec::Algorithm;
use packfs_core::{
    BlockRef, DirCursor, DirEntry, Error, ErrorKind, Extent, ExtentFrom, Facts, FileType, Finding, Image,
    Inode, InodeId, InodeKind, Meta, Progress, Result, Severity, Silent, SpaceOwner, Volume, Xattrs,
};
use packfs_read::{LoadedVolume, ReadEngine, ReadOptions};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// 1000 bytes, all of them `x`.
struct Bytes;

impl Image for Bytes {
    fn len(&self) -> u64 {
        1000
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = 1000_u64.saturating_sub(offset).min(buf.len() as u64) as usize;
        buf[..len].fill(b'x');
        Ok(len)
    }

    fn name(&self) -> String {
        "made-up image".into()
    }
}

/// One directory of files with one extent each; entries are names and indices of files.
struct MadeUp {
    entries: Vec<(&'static str, u64)>,
    files: Vec<Extent>,
}

impl Volume for MadeUp {
    fn format_name(&self) -> &'static str {
        "made-up"
    }

    fn root(&self) -> InodeId {
        InodeId(u64::MAX)
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let kind = match self.files.get(id.0 as usize) {
            Some(extent) => InodeKind::File { len: extent.len },
            None => InodeKind::Directory,
        };
        Ok(Inode { kind, meta: Meta::default(), links: 1, number: id.0, has_xattrs: false })
    }

    fn lookup(&self, _: InodeId, _: &[u8]) -> Result<Option<InodeId>> {
        Ok(None)
    }

    fn read_dir(
        &self,
        _: InodeId,
        _: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        for &(name, file) in &self.entries {
            let entry = DirEntry { name: name.into(), id: InodeId(file), file_type: FileType::File };
            if visit(entry, DirCursor(0)).is_break() {
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
        _: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let _ = visit(self.files[id.0 as usize]);
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

fn loaded(
    entries: Vec<(&'static str, u64)>,
    files: Vec<Extent>,
    jobs: usize,
) -> (Arc<ReadEngine>, LoadedVolume) {
    let options = ReadOptions { jobs, ..ReadOptions::default() };
    let engine = ReadEngine::new(Arc::new(Bytes), Arc::new(MadeUp { entries, files }), options);
    let loaded = engine.load_tree(&Silent).unwrap();
    (engine, loaded)
}

fn extent(len: u64, from: ExtentFrom) -> Extent {
    Extent { offset: 0, len, from }
}

/// Part of a block that is no gzip data.
fn damaged(len: u64) -> Extent {
    let algorithm = Some(Algorithm::Zlib);
    let block = BlockRef { offset: 500, stored_len: 100, decoded_len: 4096, exact: true, algorithm };
    extent(len, ExtentFrom::Block { block, start: 0 })
}

#[test]
fn every_damaged_file_is_found_and_all_others_are_decoded() {
    let files = vec![
        extent(100, ExtentFrom::Stored(0)),
        damaged(10),
        extent(1 << 40, ExtentFrom::Hole),
        extent(10, ExtentFrom::Stored(995)),
        damaged(20),
    ];
    let entries =
        vec![("sound", 0), ("damaged", 1), ("hole", 2), ("cut off", 3), ("link", 4), ("also", 4), ("z", 4)];
    for jobs in [1, 2, 16] {
        let (engine, loaded) = loaded(entries.clone(), files.clone(), jobs);
        let mut found = Vec::new();
        let report = content(&engine, &loaded, &Silent, &mut |finding| found.push(finding)).unwrap();
        assert_eq!(report, ContentReport { files: 5, bytes: 140 + (1 << 40), damaged: 3 });
        assert!(found.iter().all(|finding| finding.severity == Severity::Error));
        let places: Vec<_> = found.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["\"also\" and 2 other names", "\"cut off\"", "\"damaged\""]);
        assert!(found[0].fault.contains("block at 0x1f4: gzip data of 100 bytes"), "{}", found[0].fault);
        assert!(found[1].fault.contains("image ends at 0x3e8"), "{}", found[1].fault);
    }
}

#[test]
fn an_image_without_files_is_sound() {
    let (engine, loaded) = loaded(Vec::new(), Vec::new(), 2);
    let report = content(&engine, &loaded, &Silent, &mut |finding| panic!("{finding:?}")).unwrap();
    assert_eq!(report, ContentReport::default());
}

#[test]
fn stops_when_the_user_says_so() {
    struct Stop;
    impl Progress for Stop {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let (engine, loaded) = loaded(vec![("a", 0)], vec![extent(100, ExtentFrom::Stored(0))], 2);
    let error = content(&engine, &loaded, &Stop, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
