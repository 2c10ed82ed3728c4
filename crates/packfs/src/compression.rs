//! Compression of the files of an image or directory: bytes on disk, uncompressed, and referenced,
//! by codec.

use crate::{Reader, Walked};
use packfs_core::{Error, Limit, Limits, Result, ResultExt};
use packfs_format::{InodeKind, StoredExtent};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Memory that an extent takes while the others are counted, in bytes, estimated.
const EXTENT_MEMORY: u64 = 32;
/// Codec of data whose compression the system does not tell.
const UNKNOWN: &str = "unknown";

/// Figures of one codec, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CodecUse {
    /// Name of the codec; `none` for data that is not compressed, `prealloc` for reserved space of
    /// btrfs.
    pub codec: &'static str,
    /// Bytes on disk; extents that files share count once.
    pub disk: u64,
    /// Bytes that these extents hold.
    pub uncompressed: u64,
    /// Bytes of files that refer to them; shared ones count for each file.
    pub referenced: u64,
}

/// Figures of all files. Metadata, targets of links, and further copies of data do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Compression {
    /// Names of regular files.
    pub files: u64,
    /// Extents with a place of their own; shared ones count once.
    pub extents: u64,
    /// Uses of these extents by files.
    pub references: u64,
    /// Extents stored beside metadata.
    pub inline: u64,
    /// Sums of all codecs.
    pub total: CodecUse,
    /// One row a codec, in the order in which they were met.
    pub codecs: Vec<CodecUse>,
}

impl CodecUse {
    fn add(&mut self, extent: &StoredExtent, is_new: bool) {
        if is_new {
            self.disk = self.disk.saturating_add(extent.stored_len);
            self.uncompressed = self.uncompressed.saturating_add(extent.decoded_len);
        }
        self.referenced = self.referenced.saturating_add(extent.used_len);
    }
}

impl Compression {
    fn add(&mut self, extent: &StoredExtent, is_new: bool) {
        match extent.place {
            Some(_) => {
                self.extents += u64::from(is_new);
                self.references += 1;
            }
            None => self.inline += 1,
        }
        self.total.add(extent, is_new);
        let known = self.codecs.iter_mut().find(|row| row.codec == extent.codec);
        match known {
            Some(row) => row.add(extent, is_new),
            None => {
                let mut row = CodecUse { codec: extent.codec, ..CodecUse::default() };
                row.add(extent, is_new);
                self.codecs.push(row);
            }
        }
    }

    /// Counts the files below a directory of this machine: the system tells their length, and the
    /// blocks on disk, not how these are compressed or shared.
    ///
    /// # Errors
    /// `Io`: a directory cannot be read.
    pub fn of_directory(path: &Path) -> Result<Compression> {
        let cannot = |path: &Path| format!("cannot read {path:?}");
        let mut all =
            Compression { total: CodecUse { codec: "all", ..CodecUse::default() }, ..Compression::default() };
        let mut seen = HashSet::new();
        let mut open = vec![path.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).or_io(|| cannot(&folder))? {
                let path = entry.or_io(|| cannot(&folder))?.path();
                let stat = std::fs::symlink_metadata(&path).or_io(|| cannot(&path))?;
                if stat.is_dir() {
                    open.push(path);
                } else if stat.is_file() {
                    all.files += 1;
                    let is_new = seen.insert((stat.dev(), stat.ino()));
                    let extent = StoredExtent {
                        codec: UNKNOWN,
                        place: Some(stat.ino()),
                        stored_len: stat.blocks().saturating_mul(512),
                        decoded_len: stat.len(),
                        used_len: stat.len(),
                    };
                    all.add(&extent, is_new);
                }
            }
        }
        Ok(all)
    }
}

/// Counts the files of several images together; extents that they share count once.
#[derive(Debug)]
pub struct CompressionCount {
    all: Compression,
    /// Images and places of extents.
    seen: HashSet<(usize, u64)>,
}

impl Default for CompressionCount {
    fn default() -> Self {
        let total = CodecUse { codec: "all", ..CodecUse::default() };
        CompressionCount { all: Compression { total, ..Compression::default() }, seen: HashSet::new() }
    }
}

impl CompressionCount {
    /// Counts the files of an image for which `is_wanted` returns true. `image` numbers the images:
    /// parts of one have one number.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: a file cannot be read; `Limit`: more extents than memory is allowed for.
    pub fn add(
        &mut self,
        image: usize,
        reader: &Reader,
        mut is_wanted: impl FnMut(&Walked) -> bool,
    ) -> Result<()> {
        let CompressionCount { all, seen } = self;
        for walked in reader.walk() {
            let walked = walked?;
            let (true, InodeKind::File { len }) = (is_wanted(&walked), walked.inode.kind) else { continue };
            all.files += 1;
            let mut held = Ok(());
            reader
                .volume()
                .stored_extents(walked.id, len, &mut |extent| {
                    let is_new = extent.place.is_none_or(|place| seen.insert((image, place)));
                    all.add(&extent, is_new);
                    held = check_memory(&reader.limits(), seen.len());
                    if held.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })
                .map_err(|error: Error| error.at(format_args!("{:?}", walked.path)))?;
            held?;
        }
        Ok(())
    }

    /// Returns the figures.
    pub fn finish(self) -> Compression {
        self.all
    }
}

impl Reader {
    /// Counts how the files of the image are compressed, and how much they share, as `compsize`
    /// does for btrfs.
    ///
    /// # Errors
    /// `Corrupt`, `Io`: a file cannot be read; `Limit`: more extents than memory is allowed for.
    pub fn compression(&self) -> Result<Compression> {
        let mut count = CompressionCount::default();
        count.add(0, self, |_| true)?;
        Ok(count.finish())
    }
}

fn check_memory(limits: &Limits, extents: usize) -> Result<()> {
    limits.check("extents of the image", Limit::Memory, EXTENT_MEMORY.saturating_mul(extents as u64))
}
