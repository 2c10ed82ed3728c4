//! Options to open an image.

use crate::layer::Which;
use crate::open_with::OpenWith;
#[cfg(feature = "integrity")]
use crate::trust::Trust;
use crate::watcher::Watcher;
use packfs_core::{Limits, Progress};
use packfs_format::PartitionTable;
use packfs_read::ReadOptions;
use std::path::Path;

/// Options to open an image.
///
/// ```no_run
/// let firmware = packfs::OpenOptions::new().offset(0x20_0000).jobs(1).open("firmware.bin")?;
/// # Ok::<(), packfs::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(crate) offset: u64,
    pub(crate) len: Option<u64>,
    pub(crate) with: OpenWith,
    pub(crate) which: Which,
    pub(crate) magic: Option<Vec<u8>>,
    pub(crate) read: ReadOptions,
    #[cfg(feature = "remote")]
    pub(crate) remote: packfs_remote::RemoteOptions,
    #[cfg(feature = "integrity")]
    pub(crate) trust: Trust,
    pub(crate) watcher: Watcher,
}

impl OpenOptions {
    /// The image fills the file; one decoding thread for each processor.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    setters! {
        /// Sets the offset of the image, in bytes from the start of the file.
        pub offset(bytes: u64) => offset = bytes;

        /// Sets the length of the image in bytes; the default is up to the end of the file.
        pub len(bytes: u64) => len = Some(bytes);

        /// Reads the image as if it began with these bytes, for images whose magic was changed:
        /// such as `hsqs` for a SquashFS image of a router.
        pub magic(bytes: impl Into<Vec<u8>>) => magic = Some(bytes.into());

        /// Chooses one of several images in a container, such as a partition of a disk, by its name
        /// or number; a slash is before the name of an image further inside, as in `p2/root` for a
        /// volume of an LVM group in a partition. The default is the only image of a known format,
        /// or else the container.
        pub part(name: impl Into<String>) => which = Which::Chosen(name.into());
    }

    /// Opens a container of images itself, not what is in it, and no image behind a program or in a
    /// Singularity image.
    #[must_use]
    pub fn outermost(mut self) -> Self {
        self.which = Which::Outermost;
        self
    }

    setters! {
        /// Sets the options of images at URLs: cache, credentials, time limits.
        #[cfg(feature = "remote")]
        pub remote(options: packfs_remote::RemoteOptions) => remote = options;

        /// Decoding threads; 0: one for each processor.
        pub jobs(count: usize) => read.jobs = count;

        /// Sets the size of the cache for decoded blocks in bytes; the default is 32 MiB.
        pub cache_bytes(bytes: u64) => read.cache_bytes = bytes;

        /// Bytes decoded ahead of a reader that reads a file in order, at most a quarter of the
        /// cache; 0: none.
        pub readahead_bytes(bytes: u64) => read.readahead_bytes = bytes;
    }

    /// Tells the cache that the caller keeps what it reads, as the kernel does for a mount: blocks
    /// read sequentially are evicted first.
    #[must_use]
    pub fn kept_by_readers(mut self) -> Self {
        self.read.is_kept_by_readers = true;
        self
    }

    setters! {
        /// Watches what is done with the image, and stops it: unpacking and writing archives,
        /// unless that is given a progress of its own. An [`Arc`] of one leaves the other handle
        /// with the caller.
        pub progress(progress: impl Progress + 'static) => watcher = Watcher::new(progress);

        /// Sets the limits of the image; anything beyond is an error of kind [`ErrorKind::Limit`].
        /// The default is [`Limits::default`].
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
        pub limits(limits: Limits) => read.limits = limits;
    }

    /// Goes on where a checksum that vouches for the image as a whole is not that of its bytes: the
    /// superblock's in EROFS, the whole image's in cramfs. Kernels refuse the former.
    #[must_use]
    pub fn ignore_checksum(mut self) -> Self {
        self.read.ignore_checksum = true;
        self
    }

    /// A further file or block device that holds data of the image: EROFS: blobs, layers, a tar
    /// that is only indexed; ext4: an external journal; XFS: a realtime device; btrfs: the other
    /// devices; LVM: the other physical volumes of a group. One that lies in a disk, such as a
    /// partition in a qcow2 image, is found there if it is the only one. To be called once for
    /// each; for EROFS in the order in which the image lists them.
    #[must_use]
    pub fn device(mut self, path: impl AsRef<Path>) -> Self {
        self.with.devices.push(path.as_ref().into());
        self
    }

    setters! {
        /// Opens this subvolume of a btrfs image, by its path or number; `/` is the top level. The
        /// default is the image's default subvolume, as in Linux.
        pub subvolume(name: impl Into<String>) => with.subvolume = Some(name.into());
    }

    /// Reads ext4 and XFS as they are on disk. The default applies the changes in the journal of an
    /// image that was not unmounted, in memory.
    #[must_use]
    pub fn no_journal(mut self) -> Self {
        self.with.no_journal = true;
        self
    }

    setters! {
        /// Reads the partition table of this kind, whatever the disk begins with. The default is
        /// the one that Linux reads: a GPT counts only if the MBR has an entry for it.
        pub partition_table(kind: PartitionTable) => with.partition_table = Some(kind);

        /// Opens this internal snapshot of a qcow2 image, by its name or number. The default is the
        /// current state.
        pub snapshot(name: impl Into<String>) => with.snapshot = Some(name.into());
    }

    /// Backing file of a qcow2 image, or parent of a differencing VHD. To be called once for each
    /// file of a chain, in its order: paths in images are never opened.
    #[must_use]
    pub fn allow_backing(mut self, path: impl AsRef<Path>) -> Self {
        self.with.backing.push(path.as_ref().into());
        self
    }

    /// Directory with the objects of a composefs image, which hold contents of its files. To be
    /// called once for each directory: an object is taken from the first that has it, and its
    /// digest is verified when it is opened.
    #[cfg(feature = "integrity")]
    #[must_use]
    pub fn objects(mut self, dir: impl AsRef<Path>) -> Self {
        self.with.objects.push(dir.as_ref().into());
        self
    }

    #[cfg(feature = "integrity")]
    setters! {
        /// Compares every block of the image with the dm-verity hash tree at its end before any of
        /// its bytes is used; the tree must have this root hash. Only the data that the tree covers
        /// can be read. Files that hold further data of the image ([`OpenOptions::device`]) are not
        /// covered.
        ///
        /// ```
        /// # let dir = tempfile::tempdir().unwrap();
        /// # let path = dir.path().join("a.sqfs");
        /// packfs::pack_files([("a", "1")], &path)?.run()?;
        /// let unknown_hash = [0; 32];
        /// let options = packfs::OpenOptions::new().root_hash(unknown_hash);
        /// let error = options.open(&path).err().unwrap();
        /// assert!(error.to_string().contains("no hash tree"));
        /// # Ok::<(), packfs::Error>(())
        /// ```
        pub root_hash(hash: impl Into<Vec<u8>>) => trust = Trust::RootHash(hash.into());

        /// Compares every block as [`OpenOptions::root_hash`] does. The root hash is in the file
        /// `IMAGE.roothash`, whose minisign signature in `IMAGE.roothash.minisig` must be of the
        /// public key in the file `key`. Both are read from the place of the image, which may be a
        /// URL.
        pub trust(key: impl AsRef<Path>) => trust = Trust::Key(key.as_ref().into());
    }
}
