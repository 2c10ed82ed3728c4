//! An image that was opened: what is in it, and everything that can be done with it.

use crate::foreign::Foreign;
use crate::nested::{self, Choice, Layer, Which};
use crate::open_with::OpenWith;
use crate::resolve::{LastLink, resolve};
use crate::walk::Walk;
use crate::watcher::Watcher;
use packfs_core::{BeginningImage, MemoryImage, ReaderImage, SliceImage};
use packfs_core::{ErrorKind, Image, ImagePath, IntoImagePath, Limit, Limits, Progress, Result, ResultExt};
use packfs_format::{Format, InodeId, Volume};
use packfs_read::{CountedImage, Counters, FileReader, LoadedVolume, Piece, ReadEngine, ReadOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a hole written at a time.
const ZEROS_LEN: usize = 64 << 10;

/// Faults of an image that are warnings when it is opened.
const FAULTS_MAX: usize = 16;

/// Opens an image, whatever its format, in a file, on a block device, or at a URL (`http://`,
/// `https://`, `s3://BUCKET/KEY`). See [`OpenOptions`] for an image that does not begin at the
/// start of its file.
///
/// Errors: `Io` if it cannot be read, `Unsupported` if no format knows it, `Corrupt` if what
/// describes the whole is damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Opened> {
    OpenOptions::new().open(path)
}

/// Opens an image that is in memory: a `Vec<u8>`, an `Arc<[u8]>` or a boxed slice is taken over, a
/// `&[u8]` is copied. For anything else that holds bytes, such as a mapped file, see
/// [`crate::MemoryImage::held`].
///
/// ```
/// # fn main() -> packfs::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let hosts = [("etc/hosts", "127.0.0.1 localhost\n")];
/// # packfs::pack_files(hosts, dir.path().join("a.sqfs"))?.run()?;
/// # let bytes = std::fs::read(dir.path().join("a.sqfs")).unwrap();
/// let image = packfs::open_bytes(bytes)?;
/// assert_eq!(image.read("etc/hosts")?, b"127.0.0.1 localhost\n");
/// # Ok(())
/// # }
/// ```
///
/// Errors: as [`open`].
pub fn open_bytes(bytes: impl Into<MemoryImage>) -> Result<Opened> {
    OpenOptions::new().open_bytes(bytes)
}

/// Opens an image in anything that can be read and has positions, such as a `std::io::Cursor`. All
/// of it counts, wherever it stands; threads wait for each other. A file is better opened by its
/// path, or as [`crate::FileImage`].
///
/// Errors: as [`open`].
pub fn open_reader(reader: impl Read + Seek + Send + 'static) -> Result<Opened> {
    OpenOptions::new().open_reader(reader)
}

/// Options to open an image.
///
/// ```no_run
/// let firmware = packfs::OpenOptions::new().offset(0x20_0000).jobs(1).open("firmware.bin")?;
/// # Ok::<(), packfs::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(crate) offset: u64,
    len: Option<u64>,
    pub(crate) with: OpenWith,
    pub(crate) which: Which,
    pub(crate) magic: Option<Vec<u8>>,
    pub(crate) read: ReadOptions,
    #[cfg(feature = "remote")]
    pub(crate) remote: packfs_remote::RemoteOptions,
    #[cfg(feature = "integrity")]
    pub(crate) trust: crate::trust::Trust,
    watcher: Watcher,
}

impl OpenOptions {
    /// The image fills the file; one decoding thread for each processor.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    /// Sets the offset of the image, in bytes from the start of the file.
    #[must_use]
    pub fn offset(mut self, bytes: u64) -> Self {
        self.offset = bytes;
        self
    }

    /// Sets the length of the image in bytes; the default is up to the end of the file.
    #[must_use]
    pub fn len(mut self, bytes: u64) -> Self {
        self.len = Some(bytes);
        self
    }

    /// Reads the image as if it began with these bytes, for images whose magic was changed: such as
    /// `hsqs` for a SquashFS image of a router.
    #[must_use]
    pub fn magic(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.magic = Some(bytes.into());
        self
    }

    /// Chooses one of several images in a container, such as a partition of a disk, by its name or
    /// number; a slash is before the name of an image further inside, as in `p2/root` for a volume
    /// of an LVM group in a partition. The default is the only image of a known format, or else
    /// the container.
    #[must_use]
    pub fn part(mut self, name: impl Into<String>) -> Self {
        self.which = Which::Chosen(name.into());
        self
    }

