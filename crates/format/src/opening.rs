//! Options to open an image beside its bytes.

use packfs_core::{Error, Image, Result};
use std::str::FromStr;
use std::sync::Arc;

/// Options to open an image. A format is given those that [`crate::FormatInfo::opens_with`] lists;
/// the others have their defaults.
#[derive(Clone, Default)]
pub struct Opening {
    /// Further devices with data of the image, in the order given by the caller.
    pub devices: Vec<Arc<dyn Image>>,
    /// Subvolume to open in place of the default one: its path or number.
    pub subvolume: Option<String>,
    /// True to read the filesystem as it is on disk, without the changes in its journal.
    pub no_journal: bool,
    /// Partition table to read on a disk that has both, or whose own rules name the other.
    pub partition_table: Option<PartitionTable>,
    /// Snapshot of a disk image to open in place of its current state: its name or number.
    pub snapshot: Option<String>,
    /// Backing files of a disk image, its own first, then that of the backing file.
    pub backing: Vec<Arc<dyn Image>>,
    /// Files outside of the image that hold contents of its files.
    pub objects: Option<Arc<dyn Objects>>,
}

/// Kind of partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionTable {
    /// The boot record, and the chains of logical partitions that it leads to.
    Mbr,
    /// The GUID partition table.
    Gpt,
}

impl FromStr for PartitionTable {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mbr" => Ok(PartitionTable::Mbr),
            "gpt" => Ok(PartitionTable::Gpt),
            _ => Err(Error::usage(format!("unknown partition table {text:?}; use mbr or gpt"))),
        }
    }
}

/// Contents of a file in a file of their own, outside of the image.
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

/// Directories with objects.
pub trait Objects: Send + Sync {
    /// Returns the length of an object, in bytes.
    ///
    /// Errors: `Corrupt` if it is missing; `Unsupported` for a path that no object has; `Io`.
    fn len(&self, object: &Object) -> Result<u64>;

    /// Opens an object, once its contents have the digest that the image states.
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

    /// Returns the things that images of a format without the option do not have.
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
