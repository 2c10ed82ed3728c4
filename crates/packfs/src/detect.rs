//! What a path given as a source is: told by what it holds, never by its name.

use packfs_core::{Error, Image, Result, ResultExt, escaped};
use packfs_image::FileImage;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// How much of the beginning of a file is looked at for a tar or a manifest.
const BEGINNING_LEN: usize = 64 << 10;

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
        let path = path.as_ref();
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
        if packfs_formats::probe(&image)?.is_some() {
            return Ok(Source::Image(path.into()));
        }
        let mut beginning = vec![0; BEGINNING_LEN];
        let len = image.read_at(0, &mut beginning)?;
        beginning.truncate(len);
        if packfs_source::looks_like_tar(&beginning) || packfs_source::compression_of(&beginning).is_some() {
            return Ok(Source::Tar(path.into()));
        }
        if packfs_source::looks_like_manifest(&beginning) {
            return Ok(Source::Manifest(path.into()));
        }
        let name = escaped(path.as_os_str().as_bytes()).to_string();
        Err(Error::unsupported(format!("source \"{name}\""), "neither a directory, an image, a tar nor a manifest"))
    }
}
