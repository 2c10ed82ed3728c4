//! Makes images: of a source ([`Pack`]), of another image ([`Repack`]), or around one
//! ([`Wrap`]).

mod builder;
mod earlier;
mod excluding;
mod fitting;
mod job;
mod lists;
mod options;
mod output_format;
mod verifying;
mod wrap;
mod wrapping;

pub use wrap::{Wrap, WrapOptions, wrap};

use crate::watcher::Watcher;
use crate::{MadeAt, Opened, PackOptions, Source};
use job::Job;
#[cfg(feature = "remote")]
pub(crate) use job::warn_of_silence;
use lists::Lists;
use packfs_core::{
    Error, ErrorKind, Held, IntoImagePath, Meta, NodeKind, Progress, Result, TreeBuilder, Xattrs,
};
use packfs_format::PackFormat;
use packfs_pack::PackReport;
use packfs_source::{Loaded, Notes, Shape};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wrapping::WrapJob;

/// Packs `source` into a new image `output`, once [`Pack::run`] is called.
///
/// The source's contents tell its kind: see [`Source::detect`]. A file that is none of these, and
/// does not look as if it had been, is packed as the only file of the image, with a warning. For
/// another source, see [`Pack::of`] and [`pack_entries`]. The output may also be a block device, a
/// fifo, `-` for standard output, or `s3://BUCKET/KEY`; a pipe or store gets the image once it is
/// complete.
pub fn pack(source: impl AsRef<Path>, output: impl AsRef<Path>) -> Pack {
    Pack::new(SourceArg::Path(source.as_ref().into()), output.as_ref())
}

/// Makes another image of an image, once [`Repack::run`] is called: what is not said stays as it
/// is, format, codec and block size, and blocks that need not be compressed anew are copied. They
/// are decoded once all the same, so that damage does not spread; see [`Repack::trust`].
pub fn repack(image: impl AsRef<Path>, output: impl AsRef<Path>) -> Repack {
    Repack {
        image: image.as_ref().into(),
        output: output.as_ref().into(),
        trust: false,
        options: PackOptions::default(),
        watcher: Watcher::default(),
    }
}

/// Packs files and directories side by side into a new image `output`, once [`Pack::run`] is
/// called: each is an entry of the root under its own name, whatever it holds. [`Source::Merged`]
/// puts what directories hold together instead.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (app, data) = (dir.path().join("app.bin"), dir.path().join("data"));
/// # std::fs::create_dir_all(data.join("en")).unwrap();
/// # std::fs::write(&app, "program").unwrap();
/// # let path = dir.path().join("app.sqfs");
/// packfs::pack_entries([&app, &data], &path).run()?;
/// assert_eq!(packfs::open(&path)?.read("app.bin")?, b"program");
/// # Ok(())
/// # }
/// ```
pub fn pack_entries<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, output: impl AsRef<Path>) -> Pack {
    Pack::of(Source::Entries(paths.into_iter().map(|path| path.as_ref().into()).collect()), output)
}

/// Packs files that are in memory into a new image `output`, once [`Pack::run`] is called: paths
/// within the image, and what each file holds. Directories above them are made; everything belongs
/// to root and is as old as 1970. A path that comes again replaces the file before it.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("root.erofs");
/// let files = [("etc/hostname", "example\n"), ("etc/motd", "hello\n")];
/// packfs::pack_files(files, &path)?.codec("lz4").run()?;
/// assert_eq!(packfs::open(&path)?.read("etc/motd")?, b"hello\n");
/// # Ok(())
/// # }
/// ```
///
/// Errors: `Usage` for what is no path, `Failed` if one leads through another's file.
pub fn pack_files<P, B>(files: impl IntoIterator<Item = (P, B)>, output: impl AsRef<Path>) -> Result<Pack>
where
    P: IntoImagePath,
    B: AsRef<[u8]>,
{
    let meta = |mode| Meta { mode, ..Meta::default() };
    let (mut tree, mut held) = (TreeBuilder::new(meta(0o755)), Held::default());
    for (path, bytes) in files {
        let bytes = bytes.as_ref();
        let kind = NodeKind::File { len: bytes.len() as u64, content: held.push(bytes) };
        tree.add(&path.into_image_path()?, kind, meta(0o644), Xattrs::new())?;
    }
    let loaded = Loaded { tree: tree.finish()?, contents: Arc::new(held), notes: Notes::default() };
    Ok(Pack::of_loaded(Arc::new(loaded), output))
}

/// Source of an image, as the caller named it.
#[derive(Clone, Debug)]
enum SourceArg {
    Path(PathBuf),
    Known(Source),
    Loaded(LoadedSource),
}

/// A source that was looked through before.
#[derive(Clone)]
struct LoadedSource(Arc<Loaded>);

impl std::fmt::Debug for LoadedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} names", self.0.tree.entry_count())
    }
}

/// An image that is to be made of a source.
#[derive(Clone, Debug)]
pub struct Pack {
    source: SourceArg,
    output: PathBuf,
    options: PackOptions,
    watcher: Watcher,
}

/// An image that is to be made of another one.
#[derive(Clone, Debug)]
pub struct Repack {
    image: PathBuf,
    output: PathBuf,
    trust: bool,
    options: PackOptions,
    watcher: Watcher,
}

impl Pack {
    /// Packs a source that is already known.
    pub fn of(source: Source, output: impl AsRef<Path>) -> Self {
        Pack::new(SourceArg::Known(source), output.as_ref())
    }

