//! Android sparse images: chunks that are stored, filled with four bytes, or skipped.
//!
//! Owns the joining of a split image: each file describes one range of the disk, and skips the
//! rest, which would read as zeros.

mod chunks;
mod corruption;
mod disk;
mod runs;

use crate::not_written;
use crate::volume::{DiskVolume, Map, Place, Visit};
use chunks::Part;
use disk::MAGIC;
use packfs_core::{Error, Image, JoinedImage, Result, len_of, range_at, usize_of};
use packfs_format::check::Report;
use packfs_format::{
    FactValue, Facts, Format, FormatInfo, Magic, OpenOption, Opening, PackFormat, PackSettings, Volume,
    units::*,
};
use runs::{Holds, Run, each_run, push, put_over};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that an image may skip at its start: boot blocks, zeros in most filesystems.
const START_MAX: u64 = 64 << 10;
/// Part of the names of the files of a split image.
const SPLIT_NAME: &str = "sparsechunk";

static MAGICS: [Magic; 1] = [Magic { bytes: &[0x3a, 0xff, 0x26, 0xed, 1, 0], at: 0 }];

/// Android sparse images.
#[derive(Clone, Copy, Debug, Default)]
pub struct AndroidSparse;

static INFO: FormatInfo = FormatInfo {
    name: "android-sparse",
    extensions: &["simg"],
    magics: &MAGICS,
    opens_with: &[OpenOption::Devices],
    ..FormatInfo::EMPTY
};

impl Format for AndroidSparse {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, image: &dyn Image) -> Result<bool> {
        let mut magic = [0; 4];
        Ok(image.read_at(0, &mut magic)? == magic.len() && u32::from_le_bytes(magic) == MAGIC)
    }

    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>> {
        self.open_with(image, Opening::default())
    }

    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let map = Chunks::read(&image, &opening.devices)?;
        Ok(Box::new(DiskVolume::new(image, map)))
    }

    fn packer(&self, _settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
        not_written("android-sparse", "img2simg")
    }
}

struct Chunks {
    runs: Arc<Vec<Run>>,
    /// The concatenated files, followed by the data of fill chunks.
    data: Option<Arc<Filled>>,
    first: Part,
    disk_len: u64,
    image_len: u64,
    files_len: u64,
    /// Ranges at the borders of files that no file describes.
    gaps: Vec<Range<u64>>,
}

impl Chunks {
    /// Reads the headers of all chunks of an image, which may be split into several files.
    ///
    /// Errors: `Corrupt`, `Unsupported` for another version and for a file without those before it,
    /// `Usage` for one of another image, `Io`.
    fn read(image: &Arc<dyn Image>, others: &[Arc<dyn Image>]) -> Result<Chunks> {
        let read = |image: &Arc<dyn Image>| Part::read(image).map_err(|error| error.at(image.name()));
        let mut first = read(image)?;
        let mut parts = others.iter().map(read).collect::<Result<Vec<Part>>>()?;
        let gaps = make_equal(&mut first, &mut parts);
        refuse_part(&image.name(), &first, &gaps)?;
        let (runs, joined) = join(image, others, &first, &parts)?;
        let has_fills = runs.iter().any(|run| matches!(run.holds, Holds::Fill(_)));
        let runs = Arc::new(runs);
        let files_len = joined.len();
        let disk_len = first.disk_len;
        let is_virtual = has_fills || !parts.is_empty();
        let data = is_virtual.then(|| Arc::new(Filled { file: joined, runs: Arc::clone(&runs), disk_len }));
        Ok(Chunks { runs, data, first, disk_len, image_len: image.len(), files_len, gaps })
    }
}

/// Extends the files to the longest, and returns the ranges of the disk that none of them
/// describes.
fn make_equal(first: &mut Part, others: &mut [Part]) -> Vec<Range<u64>> {
    let mut parts: Vec<&mut Part> = std::iter::once(first).chain(others).collect();
    let disk_len = parts.iter().map(|part| part.disk_len).max().unwrap_or(0);
    let mut said: Vec<Range<u64>> = parts.iter().filter_map(|part| part.said()).collect();
    for part in parts.iter_mut().filter(|part| part.disk_len < disk_len) {
        push(&mut part.runs, disk_len, Holds::Skipped);
        part.disk_len = disk_len;
    }
    if said.is_empty() {
        return Vec::new();
    }
    said.sort_by_key(|range| range.start);
    said.push(disk_len..disk_len);
    let (mut gaps, mut at) = (Vec::new(), 0);
    for range in said {
        gaps.extend((range.start > at).then_some(at..range.start));
        at = at.max(range.end);
    }
    gaps
}