    /// Opens a container of images itself, not what is in it, and no image behind a program or in a
    /// Singularity image.
    #[must_use]
    pub fn outermost(mut self) -> Self {
        self.which = Which::Outermost;
        self
    }

    /// True if only an image that fills its file is opened.
    pub(crate) fn is_outermost(&self) -> bool {
        self.which == Which::Outermost
    }

    /// Sets the options of images at URLs: cache, credentials, time limits.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn remote(mut self, options: packfs_remote::RemoteOptions) -> Self {
        self.remote = options;
        self
    }

    /// Decoding threads; 0: one for each processor.
    #[must_use]
    pub fn jobs(mut self, count: usize) -> Self {
        self.read.jobs = count;
        self
    }

    /// Sets the size of the cache for decoded blocks in bytes; the default is 32 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.read.cache_bytes = bytes;
        self
    }

    /// Bytes decoded ahead of a reader that reads a file in order, at most a quarter of the cache;
    /// 0: none.
    #[must_use]
    pub fn readahead_bytes(mut self, bytes: u64) -> Self {
        self.read.readahead_bytes = bytes;
        self
    }

    /// Tells the cache that the caller keeps what it reads, as the kernel does for a mount: blocks
    /// read sequentially are evicted first.
    #[must_use]
    pub fn kept_by_readers(mut self) -> Self {
        self.read.is_kept_by_readers = true;
        self
    }

    /// Watches what is done with the image, and stops it: unpacking and writing archives, unless
    /// that is given a progress of its own. An [`Arc`] of one leaves the other handle with the
    /// caller.
    #[must_use]
    pub fn progress(mut self, progress: impl Progress + 'static) -> Self {
        self.watcher = Watcher::new(progress);
        self
    }

    /// Sets the limits of the image; anything beyond is an error of kind [`ErrorKind::Limit`]. The
    /// default is [`Limits::default`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
    /// # std::fs::create_dir_all(source.join("a/b")).unwrap();
    /// # packfs::pack(&source, &path).run()?;
    /// use packfs::{ErrorKind, Limit, Limits, OpenOptions};
    ///
    /// let limits = Limits::default().allow(Limit::Entries, 1);
    /// let image = OpenOptions::new().limits(limits).open(&path)?;
    /// let error = image.unpack(dir.path().join("out")).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Limit);
    /// # Ok::<(), packfs::Error>(())
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.read.limits = limits;
        self
    }

    /// Goes on where a checksum that vouches for the image as a whole is not that of its bytes: the
    /// superblock's in EROFS, the whole image's in cramfs. Kernels refuse the former.
    #[must_use]
    pub fn ignore_checksum(mut self) -> Self {
        self.read.ignore_checksum = true;
        self
    }

    /// Opens a file or block device.
    ///
    /// Errors: as [`open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Opened> {
        #[cfg(feature = "integrity")]
        let options = &self.with_root_hash_of(path.as_ref())?;
        #[cfg(not(feature = "integrity"))]
        let options = self;
        #[cfg(feature = "oci")]
        if let Some(opened) = options.open_oci(path.as_ref())? {
            return Ok(opened);
        }
        let (image, warnings) = options.bytes_with_warnings(path.as_ref())?;
        Ok(options.open_image(image)?.within(warnings))
    }

    /// Opens an image that is in memory.
    ///
    /// Errors: as [`open`].
    pub fn open_bytes(&self, bytes: impl Into<MemoryImage>) -> Result<Opened> {
        self.open_image(Arc::new(bytes.into()))
    }

    /// Opens an image in anything that can be read and has positions; see [`open_reader`].
    ///
    /// Errors: as [`open`].
    pub fn open_reader(&self, reader: impl Read + Seek + Send + 'static) -> Result<Opened> {
        self.open_image(Arc::new(ReaderImage::new("image in a reader", reader)?))
    }

    /// Opens an image that is already there as bytes at offsets, such as [`crate::MemoryImage`].
    ///
    /// Errors: as [`open`].
    pub fn open_image(&self, image: Arc<dyn Image>) -> Result<Opened> {
        let (image, behind) = self.behind(self.image_in(image)?)?;
        let (around, notices): (Vec<Layer>, Vec<String>) = behind.into_iter().unzip();
        let (image, layers) = self.decompressed(image)?;
        let outermost = self.open_layer(image, [around, layers].concat())?.within(notices);
        let opened = nested::descend(outermost, &self.which, self)?;
        self.with.check_taken(&opened)?;
        Ok(opened)
    }

    /// The image, or the one that it holds compressed, with its layers.
    #[cfg(feature = "pack")]
    pub(crate) fn decompressed(&self, image: Arc<dyn Image>) -> Result<(Arc<dyn Image>, Vec<Layer>)> {
        crate::compressed::decompressed(image, self, self.watcher.progress())
    }

    /// The image as it is, since nothing can be decompressed.
    #[cfg(not(feature = "pack"))]
    pub(crate) fn decompressed(&self, image: Arc<dyn Image>) -> Result<(Arc<dyn Image>, Vec<Layer>)> {
        Ok((image, Vec::new()))
    }

    /// The image in a file: where it begins and ends, and what it begins with.
    pub(crate) fn image_in(&self, file: Arc<dyn Image>) -> Result<Arc<dyn Image>> {
        let image: Arc<dyn Image> = match (self.offset, self.len) {
            (0, None) => file,
            (offset, len) => Arc::new(SliceImage::new(file, offset, len)?),
        };
        #[cfg(feature = "integrity")]
        let image = self.trusted(image)?;
        Ok(match &self.magic {
            None => image,
            Some(magic) => Arc::new(BeginningImage::new(image, magic.clone())),
        })
    }

    /// Opens an image that lies within such others.
    pub(crate) fn open_layer(&self, image: Arc<dyn Image>, layers: Vec<Layer>) -> Result<Opened> {
        let probed = nested::format_of(&*image, &self.which)?;
        let Some(format) = self.with.format(probed, &layers) else {
            return Err(Foreign::refuse(&image));
        };
        let counted = CountedImage::new(Arc::clone(&image));
        let (opening, mut warnings) = self.with.opening(format, &layers, &counted, self)?;
        let volume = format.open_with(Arc::clone(&counted) as Arc<dyn Image>, opening)?;
        warnings.extend(volume.warnings());
        warnings.extend(nested::unshown(&*image, format, &self.which)?);
        let faults = volume.known_faults();
        let told = faults.iter().take(FAULTS_MAX);
        warnings.extend(told.map(|finding| format!("{}: {}", image.name(), finding.fault)));
        if let Some(more) = faults.len().checked_sub(FAULTS_MAX + 1) {
            warnings.push(format!("{}: {} more faults, which check --outer lists", image.name(), more + 1));
        }
        let opened = self.opened(image, counted, format, Arc::from(volume))?;
        Ok(Opened { layers, warnings, ..opened })
    }

    /// Returns an opened volume, without warnings.
    ///
    /// Errors: a fault of the whole image, unless it is ignored.
    pub(crate) fn opened(
        &self,
        image: Arc<dyn Image>,
        counted: Arc<CountedImage>,
        format: &'static dyn Format,
        volume: Arc<dyn Volume>,
    ) -> Result<Opened> {
        if let Some(fault) = volume.fault().filter(|_| !self.read.ignore_checksum) {
            return Err(fault);
        }
        let engine = ReadEngine::counting(counted, Arc::clone(&volume), self.read.clone());
        let (limits, watcher) = (self.read.limits, self.watcher.clone());
        let (layers, containers, warnings) = Default::default();
        let choice = None;
        Ok(Opened { image, format, volume, engine, limits, layers, containers, choice, warnings, watcher })
    }

    /// True if the image is a part of its bytes, or has to be that of a root hash.
    #[cfg(feature = "oci")]
    pub(crate) fn wants_one_image(&self) -> bool {
        let is_part = (self.offset, self.len) != (0, None) || self.magic.is_some();
        #[cfg(feature = "integrity")]
        let is_part = is_part || !matches!(self.trust, crate::trust::Trust::All);
        is_part
    }
}

