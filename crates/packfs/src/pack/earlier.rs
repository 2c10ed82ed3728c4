//! The image whose blocks a new one copies: one that is named as the base, or the one that is packed again.

use crate::{OpenOptions, Opened};
use packfs_core::{Contents, Error, Progress, Result};
use packfs_format::{Format, PackFormat, PackSettings};
use packfs_pack::{Base, Proof};
use packfs_read::LoadedVolume;
use packfs_source::{Loaded, Shape};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) enum Earlier {
    /// There is none.
    #[default]
    None,
    /// An image that was made of an earlier state of the source; `times`: these tell which files are the same.
    Image { path: PathBuf, times: bool },
    /// The source, an image itself; `unread`: its blocks are not even decoded.
    Source { unread: bool },
}

impl Earlier {
    /// Opens an image that was named.
    ///
    /// Errors: `Usage` for one whose blocks cannot be used, or that is about to be overwritten, and those of opening it.
    pub(crate) fn open_base(
        &self,
        packer: &dyn PackFormat,
        output: &Path,
        opening: &OpenOptions,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Base>>> {
        let Earlier::Image { path, times } = self else { return Ok(None) };
        refuse_overwriting(path, output)?;
        let opened = opening.open(path)?;
        let proof = if *times { Proof::Times } else { Proof::Contents };
        let base = base(&opened, opened.load(progress)?, proof);
        base.check(packer)?;
        Ok(Some(Arc::new(base)))
    }

    /// Loads the source, and as the base if its blocks can be used.
    ///
    /// Errors: as [`crate::Source::load`].
    pub(crate) fn load_source(
        &self,
        opened: &Opened,
        packer: &dyn PackFormat,
        shape: &Shape,
        progress: &dyn Progress,
    ) -> Result<(Loaded, Option<Arc<Base>>)> {
        let proof = match self {
            Earlier::Source { unread: true } => Proof::SourceUnread,
            _ => Proof::Source,
        };
        let loaded = opened.load(progress)?;
        let contents: Arc<dyn Contents> = Arc::clone(opened.engine()) as _;
        let shaped = packfs_source::shape_tree(&loaded.tree, contents, shape)?;
        let base = base(opened, loaded, proof);
        let base = base.check(packer).is_ok().then(|| Arc::new(base));
        Ok((shaped, base))
    }

    /// The settings that were given; of an image that is packed again, those it has where none were.
    pub(crate) fn settings(
        &self,
        given: &PackSettings,
        format: &dyn Format,
        source: Option<&Opened>,
    ) -> PackSettings {
        let mut settings = given.clone();
        let same_format = source.filter(|source| source.format().name() == format.name());
        if let Some(coding) = same_format.and_then(|source| source.volume().coding()) {
            settings.block_len = settings.block_len.or(coding.typed_len);
            settings.codec.get_or_insert(coding.spec);
        }
        settings
    }
}

fn base(opened: &Opened, loaded: LoadedVolume, proof: Proof) -> Base {
    let (volume, image) = (Arc::clone(opened.volume()), Arc::clone(opened.image()));
    Base::new(volume, image, loaded.tree, loaded.inodes, proof)
}

/// Errors: `Usage` for a block device that is both read and written; files are replaced only when the image is complete.
pub(crate) fn refuse_overwriting(base: &Path, output: &Path) -> Result<()> {
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
