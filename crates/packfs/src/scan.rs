//! Images within bytes of any kind, such as firmware: wherever one begins, in one pass.
//!
//! Owns the search. What looks like the beginning of an image counts only if the image can be
//! opened there, its root directory read and what is in it told; so bytes that happen to be a magic
//! are no image. Bounded: a hit costs no more than opening an image and looking at a few of its
//! files.

use crate::altered;
use aho_corasick::AhoCorasick;
use packfs_core::SliceImage;
use packfs_core::{Error, ErrorKind, Image, Progress, Result, Stage};
use packfs_format::{DirCursor, FactValue, Format, InodeKind, Magic, Volume};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bytes read at once.
const CHUNK_LEN: usize = 1 << 20;
/// Entries of a root directory that are read.
const ENTRIES_MAX: usize = 64;

/// Magics that makers of devices have put in the place of SquashFS's own.
const ALTERED: [&[u8]; 8] = [b"sqlz", b"zlqs", b"hsqt", b"tqsh", b"qshs", b"shsq", b"sqsh", b"hsqs"];

/// Image in a file.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Found {
    /// Offset in the file.
    pub offset: u64,
    /// Length; null if the format does not state one.
    #[cfg_attr(feature = "serde", serde(rename = "size"))]
    pub len: Option<u64>,
    /// Name of the format.
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize_format"))]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub format: &'static dyn Format,
    /// Version of the format, where it has several.
    pub version: Option<String>,
    /// Value for `--magic`, where the image has a magic of its own.
    pub magic: Option<&'static str>,
}

#[cfg(feature = "serde")]
fn serialize_format<S: serde::Serializer>(format: &&dyn Format, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

impl Found {
    /// Returns the end of the image, if known, at least one byte after its start.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len.unwrap_or(1).max(1))
    }
}

/// Options of the search for images.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanOptions {
    nested: bool,
}

impl ScanOptions {
    /// Returns the default: images within other images are left out.
    pub fn new() -> Self {
        ScanOptions::default()
    }

    setters! {
        /// Also reports images within the bytes of another image, such as a SquashFS in an ISO 9660
        /// image.
        pub nested(yes: bool) => nested = yes;
    }
}

/// Finds every image in some bytes, by where they begin.
///
/// ```no_run
/// use std::sync::Arc;
///
/// let firmware = packfs::FileImage::open("firmware.bin".as_ref())?;
/// for found in packfs::scan(Arc::new(firmware), packfs::ScanOptions::new(), &packfs::Silent)? {
///     println!("{:#x} {}", found.offset, found.format.name());
/// }
/// # Ok::<(), packfs::Error>(())
/// ```
///
/// Errors: `Io`, `Cancelled`.
pub fn scan(image: Arc<dyn Image>, options: ScanOptions, progress: &dyn Progress) -> Result<Vec<Found>> {
    let mut scan = Scan::new(image, options)?;
    scan.run(progress)?;
    Ok(scan.finish())
}

/// Bytes to look for.
#[derive(Clone, Copy)]
enum Pattern {
    /// A magic, and whose it is.
    Own(&'static dyn Format, &'static Magic),
    /// A magic that an image may have in place of its own.
    Altered(&'static [u8]),
}

impl Pattern {
    fn bytes(&self) -> &'static [u8] {
        match self {
            Pattern::Own(_, magic) => magic.bytes,
            Pattern::Altered(bytes) => bytes,
        }
    }

    /// Its place in an image, in bytes.
    fn at(&self) -> u64 {
        match self {
            Pattern::Own(_, magic) => magic.at,
            Pattern::Altered(_) => 0,
        }
    }
}

struct Scan {
    image: Arc<dyn Image>,
    options: ScanOptions,
    patterns: Vec<Pattern>,
    search: AhoCorasick,
    found: Vec<Found>,
    /// Ends of the images found, by their starts.
    taken: BTreeMap<u64, u64>,
}

impl Scan {
    fn new(image: Arc<dyn Image>, options: ScanOptions) -> Result<Scan> {
        let formats = packfs_formats::all().iter().copied();
        let patterns: Vec<Pattern> = formats
            .flat_map(|format| format.info().magics.iter().map(move |magic| Pattern::Own(format, magic)))
            // Last, so that an image counts as what it is before it counts as what it could be.
            .chain(ALTERED.into_iter().map(Pattern::Altered))
            .collect();
        let search = AhoCorasick::new(patterns.iter().map(Pattern::bytes));
        let search = search.map_err(|error| Error::failed(format!("internal: {error}")))?;
        Ok(Scan { image, options, patterns, search, found: Vec::new(), taken: BTreeMap::new() })
    }

