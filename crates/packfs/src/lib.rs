//! Compressed read-only filesystem images: pack them, open them, unpack, list, check and compare
//! them.
//!
//! [`pack()`] makes an image of a directory, a tar archive, another image or a manifest:
//!
//! ```
//! # fn main() -> packfs::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let (source, image) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
//! # std::fs::create_dir_all(source.join("etc")).unwrap();
//! # std::fs::write(source.join("etc/os-release"), "NAME=example\n").unwrap();
//! let report = packfs::pack(&source, &image).codec("zstd:19").block_size(256 << 10).run()?;
//! println!("{} bytes became {}", report.bytes_in, report.image_len);
//! # Ok(())
//! # }
//! ```
//!
//! [`open()`] opens an image of any format, by what it holds, never by its name:
//!
//! ```
//! # fn main() -> packfs::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
//! # std::fs::create_dir_all(source.join("etc")).unwrap();
//! # std::fs::write(source.join("etc/os-release"), "NAME=example\n").unwrap();
//! # packfs::pack(&source, &path).run()?;
//! let image = packfs::open(&path)?;
//! assert_eq!(image.format().name(), "squashfs");
//! assert_eq!(image.read("etc/os-release")?, b"NAME=example\n");
//!
//! let mut release = image.open_file("etc/os-release")?; // Read, Seek, and read_at from any thread
//! std::io::copy(&mut release, &mut std::io::stdout()).unwrap();
//!
//! for entry in image.walk() {
//!     let entry = entry?;
//!     println!("{} {:?}", entry.path, entry.inode.kind);
//! }
//!
//! image.unpack(dir.path().join("out"))?;
//! image.write_tar(&mut std::io::sink())?;
//! # Ok(())
//! # }
//! ```
//!
//! Neither source nor image has to be a file of this machine: [`pack_files`] packs what is in
//! memory, [`open_bytes`] opens bytes, [`open_reader`] anything that is `Read + Seek`:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("root.sqfs");
//! packfs::pack_files([("etc/hostname", "example\n")], &path)?.run()?;
//! let bytes: Vec<u8> = std::fs::read(&path)?;
//! let image = packfs::open_bytes(bytes)?;
//! assert_eq!(image.read("etc/hostname")?, b"example\n");
//! assert_eq!(image.read("etc/none").unwrap_err().kind(), packfs::ErrorKind::NotFound);
//! # Ok(())
//! # }
//! ```
//!
//! Reports implement `serde::Serialize`, with the keys that `packfs --json` prints:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (rootfs, image) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
//! # std::fs::create_dir(&rootfs)?;
//! # std::fs::write(rootfs.join("hostname"), "example\n")?;
//! let report = packfs::pack(&rootfs, &image).run()?;
//! println!("{}", serde_json::to_string_pretty(&report)?);
//! # assert_eq!(serde_json::to_value(&report)?["file_bytes"], 8);
//! # Ok(())
//! # }
//! ```
//!
//! Every error says what, where, what was found and what is allowed, and its [`ErrorKind`] tells a
//! damaged image from a full disk; it becomes a `std::io::Error` of a fitting kind where one is
//! wanted. Nothing here panics on what an image, a tar or a manifest holds. Work that takes long is
//! watched and stopped through [`Progress`], which [`Pack::progress`] and [`OpenOptions::progress`]
//! take:
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! struct Stages;
//!
//! impl packfs::Progress for Stages {
//!     fn begin(&self, stage: packfs::Stage, _files: u64, _bytes: u64) {
//!         println!("{}", stage.name());
//!     }
//! }
//!
//! packfs::pack_files([("a", "1")], dir.path().join("a.sqfs"))?.progress(Stages).run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Formats, codecs and work beyond reading are Cargo features, all of them on by default;
//! docs/guide/library.md lists them.
//!
//! # Versions
//!
//! The promise of [SemVer](https://semver.org) is for items that this documentation shows. Other
//! crates named `packfs-...` are parts of this one, and change with it in any version. A compatible
//! version, such as 0.1.1 after 0.1.0, may add
//!
//! - variants and fields where `#[non_exhaustive]` is shown;
//! - fields to options: a literal ends with `..Default::default()`. Structs that describe files and
//!   formats ([`Meta`], [`Inode`], [`Extent`], [`FormatInfo`]) are matched with `..`;
//! - methods to [`Format`], [`Volume`], and the traits of [`volume`], which packfs alone
//!   implements, and methods with defaults to traits that programs implement, too ([`Image`],
//!   [`Contents`], [`Progress`], [`read::RangeTarget`], [`read::PieceSink`], `shards::Store`).
//!
//! Types that only signatures of [`Format`], [`FormatInfo`], and [`Volume`] name are for formats.
//! Signatures name types of packfs and the standard library alone; the features `serde` and
//! `schema` implement traits of `serde` 1 and `schemars` 1.
#![forbid(unsafe_code)]

