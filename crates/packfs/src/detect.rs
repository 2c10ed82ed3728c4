//! What a path given as a source is: told by what it holds, never by its name.

use crate::{Foreign, OpenOptions};
use packfs_core::{Contents, Error, Image, Progress, Result, ResultExt, escaped};
use packfs_image::FileImage;
use packfs_source::{Loaded, Shape, TarInput};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of the beginning of a file is looked at for a tar or a manifest.
const BEGINNING_LEN: usize = 64 << 10;
/// How much of it is looked at for a compression.
const COMPRESSION_LEN: usize = 16;

/// Where a tree comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A tar archive in a file, compressed or not.
    Tar(PathBuf),
    /// A tar archive from standard input.
    TarStdin,
    /// An image of a format that packfs reads.
    Image(PathBuf),
    /// A manifest: one line per entry.
    Manifest(PathBuf),
}

impl Source {
    /// Looks at what `path` holds. `-` is a tar archive from standard input; a fifo holds a tar archive, too.
    ///
    /// Errors: `Io` if it cannot be read; `Unsupported` if it is nothing that can be packed.
    pub fn detect(path: impl AsRef<Path>) -> Result<Self> {
        Source::detect_for(path.as_ref(), &OpenOptions::new())
    }

    /// As [`Source::detect`], for what is to be opened with these options: where they place an image somewhere else than at the start of
    /// its file, or give it another beginning, it is one.
    ///
    /// Errors: as [`Source::detect`].
    pub fn detect_for(path: &Path, opening: &OpenOptions) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Source::TarStdin);
        }
        let metadata = std::fs::metadata(path).or_io(|| format!("cannot read {path:?}"))?;
        let file_type = metadata.file_type();
        if file_type.is_dir() {
            return Ok(Source::Directory(path.into()));
        }
        if file_type.is_fifo() {
            return Ok(Source::Tar(path.into()));
        }
        if !file_type.is_file() && !file_type.is_block_device() {
            return Err(Error::usage(format!("{path:?} is neither a file, a directory nor a block device")));
        }
        let image = FileImage::open(path)?;
        // Whoever opens it says if there is none.
        if opening.means_an_image() || packfs_formats::probe(&image)?.is_some() {
            return Ok(Source::Image(path.into()));
        }
        let mut beginning = vec![0; BEGINNING_LEN];
        let len = image.read_at(0, &mut beginning)?;
        beginning.truncate(len);
        // A long file of zeros rather is a disk that nothing was written to.
        let is_whole = file_type.is_file() && metadata.len() == len as u64;
        if packfs_source::looks_like_tar(&beginning)
            || packfs_source::compression_of(&beginning).is_some()
            || is_whole && packfs_source::is_empty_tar(&beginning)
        {
            return Ok(Source::Tar(path.into()));
        }
        if packfs_source::looks_like_manifest(&beginning) {
            return Ok(Source::Manifest(path.into()));
        }
        let name = escaped(path.as_os_str().as_bytes()).to_string();
        let image: Arc<dyn Image> = Arc::new(image);
        let foreign = Foreign::identify(&image);
        let seen =
            foreign.as_ref().map_or(String::new(), |foreign| format!(": it looks like {}", foreign.what));
        let error = Error::unsupported(
            format!("source \"{name}\""),
            format!("neither a directory, an image, a tar nor a manifest{seen}"),
        );
        let error = foreign.into_iter().fold(error, |error, foreign| error.hint(foreign.hint));
        let known: Vec<&str> = packfs_formats::all().iter().map(|format| format.name()).collect();
        let known = known.join(", ");
        Err(error
            .hint(format!("images may be {known}; a manifest begins with the line \"#packfs-manifest 1\"")))
    }

    /// Looks through the source: names and metadata, shaped, and where contents come from.
    ///
    /// Errors: `Io`, `Corrupt`, `Failed`, `Usage` for globs that are none, `Cancelled`.
    pub fn load(&self, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
        self.load_with(&OpenOptions::new(), shape, progress)
    }

    /// As [`Source::load`]; `opening` says how an image is opened, and what an image, a tar or a manifest may hold.
    ///
    /// Errors: as [`Source::load`]; `Usage` for further devices, an offset or another beginning of what is no image.
    pub fn load_with(&self, opening: &OpenOptions, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
        if opening.has_devices() || opening.means_an_image() {
            self.refuse_unless_an_image(opening)?;
        }
        let limits = opening.own_limits();
        match self {
            Source::Directory(path) => packfs_source::load_dir(path, shape, progress),
            Source::Tar(path) => packfs_source::load_tar_within(tar_input(path)?, shape, limits, progress),
            Source::TarStdin => {
                let stdin = Box::new(std::io::stdin());
                let input = stream(stdin, "standard input".into());
                packfs_source::load_tar_within(input, shape, limits, progress)
            }
            Source::Manifest(path) => packfs_source::load_manifest_within(path, shape, limits, progress),
            Source::Image(path) => {
                let opened = opening.open(path)?;
                opened.choice().into_iter().for_each(|choice| progress.warn(&choice.to_string()));
                let loaded = opened.load(progress)?;
                let contents: Arc<dyn Contents> = Arc::clone(opened.engine()) as _;
                packfs_source::shape_tree(&loaded.tree, contents, shape)
            }
        }
    }
}

impl Source {
    fn refuse_unless_an_image(&self, opening: &OpenOptions) -> Result<()> {
        let (path, what) = match self {
            Source::Image(_) => return Ok(()),
            Source::Directory(path) => (path.as_path(), "a directory"),
            Source::Tar(path) => (path.as_path(), "a tar"),
            Source::TarStdin => (Path::new("-"), "a tar"),
            Source::Manifest(path) => (path.as_path(), "a manifest"),
        };
        let given = if opening.has_devices() { "further devices are" } else { "an offset or a magic is" };
        Err(Error::usage(format!("{path:?} is {what} and no image, but {given} given"))
            .hint("leave it out, or name the image that it is about"))
    }
}

/// A plain archive in a regular file is read where it lies; anything else only once, from start to end.
fn tar_input(path: &Path) -> Result<TarInput> {
    let cannot = || format!("cannot read {path:?}");
    let file = File::open(path).or_io(cannot)?;
    if file.metadata().or_io(cannot)?.is_file() {
        let mut beginning = [0; COMPRESSION_LEN];
        let len = file.read_at(&mut beginning, 0).or_io(cannot)?;
        if packfs_source::compression_of(&beginning[..len]).is_none() {
            return Ok(TarInput::File(path.into()));
        }
    }
    Ok(stream(Box::new(file), format!("{path:?}")))
}

fn stream(reader: Box<dyn Read + Send>, name: String) -> TarInput {
    TarInput::Stream { reader, name, spool_dir: packfs_pack::temporary_folder() }
}
