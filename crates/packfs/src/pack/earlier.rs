//! The image whose blocks a new one copies: one that is named as the base, or the one that is
//! packed again.

use super::job::Job;
use crate::{BaseCheck, Opened};
use packfs_core::{Contents, Error, Progress, Result};
use packfs_format::{Format, PackFormat, PackSettings};
use packfs_pack::{Base, Proof};
use packfs_read::LoadedVolume;
use packfs_source::{Loaded, Shape};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// Opens the base that the options name.
///
/// Errors: `Usage` for one whose blocks cannot be used, or that is about to be overwritten, and
/// those of opening it.
pub(super) fn open_base(path: &Path, packer: &dyn PackFormat, job: &Job<'_>) -> Result<Arc<Base>> {
    refuse_overwriting(path, job.output)?;
    let opened = job.options.plainly_opening().open(path)?;
    let proof = match job.options.base_check {
        BaseCheck::Times => Proof::Times,
        BaseCheck::Contents => Proof::Contents,
    };
    let base = base(&opened, opened.load(job.progress)?, proof);
    base.check(packer)?;
    Ok(Arc::new(base))
}

/// Loads an image that is packed again, and as the base if its blocks can be used; with `trust`
/// they are not decoded.
///
/// Errors: as [`crate::Source::load`].
pub(super) fn load_source(
    opened: &Opened,
    trust: bool,
    packer: &dyn PackFormat,
    shape: &Shape,
    progress: &dyn Progress,
) -> Result<(Loaded, Option<Arc<Base>>)> {
    let proof = if trust { Proof::SourceUnread } else { Proof::Source };
    let loaded = opened.load(progress)?;
    let contents: Arc<dyn Contents> = Arc::clone(opened.engine()) as _;
    let shaped = packfs_source::shape_tree(&loaded.tree, contents, shape)?;
    let base = base(opened, loaded, proof);
    let base = base.check(packer).is_ok().then(|| Arc::new(base));
    Ok((shaped, base))
}

/// Completes settings by those of the image that is packed again, if the format stays.
pub(super) fn settings(mut settings: PackSettings, format: &dyn Format, source: &Opened) -> PackSettings {
    let same_format = Some(source).filter(|source| source.format().name() == format.name());
    if let Some(coding) = same_format.and_then(|source| source.volume().coding()) {
        settings.block_size = settings.block_size.or(coding.typed_len);
        settings.codec.get_or_insert(coding.spec);
    }
    settings
}

fn base(opened: &Opened, loaded: LoadedVolume, proof: Proof) -> Base {
    let (volume, image) = (Arc::clone(opened.volume()), Arc::clone(opened.image()));
    Base::new(volume, image, loaded.tree, loaded.inodes, proof)
}

/// Errors: `Usage` for a block device that is both read and written; files are replaced only when
/// the image is complete.
pub(super) fn refuse_overwriting(base: &Path, output: &Path) -> Result<()> {
    let (Ok(base_is), Ok(output_is)) = (std::fs::metadata(base), std::fs::metadata(output)) else {
        return Ok(());
    };
    let both_devices = base_is.file_type().is_block_device() && output_is.file_type().is_block_device();
    if both_devices && base_is.rdev() == output_is.rdev() {
        let what = format!("{output:?} cannot be both read and the output: it is written in place");
        return Err(Error::usage(what));
    }
    Ok(())
}
