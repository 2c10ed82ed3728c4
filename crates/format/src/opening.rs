//! Options to open an image beside its bytes.

use packfs_core::Image;
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
    /// Snapshot of a disk image to open in place of its current state: its name or number.
    pub snapshot: Option<String>,
    /// Backing files of a disk image, its own first, then that of the backing file.
    pub backing: Vec<Arc<dyn Image>>,
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
    /// [`Opening::snapshot`].
    Snapshot,
    /// [`Opening::backing`].
    Backing,
}

impl OpenOption {
    /// Every option.
    pub const ALL: [OpenOption; 5] = [
        OpenOption::Devices,
        OpenOption::Subvolume,
        OpenOption::Journal,
        OpenOption::Snapshot,
        OpenOption::Backing,
    ];

    /// Returns the things that images of a format without the option do not have.
    pub fn things(self) -> &'static str {
        match self {
            OpenOption::Devices => "further devices",
            OpenOption::Subvolume => "subvolumes",
            OpenOption::Journal => "journal",
            OpenOption::Snapshot => "snapshots",
            OpenOption::Backing => "backing files",
        }
    }
}