#[macro_use(setters)]
extern crate packfs_core;

mod altered;
mod behind;
#[cfg(feature = "check")]
mod checking;
#[cfg(feature = "composefs")]
pub mod composefs;
#[cfg(feature = "pack")]
mod compressed;
mod compression;
#[cfg(feature = "oci")]
mod convert;
#[cfg(feature = "pack")]
mod detect;
mod foreign;
mod inner;
mod layer;
mod look_up;
mod look_up_many;
#[cfg(feature = "merge")]
mod merge;
mod nested;
#[cfg(feature = "integrity")]
mod objects;
#[cfg(feature = "oci")]
pub mod oci;
mod open;
mod open_options;
mod open_with;
mod opened;
mod opening;
pub mod options;
#[cfg(feature = "pack")]
mod output_place;
#[cfg(feature = "pack")]
mod pack;
mod place;
mod ranges;
mod reader;
mod resolve;
#[cfg(feature = "scan")]
mod scan;
#[cfg(feature = "shards")]
pub mod shards;
#[cfg(feature = "integrity")]
mod trust;
#[cfg(feature = "unpack")]
mod unpacking;
#[cfg(feature = "check")]
mod unread;
mod walk;
mod watcher;
#[cfg(feature = "pack")]
#[doc(hidden)]
pub mod zisofs;

pub use altered::magics;
#[cfg(feature = "pack")]
pub use compression::{CodecUse, Compression, CompressionCount};
#[cfg(feature = "oci")]
pub use convert::{ConvertOci, convert_oci};
#[cfg(feature = "pack")]
pub use detect::Source;
pub use layer::{Choice, Layer};
#[cfg(feature = "merge")]
pub use merge::{Merge, Merged, merge};
pub use open::{open, open_bytes, open_reader};
pub use open_options::OpenOptions;
pub use opened::Opened;
#[cfg(feature = "pack")]
pub use options::{BaseCheck, MadeAt, PackOptions, parse_time, source_date_epoch};
#[cfg(feature = "pack")]
pub use pack::{Pack, Repack, Wrap, WrapOptions, pack, pack_entries, pack_files, repack, wrap};
pub use reader::Reader;
#[cfg(feature = "scan")]
pub use scan::{Found, ScanOptions, scan};
pub use walk::{Walk, Walked};

pub use packfs_codec::{BlockRef, DecodedLen};
pub use packfs_core::{
    BuildId, ContentId, ContentReader, Contents, Copied, DeviceNumber, Edited, Entry, Error, ErrorKind,
    Fetched, FileImage, FileType, Goal, Image, ImagePath, Implied, IntoImagePath, LIMITS, Limit, LimitRow,
    Limits, Loss, MemoryImage, Meta, Meter, Name, Node, NodeId, NodeKind, Order, Owner, Place, PlaceKind,
    Progress, ReaderImage, Result, Silent, SliceImage, Stage, Timestamp, Tree, TreeBuilder, TreeEdit,
    WithoutWarnings, Words, Xattrs, XattrsId,
};
pub use packfs_format::{
    DirCursor, DirEntry, Extent, ExtentFrom, Fact, FactValue, Facts, Finding, Format, FormatInfo, InnerImage,
    Inode, InodeId, InodeKind, LinuxDriver, Magic, Makes, Object, OptionRow, PackSettings, PartitionTable,
    Severity, SpaceOwner, StoredExtent, Volume,
};
#[cfg(feature = "merge")]
pub use packfs_merge::{DataPlace, Marks, MergeReport, OnConflict};
#[cfg(feature = "pack")]
pub use packfs_pack::{
    Class, ClassRow, Effort, Gain, Machine, PackReport, Section, StageTime, WalkReads, group_memory_limit,
    temporary_folder,
};
pub use packfs_read::{Counters, FileReader};

// For the programs of this workspace: hidden items may change in any version.
#[doc(hidden)]
pub use packfs_core::{
    Dialect, Glob, ResultExt, acts_on_terminals, copy_exactly, escaped, from_hex, hex_byte, is_reference,
    last_line, one_line, parse_size, printable, processor_count, shown_place, to_hex, url_scheme, uuid_text,
    without_secrets,
};
#[doc(hidden)]
pub use packfs_format::{KernelBlock, KernelCache, KernelRead, KernelReads};

/// Codecs: their names, levels and options.
///
/// [`Pack::codec`] takes the name of one, and after colons and commas its level and its options.
///
/// ```
/// let zstd = packfs::codec::CODECS.iter().find(|codec| codec.name == "zstd").unwrap();
/// assert!(zstd.levels.as_ref().is_some_and(|levels| levels.contains(&19)));
/// println!("{}: {}", zstd.name, zstd.description);
/// ```
pub mod codec {
    pub use packfs_codec::{Algorithm, CODECS, Codec, CodecSpec, SettingsError, libraries};
}

