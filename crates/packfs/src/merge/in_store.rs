//! Merging in a store: metadata is uploaded, and the store copies the data of images that it has.

use crate::output_place::Upload;
use packfs_core::{FileImage, Image, Progress, Result};
use packfs_format::Format;
use packfs_merge::{MergeInput, MergeOptions, MergeReport, Move};
use packfs_remote::{Copied, RemoteImage};
use std::path::Path;
use std::sync::Arc;

/// Merges into an object. `remote` are the inputs that lie at URLs, in the order of the inputs.
///
/// Errors: as [`packfs_merge::merge`], and those of the store.
pub(super) fn merge(
    format: &dyn Format,
    inputs: &[MergeInput],
    remote: &[Option<Arc<RemoteImage>>],
    (upload, staged): (&Upload, &Path),
    options: &MergeOptions,
    progress: &dyn Progress,
) -> Result<MergeReport> {
    let (report, moves) = packfs_merge::merge_without_data(format, inputs, staged, options, progress)?;
    let image = Filled { base: FileImage::open(staged)?, data: data_images(inputs), moves: &moves };
    let copied: Vec<Copied<'_>> = moves.iter().filter_map(|row| copied(row, inputs, remote)).collect();
    let copied_len = upload.send(&image, &copied, progress)?;
    let moved_bytes = moves.iter().map(Move::len).fold(0, u64::saturating_add);
    Ok(MergeReport { moved_bytes, moved_by_system_bytes: copied_len, ..report })
}

fn data_images(inputs: &[MergeInput]) -> Vec<Arc<dyn Image>> {
    inputs.iter().map(MergeInput::data_image).collect()
}

/// Returns a range that a store can copy: of an image whose data lies at the same offsets of an
/// object.
fn copied<'a>(
    row: &Move,
    inputs: &[MergeInput],
    remote: &'a [Option<Arc<RemoteImage>>],
) -> Option<Copied<'a>> {
    let from = remote.get(row.input)?.as_deref()?;
    inputs.get(row.input)?.volume.data_image().is_none().then_some(())?;
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

    fn name(&self) -> String {
        self.base.name()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let index = self.moves.partition_point(|row| row.to.saturating_add(row.len()) <= offset);
        let Some(row) = self.moves.get(index) else { return self.base.read_at(offset, buf) };
        let until = if offset < row.to { row.to } else { row.to.saturating_add(row.len()) };
        let len = packfs_core::usize_of(until.saturating_sub(offset)).min(buf.len());
        let part = buf.get_mut(..len).unwrap_or_default();
        if offset < row.to {
            return self.base.read_at(offset, part);
        }
        let Some(image) = self.data.get(row.input) else { return Ok(0) };
        let at = row.from.start.saturating_add(offset.saturating_sub(row.to));
        // What lies past the end of an input is zeros.
        let held = packfs_core::usize_of(image.len().saturating_sub(at)).min(len);
        if held == 0 {
            part.fill(0);
            return Ok(len);
        }
        image.read_at(at, part.get_mut(..held).unwrap_or_default())
    }
}