/// Overlays the files of a split image, the first one lowest.
fn join(
    image: &Arc<dyn Image>,
    images: &[Arc<dyn Image>],
    first: &Part,
    parts: &[Part],
) -> Result<(Vec<Run>, Arc<dyn Image>)> {
    let mut runs = first.runs.clone();
    if parts.is_empty() {
        return Ok((runs, Arc::clone(image)));
    }
    let joined = JoinedImage::new(std::iter::once(image).chain(images).cloned())?;
    for (index, (part, image)) in (1..).zip(parts.iter().zip(images)) {
        if part.block_len != first.block_len {
            let (own, others) = (part.block_len, first.block_len);
            return Err(Error::usage(format!(
                "{} is no file of the same split image: blocks of {own} bytes, {others} expected",
                image.name()
            )));
        }
        runs = put_over(&runs, &part.runs, joined.start_of(index).unwrap_or(0));
    }
    Ok((runs, Arc::new(joined)))
}

/// Errors: a file of a split image without the others.
fn refuse_part(name: &str, first: &Part, gaps: &[Range<u64>]) -> Result<()> {
    let is_split = |gap: &&Range<u64>| gap.start == 0 && gap.end > START_MAX || name.contains(SPLIT_NAME);
    let Some(gap) = gaps.iter().find(is_split) else { return Ok(()) };
    let Range { start, end } = gap;
    let all = first.disk_len;
    let what = format!("one file of a split image: bytes {start} to {end} of {all} are in others");
    let error = Error::unsupported("android-sparse image", what).at(name);
    Err(error
        .hint("--device FILE adds each of the other files, in any order")
        .hint("simg2img FILE... disk.img joins them"))
}

/// The files, followed by a virtual disk of the data of fill chunks.
struct Filled {
    file: Arc<dyn Image>,
    runs: Arc<Vec<Run>>,
    disk_len: u64,
}

impl Filled {
    fn start(&self) -> u64 {
        self.file.len()
    }
}

impl Image for Filled {
    fn len(&self) -> u64 {
        self.start().plus(self.disk_len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if offset < self.start() {
            return self.file.read_at(offset, buf);
        }
        let at = offset.minus(self.start());
        let len = usize_of(left(self.disk_len, at)).min(buf.len());
        let Some(buf) = buf.get_mut(..len) else { return Ok(0) };
        buf.fill(0);
        each_run(&self.runs, range_at(at, len as u64), &mut |part, _, holds| {
            if let Holds::Fill(fill) = holds {
                let start = usize_of(part.start.minus(at));
                let end = start.plus(usize_of(len_of(&part)));
                // Blocks are multiples of four bytes.
                let bytes = fill.iter().cycle().skip(usize_of(part.start % 4));
                for (to, byte) in buf.within_mut(start..end).iter_mut().zip(bytes) {
                    *to = *byte;
                }
            }
            Ok(true)
        })?;
        Ok(len)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }

    fn name(&self) -> String {
        self.file.name()
    }
}

impl Map for Chunks {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        each_run(&self.runs, range, &mut |part, start, holds| {
            let place = match holds {
                Holds::Stored(at) => Place::Stored(at.plus(part.start.minus(start))),
                Holds::Fill(_) => Place::Stored(self.files_len.plus(part.start)),
                Holds::Zeros | Holds::Skipped => Place::Hole,
            };
            visit(part, place)
        })
    }

    fn add_facts(&self, facts: &mut Facts) {
        facts.push("block_len", "Block size", FactValue::Bytes(self.first.block_len.into()));
        facts.push("chunks", "Chunks", FactValue::Count(self.first.chunk_count.into()));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        self.first.heads.iter().map(|head| (head.clone(), "chunk headers")).collect()
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        self.data.clone().map(|data| data as Arc<dyn Image>)
    }

    fn check_opened(&self, report: &mut Report<'_>) {
        for Range { start, end } in &self.gaps {
            let text = format!(
                "bytes {start} to {end} of the disk are not stored, and read as zeros; --device FILE adds \
                 other files of a split image"
            );
            report.warn("disk", text);
        }
    }

    fn check(&self, report: &mut Report<'_>) -> Result<()> {
        if self.image_len > self.first.end {
            let len = self.image_len.minus(self.first.end);
            report.note("image", format_args!("{len} bytes after the last chunk"));
        }
        Ok(())
    }
}
