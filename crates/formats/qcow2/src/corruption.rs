//! Faults of a qcow2 image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

faults! {
    pub(crate) enum Corruption in "qcow2 image" {}

    Short { len: u64 } = "the file is {len} bytes long, 72 needed for a header" => hint TRUNCATED;
    Signature = "no \"QFI\\xfb\" at 0x0";
    ClusterBits { found: u32, min: u32 } = "header: clusters of 2^{found} bytes, 2^{min} to 2^21 allowed";
    HeaderLength { found: u32, max: u64 } =
        "header: {found} bytes long, multiples of 8 from 104 to {max} allowed";
    CompressionType { found: u8 } =
        "header: compression type {found} does not go with the incompatible feature bit 3";
    DiskLength { what: &'static str, found: u64, room: u64 } =
        "{what}: a disk of {found} bytes, but its L1 table has room for {room}";
    TableLength { what: &'static str, found: u64, max: u64 } =
        "{what}: {found} entries, at most {max} allowed";
    TableBytes { what: &'static str, found: u64, max: u64 } =
        "{what}: {found} bytes, at most {max} allowed";
    TablePlace { what: &'static str, at: u64, len: u64, limit: u64 } =
        "{what} at {at:#x}: {len} bytes, which have to end by {limit:#x}" => hint TRUNCATED;
    TableAlign { what: &'static str, at: u64, cluster_len: u64 } =
        "{what} at {at:#x}: multiples of {cluster_len} allowed";
    BackingName { at: u64, len: u32, limit: u64 } =
        "header: {len} bytes of backing file name at {at:#x}, at most 1023 that end by {limit:#x} allowed";
    ExtensionEnd { at: u64, len: u32, limit: u64 } =
        "header extension at {at:#x}: {len} bytes, which have to end by {limit:#x}";
    ClusterPlace { disk_at: u64, at: u64, limit: u64 } =
        "byte {disk_at:#x} of the disk: in a cluster at {at:#x}, but the file ends at {limit:#x}"
            => hint TRUNCATED;
    ClusterAlign { disk_at: u64, at: u64, cluster_len: u64 } =
        "byte {disk_at:#x} of the disk: in a cluster at {at:#x}, multiples of {cluster_len} allowed";
    ZeroInVersion2 { disk_at: u64 } =
        "byte {disk_at:#x} of the disk: in a cluster of zeros, which version 2 does not have";
    Bitmap { disk_at: u64, found: u64 } =
        "byte {disk_at:#x} of the disk: subclusters {found:#018x}, each allocated in a cluster, zero, or neither";
    SnapshotExtra { at: u64, found: u32 } =
        "snapshot at {at:#x}: {found} bytes of extra data, at most 1024 allowed";
}
