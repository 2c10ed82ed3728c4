//! Merges images that were packed apart ([`merge`]).

use crate::OpenOptions;
use crate::output_place::OutputPlace;
use crate::watcher::Watcher;
use packfs_core::{
    Error, FileImage, Image, ImagePath, Implied, IntoImagePath, Limits, Place, Progress, Result, shown_place,
    url_scheme,
};
use packfs_format::{Format, Opening, Volume};
use packfs_merge::{DataPlace, Marks, MergeInput, MergeOptions, MergeReport, OnConflict};
use packfs_read::CountedImage;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Merges images into a new image `output`, once [`Merge::run`] is called: their data is moved and
/// never decoded, and only metadata is written anew. Directories that several images have are
/// merged; see [`Merge::on_conflict`] for other names.
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (a, b) = (dir.path().join("a.sqfs"), dir.path().join("b.sqfs"));
/// # let both = dir.path().join("both.sqfs");
/// packfs::pack_files([("etc/hosts", "127.0.0.1 localhost\n")], &a)?.run()?;
/// packfs::pack_files([("logo.svg", "<svg/>")], &b)?.run()?;
/// packfs::merge([&a], &both).at("usr/share", &b)?.run()?;
/// assert_eq!(packfs::open(&both)?.read("usr/share/logo.svg")?, b"<svg/>");
/// # Ok(())
/// # }
/// ```
pub fn merge<P: AsRef<Path>>(images: impl IntoIterator<Item = P>, output: impl AsRef<Path>) -> Merge {
    let root = |image: P| (ImagePath::root(), image.as_ref().to_owned());
    Merge {
        images: images.into_iter().map(root).collect(),
        output: output.as_ref().to_owned(),
        options: MergeOptions::default(),
        watcher: Watcher::default(),
    }
}

/// `EMFILE`: the process has as many files open as it may.
const TOO_MANY_FILES: i32 = 24;

/// An image that is to be made of others.
#[derive(Clone, Debug)]
pub struct Merge {
    images: Vec<(ImagePath, PathBuf)>,
    output: PathBuf,
    options: MergeOptions,
    watcher: Watcher,
}

impl Merge {
    /// Adds an image whose root becomes the directory `prefix`. It lies over those before it.
    ///
    /// Errors: `Usage` for a prefix that is no path.
    pub fn at(mut self, prefix: impl IntoImagePath, image: impl AsRef<Path>) -> Result<Self> {
        self.images.push((prefix.into_image_path()?, image.as_ref().to_owned()));
        Ok(self)
    }

    setters! {
        /// Sets the treatment of a path that several images have.
        pub on_conflict(on_conflict: OnConflict) => options.on_conflict = on_conflict;
    }

    /// Has whiteouts and opaque directories of overlayfs hide what earlier images have.
    #[must_use]
    pub fn apply_whiteouts(self) -> Self {
        self.marks(Marks::Applied)
    }

    setters! {
        /// Sets the treatment of whiteouts and opaque directories of overlayfs.
        pub marks(marks: Marks) => options.marks = marks;

        /// Sets the time of making, in seconds since 1970; without it, it is the newest time of any
        /// entry.
        pub made_at(seconds: i64) => options.made_at = Some(seconds);

        /// Sets the metadata of directories above a prefix, which no image describes.
        pub implied(implied: Implied) => options.implied = implied;
    }

