//! Verifies an image before it gets its name: it is opened and decoded as any other, and held
//! against what was packed.

use packfs_check::Expected;
use packfs_core::{Error, ErrorKind, Image, Limits, Progress, Result, ResultExt};
use packfs_core::{FileImage, SliceImage};
use packfs_format::{Opening, Volume};
use packfs_pack::{Verify, Written, WrittenFile};
use packfs_read::{ReadEngine, ReadOptions};
use std::path::Path;
use std::sync::Arc;

/// An image is verified without being asked for if its files are shorter than this together.
pub(crate) const UNASKED_LEN: u64 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Verifier;

impl Verify for Verifier {
    fn verify(&self, written: &Written<'_>, progress: &dyn Progress) -> Result<()> {
        read_back(written, progress).map_err(|error| match error.kind() {
            ErrorKind::Io | ErrorKind::Cancelled => error,
            _ => {
                let name = &written.image.name;
                Error::failed(format!("cannot verify {name}, so it was not created: {error}"))
                    .hint("check memory and disk; if both are healthy, report a bug of packfs")
            }
        })
    }
}

fn read_back(written: &Written<'_>, progress: &dyn Progress) -> Result<()> {
    let image = open(&written.image)?;
    let devices = written.data_files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let name = written.format.format().name;
    let format = packfs_formats::by_name(name)
        .ok_or_else(|| Error::failed(format!("internal: nothing reads {name}")))?;
    let opening = Opening { devices, ..Opening::default() };
    let volume: Arc<dyn Volume> = Arc::from(format.open_with(Arc::clone(&image), opening)?);
    // Every block is decoded once, in the order of the disk: nothing need be kept or decoded ahead.
    // What was packed was within the limits of its source already.
    let options = ReadOptions {
        jobs: written.jobs,
        cache_bytes: 0,
        readahead_bytes: 0,
        limits: Limits::none(),
        ..ReadOptions::default()
    };
    let engine = ReadEngine::new(image, volume, options);
    let Written { format, tree, failed, contents, .. } = *written;
    packfs_check::written(&engine, &Expected { format, tree, failed, contents }, progress)
}

fn open(written: &WrittenFile<'_>) -> Result<Arc<dyn Image>> {
    let file = written.file.try_clone().or_io(|| format!("cannot read {}", written.name))?;
    let image = FileImage::of(file, Path::new(written.name.trim_matches('"')))?;
    Ok(Arc::new(SliceImage::new(Arc::new(image), written.start, Some(written.len))?))
}
