//! Formats that hold one image instead of a tree: what of a source is wrapped, and the image that
//! is made first of what is none.
//!
//! The target format decides if a source is wrapped ([`PackFormat::wraps`]). For any other format
//! an image is a tree.

use super::fitting::Way;
use super::job::Job;
use super::{Pack, SourceArg};
use crate::inner::inner_image;
use crate::{OpenOptions, Source};
use packfs_core::FileImage;
use packfs_core::{
    ContentId, ContentReader, Contents, Error, ErrorKind, Image, Name, NodeKind, Result, ResultExt, Tree,
    TreeBuilder, Xattrs,
};
use packfs_format::{ContainedFiles, PackFormat, Wrapping};
use packfs_pack::PackReport;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Value of the option `inner` that packs no image first.
const AS_IT_IS: &str = "none";

/// Packing in a format that holds one image instead of a tree.
pub(super) struct WrapJob<'a> {
    pub job: &'a Job<'a>,
    pub packer: &'a dyn PackFormat,
    pub wrapping: &'a Wrapping,
}

impl WrapJob<'_> {
    /// Wraps a source that is an image as it is; of any other, an image is made first.
    ///
    /// Errors: as [`Pack::run`].
    pub(super) fn run(&self, given: &SourceArg) -> Result<PackReport> {
        let (job, options, name) = (self.job, self.job.options, self.packer.format().name);
        let orders = options.order_file.is_some() || options.trace.is_some();
        if orders || options.base.is_some() {
            let what = "files to place in an order, and no blocks of an earlier one to copy";
            return Err(Error::usage(format!("a {name} holds one image: there are no {what}")));
        }
        let (path, known) = match given {
            SourceArg::Path(path) => (path.as_path(), None),
            SourceArg::Known(source) => (Path::new(""), Some(source)),
            SourceArg::Loaded(_) => {
                let what = "pack the loaded tree into an image first";
                return Err(Error::usage(format!("a {name} holds one image: {what}")));
            }
        };
        let subject = subject(path, known, self.wrapping, self.packer, &options.opening())?;
        let (bytes, left_out) = match subject {
            Subject::Image(_) if options.shape.moves_names() => {
                let message = format!("cannot filter or rename in a {name}: it wraps the image unchanged");
                return Err(Error::usage(message)
                    .hint("pack the filtered tree into an image first, and wrap that image"));
            }
            Subject::Image(bytes) => (bytes, Vec::new()),
            Subject::Tree { source, format } => self.made_first(source, format)?,
        };
        let (tree, contents) = tree(bytes, self.wrapping)?;
        let engine = packfs_pack::PackOptions { keep_going: false, ..options.engine() };
        let way = Way { settings: &job.settings, packer: self.packer };
        let mut report = job.pack((&tree, &*contents), way, engine)?;
        report.skipped.splice(0..0, left_out);
        Ok(report)
    }

    /// Makes the image that is wrapped; returns it, and what could not be read.
    fn made_first(&self, source: Source, format: String) -> Result<(Arc<dyn Image>, Vec<String>)> {
        let folder = self.folder_for_inner()?;
        let options = self.job.options.of_inner(format);
        let inner = Pack::of(source, folder.path().join("image")).options(options);
        let report = inner.run_with(self.job.progress)?;
        // The file is open, so that it lasts as long as it is needed and no longer.
        Ok((Arc::new(FileImage::open(&inner.output)?), report.skipped))
    }

    /// A folder for an image that is made to be wrapped, gone with what is returned: beside the
    /// output, where there is room.
    fn folder_for_inner(&self) -> Result<tempfile::TempDir> {
        let beside =
            self.job.output.parent().filter(|_| !self.job.output.exists() || self.job.output.is_file());
        let beside = match beside {
            _ if self.job.output.as_os_str() == "-" => packfs_pack::temporary_folder(),
            Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
            Some(folder) => folder.to_owned(),
            None => packfs_pack::temporary_folder(),
        };
        let made = tempfile::Builder::new().prefix(".packfs-").tempdir_in(&beside);
        made.or_io(|| format!("cannot create a directory in {beside:?}"))
    }
}