    /// Packs a tree that was looked through before, by [`Source::load`] or otherwise, for callers
    /// that pack it several times, or parts of it. It is packed as it is: [`PackOptions::shape`]
    /// and [`PackOptions::limits`] do nothing.
    pub fn of_loaded(loaded: Arc<Loaded>, output: impl AsRef<Path>) -> Self {
        Pack::new(SourceArg::Loaded(LoadedSource(loaded)), output.as_ref())
    }

    fn new(source: SourceArg, output: &Path) -> Self {
        Pack { source, output: output.into(), options: PackOptions::default(), watcher: Watcher::default() }
    }

    /// Packs, watched by a progress that is only lent.
    ///
    /// Errors: as [`Pack::run`].
    pub fn run_with(&self, progress: &dyn Progress) -> Result<PackReport> {
        let options = &self.options;
        let format = output_format::choose(options.format.as_deref(), &self.output, None)?;
        let settings = options.settings();
        // Wrong settings are told before the source is read, which may take long.
        let mut packer = format.packer(&settings)?;
        let place = options.place(&self.output)?;
        let job = Job { options, output: place.path(), format, settings, progress };
        let report = self.run_job(&job, &mut *packer)?;
        place.finish(progress)?;
        Ok(report)
    }

    fn run_job(&self, job: &Job<'_>, packer: &mut dyn PackFormat) -> Result<PackReport> {
        if let Some(wrapping) = packer.wraps() {
            return WrapJob { job, packer, wrapping: &wrapping }.run(&self.source);
        }
        let lists = Lists::read(job.options)?;
        let base = match &job.options.base {
            None => None,
            Some(path) => Some(earlier::open_base(path, packer, job)?),
        };
        let loaded = self.load(&job.shape(packer.layout().data_files()), job.progress)?;
        job.pack_loaded(&loaded, &lists, base, packer)
    }

    /// Writes an image of metadata alone, which has the file that the source is read from as its
    /// device, such as an archive that is not compressed; the option `device` of the format names
    /// it. The image followed by this file holds both.
    ///
    /// Errors: `Unsupported` for files that are not stored in whole blocks there; as [`Pack::run`].
    pub fn index_with(&self, progress: &dyn Progress) -> Result<PackReport> {
        let options = &self.options;
        let format = output_format::choose(options.format.as_deref(), &self.output, None)?;
        let (output, settings) = (&*self.output, options.settings());
        let job = Job { options, output, format, settings, progress };
        let loaded = self.load(&job.shape(&[]), progress)?;
        let packer = format.packer(&job.settings_of(&loaded.tree))?;
        let engine = packfs_pack::PackOptions { index_only: true, ..options.engine() };
        packfs_pack::pack(&loaded.tree, &*loaded.contents, &*packer, &self.output, &engine, progress)
    }

    /// Looks through the source.
    fn load(&self, shape: &Shape, progress: &dyn Progress) -> Result<Arc<Loaded>> {
        let opening = self.options.opening();
        let source = match &self.source {
            SourceArg::Loaded(_) if opening.is_about_an_image() => {
                let what = "has no part, offset, magic or further devices";
                return Err(Error::usage(format!("a loaded tree {what}")));
            }
            SourceArg::Loaded(loaded) => return Ok(Arc::clone(&loaded.0)),
            SourceArg::Known(source) => source.clone(),
            SourceArg::Path(path) => Source::detect_to_pack(path, &opening, progress)?,
        };
        let loaded = source.load_with(&opening, shape, progress);
        Ok(Arc::new(loaded.map_err(|error| match (&self.source, &source, error.kind()) {
            (SourceArg::Path(_), Source::Tar(_), ErrorKind::Corrupt) => {
                error.hint("if it is no archive: packfs pack --as-file packs the file itself")
            }
            _ => error,
        })?))
    }
}

impl Repack {
    /// Copies blocks without decoding them, damaged or not.
    #[must_use]
    pub fn trust(mut self, yes: bool) -> Self {
        self.trust = yes;
        self
    }

    /// Packs, watched by a progress that is only lent.
    ///
    /// Errors: as [`Repack::run`].
    pub fn run_with(&self, progress: &dyn Progress) -> Result<PackReport> {
        let options = &self.options;
        earlier::refuse_overwriting(&self.image, &self.output)?;
        let opened = options.opening().open(&self.image)?;
        let format = output_format::choose(options.format.as_deref(), &self.output, Some(opened.format()))?;
        let settings = earlier::settings(options.settings(), format, &opened);
        let mut packer = format.packer(&settings)?;
        let place = options.place(&self.output)?;
        let job = Job { options, output: place.path(), format, settings, progress };
        let report = self.run_job(&job, &opened, &mut *packer)?;
        place.finish(progress)?;
        Ok(report)
    }

    fn run_job(&self, job: &Job<'_>, opened: &Opened, packer: &mut dyn PackFormat) -> Result<PackReport> {
        if let Some(wrapping) = packer.wraps() {
            let source = SourceArg::Known(Source::Image(self.image.clone()));
            return WrapJob { job, packer, wrapping: &wrapping }.run(&source);
        }
        let lists = Lists::read(job.options)?;
        let shape = job.shape(packer.layout().data_files());
        let (loaded, base) = earlier::load_source(opened, self.trust, packer, &shape, job.progress)?;
        job.pack_loaded(&loaded, &lists, base, packer)
    }
}
