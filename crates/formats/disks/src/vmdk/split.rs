//! A disk of several files, listed by its descriptor: flat ones, or sparse ones of up to 2 GiB.
//!
//! Owns their order on the disk. No path of a descriptor is opened: the caller gives the files, and
//! each is identified by its name, or else by its index.

use super::corruption::Corruption;
use super::descriptor::{Descriptor, Part};
use super::{Grains, INFO, sector};
use crate::unsupported;
use crate::volume::{Map, Place, Visit};
use packfs_core::{Error, Image, JoinedImage, Result, len_of};
use packfs_format::{FactValue, Facts, FormatInfo, units::*};
use std::ops::Range;
use std::sync::Arc;

/// Limit of parts: those of 2 GiB of the largest disk.
const PARTS_MAX: usize = 64 << 10;

enum From {
    Zeros,
    /// Range of the part in the concatenated files.
    Flat(Range<u64>),
    /// The grains of a file, and its start in the concatenated files.
    Sparse(Box<Grains>, u64),
}

pub(super) struct Split {
    descriptor: Descriptor,
    /// End of each part on the disk, and its source.
    parts: Vec<(u64, From)>,
    joined: Arc<JoinedImage>,
    disk_len: u64,
}

impl Split {
    /// Reads the descriptor, and the headers of the given files.
    ///
    /// Errors: `Corrupt`, `Unsupported` for files that are not given and for unknown types, `Usage`
    /// for files that the descriptor does not list, `Io`.
    pub(super) fn read(image: &Arc<dyn Image>, files: Vec<Arc<dyn Image>>) -> Result<Split> {
        let descriptor = Descriptor::read_file(&**image)?;
        descriptor.refuse_difference()?;
        if descriptor.extents.is_empty() || descriptor.extents.len() > PARTS_MAX {
            return Err(Corruption::PartCount { max: PARTS_MAX }.into());
        }
        let joined = JoinedImage::new(std::iter::once(image).chain(&files).cloned())?;
        let mut split = Split { parts: Vec::new(), joined: Arc::new(joined), descriptor, disk_len: 0 };
        let mut names: Vec<&str> = split.descriptor.extents.iter().map(|part| &*part.file).collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        let order = in_order(&names, &files)?;
        for (index, part) in split.descriptor.extents.iter().enumerate() {
            let file = names.iter().position(|name| *name == part.file).and_then(|it| order.get(it));
            let file = file.and_then(|file| Some((*file, files.get(*file)?)));
            let from = source(index, part, file, &split.joined)?;
            let end = end_of(split.disk_len, sector(part.sectors));
            if end > i64::MAX as u64 {
                return Err(Corruption::Capacity { found: part.sectors }.into());
            }
            split.parts.push((end, from));
            split.disk_len = end;
        }
        Ok(split)
    }
}

/// Returns the index of the file for each name: the one with that name, or the next one without any
/// listed name.
fn in_order(names: &[&str], files: &[Arc<dyn Image>]) -> Result<Vec<usize>> {
    if files.len() > names.len() {
        let (given, found) = (files.len(), names.len());
        return Err(Error::usage(format!("{given} files are given, but the descriptor names {found}")));
    }
    let base = |name: &str| name.trim_matches('"').rsplit('/').next().unwrap_or(name).to_owned();
    let own: Vec<String> = files.iter().map(|file| base(&file.name())).collect();
    let is_named =
        |file: &usize| own.get(*file).is_some_and(|own| names.iter().any(|name| base(name) == *own));
    let mut others = (0..files.len()).filter(|file| !is_named(file));
    let find = |name: &&str| own.iter().position(|own| *own == base(name)).or_else(|| others.next());
    let found: Vec<Option<usize>> = names.iter().map(find).collect();
    match found.iter().zip(names).find(|(file, _)| file.is_none()) {
        None => Ok(found.into_iter().flatten().collect()),
        Some((_, name)) => {
            let what = format!("a part of the disk is in the file {name:?}, which is not given");
            let options: Vec<String> = names.iter().map(|name| format!("--device {name:?}")).collect();
            let options = options.within(..options.len().min(4)).join(" ");
            Err(Error::unsupported("vmdk image", what).hint(format!("{options} adds the files of the disk")))
        }
    }
}

