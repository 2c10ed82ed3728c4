//! Merging in a store: metadata is uploaded, and the store copies the data of images that it has.

use crate::{MergeInput, MergeOptions, MergeReport, Move};
use packfs_core::{Copied, FileImage, Image, Progress, Result};
use packfs_format::Format;
use std::path::Path;
use std::sync::Arc;

/// Merges into an object, by way of a file `staged` for its metadata. `create` makes the object of
/// an image, has the store copy ranges of it, and returns the number of bytes copied.
///
/// Errors: as [`crate::merge`], and those of `create`.
pub fn merge_into_object(
    format: &dyn Format,
    inputs: &[MergeInput],
    staged: &Path,
    options: &MergeOptions,
    progress: &dyn Progress,
    create: impl FnOnce(&dyn Image, &[Copied<'_>]) -> Result<u64>,
) -> Result<MergeReport> {
    let written = crate::written(format, inputs, staged, options, true, progress)?;
    let (report, moves) = (written.report, written.left);
    let data = inputs.iter().map(MergeInput::data_image).collect();
    let image = Filled { base: FileImage::open(staged)?, data, moves: &moves };
    let copied: Vec<Copied<'_>> = moves.iter().filter_map(|row| copied(row, inputs)).collect();
    let copied_len = create(&image, &copied)?;
    let moved_bytes = moves.iter().map(Move::data_len).fold(0, u64::saturating_add);
    Ok(MergeReport { moved_bytes, moved_by_system_bytes: copied_len, ..report })
}

/// Returns a range that a store can copy: of an image whose data lies at the same offsets of an
/// object.
fn copied<'a>(row: &Move, inputs: &'a [MergeInput]) -> Option<Copied<'a>> {
    let input = inputs.get(row.input)?;
    let from = &*input.image;
    (from.object().is_some() && input.volume.data_image().is_none()).then_some(())?;
    let len = row.from.end.min(from.len()).saturating_sub(row.from.start);
    Some(Copied { from, start: row.from.start, at: row.to, len })
}

/// Image with holes that are filled by data of others.
struct Filled<'a> {
    base: FileImage,
    data: Vec<Arc<dyn Image>>,
    /// In the order of their place.
    moves: &'a [Move],
}

impl Image for Filled<'_> {
    fn len(&self) -> u64 {
        self.base.len()
    }

    fn check_unchanged(&self) -> Result<()> {
        self.data.iter().try_for_each(|image| image.check_unchanged())
    }

    fn name(&self) -> String {
        self.base.name()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = packfs_core::usize_of(self.len().saturating_sub(offset)).min(buf.len());
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..len).filter(|rest| !rest.is_empty()) {
            done += self.read_part(offset.saturating_add(done as u64), rest)?;
        }
        Ok(done)
    }
}

impl Filled<'_> {
    /// Reads up to where data begins or ends; at least a byte.
    fn read_part(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let end_of = |row: &Move| row.to.saturating_add(row.data_len());
        let index = self.moves.partition_point(|row| end_of(row) <= offset);
        let row = self.moves.get(index);
        let held = row.filter(|row| row.to <= offset);
        let until = held.map_or(row.map_or(u64::MAX, |row| row.to), end_of);
        let len = packfs_core::usize_of(until.saturating_sub(offset)).min(buf.len());
        let part = buf.get_mut(..len).unwrap_or_default();
        match held.and_then(|row| Some((row, self.data.get(row.input)?))) {
            None => self.base.read_exact_at(offset, part)?,
            Some((row, image)) => {
                // What lies past the end of an input is zeros.
                let read =
                    image.read_at(row.from.start.saturating_add(offset.saturating_sub(row.to)), part)?;
                part.get_mut(read..).unwrap_or_default().fill(0);
            }
        }
        Ok(len)
    }
}
