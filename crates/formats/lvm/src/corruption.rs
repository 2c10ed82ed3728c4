//! Faults of a physical volume and its group: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "lvm image" {}

    NoLabel = "no label with \"LABELONE\" in the first four sectors"
        => hint "a physical volume in a partition is found if it is the only one of its disk";
    LabelChecksum { found: u32, computed: u32 } =
        "label: checksum {found:#010x}, but it is {computed:#010x}";
    LabelOffset { found: u32 } = "label: a header at {found} of its sector, 32 to 472 allowed";
    NoText = "no area of metadata has a text" => hint "give the other physical volumes of the group with --device";
    AreaPlace { at: u64, len: u64, limit: u64 } =
        "area of metadata at {at:#x}: {len} bytes, which have to end by {limit:#x}" => hint TRUNCATED;
    AreaMagic { at: u64 } = "area of metadata at {at:#x}: no \" LVM2 x[5A%r0N*>\"";
    AreaChecksum { at: u64, found: u32, computed: u32 } =
        "area of metadata at {at:#x}: checksum {found:#010x}, but it is {computed:#010x}";
    TextPlace { at: u64, len: u64, max: u64 } =
        "text at {at:#x} of its area: {len} bytes, at most {max} allowed";
    TextChecksum { found: u32, computed: u32 } =
        "text: checksum {found:#010x}, but it is {computed:#010x}";
    Values { max: usize } = "text: more than {max} values";
    Volumes { max: usize } = "text: more than {max} volumes";
    Segments { found: u64 } = "text: a segment starts at extent {found}, where the one before does not end";
    Syntax { at: usize } = "text: a name, a value, or a brace expected at byte {at}";
    Missing { what: &'static str } = "text: no {what}";
    Figure { what: &'static str, found: u64 } = "text: {what} {found} is not allowed";
    Name = "text: a volume whose name is no file name, or that of another";
    Beyond { at: u64, len: u64, limit: u64 } =
        "segment at {at:#x}: {len} bytes, but its physical volume ends at {limit:#x}" => hint TRUNCATED;
}
