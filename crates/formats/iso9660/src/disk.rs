//! Raw structures of ISO 9660.
//!
//! Owns layout, numbers, and bits; every struct is unaligned, and its size is asserted. The reader
//! checks which values are allowed. Sources: ECMA-119 (4th edition) for descriptors, records, and
//! path tables; the El Torito specification 1.0 for boot records; `zisofs_format.txt` and
//! `zisofs2_format.txt` of libisofs.

use packfs_format::{disk, structure, units::*};
use zerocopy::big_endian;
use zerocopy::little_endian::{U16, U32, U64};

/// Length of a logical sector: descriptors fill one, and directory records do not cross its end
/// (ECMA-119 6.1.2).
pub(crate) const SECTOR_LEN: u64 = 2048;
/// Start of the volume descriptors, after the system area (ECMA-119 6.2.1).
pub(crate) const DESCRIPTORS_AT: u64 = 16 * SECTOR_LEN;
/// Second to sixth byte of every volume descriptor.
pub(crate) const STANDARD_ID: [u8; 5] = *b"CD001";

// Types of volume descriptors (ECMA-119 8.1.1).
pub(crate) const BOOT_RECORD: u8 = 0;
pub(crate) const PRIMARY: u8 = 1;
pub(crate) const SUPPLEMENTARY: u8 = 2;
pub(crate) const TERMINATOR: u8 = 255;

/// Escape sequences of UCS-2, by level (Joliet specification).
pub(crate) const JOLIET_ESCAPES: [[u8; 3]; 3] = [*b"%/@", *b"%/C", *b"%/E"];
/// System identifier of an El Torito boot record.
pub(crate) const EL_TORITO_ID: &[u8] = b"EL TORITO SPECIFICATION";

// Flags of a directory record (ECMA-119 9.1.6).
pub(crate) const FLAG_DIRECTORY: u8 = 1 << 1;
pub(crate) const FLAG_ASSOCIATED: u8 = 1 << 2;
pub(crate) const FLAG_MULTI_EXTENT: u8 = 1 << 7;

/// Names of the first two records of a directory: itself and its parent.
pub(crate) const NAME_SELF: [u8; 1] = [0];
pub(crate) const NAME_PARENT: [u8; 1] = [1];

/// Check bytes of an SP entry (SUSP 5.3).
pub(crate) const SP_CHECK: [u8; 2] = [0xbe, 0xef];
/// Length of CD-ROM XA data before the system use area.
pub(crate) const XA_LEN: usize = 14;

// Bits of the flags of NM, SL and their component records (RRIP 4.1.3, 4.1.4).
pub(crate) const CONTINUES: u8 = 1;
pub(crate) const CURRENT: u8 = 1 << 1;
pub(crate) const PARENT: u8 = 1 << 2;
pub(crate) const ROOT: u8 = 1 << 3;

// Bits of the flags of TF (RRIP 4.1.6).
pub(crate) const TF_MODIFY: u8 = 1 << 1;
pub(crate) const TF_LONG: u8 = 1 << 7;

/// Start of a zisofs file, version 1 and 2.
pub(crate) const ZISOFS_MAGIC_1: [u8; 8] = [0x37, 0xe4, 0x53, 0x96, 0xc9, 0xdb, 0xd6, 0x07];
pub(crate) const ZISOFS_MAGIC_2: [u8; 8] = [0xef, 0x22, 0x55, 0xa1, 0xbc, 0x1b, 0x95, 0xa0];

/// Number of zlib in a header of version 2.
pub(crate) const ZISOFS_ZLIB: u8 = 1;

/// First byte of the entries of a boot catalog.
pub(crate) const CATALOG_VALIDATION: u8 = 1;
pub(crate) const CATALOG_BOOTABLE: u8 = 0x88;
pub(crate) const CATALOG_SECTION: u8 = 0x90;
pub(crate) const CATALOG_SECTION_LAST: u8 = 0x91;
pub(crate) const CATALOG_EXTENSION: u8 = 0x44;

