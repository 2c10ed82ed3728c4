//! Contents of files as objects: hashed on all processors, and written to a directory of objects.

use crate::objects::path_of;
use packfs_core::new_file::NewFile;
use packfs_core::{
    ContentId, ContentReader, Contents, Error, FileImage, Image, Progress, Result, ResultExt, Stage, usize_of,
};
use packfs_integrity::{FsVerityOptions, enable_fs_verity, fs_verity_digest};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Files of at most so many bytes lie in the image.
pub(super) const CONTENT_LEN_MAX: u64 = 64;
/// Zeros of this length are not written.
const HOLE_LEN: usize = 4096;

/// Contents of a file in an image.
#[derive(Clone, Debug)]
pub(super) enum Deposited {
    /// Contents in the image itself.
    Held(Box<[u8]>),
    /// An object, by its fs-verity digest.
    Object([u8; 32]),
}

/// A directory of objects, and what is done with it.
pub(super) struct Deposit<'a> {
    pub contents: &'a dyn Contents,
    /// Directory that gets the objects; `None` if they are only hashed.
    pub store: Option<&'a Path>,
    /// Set if each object has to have fs-verity.
    pub requires_fs_verity: bool,
    pub progress: &'a dyn Progress,
    pub counts: Written,
}

/// Counts of objects that were written.
#[derive(Default)]
pub(super) struct Written {
    // Files with equal contents have one object.
    taken: Mutex<HashSet<[u8; 32]>>,
    pub objects: AtomicU64,
    pub bytes: AtomicU64,
    /// Objects that share the blocks of files of the source.
    pub shared: AtomicU64,
    /// Objects on which fs-verity is enabled.
    pub fs_verity: AtomicU64,
}