    /// Sets an option of the format that describes the new EROFS image as a whole: `uuid`, `label`.
    #[must_use]
    pub fn format_option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.format_options.push((name.into(), value.into()));
        self
    }

    setters! {
        /// Sets the place of the data.
        pub data(place: DataPlace) => options.data = place;

        /// Sets the oldest Linux version that is to read the new image, such as `6.18`: EROFS
        /// images of more than 16 TiB need 6.15.
        pub kernel(version: impl Into<String>) => options.kernel = Some(version.into());

        /// Sets the limits of all images together.
        pub limits(limits: Limits) => options.limits = limits;
    }

    /// Syncs the image to disk before it gets its name.
    #[must_use]
    pub fn sync(mut self) -> Self {
        self.options.sync = true;
        self
    }

    setters! {
        /// Watches `run`, and stops it.
        pub progress(progress: impl Progress + 'static) => watcher = Watcher::new(progress);
    }

    /// Merges. The output may be `s3://BUCKET/KEY`, where no object is: the store copies the data
    /// of images that it has. A failure leaves what was under the output's name before. All images
    /// are open at once: the process's limit of open files is raised if need be.
    ///
    /// Errors: `Usage` for images whose data cannot lie in one image, `Failed` for paths in
    /// conflict, `Unsupported` for a format or a form that cannot be merged and for more than the
    /// format can hold, `Corrupt` for a damaged image, `Io`, `Limit`, `Cancelled`.
    pub fn run(&self) -> Result<Merged> {
        self.run_with(self.watcher.progress())
    }

    /// Merges, watched by a progress that is only lent.
    ///
    /// Errors: as [`Merge::run`].
    pub fn run_with(&self, progress: &dyn Progress) -> Result<Merged> {
        let opening = OpenOptions::of_many(self.images.len());
        let place = OutputPlace::open(&self.output, &opening)?;
        packfs_merge::allow_open_files(self.images.len());
        let mut opened = Opened { opening, ..Opened::default() };
        for (at, path) in &self.images {
            self.refuse_overwriting(path)?;
            opened.add(path, at, progress)?;
        }
        let Some(format) = opened.format else {
            return Err(Error::usage("there is no image to merge"));
        };
        let report = self.write(format, &opened, &place, progress)?;
        let read_bytes = opened.counted.map_or(0, |counted| counted.bytes());
        Ok(Merged { read_bytes, report })
    }

    fn write(
        &self,
        format: &dyn Format,
        opened: &Opened,
        place: &OutputPlace,
        progress: &dyn Progress,
    ) -> Result<MergeReport> {
        let (inputs, path, options) = (&opened.inputs, place.path(), &self.options);
        if !place.is_object() {
            return packfs_merge::merge(format, inputs, path, options, progress);
        }
        packfs_merge::merge_into_object(format, inputs, path, options, progress, |image, copied| {
            place.finish_with(image, copied, progress)
        })
    }

    /// Errors: `Usage` for an image on the block device that the new one is written to.
    fn refuse_overwriting(&self, path: &Path) -> Result<()> {
        let (Ok(image), Ok(output)) = (std::fs::metadata(path), std::fs::metadata(&self.output)) else {
            return Ok(());
        };
        let is_device = output.file_type().is_block_device();
        if is_device && image.file_type().is_block_device() && image.rdev() == output.rdev() {
            let message = format!("cannot write to {:?}: it is one of the images to merge", self.output);
            return Err(Error::usage(message));
        }
        Ok(())
    }
}

/// Results of [`Merge::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Merged {
    /// Results of merging.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub report: MergeReport,
    /// Bytes read from the images besides the data that was moved: their metadata, and data that
    /// the system could not copy.
    pub read_bytes: u64,
}

/// Tells what to do about the system's limit of open files.
fn hint_at_limit(error: Error) -> Error {
    let is_limit = error.io_source().is_some_and(|source| source.raw_os_error() == Some(TOO_MANY_FILES));
    if is_limit {
        error.hint("merge some of the images first, or raise the limit: ulimit -Hn")
    } else {
        error
    }
}

/// The images of one format that are merged.
#[derive(Default)]
struct Opened {
    opening: OpenOptions,
    inputs: Vec<MergeInput>,
    format: Option<&'static dyn Format>,
    counted: Option<Arc<CountedImage>>,
}

impl Opened {
    fn add(&mut self, path: &Path, at: &ImagePath, progress: &dyn Progress) -> Result<()> {
        let (image, file) = if url_scheme(path).is_some() {
            let (image, warnings) = self.opening.plain_bytes(Place::of(path))?;
            warnings.iter().for_each(|warning| progress.warn(warning));
            (image, None)
        } else {
            let file = Arc::new(FileImage::open(path).map_err(hint_at_limit)?);
            (Arc::clone(&file) as Arc<dyn Image>, Some(file))
        };
        let image = match &self.counted {
            Some(first) => first.beside(image),
            None => Arc::clone(self.counted.insert(CountedImage::new(image))),
        };
        let format = packfs_formats::probe(&*image)?.ok_or_else(|| {
            let error = Error::unsupported("image", format!("{} has no known format", shown_place(path)));
            error.hint("packfs merge takes SquashFS 4.0 and EROFS images")
        })?;
        self.format.get_or_insert(format);
        let name = image.name();
        let image: Arc<dyn Image> = image;
        let volume: Arc<dyn Volume> = Arc::from(format.open_with(Arc::clone(&image), Opening::default())?);
        volume.keep_at_most(0);
        self.inputs.push(MergeInput { volume, image, file, path: path.to_owned(), name, at: at.clone() });
        Ok(())
    }
}