disk! {
    /// A number in both byte orders (ECMA-119 7.2.3).
    struct Both16 (4) {
        le: U16,
        be: big_endian::U16,
    }

    /// A number in both byte orders (ECMA-119 7.3.3).
    struct Both32 (8) {
        le: U32,
        be: big_endian::U32,
    }

    /// The time in a directory record (ECMA-119 9.1.5).
    struct RecordTime (7) {
        /// Since 1900.
        year: u8,
        month: u8,
        day: u8,
        hour: u8,
        minute: u8,
        second: u8,
        /// Offset from GMT in quarters of an hour.
        offset: i8,
    }

    /// Header of a directory record; its name follows (ECMA-119 9.1).
    struct RecordHead (33) {
        len: u8,
        /// Number of blocks before the data.
        attributes_len: u8,
        /// First block.
        extent: Both32,
        data_len: Both32,
        time: RecordTime,
        flags: u8,
        unit_len: u8,
        gap_len: u8,
        volume_number: Both16,
        name_len: u8,
    }

    /// A primary or supplementary volume descriptor (ECMA-119 8.4, 8.5).
    struct VolumeDescriptor (2048) {
        kind: u8,
        standard_id: [u8; 5],
        version: u8,
        flags: u8,
        system_id: [u8; 32],
        volume_id: [u8; 32],
        unused: [u8; 8],
        space_len: Both32,
        /// Character sets of a supplementary descriptor.
        escapes: [u8; 32],
        set_len: Both16,
        number: Both16,
        block_len: Both16,
        path_table_len: Both32,
        path_table_le: U32,
        path_table_le_again: U32,
        path_table_be: big_endian::U32,
        path_table_be_again: big_endian::U32,
        root: RecordHead,
        root_name: u8,
        volume_set_id: [u8; 128],
        publisher_id: [u8; 128],
        preparer_id: [u8; 128],
        application_id: [u8; 128],
        copyright_file: [u8; 37],
        abstract_file: [u8; 37],
        bibliographic_file: [u8; 37],
        created: [u8; 17],
        modified: [u8; 17],
        expires: [u8; 17],
        effective: [u8; 17],
        structure_version: u8,
        reserved: u8,
        application_use: [u8; 512],
        reserved_end: [u8; 653],
    }

    /// Header of a path table row, little-endian; its name follows (ECMA-119 9.4).
    struct PathRow (8) {
        name_len: u8,
        attributes_len: u8,
        extent: U32,
        /// Row number of the parent directory, starting at 1.
        parent: U16,
    }

    /// The file header of zisofs version 1.
    struct ZisofsHeader1 (16) {
        magic: [u8; 8],
        len: U32,
        /// Length of the header in words of four bytes.
        header_words: u8,
        block_log: u8,
        reserved: [u8; 2],
    }

    /// The file header of zisofs version 2.
    struct ZisofsHeader2 (24) {
        magic: [u8; 8],
        version: u8,
        header_words: u8,
        algorithm: u8,
        block_log: u8,
        len: U64,
        reserved: [u8; 4],
    }

    /// First entry of a boot catalog (El Torito 2.1).
    struct BootValidation (32) {
        header_id: u8,
        platform: u8,
        reserved: [u8; 2],
        id: [u8; 24],
        checksum: U16,
        key: [u8; 2],
    }

    /// A boot image (El Torito 2.2).
    struct BootEntry (32) {
        indicator: u8,
        media: u8,
        load_segment: U16,
        system_type: u8,
        unused: u8,
        /// Sectors of 512 bytes that firmware loads.
        sector_count: U16,
        /// First sector of 2048 bytes.
        at: U32,
        criteria: [u8; 20],
    }

    /// Section header, followed by the entries of the section (El Torito 2.3).
    struct BootSection (32) {
        header_id: u8,
        platform: u8,
        count: U16,
        id: [u8; 28],
    }
}

impl Both16 {
    pub(crate) fn new(value: u16) -> Self {
        Both16 { le: value.into(), be: value.into() }
    }

    /// Returns the little-endian number, which readers use.
    pub(crate) fn get(self) -> u16 {
        self.le.get()
    }

    /// True if both byte orders store the same value.
    pub(crate) fn agrees(self) -> bool {
        self.le.get() == self.be.get()
    }
}

impl Both32 {
    pub(crate) fn new(value: u32) -> Self {
        Both32 { le: value.into(), be: value.into() }
    }

    /// Returns the little-endian number, which readers use.
    pub(crate) fn get(self) -> u32 {
        self.le.get()
    }

    /// True if both byte orders store the same value.
    pub(crate) fn agrees(self) -> bool {
        self.le.get() == self.be.get()
    }
}

pub(crate) fn block_at(block: u64, block_len: impl Into<u64>) -> u64 {
    block.times(block_len.into())
}

impl RecordHead {
    /// Offset of the data, which follow the extended attributes.
    pub(crate) fn data_at(&self, block_len: impl Into<u64>) -> u64 {
        block_at(u64::from(self.extent.get()).plus(self.attributes_len.into()), block_len)
    }
}

/// Returns the number in both byte orders at `at`; `None` if it exceeds the bytes.
pub(crate) fn both32(bytes: &[u8], at: usize) -> Option<u32> {
    structure(bytes, at).map(Both32::get)
}