fn source(
    index: usize,
    part: &Part,
    file: Option<(usize, &Arc<dyn Image>)>,
    joined: &JoinedImage,
) -> Result<From> {
    if part.kind == "ZERO" {
        return Ok(From::Zeros);
    }
    let Some((number, file)) = file else { return Err(Corruption::PartFile { index }.into()) };
    // The descriptor is the first file.
    let base = joined.start_of(number.plus(1)).ok_or(Corruption::PartFile { index })?;
    let (first, len) = (sector(part.first), sector(part.sectors));
    match &*part.kind {
        "FLAT" | "VMFS" => {
            let (end, limit) = (end_of(first, len), file.len());
            if end > limit {
                return Err(Corruption::PartEnd { index, end, limit }.into());
            }
            Ok(From::Flat(base.plus(first)..base.plus(end)))
        }
        "SPARSE" => {
            let grains = Grains::read_part(file).map_err(|error| error.at(file.name()))?;
            let (end, limit) = (len, grains.disk_len());
            if end > limit {
                return Err(Corruption::PartEnd { index, end, limit }.into());
            }
            Ok(From::Sparse(Box::new(grains), base))
        }
        other => {
            let what = format!("a part of the kind {other}, FLAT, SPARSE, VMFS, and ZERO are supported");
            Err(unsupported("vmdk image", what))
        }
    }
}

impl Map for Split {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn disk_len(&self) -> u64 {
        self.disk_len
    }

    fn each(&self, range: Range<u64>, visit: &mut Visit<'_>) -> Result<()> {
        let first = self.parts.partition_point(|(end, _)| *end <= range.start);
        let mut start = first.checked_sub(1).and_then(|index| self.parts.get(index)).map_or(0, |it| it.0);
        for (end, from) in self.parts.iter().skip(first) {
            let part = start.max(range.start)..range.end.min(*end);
            if part.is_empty() || !each_of(from, start, part, visit)? {
                break;
            }
            start = *end;
        }
        Ok(())
    }

    fn add_facts(&self, facts: &mut Facts) {
        let kind = self.descriptor.kind().map_or("unknown".into(), str::to_owned);
        facts.push("kind", "Kind", FactValue::Text(kind));
        facts.push("parts", "Parts", FactValue::Count(self.parts.len() as u64));
    }

    fn structures(&self) -> Vec<(Range<u64>, &'static str)> {
        vec![(self.descriptor.range(), "descriptor")]
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Some(Arc::clone(&self.joined) as Arc<dyn Image>)
    }
}

/// Visits a range of the disk in the part that begins at `start`; returns false if `visit` stopped.
fn each_of(from: &From, start: u64, range: Range<u64>, visit: &mut Visit<'_>) -> Result<bool> {
    let within = |at: u64| at.minus(start);
    match from {
        From::Zeros => visit(range, Place::Hole),
        From::Flat(bytes) => {
            let at = bytes.start.plus(within(range.start));
            visit(range, Place::Stored(at))
        }
        From::Sparse(grains, base) => {
            let mut goes_on = true;
            grains.each(within(range.start)..within(range.end), &mut |part, place| {
                let place = match place {
                    Place::Stored(at) => Place::Stored(base.plus(at)),
                    Place::Block { mut block, start } => {
                        block.offset = base.plus(block.offset);
                        Place::Block { block, start }
                    }
                    place => place,
                };
                let begin = start.plus(part.start);
                goes_on = visit(begin..begin.plus(len_of(&part)), place)?;
                Ok(goes_on)
            })?;
            Ok(goes_on)
        }
    }
}
