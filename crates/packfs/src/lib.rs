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
//! take.
//!
//! Formats, codecs and work beyond reading are Cargo features, all of them on by default;
//! docs/guide/library.md lists them.
//!
//! This crate owns [`Opened`], [`Reader`], [`Walk`], [`Pack`] and [`Source`]; its modules name what
//! else is needed of the crates below it.
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
pub mod zisofs;

pub use altered::magics;
#[cfg(feature = "pack")]
pub use compression::{CodecUse, Compression, CompressionCount};
#[cfg(feature = "oci")]
pub use convert::{ConvertOci, convert_oci};
#[cfg(feature = "pack")]
pub use detect::Source;
pub use foreign::Foreign;
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

pub use packfs_codec::BlockRef;
pub use packfs_core::{
    BeginningImage, BuildId, ContentId, ContentReader, Contents, DeviceNumber, Dialect, Edited, Entry, Error,
    ErrorKind, FileImage, FileType, Glob, Goal, Image, ImagePath, Implied, IntoImagePath, LIMITS, Limit,
    LimitRow, Limits, Loss, MemoryImage, Meta, Meter, Name, Node, NodeId, NodeKind, Order, Owner, Place,
    PlaceKind, Progress, ReaderImage, Result, ResultExt, Silent, SliceImage, Stage, Timestamp, Tree,
    TreeBuilder, TreeEdit, WithoutWarnings, Words, Xattrs, acts_on_terminals, copy_exactly, escaped,
    from_hex, hex_byte, is_reference, last_line, one_line, parse_size, printable, processor_count,
    shown_place, to_hex, url_scheme, uuid_text, without_secrets,
};
pub use packfs_format::{
    DirCursor, DirEntry, Extent, ExtentFrom, Fact, FactValue, Facts, Finding, Format, FormatInfo, InnerImage,
    Inode, InodeId, InodeKind, KernelBlock, KernelCache, KernelRead, KernelReads, LinuxDriver, Magic, Makes,
    OptionRow, PackSettings, PartitionTable, Severity, SpaceOwner, Volume,
};
#[cfg(feature = "merge")]
pub use packfs_merge::{DataPlace, Marks, MergeReport, OnConflict};
#[cfg(feature = "pack")]
pub use packfs_pack::{
    Class, ClassRow, Effort, Gain, Machine, PackReport, Section, StageTime, WalkReads, group_memory_limit,
    temporary_folder,
};
pub use packfs_read::{Counters, FileReader};

/// Codecs: their names, levels and options.
pub mod codec {
    pub use packfs_codec::{Algorithm, CODECS, Codec, CodecSpec, libraries};
}

/// Checks beyond a format's own rules: contents, what was written, differences of two trees.
#[cfg(feature = "check")]
pub mod check {
    pub use crate::checking::{CheckReport, Findings};
    pub use packfs_check::{
        Change, ContentReport, DiffOptions, DiffReport, Difference, Expected, Side, content, diff, written,
    };
}

/// The formats that this build has.
pub mod formats {
    pub use packfs_formats::{DEFAULT, all, by_name, drivers, probe};
}

/// Digests, hash trees, signatures, recovery data.
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
pub mod json {
    pub use packfs_core::byte_key;
    pub use packfs_core::json::{ByteKey, Bytes, Path};
}

/// Mounts, through FUSE and by the kernel.
#[cfg(feature = "mount")]
pub mod mount {
    pub use packfs_mount::{
        Channel, DryRun, FileContents, FuseCounters, FuseMount, FuseOptions, LoopDevice, LoopOptions,
        MountFlags, OwnerMap, ReportingAllocator, SingleFile, TraceFile, Unmounter, find_subdir, is_root,
        is_stale, kernel, loop_device, record, return_long_blocks, share_heap, table, try_uring, unmount,
    };
}

/// The read engine, below [`Opened`], and ranges of many files at once.
pub mod read {
    pub use crate::ranges::{FileRange, RangeTarget, spread};
    pub use packfs_read::{
        Counters, Faults, FileReader, LoadedVolume, PageNeighbours, Piece, PieceSink, ReadEngine,
        ReadOptions, Wanted,
    };
}

/// Images at URLs: their options, and their cache.
#[cfg(feature = "remote")]
pub mod remote {
    pub use packfs_remote::{Environment, RemoteOptions, Retries, Store, Stored, TimeLimits, Verified};
}

/// Unpacking, tar archives, lists.
#[cfg(feature = "unpack")]
pub mod sink {
    pub use packfs_sink::{
        Existing, ListOptions, LossKind, NotRestored, NotRestoredExample, OwnerPolicy, Pattern, Row,
        RowFormat, TarOptions, TarReport, UnpackOptions, UnpackReport, list, time_text, unpack, write_tar,
        write_tar_file,
    };
}

/// Sources, and their shaping.
#[cfg(feature = "pack")]
pub mod source {
    pub use packfs_core::overlay;
    pub use packfs_source::{
        Additions, ArchiveKind, FileContexts, IdMap, JoinedContents, Loaded, ModeChange, Notes,
        OF_LOWER_LAYER, Selection, Shape, TarInput, TarReading, Trace, Whiteouts, decoded_file, load_archive,
        load_dir, load_entries, load_manifest, load_tar, shape_tree, stack, with_origins, write_manifest,
        write_manifest_below,
    };
}

/// Parts of a [`Volume`], and abilities that only some have.
pub mod volume {
    pub use packfs_format::{
        Caching, Check, Directories, FileDigests, Health, Inside, ObjectFiles, Space, Storage,
    };
}