/// An opened image. May be shared between threads: all methods take `&self`, and what one thread
/// has decoded serves all.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
/// # std::fs::create_dir_all(&source).unwrap();
/// # std::fs::write(source.join("a"), "1").unwrap();
/// # packfs::pack(&source, &path).run()?;
/// use std::sync::Arc;
///
/// let image = Arc::new(packfs::open(&path)?);
/// let threads: Vec<_> = (0..4)
///     .map(|_| {
///         let image = Arc::clone(&image);
///         std::thread::spawn(move || image.read("a"))
///     })
///     .collect();
/// for thread in threads {
///     assert_eq!(thread.join().unwrap()?, b"1");
/// }
/// assert!(image.counters().decodes <= 1);
/// # Ok::<(), packfs::Error>(())
/// ```
pub struct Opened {
    image: Arc<dyn Image>,
    format: &'static dyn Format,
    volume: Arc<dyn Volume>,
    engine: Arc<ReadEngine>,
    limits: Limits,
    layers: Vec<Layer>,
    /// Volumes of the layers, the outermost first.
    containers: Vec<Arc<dyn Volume>>,
    choice: Option<Choice>,
    warnings: Vec<String>,
    watcher: Watcher,
}

impl Opened {
    pub(crate) fn with_choice(self, choice: Option<Choice>) -> Self {
        Opened { choice, ..self }
    }

