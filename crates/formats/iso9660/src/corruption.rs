//! Every fault of an image that this reader names, and how it is said: where, found, allowed.
//!
//! Owns the wording; whoever meets a fault only fills in figures. All of them become
//! [`Error::corrupt`].

use packfs_core::{Error, FileType, escaped};
use std::fmt;

/// Where in the image a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The structure, such as `directory record`.
    pub(crate) what: &'static str,
    /// Its offset in the image.
    pub(crate) at: u64,
}

impl Place {
    /// A structure at an offset.
    pub(crate) fn at(what: &'static str, at: u64) -> Self {
        Place { what, at }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.at)
    }
}

/// A fault. Fields named `found` hold what the image says, the others what would be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// No volume descriptor tells of a volume.
    NoVolume,
    BlockLen {
        place: Place,
        found: u16,
    },
    /// A structure or data that do not lie within the image.
    Range {
        place: Place,
        len: u64,
        end: u64,
    },
    RecordLen {
        place: Place,
        found: u8,
        max: u64,
    },
    RecordName {
        place: Place,
        found: u8,
        len: u8,
    },
    /// The root, or a directory that was moved, is none.
    NotADirectory {
        place: Place,
    },
    EntryName {
        place: Place,
        fault: &'static str,
    },
    /// The type bits of a mode contradict the flags of the record.
    Type {
        place: Place,
        found: FileType,
        wanted: FileType,
    },
    /// An entry of a system use area that is longer than what is left of the area, or shorter than
    /// an entry.
    Entry {
        place: Place,
        signature: [u8; 2],
        found: u8,
        left: usize,
    },
    /// An entry of Rock Ridge that is shorter than its fields.
    Fields {
        place: Place,
        signature: [u8; 2],
    },
    /// Areas of a record that go on and on.
    Areas {
        place: Place,
        max: usize,
    },
    Area {
        place: Place,
        found: u32,
        max: u64,
    },
    /// A target of a link, or a name, that ends where it says that it goes on.
    Continues {
        place: Place,
        what: &'static str,
    },
    Target {
        place: Place,
        fault: &'static str,
    },
    Attributes {
        place: Place,
        fault: &'static str,
    },
    /// A file of several extents of which the last is missing.
    LastExtent {
        place: Place,
    },
    Extents {
        place: Place,
        max: usize,
    },
    Zisofs {
        place: Place,
        fault: &'static str,
    },
    ZisofsLog {
        place: Place,
        found: u8,
    },
    ZisofsPointer {
        place: Place,
        index: u64,
        found: u64,
        min: u64,
        end: u64,
    },
    ZisofsStored {
        place: Place,
        index: u64,
        found: u64,
        max: u64,
    },
    /// Directories and areas that together are longer than the image: they must overlap.
    Overlap {
        place: Place,
    },
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Corruption as C;
        match *self {
            C::NoVolume => write!(f, "volume descriptors at 0x8000: none of them is a primary one"),
            C::BlockLen { place, found } => {
                write!(f, "{place}: block size {found}, 512, 1024 and 2048 allowed")
            }
            C::Range { place, len, end } => {
                write!(f, "{place}: {len} bytes, but the image ends at {end:#x}")
            }
            C::RecordLen { place, found, max } => {
                write!(f, "{place}: length {found}, 34 to {max} allowed")
            }
            C::RecordName { place, found, len } => {
                write!(f, "{place}: name of {found} bytes in a record of {len}")
            }
            C::NotADirectory { place } => write!(f, "{place}: has to be a directory"),
            C::EntryName { place, fault } => write!(f, "{place}: {fault}"),
            C::Type { place, found, wanted } => {
                write!(f, "{place}: mode of a {}, but its flags say {}", found.word(), wanted.word())
            }
            C::Entry { place, signature, found, left } => {
                let signature = escaped(&signature);
                write!(f, "{place}: entry \"{signature}\" of {found} bytes, 4 to {left} allowed")
            }
            C::Fields { place, signature } => {
                let signature = escaped(&signature);
                write!(f, "{place}: entry \"{signature}\" is too short for its fields")
            }
            C::Areas { place, max } => {
                write!(f, "{place}: goes on in more than {max} continuation areas")
            }
            C::Area { place, found, max } => {
                write!(f, "{place}: continuation area of {found} bytes, at most {max} allowed")
            }
            C::Continues { place, what } => write!(f, "{place}: its {what} ends where it should go on"),
            C::Target { place, fault } | C::Attributes { place, fault } | C::Zisofs { place, fault } => {
                write!(f, "{place}: {fault}")
            }
            C::LastExtent { place } => write!(f, "{place}: the last extent of the file is missing"),
            C::Extents { place, max } => write!(f, "{place}: more than {max} extents of one file"),
            C::ZisofsLog { place, found } => {
                write!(f, "{place}: block size 2^{found}, 2^15 to 2^20 allowed")
            }
            C::ZisofsPointer { place, index, found, min, end } => {
                write!(f, "{place}: block pointer {index} is {found}, {min} to {end} allowed")
            }
            C::ZisofsStored { place, index, found, max } => {
                write!(f, "{place}: block {index} of {found} bytes, at most {max} allowed")
            }
            C::Overlap { place } => {
                write!(
                    f,
                    "{place}: with all read before, it is longer than the image can be; they must overlap"
                )
            }
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Error {
        let error = Error::corrupt("iso9660 image", corruption);
        match corruption {
            Corruption::Range { .. } => error.hint("the file looks truncated; copy or download it again"),
            _ => error,
        }
    }
}
