//! Kinds of sources, detected by content and never by name.

use crate::OpenOptions;
use crate::behind::Behind;
use crate::compressed;
use crate::foreign::Foreign;
use crate::layer::Which;
use packfs_core::FileImage;
use packfs_core::{
    Contents, Error, ErrorKind, Image, Limits, Place, PlaceKind, Progress, Result, ResultExt, Silent,
    escaped, url_scheme,
};
#[cfg(feature = "oci")]
use packfs_remote::oci::OciPlace;
use packfs_source::{Loaded, Shape, TarInput};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes at the start of a file that are searched for an archive or a manifest.
const BEGINNING_LEN: usize = 64 << 10;
/// Bytes at the start of an object that tell an archive.
#[cfg(feature = "remote")]
const HEAD_LEN: u64 = 512;
/// Bytes at the start of a file that tell a compression.
const COMPRESSION_LEN: usize = 16;

/// Source of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A directory of this machine.
    Directory(PathBuf),
    /// An archive in a file: tar, cpio, or zip, compressed or not.
    Tar(PathBuf),
    /// An archive from standard input.
    TarStdin,
    /// An image of a format that packfs reads, in a file or at a URL; an archive at a URL, too.
    Image(PathBuf),
    /// An OCI image in a registry, a layout, or an archive, whose layers are put over each other.
    #[cfg(feature = "oci")]
    Oci(PathBuf),
    /// A manifest: one line per entry.
    Manifest(PathBuf),
    /// Files and directories of this machine, each an entry of the root under its own name,
    /// whatever they hold: see [`packfs_source::load_entries`].
    Entries(Vec<PathBuf>),
    /// Directories of this machine whose contents come together in the root: see
    /// [`packfs_source::load_merged`].
    Merged(Vec<PathBuf>),
}

impl Source {
    /// Looks at what `path` holds. `-` is an archive from standard input; a fifo holds an
    /// archive, too.
    ///
    /// Errors: `Io` if it cannot be read; `Unsupported` if it is nothing that can be packed.
    pub fn detect(path: impl AsRef<Path>) -> Result<Self> {
        Source::detect_for(path.as_ref(), &OpenOptions::new())
    }

