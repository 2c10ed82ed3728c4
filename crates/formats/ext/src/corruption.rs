//! Faults of an image and their messages: offset, value found, values allowed.

use packfs_format::{TRUNCATED, faults};

pub(crate) const READ_WITHOUT: &str =
    "--ignore-log (or --no-journal) reads the image as it is, without the changes in the journal";

faults! {
    pub(crate) enum Corruption in "ext4 image" {}

    Short { len: u64, min: u64 } = "{len} bytes, at least {min} needed" => hint TRUNCATED;
    Magic { found: u16 } = "superblock: magic number {found:#x}, 0xef53 wanted";
    Figure { what: &'static str, found: u64, allowed: &'static str } =
        "superblock: {what} {found}, {allowed} allowed";
    Tables { found: u64, max: u64 } =
        "superblock: inode tables and bitmaps of {found} blocks, at most {max} allowed";
    NoGroup { found: u32, max: u32 } = "group {found}: numbers below {max} allowed";
    Blocks { found: u64, min: u64 } = "superblock: {found} blocks, at least {min} needed";
    SuperSum { found: u32, wanted: u32 } = "superblock: checksum {found:#x}, {wanted:#x} computed";
    GroupSum { group: u64, found: u16, wanted: u16 } =
        "descriptor of group {group}: checksum {found:#x}, {wanted:#x} computed";
    GroupPlace { group: u64, what: &'static str, found: u64, end: u64 } =
        "descriptor of group {group}: {what} at block {found}, up to {end} allowed";
    Number { found: u64, max: u32 } = "inode {found}: numbers from 1 to {max} allowed";
    Reserved { inode: u32 } = "inode {inode}: reserved, no entry may lead to it";
    InodeSum { inode: u32, found: u32, wanted: u32 } =
        "inode {inode}: checksum {found:#x}, {wanted:#x} computed";
    Unused { inode: u32 } = "inode {inode}: not in use, though an entry leads to it";
    Mode { inode: u32, found: u16 } = "inode {inode}: mode {found:#o}, which names no type";
    ExtraLength { inode: u32, found: u16, max: usize } =
        "inode {inode}: extra length {found}, multiples of 4 up to {max} allowed";
    Flags { inode: u32, fault: &'static str } = "inode {inode}: {fault}";
    Size { inode: u32, found: u64, max: u64 } = "inode {inode}: {found} bytes, at most {max} allowed";
    Kind { inode: u32, wanted: &'static str } = "inode {inode}: not a {wanted}";
    Block { inode: u32, found: u64, start: u64, end: u64 } =
        "inode {inode}: block {found}, {start} to {end} allowed";
    ExtentHeader { inode: u32, fault: &'static str } = "inode {inode}: extent tree: {fault}";
    ExtentOrder { inode: u32, found: u64, start: u64, end: u64 } =
        "inode {inode}: extent tree: block {found} of the file where {start} to {end} are allowed";
    ExtentSum { inode: u32, block: u64, found: u32, wanted: u32 } =
        "inode {inode}: extent tree, block {block}: checksum {found:#x}, {wanted:#x} computed";
    TooMany { inode: u32, max: u64 } =
        "inode {inode}: more than {max} blocks, which are all that the image has";
    Inline { inode: u32, found: u64, max: u64 } =
        "inode {inode}: {found} bytes of inline data, {max} stored";
    DirSize { inode: u32, found: u64 } = "inode {inode}: directory of {found} bytes, whole blocks allowed";
    DirSum { inode: u32, block: u64, found: u32, wanted: u32 } =
        "inode {inode}: directory block {block}: checksum {found:#x}, {wanted:#x} computed";
    DirTail { inode: u32, block: u64 } = "inode {inode}: directory block {block}: no checksum";
    DirEntry { inode: u32, at: u64, fault: &'static str } =
        "inode {inode}: directory entry at {at:#x}: {fault}";
    Xattr { inode: u32, fault: &'static str } = "inode {inode}: extended attributes: {fault}";
    XattrSum { inode: u32, block: u64, found: u32, wanted: u32 } =
        "inode {inode}: extended attributes, block {block}: checksum {found:#x}, {wanted:#x} computed";
    XattrLength { inode: u32, holder: u32, found: u64, wanted: u32 } =
        "inode {inode}: extended attribute in inode {holder}: {found} bytes, {wanted} wanted";
    XattrValue { inode: u32, holder: u32, fault: &'static str } =
        "inode {inode}: extended attribute in inode {holder}: {fault}";
    TargetLength { inode: u32, found: u64, max: u64 } =
        "inode {inode}: link target of {found} bytes, 1 to {max} allowed";
    TargetNul { inode: u32 } = "inode {inode}: link target with a NUL byte";
    Journal { fault: &'static str } = "journal: {fault}" => hint READ_WITHOUT;
    JournalFigure { what: &'static str, found: u64, max: u64 } =
        "journal superblock: {what} {found}, at most {max} allowed" => hint READ_WITHOUT;
    JournalBlock { block: u64, magic: u32, kind: u32, sequence: u32, wanted: u32 } =
        "journal block {block}: begins with {magic:#x}, type {kind}, transaction {sequence}; \
         0xc03b3998, types 1, 2, and 5, and {wanted} allowed" => hint READ_WITHOUT;
    JournalRest { missing: u32, block: u64 } =
        "journal: transaction {missing} cannot be read whole, though block {block} commits it or the next one"
        => hint READ_WITHOUT;
    FastCommit { block: u64, commit: u64 } =
        "journal block {block}: fast commit {commit} cannot be read whole, though its end is there"
        => hint READ_WITHOUT;
    JournalSum { block: u64, what: &'static str } =
        "journal block {block}: {what} with a wrong checksum" => hint READ_WITHOUT;
}
