//! The parts of an image that a workload needs, file by file: the blocks with its bytes, and the
//! metadata on the way to it, as the driver of the format reads them.

use packfs::{
    ImagePath, InodeId, InodeKind, KernelBlock, KernelCache, KernelRead, KernelReads, Opened, Result, Volume,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

#[derive(Clone, Debug, Default)]
pub(crate) struct FilePattern {
    /// Metadata in the order it is needed.
    pub(crate) metadata: Vec<KernelRead>,
    /// Blocks in the order of the file.
    pub(crate) blocks: Vec<KernelBlock>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) cache: KernelCache,
    /// Metadata that mounting has read, in the order it was.
    pub(crate) mounted: Vec<KernelRead>,
    pub(crate) files: Vec<FilePattern>,
    /// Length of the stream of tails, decoded, and stored; 0 without one.
    pub(crate) tails_len: (u64, u64),
}

impl Pattern {
    /// Looks up what files need. Files that the image does not have are passed over.
    ///
    /// Errors: those of reading the image.
    pub(crate) fn of(opened: &Opened, paths: &[ImagePath]) -> Result<Pattern> {
        let volume = &**opened.volume();
        let reads = volume.kernel_reads()?.unwrap_or_else(|| Box::new(Plain(volume)));
        let mut walked = Paths { volume, reads: &*reads, dirs: HashMap::new() };
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.extend(walked.file(path)?);
        }
        let (cache, mounted) = (reads.cache(), reads.inode(volume.root())?);
        Ok(Pattern { cache, mounted, files, tails_len: reads.tails_len() })
    }
}

/// The way to files, name by name; a directory that was looked up once is known, as the kernel
/// knows it.
struct Paths<'a> {
    volume: &'a dyn Volume,
    reads: &'a dyn KernelReads,
    dirs: HashMap<ImagePath, Option<InodeId>>,
}

impl Paths<'_> {
    /// Returns the reads of a file; none if there is no such file.
    fn file(&mut self, path: &ImagePath) -> Result<Option<FilePattern>> {
        let mut metadata = Vec::new();
        let (mut at, mut dir) = (ImagePath::root(), self.volume.root());
        let names: Vec<_> = path.names().collect();
        let Some((last, parents)) = names.split_last() else { return Ok(None) };
        for name in parents {
            at.push(*name);
            let known = match self.dirs.get(&at) {
                Some(known) => *known,
                None => {
                    let found = self.enter(dir, name.as_bytes(), &mut metadata)?;
                    self.dirs.insert(at.clone(), found);
                    found
                }
            };
            let Some(id) = known else { return Ok(None) };
            dir = id;
        }
        metadata.extend(self.reads.name(dir, last.as_bytes())?);
        let Some(id) = self.volume.lookup(dir, last.as_bytes())? else { return Ok(None) };
        if !matches!(self.volume.inode(id)?.kind, InodeKind::File { .. }) {
            return Ok(None);
        }
        metadata.extend(self.reads.inode(id)?);
        Ok(Some(FilePattern { metadata, blocks: self.reads.blocks(id)? }))
    }

    /// Looks a directory up for the first time.
    fn enter(&self, above: InodeId, name: &[u8], metadata: &mut Vec<KernelRead>) -> Result<Option<InodeId>> {
        metadata.extend(self.reads.name(above, name)?);
        let Some(id) = self.volume.lookup(above, name)? else { return Ok(None) };
        let is_dir = matches!(self.volume.inode(id)?.kind, InodeKind::Directory);
        if is_dir {
            metadata.extend(self.reads.inode(id)?);
        }
        Ok(is_dir.then_some(id))
    }
}

/// A format without a description of its driver: each block is read when it is needed, and metadata
/// counts for nothing.
struct Plain<'a>(&'a dyn Volume);

impl KernelReads for Plain<'_> {
    fn cache(&self) -> KernelCache {
        KernelCache::Blocks { metadata: 8, shared: 3, header_len: 0, unit: 4096, edges_since: None }
    }

    fn inode(&self, _: InodeId) -> Result<Vec<KernelRead>> {
        Ok(Vec::new())
    }

    fn name(&self, _: InodeId, _: &[u8]) -> Result<Vec<KernelRead>> {
        Ok(Vec::new())
    }

    fn blocks(&self, id: InodeId) -> Result<Vec<KernelBlock>> {
        let mut blocks = Vec::new();
        let InodeKind::File { len } = self.0.inode(id)?.kind else { return Ok(blocks) };
        self.0.extents(id, 0..len, &mut |extent| {
            blocks.extend(KernelBlock::of_extent(&extent));
            ControlFlow::Continue(())
        })?;
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs::OpenOptions;

    /// Returns the reads of each file of an image of many long names and a few files with tails.
    fn pattern(format: &str) -> (Pattern, u64) {
        let folder = tempfile::tempdir().unwrap();
        let (tree, image) = (folder.path().join("tree"), folder.path().join("image"));
        std::fs::create_dir_all(tree.join("many")).unwrap();
        for n in 0..3000 {
            std::fs::write(tree.join(format!("many/a name of a file, {n:04}")), vec![b'a'; n % 7]).unwrap();
        }
        let words: Vec<u8> = (0..150_000_u32).flat_map(|n| n.to_le_bytes()).collect();
        std::fs::write(tree.join("long"), words).unwrap();
        packfs::pack(&tree, &image).format(format).run().unwrap();
        let names = ["many/a name of a file, 0001", "many/a name of a file, 2999", "long", "no/such", "no"];
        let paths = names.map(|name| ImagePath::parse(name.as_bytes()).unwrap());
        let len = image.metadata().unwrap().len();
        (Pattern::of(&OpenOptions::new().open(&image).unwrap(), &paths).unwrap(), len)
    }

    #[test]
    fn files_are_found_by_few_reads_and_their_blocks_hold_all_of_them() {
        for format in ["squashfs", "erofs", "cramfs"] {
            let (pattern, len) = pattern(format);
            assert_eq!(pattern.files.len(), 3, "{format}");
            for (file, file_len) in pattern.files.iter().zip([1, 2999 % 7, 600_000]) {
                let ends = file.blocks.iter().fold(0, |end, block| {
                    assert_eq!(block.range.start, end, "{format}");
                    block.range.end
                });
                assert_eq!(ends, file_len, "{format}");
                let mut reads = file.metadata.iter().chain(file.blocks.iter().map(|block| &block.read));
                assert!(reads.all(|read| read.offset < len), "{format}");
            }
            // The folder and its inode, then a name, its inode and what is looked up with it.
            let counts: Vec<_> = pattern.files.iter().map(|file| file.metadata.len()).collect();
            let most = match format {
                "squashfs" => [2 + 2 + 4 + 4, 8, 5],
                // Of 20 blocks of names five are looked at.
                "erofs" => [1 + 5 + 2, 6 + 1, 2],
                _ => [0, 0, 0],
            };
            assert!(counts.iter().zip(most).all(|(found, most)| *found <= most), "{format}: {counts:?}");
        }
    }
}