    /// Detects like [`Source::detect`], for a source that is opened with these options: with an
    /// offset or another magic the source is an image.
    ///
    /// Errors: as [`Source::detect`].
    pub fn detect_for(path: &Path, opening: &OpenOptions) -> Result<Self> {
        let place = Place::of(path);
        if place.kind() == PlaceKind::Standard {
            return Ok(Source::TarStdin);
        }
        #[cfg(feature = "oci")]
        if place.is_oci() {
            return Ok(Source::Oci(path.into()));
        }
        // Opening reports what is there instead: this saves a round trip.
        if url_scheme(path).is_some() {
            return Ok(Source::Image(path.into()));
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
        // Opening reports it if there is none.
        if opening.means_an_image() || packfs_formats::probe(&image)?.is_some() {
            return Ok(Source::Image(path.into()));
        }
        let mut beginning = vec![0; BEGINNING_LEN];
        let len = image.read_at(0, &mut beginning)?;
        beginning.truncate(len);
        // A long file of zeros rather is a disk that nothing was written to.
        let image: Arc<dyn Image> = Arc::new(image);
        if Behind::of(&image).is_some_and(|behind| behind.is_readable()) {
            return Ok(Source::Image(path.into()));
        }
        if compressed::holds_image(&image, opening.own_limits(), &Silent)? {
            return Ok(Source::Image(path.into()));
        }
        let is_whole = file_type.is_file() && metadata.len() == len as u64;
        if packfs_source::looks_like_archive(&beginning)
            || packfs_source::compression_of(&beginning).is_some()
            || is_whole && packfs_source::is_empty_tar(&beginning)
        {
            return Ok(Source::Tar(path.into()));
        }
        if packfs_source::looks_like_manifest(&beginning) {
            return Ok(Source::Manifest(path.into()));
        }
        Err(Unknown::new(image).refused(path))
    }

    /// Detects like [`Source::detect_for`], for a new image. A file of no kind that could hold a
    /// tree is packed itself, as the only entry of the root, which `progress` reports. Damaged
    /// archives and images are not such files, as far as they can be recognized.
    ///
    /// Errors: as [`Source::detect`].
    pub(crate) fn detect_to_pack(
        path: &Path,
        opening: &OpenOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        #[cfg(feature = "oci")]
        if let Some(found) = crate::oci::place_of(path, opening.own_limits())? {
            if !Place::of(path).is_oci() {
                let (what, scheme) = match found {
                    OciPlace::Archive(_) => {
                        ("archive of container images", packfs_core::schemes::OCI_ARCHIVE)
                    }
                    _ => ("OCI image layout", packfs_core::schemes::OCI_LAYOUT),
                };
                progress.warn(&format!(
                    "{path:?} is an {what}: packing the image in it; {scheme}: before the name silences this"
                ));
            }
            return Ok(Source::Oci(path.into()));
        }
        match Source::detect_for(path, opening) {
            Err(error) if error.kind() == ErrorKind::Unsupported && path.is_file() => {
                if !Unknown::new(Arc::new(FileImage::open(path)?)).is_plain(path) {
                    return Err(error);
                }
                let what = "is not a directory, image, archive or manifest: packing the file itself";
                progress.warn(&format!("{path:?} {what}; --as-file silences this"));
                Ok(Source::Entries(vec![path.into()]))
            }
            source => source,
        }
    }

    /// Looks through the source: names and metadata, shaped, and where contents come from.
    ///
    /// Errors: `Io`, `Corrupt`, `Failed`, `Usage` for globs that are none, `Cancelled`.
    pub fn load(&self, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
        self.load_with(&OpenOptions::new(), shape, progress)
    }

    /// Loads like [`Source::load`]; `opening` sets options and limits of an image, an archive or a
    /// manifest.
    ///
    /// Errors: as [`Source::load`]; `Usage` for further devices, an offset or another beginning of
    /// what is no image.
    pub fn load_with(&self, opening: &OpenOptions, shape: &Shape, progress: &dyn Progress) -> Result<Loaded> {
        if !opening.with.is_default() || opening.means_an_image() {
            self.refuse_unless_an_image(opening)?;
        }
        let limits = opening.own_limits();
        match self {
            Source::Directory(path) => packfs_source::load_dir(path, shape, progress),
            Source::Tar(path) => packfs_source::load_archive(tar_input(path)?, shape, limits, progress),
            Source::TarStdin => {
                let stdin = Box::new(std::io::stdin());
                let input = stream(stdin, "standard input".into());
                packfs_source::load_archive(input, shape, limits, progress)
            }
            Source::Manifest(path) => packfs_source::load_manifest_within(path, shape, limits, progress),
            Source::Entries(paths) => packfs_source::load_entries(paths, shape, progress),
            Source::Merged(paths) => packfs_source::load_merged(paths, shape, progress),
            #[cfg(feature = "oci")]
            Source::Oci(path) => opening.load_oci(path, shape, progress),
            Source::Image(path) => {
                let opened = match opening.open(path) {
                    #[cfg(feature = "remote")]
                    Err(error) => match archive_at(path, opening, &error) {
                        Some(input) => return packfs_source::load_archive(input, shape, limits, progress),
                        None => return Err(error),
                    },
                    opened => opened?,
                };
                opened.warnings().iter().for_each(|warning| progress.warn(warning));
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
            #[cfg(feature = "oci")]
            Source::Oci(path) => (path.as_path(), "an OCI image"),
            Source::Tar(path) => (path.as_path(), "an archive"),
            Source::TarStdin => (Path::new("-"), "an archive"),
            Source::Manifest(path) => (path.as_path(), "a manifest"),
            Source::Entries(paths) | Source::Merged(paths) => {
                (paths.first().map_or(Path::new(""), PathBuf::as_path), "packed as a file or directory")
            }
        };
        let given = if !opening.with.devices.is_empty() {
            "further devices are"
        } else if opening.is_checked() {
            "a root hash or its key is"
        } else if opening.means_an_image() {
            "an offset, a magic or a kind of partition table is"
        } else {
            "a subvolume, snapshot, journal, backing file or directory of objects is"
        };
        Err(Error::usage(format!("{path:?} is {what}, not an image, but {given} given"))
            .hint("omit the option, or name an image"))
    }
}

/// Properties of options that decide about a source.
impl OpenOptions {
    /// True if only an image can be opened so.
    fn means_an_image(&self) -> bool {
        self.offset > 0 || self.magic.is_some() || self.with.chooses_format() || self.is_checked()
    }

    /// True if one of several images is chosen.
    pub(crate) fn chooses_part(&self) -> bool {
        matches!(self.which, Which::Chosen(_))
    }

    pub(crate) fn is_about_an_image(&self) -> bool {
        self.means_an_image() || self.chooses_part() || !self.with.is_default()
    }

    /// Limits of a source that is opened so.
    pub(crate) fn own_limits(&self) -> Limits {
        self.read.limits
    }
}

/// Endings of names that promise a tree, beside those of formats: what has one and is none may be
/// damaged.
const TREE_EXTENSIONS: [&str; 23] = [
    "tar", "tgz", "txz", "tbz", "tbz2", "tzst", "tlz", "gz", "xz", "zst", "bz2", "lz4", "lz", "lzma", "z",
    "manifest", "img", "image", "raw", "zip", "cpio", "snap", "appimage",
];

/// A file that is nothing that can be packed.
struct Unknown {
    foreign: Option<Foreign>,
    beginning: Vec<u8>,
}

impl Unknown {
    fn new(image: Arc<dyn Image>) -> Self {
        let mut beginning = vec![0; BEGINNING_LEN];
        let len = image.read_at(0, &mut beginning).unwrap_or(0);
        beginning.truncate(len);
        Unknown { foreign: Foreign::identify(&image), beginning }
    }

    /// True if nothing tells that it holds, or once held, a tree.
    fn is_plain(&self, path: &Path) -> bool {
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default().to_lowercase();
        let promises =
            TREE_EXTENSIONS.contains(&&*extension) || packfs_formats::by_extension(&extension).is_some();
        let is_alone = self.foreign.as_ref().is_none_or(|foreign| foreign.is_alone);
        // Of a damaged archive other headers may be whole.
        let has_header = |block: &[u8]| block.get(257..262) == Some(b"ustar");
        let was_tar = self.beginning.chunks(512).any(has_header);
        is_alone && !promises && !was_tar && !packfs_source::looks_like_entries(&self.beginning)
    }

    fn refused(self, path: &Path) -> Error {
        let name = escaped(path.as_os_str().as_bytes()).to_string();
        let seen = self.foreign.as_ref().map_or(String::new(), |it| format!(": it looks like {}", it.what));
        let what = format!("neither a directory, an image, an archive nor a manifest{seen}");
        let error = Error::unsupported(format!("source \"{name}\""), what);
        let error = self.foreign.into_iter().fold(error, |error, foreign| error.hint(foreign.hint));
        let known: Vec<&str> = packfs_formats::all().iter().map(|format| format.name()).collect();
        let known = known.join(", ");
        error
            .hint(format!("readable images: {known}; a manifest starts with the line \"#packfs-manifest 1\""))
            .hint("packfs pack --as-file packs the file itself")
    }
}

/// A plain archive in a regular file is read where it lies; anything else only once, from start to
/// end.
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

/// Returns the archive at a URL of what could not be opened as an image: it is read from start to
/// end, whether its server has ranges or not.
#[cfg(feature = "remote")]
fn archive_at(url: &Path, opening: &OpenOptions, error: &Error) -> Option<TarInput> {
    let may_be = matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Failed);
    url_scheme(url).filter(|_| may_be && !opening.is_about_an_image())?;
    let mut download = packfs_remote::reader_at(Place::of(url), opening.remote.clone()).ok()?;
    let mut head = Vec::new();
    download.by_ref().take(HEAD_LEN).read_to_end(&mut head).ok()?;
    let is_archive =
        packfs_source::looks_like_archive(&head) || packfs_source::compression_of(&head).is_some();
    let reader = Box::new(std::io::Cursor::new(head).chain(download));
    is_archive.then(|| stream(reader, packfs_core::shown_place(url)))
}

fn stream(reader: Box<dyn Read + Send>, name: String) -> TarInput {
    TarInput::Stream { reader, name, spool_dir: packfs_pack::temporary_folder() }
}