impl Deposit<'_> {
    /// Takes all files, by contents and length, and returns what became of each.
    ///
    /// Errors: the first that a thread meets.
    pub(super) fn all(&self, files: &[(ContentId, u64)], jobs: usize) -> Result<Vec<Deposited>> {
        let bytes = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.1));
        self.progress.begin(Stage::Hash, files.len() as u64, bytes);
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let lock = || failure.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            let mut done = Vec::new();
            while lock().is_none() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(id, len)) = files.get(index) else { break };
                match self.one(id, len) {
                    Ok(deposited) => done.push((index, deposited)),
                    Err(error) => {
                        lock().get_or_insert(error);
                    }
                }
                self.progress.advance(1, 0, 0);
            }
            done
        };
        let mut rows: Vec<(usize, Deposited)> = std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..packfs_core::thread_count(jobs).min(files.len())).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join());
            joined.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        rows.sort_unstable_by_key(|row| row.0);
        Ok(rows.into_iter().map(|row| row.1).collect())
    }

    fn one(&self, id: ContentId, len: u64) -> Result<Deposited> {
        if self.progress.cancelled() {
            return Err(Error::cancelled());
        }
        if len <= CONTENT_LEN_MAX {
            let mut bytes = vec![0; usize_of(len)];
            let mut reader = self.contents.open(id)?;
            reader.read_exact_at(0, &mut bytes)?;
            reader.check_unchanged()?;
            return Ok(Deposited::Held(bytes.into()));
        }
        let digest = self.hashed(id, len, None)?;
        let is_new =
            |_: &&Path| self.counts.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
        let Some(store) = self.store.filter(is_new) else { return Ok(Deposited::Object(digest)) };
        let path = store.join(path_of(&digest));
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() == len => {
                // Others may be those of another program, which knows whether they need it.
                if self.requires_fs_verity {
                    let file = File::open(&path).or_io(|| format!("cannot open object {path:?}"))?;
                    self.seal(&file, &path)?;
                }
            }
            Ok(_) => {
                let fault = format!("cannot use object {path:?}: it is not a file of {len} bytes");
                return Err(Error::failed(fault).hint("remove it, and pack again"));
            }
            Err(_) => self.write(id, len, &path, digest)?,
        }
        Ok(Deposited::Object(digest))
    }

    /// Hashes contents, and copies them on the way.
    fn hashed(&self, id: ContentId, len: u64, copy: Option<&File>) -> Result<[u8; 32]> {
        let reader = Mutex::new(self.contents.open(id)?);
        let image = ContentImage { reader, len, copy };
        let progress = Part { all: self.progress, counts: copy.is_none() };
        let digest = digest_of(&image, &progress)?;
        let mut reader = image.reader.into_inner().unwrap_or_else(PoisonError::into_inner);
        reader.check_unchanged()?;
        Ok(digest)
    }

    fn write(&self, id: ContentId, len: u64, path: &Path, digest: [u8; 32]) -> Result<()> {
        let cannot = || format!("cannot create object {path:?}");
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).or_io(cannot)?;
        let mut file = NewFile::create(path, 0o644)?;
        let shared = self.hashed_clone(id, file.file(), path)?;
        let copied = || {
            file.file().set_len(len).or_io(cannot)?;
            self.hashed(id, len, Some(file.file()))
        };
        let found = shared.map_or_else(copied, Ok)?;
        if found != digest {
            return Err(Error::failed(format!("cannot create object {path:?}: its file changed meanwhile")));
        }
        // fs-verity is for files that nothing can write.
        file.close_for_writing()?;
        let has_fs_verity = self.seal(file.file(), path)?;
        file.finish(false)?;
        self.counts.objects.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(len, Ordering::Relaxed);
        self.counts.shared.fetch_add(shared.is_some().into(), Ordering::Relaxed);
        self.counts.fs_verity.fetch_add(has_fs_verity.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Has a file share the blocks of the contents, and hashes it; `None` if the filesystem cannot,
    /// or they are no file of it.
    fn hashed_clone(&self, id: ContentId, copy: &File, path: &Path) -> Result<Option<[u8; 32]>> {
        let mut reader = self.contents.open(id)?;
        let Some(source) = reader.file() else { return Ok(None) };
        if rustix::fs::ioctl_ficlone(copy, source).is_err() {
            return Ok(None);
        }
        reader.check_unchanged()?;
        let copy = copy.try_clone().or_io(|| format!("cannot read object {path:?}"))?;
        let progress = Part { all: self.progress, counts: false };
        digest_of(&FileImage::of(copy, path)?, &progress).map(Some)
    }

    /// Enables fs-verity on an object; returns false if the filesystem has none.
    fn seal(&self, file: &File, path: &Path) -> Result<bool> {
        let is_enabled = enable_fs_verity(file, path);
        if !self.requires_fs_verity {
            // The objects are right without it; overlayfs tells at mounting if it needs it.
            return Ok(is_enabled.unwrap_or(false));
        }
        if is_enabled? {
            return Ok(true);
        }
        let error = Error::failed("the objects have no fs-verity: their filesystem does not support it");
        Err(error.hint("ext4 and f2fs made with -O verity have it, and btrfs"))
    }
}

fn digest_of(image: &dyn Image, progress: &dyn Progress) -> Result<[u8; 32]> {
    let digest = fs_verity_digest(image, &FsVerityOptions::default(), 1, progress)?;
    digest.try_into().map_err(|_| Error::failed("internal: a digest of another length"))
}

/// Contents as an image, which are copied as they are read.
struct ContentImage<'a> {
    reader: Mutex<Box<dyn ContentReader + 'a>>,
    len: u64,
    copy: Option<&'a File>,
}

impl Image for ContentImage<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let room = usize_of(self.len.saturating_sub(offset)).min(buf.len());
        let Some(buf) = buf.get_mut(..room) else { return Ok(0) };
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).read_exact_at(offset, buf)?;
        if let Some(copy) = self.copy {
            let mut at = offset;
            for chunk in buf.chunks(HOLE_LEN) {
                // Zeros stay holes.
                if chunk.iter().any(|byte| *byte != 0) {
                    copy.write_all_at(chunk, at).or_io(|| "cannot write an object")?;
                }
                at = at.saturating_add(chunk.len() as u64);
            }
        }
        Ok(room)
    }

    fn name(&self) -> String {
        "contents".into()
    }
}

/// Progress of one file among all.
struct Part<'a> {
    all: &'a dyn Progress,
    counts: bool,
}

impl Progress for Part<'_> {
    fn advance(&self, _: u64, bytes_in: u64, bytes_out: u64) {
        if self.counts {
            self.all.advance(0, bytes_in, bytes_out);
        }
    }

    fn cancelled(&self) -> bool {
        self.all.cancelled()
    }
}