    fn run(&mut self, progress: &dyn Progress) -> Result<()> {
        let len = self.image.len();
        progress.begin(Stage::Scan, 0, len);
        // What may be the beginning of a magic is looked at again with what follows.
        let kept_max = self.search.max_pattern_len().saturating_sub(1);
        let mut buf = vec![0; kept_max + CHUNK_LEN];
        let mut kept = 0;
        let mut at = 0;
        while at < len {
            if progress.cancelled() {
                return Err(Error::cancelled());
            }
            let wanted = (len - at).min(CHUNK_LEN as u64) as usize;
            let read = self.image.read_at(at, &mut buf[kept..kept + wanted])?;
            if read == 0 {
                break;
            }
            let filled = kept + read;
            let start = at - kept as u64;
            let hits: Vec<(usize, u64)> = self
                .search
                .find_overlapping_iter(&buf[..filled])
                .filter(|hit| hit.end() > kept)
                .map(|hit| (hit.pattern().as_usize(), start + hit.start() as u64))
                .collect();
            for (pattern, position) in hits {
                self.hit(pattern, position)?;
            }
            progress.advance(0, read as u64, 0);
            at += read as u64;
            let keep = filled.min(kept_max);
            buf.copy_within(filled - keep..filled, 0);
            kept = keep;
        }
        Ok(())
    }

    /// Looks at an image that may begin where this magic is its.
    fn hit(&mut self, pattern: usize, position: u64) -> Result<()> {
        let pattern = self.patterns[pattern];
        let Some(offset) = position.checked_sub(pattern.at()) else { return Ok(()) };
        let is_known = |found: &Found| {
            let is_same = match pattern {
                Pattern::Own(format, _) => found.format.name() == format.name(),
                Pattern::Altered(_) => true,
            };
            found.offset == offset && is_same
        };
        if self.is_taken(offset) || self.found.iter().rev().take(16).any(is_known) {
            return Ok(());
        }
        if let Some(found) = look(&self.image, offset, pattern)? {
            if !self.options.nested {
                self.taken.insert(offset, found.end());
            }
            self.found.push(found);
        }
        Ok(())
    }

    /// True if an image found earlier holds this byte, and bytes before it.
    fn is_taken(&self, offset: u64) -> bool {
        self.taken.range(..offset).next_back().is_some_and(|(_, end)| *end > offset)
    }

    /// In order, without what lies within another: some begin before what they were found by.
    fn finish(mut self) -> Vec<Found> {
        self.found.sort_by(|a, b| a.offset.cmp(&b.offset).then(b.end().cmp(&a.end())));
        self.found.dedup_by(|b, a| a.offset == b.offset && a.format.name() == b.format.name());
        if !self.options.nested {
            let mut end = 0;
            self.found.retain(|found| {
                let is_outer = found.offset >= end;
                end = end.max(found.end());
                is_outer
            });
        }
        self.found
    }
}

/// Opens an image, and looks at its root directory. `None` if none is there.
fn look(image: &Arc<dyn Image>, offset: u64, pattern: Pattern) -> Result<Option<Found>> {
    match look_closely(image, offset, pattern) {
        Ok(found) => Ok(found),
        // An image that cannot be read is as little one as no image.
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
        Err(_) => Ok(None),
    }
}

fn look_closely(image: &Arc<dyn Image>, offset: u64, pattern: Pattern) -> Result<Option<Found>> {
    let slice: Arc<dyn Image> = Arc::new(SliceImage::new(Arc::clone(image), offset, None)?);
    let rest = slice.len();
    let opened = match pattern {
        Pattern::Own(format, _) if format.probe(&*slice)? => Some((None, format, format.open(slice)?)),
        Pattern::Own(..) => None,
        Pattern::Altered(_) => {
            altered::open(&slice).map(|(magic, format, volume)| (Some(magic), format, volume))
        }
    };
    let Some((magic, format, volume)) = opened else { return Ok(None) };
    if !reads_root(&*volume)? {
        return Ok(None);
    }
    let facts = volume.facts().unwrap_or_default();
    let version = match facts.get("version") {
        Some(FactValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let len = volume.image_len().map(|len| len.min(rest));
    Ok(Some(Found { offset, len, format, version, magic }))
}

/// True if the root is a directory whose first entries can be read.
fn reads_root(volume: &dyn Volume) -> Result<bool> {
    let root = volume.root();
    if volume.inode(root)?.kind != InodeKind::Directory {
        return Ok(false);
    }
    let mut entries = Vec::new();
    volume.read_dir(root, DirCursor::default(), &mut |entry, _| {
        entries.push(entry.id);
        if entries.len() < ENTRIES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    for id in entries {
        if let InodeKind::File { len } = volume.inode(id)?.kind {
            let beginning: Range<u64> = 0..len.min(1);
            match volume.extents(id, beginning, &mut |_| ControlFlow::Break(())) {
                // Sound, but on another device or of a kind that is not read, as volumes of LVM.
                Err(error) if matches!(error.kind(), ErrorKind::Failed | ErrorKind::Unsupported) => {}
                read => read?,
            }
        }
    }
    Ok(true)
}
