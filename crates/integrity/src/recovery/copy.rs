//! Repairs a copy of an image, and compares an image with the recovery data beside it.

use super::index::RecoveryIndex;
use super::repair::{RecoveryState, ensure_repairable, repair, survey};
use crate::paths::recovery_path;
use packfs_core::{Error, FileImage, Image, Progress, Result, ResultExt};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes copied at a time around an unreadable part: a disk may have bad sectors.
const COPY_LEN: usize = 4096;

/// Compares an image with the recovery data beside it, if that exists.
pub fn survey_beside(
    image: &Path,
    jobs: usize,
    progress: &dyn Progress,
) -> Option<Result<(RecoveryIndex, RecoveryState)>> {
    let beside = recovery_path(image);
    beside.is_file().then(|| {
        let (image, file) = (FileImage::open(image)?, FileImage::open(&beside)?);
        let index = RecoveryIndex::read(&file)?;
        let state = survey(&image, &file, &index, jobs, progress)?;
        Ok((index, state))
    })
}

/// Fills `out`, an empty file, with the repaired image. Nothing is written if repair is impossible.
///
/// Errors: those of [`repair`].
pub fn repair_copy(
    image: &dyn Image,
    file: &dyn Image,
    index: &RecoveryIndex,
    state: &RecoveryState,
    out: &File,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<()> {
    ensure_repairable(image, index, state)?;
    copy(image, out, index.params.image_len.max(image.len()), progress)?;
    repair(image, file, index, state, out, jobs, progress)
}

/// Unreadable parts become holes, which repaired blocks replace.
fn copy(image: &dyn Image, out: &File, len: u64, progress: &dyn Progress) -> Result<()> {
    let cannot = || "cannot write a repaired copy";
    out.set_len(len).or_io(cannot)?;
    let mut large = vec![0; 256 * COPY_LEN];
    let mut at = 0;
    while at < image.len() {
        if progress.cancelled() {
            return Err(Error::cancelled());
        }
        let part_len = large.len().min(usize::try_from(image.len() - at).unwrap_or(usize::MAX));
        match image.read_at(at, &mut large[..part_len]) {
            Ok(read) => out.write_all_at(&large[..read], at).or_io(cannot)?,
            Err(_) => copy_around(image, out, at, part_len)?,
        }
        at += part_len as u64;
    }
    Ok(())
}

fn copy_around(image: &dyn Image, out: &File, start: u64, len: usize) -> Result<()> {
    let mut small = [0; COPY_LEN];
    for offset in (0..len).step_by(COPY_LEN) {
        let at = start + offset as u64;
        if let Ok(read) = image.read_at(at, &mut small[..COPY_LEN.min(len - offset)]) {
            out.write_all_at(&small[..read], at).or_io(|| "cannot write a repaired copy")?;
        }
    }
    Ok(())
}
