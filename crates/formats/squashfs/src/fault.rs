//! Faults of metadata of any version and their messages: offset, value found, values allowed.

use crate::place::Place;
use packfs_codec::Algorithm;
use packfs_codec::DecodeError;
use packfs_format::faults;

faults! {
    pub(crate) enum MetadataFault in "squashfs image" {}

    TableEnd { table: &'static str, start: u64, list_len: u64, limit: u64 } =
        "{table} at {start:#x}: its list of {list_len} bytes has to end by {limit:#x}";
    TableOrder { table: &'static str, start: u64, limit: u64 } =
        "{table} at {start:#x}: has to start before {limit:#x}";
    TableStart { table: &'static str, start: u64, min: u64 } =
        "{table} at {start:#x}: has to start after the superblock, at {min:#x} or later";
    TablePosition { table: &'static str, index: usize, found: u64, min: u64, end: u64 } =
        "{table}: position {index} is {found:#x}, {min:#x} up to {end:#x} allowed";
    TableRow { place: Place, index: u64 } = "{place}: ends before row {index}";
    MetadataPosition { place: Place, start: u64, end: u64 } =
        "{place}: no metadata block can start there, {start:#x} up to {end:#x} allowed";
    MetadataLength { place: Place, found: u16 } = "{place}: stored length {found}, 1 to 8192 allowed";
    Marker { place: Place, found: u8 } = "{place}: marker {found:#04x} after its header, 0xff allowed";
    MetadataOverrun { place: Place, end: u64, limit: u64 } =
        "{place}: ends at {end:#x}, {limit:#x} at most allowed";
    MetadataDecode { place: Place, algorithm: Algorithm, reason: DecodeError } =
        "{place}: {algorithm}: {reason}" => decode reason;
    MetadataEmpty { place: Place } = "{place}: decodes to nothing, 1 to 8192 bytes allowed";
    MetadataOffset { place: Place, found: u32, len: u32 } =
        "{place}: offset {found} into a block that decodes to {len} bytes";
    RecordEnd { place: Place, wanted: u64, limit: u64 } =
        "{place}: {wanted} more bytes wanted, but the table ends at {limit:#x}";
    InodeNumberZero { place: Place } = "{place}: inode number 0, at least 1 allowed";
    FileLength { place: Place, found: u64 } = "{place}: file length {found}, at most {} allowed", i64::MAX;
    FileWords { place: Place, words: u64, max: u64 } =
        "{place}: the file needs {words} block sizes, the inode table can hold {max}";
    FragmentIndex { place: Place, found: u32, count: u32 } =
        "{place}: fragment {found}, the image has {count} fragments";
    Tail { place: Place, start: u32, len: u32, max: u32 } =
        "{place}: tail of {len} bytes at {start} of its fragment, which holds {max} bytes at most";
    EmptyFragment { place: Place } = "{place}: stored length 0, at least 1 allowed";
    DataRange { place: Place, start: u64, len: u64, min: u64, end: u64 } =
        "{place}: data of {len} bytes at {start:#x}, {min:#x} up to {end:#x} allowed";
    StoredLength { place: Place, found: u32, wanted: u32 } =
        "{place}: uncompressed block of {found} bytes, {wanted} allowed";
    LinkNul { place: Place } = "{place}: link target with a NUL byte";
    RunCount { place: Place, found: u32 } = "{place}: {found} entries, 1 to 256 allowed";
    RunEnd { place: Place, left: u32, wanted: u32 } =
        "{place}: {wanted} bytes wanted, but the directory's size leaves {left}";
    EntryType { place: Place, found: u16 } = "{place}: type {found}, 1 to 7 allowed";
    EntryName { place: Place, fault: &'static str } = "{place}: {fault}";
    IndexOffset { place: Place, found: u32, len: u32 } =
        "{place}: offset {found} in a listing of {len} bytes";
    IndexName { place: Place, found: u32 } = "{place}: name of {found} bytes, 1 to 256 allowed";
    Overlap { place: Place } =
        "{place}: listings overlap: together they are longer than their table can be";
    Inodes { max: u64 } = "more inodes than the {max} that its superblock and inode table allow";
}