/// Checks of images, and comparisons of trees.
///
/// [`Opened::check`] checks the rules of the format and decodes all data, [`diff`](check::diff)
/// compares two trees with their contents.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("root.sqfs");
/// # packfs::pack_files([("etc/hostname", "example\n")], &path)?.run()?;
/// use packfs::{Silent, check};
///
/// let image = packfs::open(&path)?;
/// let mut found = check::Findings::default();
/// image.check(true, &Silent, &mut found)?;
/// assert!(found.is_sound());
///
/// let tree = image.load(&Silent)?.tree;
/// let side = || check::Side { tree: &tree, contents: &**image.engine() };
/// let mut show = |difference: check::Difference| println!("{difference:?}");
/// let report = check::diff(side(), side(), check::DiffOptions::default(), &Silent, &mut show)?;
/// assert_eq!(report.differences, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "check")]
pub mod check {
    pub use crate::checking::{CheckReport, Findings};
    pub use packfs_check::{Change, ContentReport, DiffOptions, DiffReport, Difference, Side, content, diff};
}

/// The formats that this build has.
///
/// ```
/// let format = packfs::formats::by_name(packfs::formats::DEFAULT).unwrap();
/// let info = format.info();
/// println!("{}: {}", info.name, info.extensions.join(", "));
/// for row in info.options {
///     println!("  {} ({}): {}", row.name, row.values, row.help);
/// }
/// ```
pub mod formats {
    pub use packfs_formats::{DEFAULT, all, by_name, drivers, probe};
}

/// Digests, hash trees, signatures, recovery data.
///
/// A digest of a tree is the same for every image and directory with these files:
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("root.sqfs");
/// # packfs::pack_files([("etc/hostname", "example\n")], &path)?.run()?;
/// use packfs::integrity::{DigestFacts, TreeDigest, digest_tree};
///
/// let image = packfs::open(&path)?;
/// let tree = image.load(&packfs::Silent)?.tree;
/// let digests = digest_tree(&tree, &**image.engine(), DigestFacts::ALL, 0, &packfs::Silent)?;
/// let text = digests.root().to_string(); // packfs-tree-1...
/// assert_eq!(text.parse::<TreeDigest>()?, digests.root());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "integrity")]
pub mod integrity {
    pub use packfs_integrity::{
        DigestFacts, FsVerityOptions, HashAlgorithm, NewKeys, RecoveryIndex, RecoveryParams, RecoveryState,
        Replacement, SigningKey, TreeDigest, TreeDigests, VerifiedImage, VerifyingKey, VerityOptions,
        VerityParams, VerityReport, digest_tree, find_appended, from_hex, fs_verity_digest, new_signing_keys,
        protect, public_key_path, read_verity, recovery_path, repair, repair_copy, root_hash_path,
        signature_path, survey, survey_beside, to_hex, verify_verity, write_verity,
    };
}

/// Serialization of bytes, such as paths.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod json {
    pub use packfs_core::byte_key;
    pub use packfs_core::json::{ByteKey, Bytes, Path};
}

/// Mounts, through FUSE and by the kernel.
///
/// ```no_run
/// use packfs::mount::{FuseMount, FuseOptions};
/// use std::{path::Path, sync::Arc};
///
/// let image = packfs::open("root.sqfs")?;
/// let options = FuseOptions::new(image.volume().root(), "root.sqfs");
/// let mount = FuseMount::new(Arc::clone(image.engine()), Path::new("/mnt"), &options)?;
/// mount.wait()?; // serves until it is unmounted
/// # Ok::<(), packfs::Error>(())
/// ```
#[cfg(feature = "mount")]
pub mod mount {
    pub use packfs_mount::{
        Channel, FuseCounters, FuseMount, FuseOptions, LoopDevice, LoopOptions, MountFlags, OwnerMap,
        TraceFile, Unmounter, find_subdir, is_root, is_stale, kernel, loop_device, table, unmount,
    };
    #[doc(hidden)]
    pub use packfs_mount::{
        DryRun, FileContents, ReportingAllocator, SingleFile, record, return_long_blocks, share_heap,
        try_uring,
    };
}

