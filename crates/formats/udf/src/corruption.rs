//! Faults of an image and their messages: offset, value found, values allowed.

pub(crate) use packfs_format::FaultPlace as Place;
use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "udf image" {}

    Anchor = "no anchor at block 256 or 512, or at the end, for blocks of 512 to 32768 bytes" => hint TRUNCATED;
    Range { place: Place, len: u64, end: u64 } =
        "{place}: {len} bytes, but the image ends at {end:#x}" => hint TRUNCATED;
    Ident { place: Place, found: u16, wanted: u16 } = "{place}: tag {found}, {wanted} wanted";
    Version { place: Place, found: u16 } = "{place}: tag: version {found}, 2 and 3 allowed";
    Checksum { place: Place, found: u8, computed: u8 } =
        "{place}: tag: checksum {found:#04x}, {computed:#04x} computed";
    Location { place: Place, found: u32, wanted: u32 } = "{place}: tag: of block {found}, {wanted} wanted";
    CrcLength { place: Place, found: u16, max: usize } =
        "{place}: tag: checksum of {found} bytes, at most {max} allowed";
    Crc { place: Place, found: u16, computed: u16 } =
        "{place}: CRC {found:#06x}, {computed:#06x} computed";
    Missing { what: &'static str } = "volume descriptors: without a {what}";
    SequenceLength { max: u64 } = "volume descriptors: more than {max} of them";
    BlockLength { place: Place, found: u32, wanted: u32 } =
        "{place}: block size {found}, but the anchor is at one of {wanted}";
    Map { place: Place, index: usize, fault: &'static str } = "{place}: partition map {index}: {fault}";
    Spared { place: Place, found: u32, packet_len: u64 } =
        "{place}: moves a packet from block {found}, multiples of {packet_len} allowed";
    NoPartition { place: Place, index: usize, found: u16 } =
        "{place}: partition map {index}: of partition {found}, which has no descriptor";
    Reference { found: u16, count: usize } = "partition reference {found}, but there are {count} partition maps";
    Block { partition: u16, found: u64, len: u64, end: u64 } =
        "partition {partition}: {len} blocks from block {found} on, but it ends at {end}";
    Unmapped { partition: u16, found: u64 } = "partition {partition}: block {found} is mapped to none";
    Metadata { partition: u16, found: u64 } =
        "partition {partition}: block {found} is neither in the metadata file nor in its mirror";
    VatPlace { first: u64, last: u64 } =
        "virtual allocation table: none in blocks {first} to {last}, the last of the image" => hint TRUNCATED;
    VatLength { place: Place, found: u64, max: u64 } =
        "{place}: virtual allocation table of {found} bytes, up to {max} allowed";
    FileType { place: Place, found: u8 } = "{place}: file type {found}";
    Kind { place: Place, wanted: &'static str } = "{place}: not a {wanted}";
    Descriptors { place: Place, attributes: u32, descriptors: u32, room: usize } =
        "{place}: {attributes} bytes of attributes and {descriptors} of allocation descriptors, {room} allowed";
    DescriptorType { place: Place, found: u16 } = "{place}: allocation descriptors of type {found}, 0 to 3 allowed";
    Embedded { place: Place, found: u64, len: usize } =
        "{place}: file of {found} bytes in {len} bytes of its entry";
    Continued { place: Place } = "{place}: allocation descriptors that lead back to themselves";
    ExtentsEnd { place: Place, found: u64, len: u64 } = "{place}: extents of {found} bytes for a file of {len}";
    Links { place: Place } = "{place}: link count 0";
    Strategy { place: Place, max: u32 } = "{place}: indirect entries lead through more than {max} others";
    Overlap { place: Place, len: u64 } =
        "{place}: directory of {len} bytes, more than the image has; its extents must overlap";
    EntryEnd { place: Place } = "{place}: directory entry that its directory ends within";
    Name { place: Place, fault: &'static str } = "{place}: name: {fault}";
    Target { place: Place, fault: &'static str } = "{place}: link target: {fault}";
}