/// Content of the container.
enum Subject {
    /// Bytes that are there.
    Image(Arc<dyn Image>),
    /// A tree, of which an image of this format is to be made first.
    Tree { source: Source, format: String },
}

/// Looks at what a path holds: files that are no archive and no manifest are wrapped, whether their
/// format is known or not. Of an image that is a container of the target's own format, what is in
/// it is wrapped.
///
/// Errors: `Io` if it cannot be read, those of opening an image of which a part was chosen.
fn subject(
    path: &Path,
    known: Option<&Source>,
    wrapping: &Wrapping,
    packer: &dyn PackFormat,
    opening: &OpenOptions,
) -> Result<Subject> {
    let as_it_is = wrapping.inner.as_deref() == Some(AS_IT_IS);
    let source = match known {
        Some(source) => Ok(source.clone()),
        None if as_it_is => Ok(Source::Image(path.into())),
        None => Source::detect_for(path, opening),
    };
    let source = match source {
        Ok(source) => source,
        // No format that is read here, such as F2FS: a disk is a disk.
        Err(error) if error.kind() == ErrorKind::Unsupported => Source::Image(path.into()),
        Err(error) => return Err(error),
    };
    match source {
        Source::Image(path) => Ok(Subject::Image(bytes(&path, packer, opening)?)),
        source => {
            let format = wrapping.inner.clone().unwrap_or_else(|| packfs_formats::INNER_DEFAULT.to_owned());
            Ok(Subject::Tree { source, format })
        }
    }
}

/// The bytes that are wrapped of a file.
fn bytes(path: &Path, packer: &dyn PackFormat, opening: &OpenOptions) -> Result<Arc<dyn Image>> {
    if opening.chooses_part() {
        return Ok(Arc::clone(opening.open(path)?.image()));
    }
    let image = opening.image_in(Arc::new(FileImage::open(path)?))?;
    let format = packfs_formats::probe(&*image)?;
    if format.is_some_and(|format| format.name() == packer.format().name) {
        let opened = opening.clone().outermost().open(path)?;
        if let [inner] = &opened.volume().inner_images()?[..] {
            return inner_image(&opened, inner);
        }
    }
    Ok(image)
}

/// The tree that a format packs which wraps an image: one file, filled up with zeros to a length
/// that the format can hold.
fn tree(image: Arc<dyn Image>, wrapping: &Wrapping) -> Result<(Tree, Arc<dyn Contents>)> {
    let unit = wrapping.multiple_of.max(1);
    let len = image.len().checked_next_multiple_of(unit);
    let len = len.ok_or_else(|| Error::failed(format!("{} is too long", image.name())))?;
    let mut builder = TreeBuilder::new(ContainedFiles::ROOT_META);
    let name = Name::new(wrapping.file_name.as_bytes()).map_err(Error::failed)?;
    let mut path = packfs_core::ImagePath::root();
    path.push(name);
    let kind = NodeKind::File { len, content: ContentId(0) };
    builder.add(&path, kind, ContainedFiles::FILE_META, Xattrs::new())?;
    Ok((builder.finish()?, Arc::new(Disk(image))))
}

/// An image with zeros behind it.
struct Disk(Arc<dyn Image>);

impl Contents for Disk {
    fn open(&self, _id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        Ok(Box::new(DiskReader(self)))
    }
}

struct DiskReader<'a>(&'a Disk);

impl ContentReader for DiskReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let image = &*self.0.0;
        let there = image.len().saturating_sub(offset).min(buf.len() as u64) as usize;
        let (there, behind) = buf.split_at_mut(there);
        behind.fill(0);
        if there.is_empty() { Ok(()) } else { image.read_exact_at(offset, there) }
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        // What fills up the last block is a hole, too.
        self.0.0.next_data(offset)
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.0.0.check_unchanged()
    }
}
