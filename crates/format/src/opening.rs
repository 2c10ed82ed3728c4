//! Options of opening an image.

use packfs_core::{Error, Image, Result, words};
use std::sync::Arc;

/// Options of opening an image. A format gets those that [`crate::FormatInfo::opens_with`] lists;
/// the others have their defaults.
#[derive(Clone, Default)]
pub struct Opening {
    /// Further devices with data of the image, in the order given by the caller.
    pub devices: Vec<Arc<dyn Image>>,
    /// Subvolume to open instead of the default one: its path or number.
    pub subvolume: Option<String>,
    /// True to read the filesystem without the changes in its journal.
    pub no_journal: bool,
    /// Partition table to read on a disk that has both, or whose own rules name the other.
    pub partition_table: Option<PartitionTable>,
    /// Snapshot of a disk image to open instead of its current state: its name or number.
    pub snapshot: Option<String>,
    /// Backing files of a disk image, starting with its own.
    pub backing: Vec<Arc<dyn Image>>,
    /// Files outside of the image with contents of its files.
    pub objects: Option<Arc<dyn Objects>>,
}

/// Returns the error of a file that an image needs and that is not among the `given` ones, such as
/// a backing file: no path of an image is opened. `name` is printable.
pub fn not_given(subject: &str, what: &str, name: &str, given: usize) -> Error {
    let hint = match given {
        0 => "--allow-backing FILE reads it",
        _ => "--allow-backing FILE reads it; give one for each image of the chain, in order",
    };
    let what = format!("missing data is in its {what} \"{name}\", which is not given");
    Error::unsupported(subject, what).hint(hint)
}

/// Returns the error of more files than an image has.
pub fn too_many_given(given: usize, found: usize) -> Error {
    Error::usage(format!("{given} backing files are given, but the image has {found}"))
}

/// Kind of partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionTable {
    /// The boot record, and the chains of logical partitions that it leads to.
    Mbr,
    /// The GUID partition table.
    Gpt,
}

words!(PartitionTable: "partition table", { Mbr: "mbr", Gpt: "gpt" });

/// File outside of the image with the contents of an image's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Path below the directory of objects as the image states it, not checked, without a leading
    /// slash.
    pub path: Vec<u8>,
    /// fs-verity digest of the contents, SHA-256 or SHA-512 by its length, if the image states one.
    pub digest: Option<Vec<u8>>,
    /// Length in bytes.
    pub len: u64,
}

/// A store of objects.
pub trait Objects: Send + Sync {
    /// Returns the length of an object, in bytes.
    ///
    /// Errors: `Corrupt` if it is missing; `Unsupported` for a path that no object has; `Io`.
    fn len(&self, object: &Object) -> Result<u64>;

    /// Opens an object after verifying its digest.
    ///
    /// Errors: as [`Objects::len`]; `Corrupt` for other contents.
    fn open(&self, object: &Object) -> Result<Arc<dyn Image>>;
}

/// Option of [`Opening`] that a format takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenOption {
    /// [`Opening::devices`].
    Devices,
    /// [`Opening::subvolume`].
    Subvolume,
    /// [`Opening::no_journal`].
    Journal,
    /// [`Opening::partition_table`].
    PartitionTable,
    /// [`Opening::snapshot`].
    Snapshot,
    /// [`Opening::backing`].
    Backing,
    /// [`Opening::objects`].
    Objects,
}

impl OpenOption {
    /// Every option.
    pub const ALL: [OpenOption; 7] = [
        OpenOption::Devices,
        OpenOption::Subvolume,
        OpenOption::Journal,
        OpenOption::PartitionTable,
        OpenOption::Snapshot,
        OpenOption::Backing,
        OpenOption::Objects,
    ];

    /// Returns the name of the things that images of a format without the option lack.
    pub fn things(self) -> &'static str {
        match self {
            OpenOption::Devices => "further devices",
            OpenOption::Subvolume => "subvolumes",
            OpenOption::Journal => "journal",
            OpenOption::PartitionTable => "partition table",
            OpenOption::Snapshot => "snapshots",
            OpenOption::Backing => "backing files",
            OpenOption::Objects => "objects",
        }
    }
}
