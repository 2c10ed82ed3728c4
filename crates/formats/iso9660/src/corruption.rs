//! Faults of an image and their messages: offset, value found, values allowed.

use packfs_core::{FileType, escaped};
pub(crate) use packfs_format::FaultPlace as Place;
use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "iso9660 image" {}

    NoVolume = "volume descriptors at 0x8000: none of them is a primary one";
    BlockLen { place: Place, found: u16 } = "{place}: block size {found}, 512, 1024 and 2048 allowed";
    Range { place: Place, len: u64, end: u64 } =
        "{place}: {len} bytes, but the image ends at {end:#x}" => hint TRUNCATED;
    RecordLen { place: Place, found: u8, max: u64 } = "{place}: length {found}, 34 to {max} allowed";
    RecordName { place: Place, found: u8, len: u8 } = "{place}: name of {found} bytes in a record of {len}";
    NotADirectory { place: Place } = "{place}: has to be a directory";
    EntryName { place: Place, fault: &'static str } = "{place}: {fault}";
    Type { place: Place, found: FileType, wanted: FileType } =
        "{place}: mode of a {}, but its flags say {}", found.word(), wanted.word();
    Entry { place: Place, signature: [u8; 2], found: u8, left: usize } =
        "{place}: entry \"{}\" of {found} bytes, 4 to {left} allowed", escaped(&signature);
    Fields { place: Place, signature: [u8; 2] } =
        "{place}: entry \"{}\" is too short for its fields", escaped(&signature);
    Areas { place: Place, max: usize } = "{place}: continues in more than {max} continuation areas";
    Area { place: Place, found: u32, max: u64 } =
        "{place}: continuation area of {found} bytes, at most {max} allowed";
    Continues { place: Place, what: &'static str } = "{place}: its {what} ends where it should continue";
    Target { place: Place, fault: &'static str } = "{place}: {fault}";
    Attributes { place: Place, fault: &'static str } = "{place}: {fault}";
    LastExtent { place: Place } = "{place}: the last extent of the file is missing";
    Extents { place: Place, max: usize } = "{place}: more than {max} extents of one file";
    Zisofs { place: Place, fault: &'static str } = "{place}: {fault}";
    ZisofsLog { place: Place, found: u8 } = "{place}: block size 2^{found}, 2^15 to 2^20 allowed";
    ZisofsPointer { place: Place, index: u64, found: u64, min: u64, end: u64 } =
        "{place}: block pointer {index} is {found}, {min} to {end} allowed";
    ZisofsStored { place: Place, index: u64, found: u64, max: u64 } =
        "{place}: block {index} of {found} bytes, at most {max} allowed";
    Overlap { place: Place } =
        "{place}: directories overlap: together they are longer than the image";
}