    /// Returns warnings about the image and its layers, without the choice among several.
    pub(crate) fn own_warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Puts the warnings of the layers around it before its own.
    pub(crate) fn within(self, mut warnings: Vec<String>) -> Self {
        warnings.extend(self.warnings);
        Opened { warnings, ..self }
    }

    /// Notes the container around it, and those around that.
    pub(crate) fn in_container(self, outer: &Opened) -> Self {
        let containers = outer.containers.iter().chain([&outer.volume]).cloned().collect();
        Opened { containers, ..self }.within(outer.own_warnings())
    }

    /// Returns the volumes of the layers, the outermost first.
    #[cfg(feature = "check")]
    pub(crate) fn containers(&self) -> &[Arc<dyn Volume>] {
        &self.containers
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// Its bytes.
    pub fn image(&self) -> &Arc<dyn Image> {
        &self.image
    }

    /// Returns the decoded metadata: inodes, names and extents.
    pub fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }

    /// Returns the engine that decodes file data.
    pub fn engine(&self) -> &Arc<ReadEngine> {
        &self.engine
    }

    /// The images that it lies in, the outermost first; none if it fills its file.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The images beside it in a container, where [`OpenOptions::part`] chose none of them;
    /// [`Opened::warnings`] has it as a message.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Returns warnings for the user: an image that was chosen of several, changes in a journal
    /// that were not applied, missing devices.
    pub fn warnings(&self) -> Vec<String> {
        self.choice.iter().map(Choice::to_string).chain(self.warnings.clone()).collect()
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

    /// Everything in the image, the root first, each directory before what is in it, in stored
    /// order. Only the directories on the way are held in memory. After an error, the walk goes on
    /// with what does not depend on it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
    /// # std::fs::create_dir_all(source.join("etc")).unwrap();
    /// # std::fs::write(source.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    /// # packfs::pack(&source, &path).run()?;
    /// let image = packfs::open(&path)?;
    /// let mut paths = Vec::new();
    /// for entry in image.walk() {
    ///     let entry = entry?;
    ///     paths.push(format!("{} {}", entry.path, entry.inode.kind.file_type().word()));
    /// }
    /// assert_eq!(paths, ["/ directory", "etc directory", "etc/hosts file"]);
    /// # Ok::<(), packfs::Error>(())
    /// ```
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self)
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
    /// Errors: as [`Opened::load`], and `Corrupt` only where there is no root.
    pub fn load_what_is_there(&self, progress: &dyn Progress) -> Result<LoadedVolume> {
        self.engine.load_what_is_there(progress)
    }

    /// Finds a path, without following a symbolic link at its end.
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if something on its way is no
    /// directory.
    pub fn find(&self, path: impl IntoImagePath) -> Result<InodeId> {
        resolve(&*self.volume, &path.into_image_path()?, LastLink::Keep)
    }

    /// Finds a path, following symbolic links inside the image: absolute ones start at its root,
    /// and `..` never leads out.
    ///
    /// Errors: `NotFound` if there is no such path, `Failed` if something on its way is no
    /// directory, or it has more links than Linux follows.
    pub fn resolve(&self, path: impl IntoImagePath) -> Result<InodeId> {
        resolve(&*self.volume, &path.into_image_path()?, LastLink::Follow)
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
    /// Errors: as [`Opened::read`]; `Io` if `out` fails.
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
