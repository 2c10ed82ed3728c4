//! [`wrap`]: an image in a container, such as a cloop, without looking at what it holds.

use super::{Pack, PackOptions, SourceArg, output_format};
use crate::watcher::Watcher;
use crate::{OpenOptions, Source};
use packfs_core::{Error, Goal, Progress, Result};
use packfs_format::Makes;
use packfs_pack::PackReport;
use std::path::{Path, PathBuf};

/// Wraps the file or block device `image` into a new container `output`, once [`Wrap::run`] is
/// called.
///
/// The bytes of `image` are compressed as they are, filled up with zeros to whole blocks; their
/// format need not be known. Of a container of the target's own format the image in it is wrapped,
/// which converts between versions. To wrap a directory or an archive, [`pack`](crate::pack()) it
/// into an image first.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (disk, path) = (dir.path().join("disk.img"), dir.path().join("disk.cloop"));
/// # packfs::pack_files([("etc/hostname", "example\n")], &disk)?.codec("none").run()?;
/// packfs::wrap(&disk, &path).with(|options| options.codec = Some("gzip:9".into())).run()?;
/// // The image in the container is what opens.
/// assert_eq!(packfs::open(&path)?.read("etc/hostname")?, b"example\n");
/// # Ok(())
/// # }
/// ```
pub fn wrap(image: impl AsRef<Path>, output: impl AsRef<Path>) -> Wrap {
    Wrap {
        image: image.as_ref().into(),
        output: output.as_ref().into(),
        options: WrapOptions::default(),
        watcher: Watcher::default(),
    }
}

/// A container that is to be made of an image.
#[derive(Clone, Debug)]
pub struct Wrap {
    image: PathBuf,
    output: PathBuf,
    pub(super) options: WrapOptions,
    pub(super) watcher: Watcher,
}

/// Options of [`wrap`], with the meanings and defaults of those of [`PackOptions`], which has more.
#[derive(Clone, Debug)]
pub struct WrapOptions {
    /// Name of the format; `None`: by the extension of the output.
    pub format: Option<String>,
    /// Codec as `NAME[:LEVEL][,KEY=VALUE...]`.
    pub codec: Option<String>,
    /// Block size in bytes.
    pub block_size: Option<u32>,
    /// Goal that decides where no option does.
    pub optimize: Goal,
    /// Options of the format, by name and value.
    pub options: Vec<(String, String)>,
    /// Part and offset of the image in its file.
    pub source: OpenOptions,
    /// Threads that compress; 0: one for each processor.
    pub jobs: usize,
    /// Memory limit in bytes, instead of that of this process's control groups.
    pub memory: Option<u64>,
    /// Largest length of the container in bytes.
    pub max_size: Option<u64>,
    /// Reads the container back before it gets its name. `None`: if the image is shorter than
    /// 1 GiB.
    pub verify: Option<bool>,
    /// Set, as by default, to have the container on the disk before it gets its name.
    pub sync: bool,
}

impl Default for WrapOptions {
    fn default() -> Self {
        let options = PackOptions::default();
        WrapOptions {
            format: options.format,
            codec: options.codec,
            block_size: options.block_size,
            optimize: options.optimize,
            options: options.options,
            source: options.source,
            jobs: options.jobs,
            memory: options.memory,
            max_size: options.max_size,
            verify: options.verify,
            sync: options.sync,
        }
    }
}

impl From<WrapOptions> for PackOptions {
    fn from(options: WrapOptions) -> Self {
        PackOptions {
            format: options.format,
            codec: options.codec,
            block_size: options.block_size,
            optimize: options.optimize,
            options: options.options,
            source: options.source,
            jobs: options.jobs,
            memory: options.memory,
            max_size: options.max_size,
            verify: options.verify,
            sync: options.sync,
            ..PackOptions::default()
        }
    }
}

impl Wrap {
    /// Makes the container, watched by a borrowed progress.
    ///
    /// Errors: `Usage` for a format that holds a tree of files; as [`Wrap::run`].
    pub fn run_with(&self, progress: &dyn Progress) -> Result<PackReport> {
        let format = output_format::choose(self.options.format.as_deref(), &self.output, None)?;
        let (name, info) = (format.name(), format.info());
        if info.makes != Makes::Image {
            let error = Error::usage(format!("cannot wrap an image in {name}: it holds a tree of files"));
            return Err(error.hint("a container is chosen by its format or the extension of the output"));
        }
        let source = SourceArg::Known(Source::Image(self.image.clone()));
        Pack::new(source, &self.output).options(self.options.clone().into()).run_with(progress)
    }
}
