//! Reads an opened volume: files, links and directories by their paths.

use crate::resolve::{LastLink, resolve};
use crate::watcher::Watcher;
use packfs_core::{ErrorKind, ImagePath, IntoImagePath, Limit, Limits, Progress, Result, ResultExt};
use packfs_format::{InodeId, InodeKind, Volume};
use packfs_read::{Counters, FileReader, LoadedVolume, Piece, ReadEngine};
use std::io::Write;
use std::sync::Arc;

/// Bytes of a hole written at a time.
const ZEROS_LEN: usize = 64 << 10;

/// Reads what is in an opened image; [`crate::Opened`] derefs to it. May be shared between threads:
/// all methods take `&self`, and what one thread has decoded serves all.
pub struct Reader {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) engine: Arc<ReadEngine>,
    pub(crate) limits: Limits,
    pub(crate) watcher: Watcher,
}

impl Reader {
    /// Returns the decoded metadata: inodes, names and extents.
    pub fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    /// Returns the engine that decodes file data.
    pub fn engine(&self) -> &Arc<ReadEngine> {
        &self.engine
    }

    /// Returns the progress for work that was given none of its own.
    #[cfg(feature = "unpack")]
    pub(crate) fn progress(&self) -> &dyn Progress {
        self.watcher.progress()
    }

    /// Returns the limits of the image.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the statistics of reading since the image was opened.
    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// Opens a file for reading in order (`std::io::Read`, `Seek`) or by position, following
    /// symbolic links inside the image. Who reads in order is decoded ahead for; every user of a
    /// file should open its own.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
    /// # std::fs::create_dir_all(source.join("etc")).unwrap();
    /// # std::fs::write(source.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    /// # packfs::pack(&source, &path).run()?;
    /// use std::io::{BufRead, BufReader};
    ///
    /// let image = packfs::open(&path)?;
    /// let hosts = image.open_file("etc/hosts")?;
    /// let mut name = [0; 9];
    /// assert_eq!(hosts.read_at(10, &mut name)?, 9);
    /// assert_eq!(&name, b"localhost");
    ///
    /// for line in BufReader::new(hosts).lines() {
    ///     println!("{}", line.unwrap());
    /// }
    /// # Ok::<(), packfs::Error>(())
    /// ```
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if it is no file, `Corrupt` if it
    /// cannot be found in a damaged image.
    pub fn open_file(&self, path: impl IntoImagePath) -> Result<FileReader> {
        let path = path.into_image_path()?;
        let id = self.resolve(&path)?;
        self.engine.open_file(id).map_err(|error| error.at(format!("{path:?}")))
    }

    /// Opens a file by its inode, as a walk tells it.
    ///
    /// Errors: `Failed` for anything but a file, `Corrupt` for a damaged inode.
    pub fn open_id(&self, id: InodeId) -> Result<FileReader> {
        self.engine.open_file(id)
    }

    /// Reads all names and metadata into a tree.
    ///
    /// Errors: `Corrupt`, `Io`, `Limit`, `Cancelled`.
    pub fn load(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        self.engine.load_tree(progress)
    }

    /// Reads what can be read of all names and metadata: what is damaged is left out, told of
    /// through `progress`, and counted.
    ///
    /// Errors: as [`Reader::load`], and `Corrupt` only where there is no root.
    pub fn load_what_is_there(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        self.engine.load_what_is_there(progress)
    }

    /// Finds a path, without following a symbolic link at its end.
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if something on its way is no
    /// directory.
    pub fn find(&self, path: impl IntoImagePath) -> Result<InodeId> {
        resolve(&*self.volume, &path.into_image_path()?, LastLink::Keep).map(|(id, _)| id)
    }

    /// Finds a path, following symbolic links inside the image: absolute ones start at its root,
    /// and `..` never leads out.
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if something on its way is no
    /// directory, or it has more links than Linux follows.
    pub fn resolve(&self, path: impl IntoImagePath) -> Result<InodeId> {
        resolve(&*self.volume, &path.into_image_path()?, LastLink::Follow).map(|(id, _)| id)
    }

    pub(crate) fn found(&self, path: &ImagePath, last: LastLink) -> Result<(InodeId, InodeKind)> {
        let (id, kind) = resolve(&*self.volume, path, last)?;
        Ok((id, kind.map_or_else(|| self.volume.inode(id).map(|inode| inode.kind), Ok)?))
    }

    /// Reads a whole file into memory, following symbolic links inside the image.
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if it is no file, `Corrupt` if it
    /// cannot be decoded.
    pub fn read(&self, path: impl IntoImagePath) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.copy_file(path, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the contents of a file, following symbolic links inside the image; returns its
    /// length.
    ///
    /// Errors: as [`Reader::read`]; `Io` if `out` fails.
    pub fn copy_file(&self, path: impl IntoImagePath, out: &mut dyn Write) -> Result<u64> {
        self.copy(&path.into_image_path()?, out)
    }

    fn copy(&self, path: &ImagePath, out: &mut dyn Write) -> Result<u64> {
        let wanted = [self.file_at(path)?];
        let len = wanted[0].len;
        self.limits.check(&format!("{path:?}"), Limit::Bytes, len)?;
        self.engine.check_data(&wanted).map_err(|error| error.at(format!("{path:?}")))?;
        let cannot = || format!("cannot write the contents of {path:?}");
        let zeros = vec![0; ZEROS_LEN];
        let copied = self.engine.in_file_order(&wanted, self.watcher.progress(), &mut |_, piece| {
            match piece {
                Piece::Data { bytes, .. } => out.write_all(bytes).or_io(cannot)?,
                Piece::Hole { mut len, .. } => {
                    while len > 0 {
                        let part_len = zeros.len().min(usize::try_from(len).unwrap_or(ZEROS_LEN));
                        out.write_all(&zeros[..part_len]).or_io(cannot)?;
                        len -= part_len as u64;
                    }
                }
                Piece::End => {}
            }
            Ok(())
        });
        match copied {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Corrupt | ErrorKind::Failed | ErrorKind::Unsupported
                ) =>
            {
                Err(error.at(format!("{path:?}")))
            }
            copied => copied.map(|()| len),
        }
    }
}