/// The read engine, below [`Opened`], and ranges of many files at once.
///
/// [`Reader::read_ranges`] decodes each block once, on all threads, in the order of the image:
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("root.sqfs");
/// # packfs::pack_files([("a", "example\n"), ("b", "other\n")], &path)?.run()?;
/// use packfs::read::FileRange;
/// use std::sync::Mutex;
///
/// let image = packfs::open(&path)?;
/// let (a, b) = (image.file_at("a")?, image.file_at("b")?);
/// let ranges = [FileRange::new(a, 2..7), FileRange::new(b, 0..5)];
/// let (mut a, mut b) = ([0; 5], [0; 5]);
/// let targets = [Mutex::new(&mut a[..]), Mutex::new(&mut b[..])];
/// let failed = image.read_ranges(&ranges, &targets, &packfs::Silent)?;
/// assert!(failed.is_empty());
/// assert_eq!((&a, &b), (b"ample", b"other"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod read {
    pub use crate::ranges::{FileRange, RangeTarget, spread};
    pub use packfs_read::{
        Counters, Faults, FileReader, LoadedVolume, Piece, PieceSink, ReadEngine, ReadOptions, SharedBytes,
        Wanted,
    };
}

/// Images at URLs: their options, and their cache.
///
/// ```no_run
/// use packfs::remote::RemoteOptions;
///
/// let remote = RemoteOptions { cache_len: 8 << 30, ..RemoteOptions::default() };
/// let image = packfs::OpenOptions::new().remote(remote).open("https://example.org/root.sqfs")?;
/// println!("{:?}", image.image().fetched());
/// # Ok::<(), packfs::Error>(())
/// ```
#[cfg(feature = "remote")]
pub mod remote {
    pub use packfs_remote::{Environment, RemoteOptions, Retries, Store, Stored, TimeLimits, Verified};
}

/// Unpacking, tar archives, lists.
///
/// [`Reader::unpack_with`] and [`Reader::write_tar_with`] take the options, [`list`](sink::list)
/// any volume:
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (path, out) = (dir.path().join("root.sqfs"), dir.path().join("out"));
/// # packfs::pack_files([("etc/hostname", "example\n"), ("motd", "hello\n")], &path)?.run()?;
/// use packfs::Silent;
/// use packfs::sink::{ListOptions, Pattern, UnpackOptions, list};
///
/// let image = packfs::open(&path)?;
/// let options = ListOptions { recursive: true, ..ListOptions::default() };
/// list(&**image.volume(), &options, &Silent, &mut |row| {
///     println!("{} {} {}", row.mode_text(), row.len, row.path);
///     Ok(())
/// })?;
///
/// let paths = vec![Pattern::parse(b"etc")?];
/// let options = UnpackOptions { paths, ..UnpackOptions::default() };
/// image.unpack_with(&out, &options, &Silent)?;
/// assert!(out.join("etc/hostname").exists() && !out.join("motd").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "unpack")]
pub mod sink {
    pub use packfs_sink::{
        Existing, ListOptions, LossKind, NotRestored, NotRestoredExample, OwnerPolicy, Pattern, Row,
        RowFormat, TarOptions, TarReport, UnpackOptions, UnpackReport, list, time_text, unpack, write_tar,
        write_tar_file,
    };
}

/// Sources, and their shaping.
///
/// A source is a tree and its contents, which [`Pack::of_loaded`] packs:
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (rootfs, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
/// # std::fs::create_dir(&rootfs)?;
/// # std::fs::write(rootfs.join("a.o"), "object")?;
/// # std::fs::write(rootfs.join("a.c"), "source")?;
/// use packfs::source::{Shape, load_dir};
///
/// let shape = Shape { exclude: vec!["*.o".into()], uid: Some(0), ..Shape::default() };
/// let loaded = load_dir(&rootfs, &shape, &packfs::Silent)?;
/// assert_eq!(loaded.tree.file_count(), 1);
/// packfs::Pack::of_loaded(loaded.into(), &path).run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "pack")]
pub mod source {
    #[doc(hidden)]
    pub use packfs_core::overlay;
    pub use packfs_source::{
        Additions, ArchiveKind, FileContexts, IdMap, Loaded, ModeChange, Notes, Selection, Shape, TarInput,
        TarReading, Trace, Whiteouts, load_archive, load_dir, load_entries, load_manifest, load_tar,
        shape_tree, stack, write_manifest,
    };
    #[doc(hidden)]
    pub use packfs_source::{
        JoinedContents, OF_LOWER_LAYER, decoded_file, with_origins, write_manifest_below,
    };
}

/// Parts of a [`Volume`], and abilities that only some have.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("root.sqfs");
/// # packfs::pack_files([("etc/hostname", "example\n")], &path)?.run()?;
/// let image = packfs::open(&path)?;
/// let owners = image.volume().space()?; // every byte of the image has an owner
/// assert_eq!(owners.iter().map(|owner| owner.len).sum::<u64>(), image.image().len());
/// assert!(image.volume().inside().is_none(), "a file system, not a container");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod volume {
    pub use packfs_format::{
        Caching, Check, Directories, FileDigests, Health, Inside, ObjectFiles, Space, Storage,
    };
}
