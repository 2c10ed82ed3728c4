//! Raw structures, little-endian, named as in `fs/udf/ecma_167.h` and `fs/udf/osta_udf.h` of Linux.

use packfs_format::{disk, units::*};
use zerocopy::little_endian::{U16, U32, U64};

/// Start of the volume recognition sequence (ECMA-167 2/8.3).
pub(crate) const RECOGNITION_AT: u64 = 32 << 10;
/// Length of the sequence's sectors, or a block if that is longer.
pub(crate) const RECOGNITION_SECTOR: u64 = 2048;
// Identifiers of the sequence (ECMA-167 2/9.1, 3/9.1).
pub(crate) const BEA01: [u8; 5] = *b"BEA01";
pub(crate) const NSR02: [u8; 5] = *b"NSR02";
pub(crate) const NSR03: [u8; 5] = *b"NSR03";
pub(crate) const TEA01: [u8; 5] = *b"TEA01";
pub(crate) const CD001: [u8; 5] = *b"CD001";
pub(crate) const BOOT2: [u8; 5] = *b"BOOT2";
pub(crate) const CDW02: [u8; 5] = *b"CDW02";

/// Blocks of the first anchor, and of a further one on discs that were not closed.
pub(crate) const ANCHORS: [u64; 2] = [256, 512];
/// Possible block lengths, the usual ones first.
pub(crate) const BLOCK_LENS: [u32; 7] = [2048, 512, 4096, 1024, 8192, 16_384, 32_768];

// `TAG_IDENT_*`.
pub(crate) const SPARING: u16 = 0;
pub(crate) const PVD: u16 = 1;
pub(crate) const AVDP: u16 = 2;
pub(crate) const VDP: u16 = 3;
pub(crate) const PD: u16 = 5;
pub(crate) const LVD: u16 = 6;
pub(crate) const TD: u16 = 8;
pub(crate) const LVID: u16 = 9;
pub(crate) const FSD: u16 = 256;
pub(crate) const FID: u16 = 257;
pub(crate) const AED: u16 = 258;
pub(crate) const IE: u16 = 259;
pub(crate) const FE: u16 = 261;
pub(crate) const EAHD: u16 = 262;
pub(crate) const EFE: u16 = 266;

// Types of partition maps, and names of type 2 maps (`UDF_ID_*`).
pub(crate) const MAP_PHYSICAL: u8 = 1;
pub(crate) const MAP_BY_NAME: u8 = 2;
pub(crate) const ID_COMPLIANT: &[u8] = b"*OSTA UDF Compliant";
pub(crate) const ID_VIRTUAL: &[u8] = b"*UDF Virtual Partition";
pub(crate) const ID_SPARABLE: &[u8] = b"*UDF Sparable Partition";
pub(crate) const ID_METADATA: &[u8] = b"*UDF Metadata Partition";
pub(crate) const ID_SPARING: &[u8] = b"*UDF Sparing Table";
pub(crate) const ID_VAT: &[u8] = b"*UDF Virtual Alloc Tbl";

// `ICBTAG_FILE_TYPE_*`.
pub(crate) const TYPE_UNDEF: u8 = 0;
pub(crate) const TYPE_DIRECTORY: u8 = 4;
pub(crate) const TYPE_REGULAR: u8 = 5;
pub(crate) const TYPE_BLOCK: u8 = 6;
pub(crate) const TYPE_CHAR: u8 = 7;
pub(crate) const TYPE_FIFO: u8 = 9;
pub(crate) const TYPE_SOCKET: u8 = 10;
pub(crate) const TYPE_SYMLINK: u8 = 12;
pub(crate) const TYPE_STREAMDIR: u8 = 13;
pub(crate) const TYPE_VAT20: u8 = 248;
pub(crate) const TYPE_REALTIME: u8 = 249;
pub(crate) const TYPE_MAIN: u8 = 250;
pub(crate) const TYPE_MIRROR: u8 = 251;

// `ICBTAG_FLAG_*`.
pub(crate) const AD_MASK: u16 = 7;
pub(crate) const AD_SHORT: u16 = 0;
pub(crate) const AD_LONG: u16 = 1;
pub(crate) const AD_EXTENDED: u16 = 2;
pub(crate) const AD_IN_ICB: u16 = 3;
pub(crate) const SETUID: u16 = 0x40;
pub(crate) const SETGID: u16 = 0x80;
pub(crate) const STICKY: u16 = 0x100;

// `FID_FILE_CHAR_*`.
pub(crate) const HIDDEN: u8 = 1;
pub(crate) const DIRECTORY: u8 = 2;
pub(crate) const DELETED: u8 = 4;
pub(crate) const PARENT: u8 = 8;

/// Mask of the length of an extent; the higher bits are its type (`EXT_*`).
pub(crate) const EXTENT_LEN_MASK: u32 = 0x3fff_ffff;
pub(crate) const EXT_RECORDED: u32 = 0;
/// Type of an extent that contains the next descriptors.
pub(crate) const EXT_NEXT: u32 = 3;

/// Attribute with the number of a device (`EXTATTR_DEV_SPEC`).
pub(crate) const EXTATTR_DEV_SPEC: u32 = 12;
/// Integrity type of a volume that was unmounted (`LVID_INTEGRITY_TYPE_CLOSE`).
pub(crate) const INTEGRITY_CLOSE: u32 = 1;

impl Tag {
    /// True for a version of ECMA-167, 2 or 3 (3/7.2.2).
    pub(crate) fn has_version(&self) -> bool {
        matches!(self.desc_version.get(), 2 | 3)
    }

    /// True if this is a damaged tag of one of these kinds: two of kind, location, and version are
    /// intact.
    pub(crate) fn has_left(&self, idents: &[u16], location: u32) -> bool {
        let intact =
            [idents.contains(&self.tag_ident.get()), self.tag_location.get() == location, self.has_version()];
        intact.into_iter().filter(|is_intact| *is_intact).count() >= 2
    }
}

disk! {
    /// Head of most structures (`struct tag`).
    struct Tag (16) {
        tag_ident: U16, desc_version: U16, tag_checksum: u8, reserved: u8, tag_serial_num: U16,
        desc_crc: U16, desc_crc_length: U16, tag_location: U32,
    }

    /// Descriptor of the volume recognition sequence (`struct volStructDesc`).
    struct VolStructDesc (7) { struct_type: u8, std_ident: [u8; 5], struct_version: u8 }

    /// Name of an implementation, a domain, or a structure (`struct regid`).
    struct Regid (32) {
        flags: u8, ident: [u8; 23],
        /// For UDF: revision in BCD.
        ident_suffix: [u8; 8],
    }

    struct Timestamp (12) {
        type_and_timezone: U16, year: U16, month: u8, day: u8, hour: u8, minute: u8, second: u8,
        centiseconds: u8, hundreds_of_microseconds: u8, microseconds: u8,
    }

    /// Block of a partition (`struct lb_addr`).
    struct LbAddr (6) { logical_block_num: U32, partition_reference_num: U16 }

    /// Extent of the volume (`struct extent_ad`).
    struct ExtentAd (8) { ext_length: U32, ext_location: U32 }

    struct ShortAd (8) { ext_length: U32, ext_position: U32 }

    struct LongAd (16) { ext_length: U32, ext_location: LbAddr, imp_use: [u8; 6] }

    struct ExtAd (20) {
        ext_length: U32, recorded_length: U32, information_length: U32, ext_location: LbAddr,
        imp_use: [u8; 2],
    }

    struct AnchorVolDescPtr (32) {
        desc_tag: Tag, main_vol_desc_seq_ext: ExtentAd, reserve_vol_desc_seq_ext: ExtentAd,
    }

    struct VolDescPtr (28) { desc_tag: Tag, vol_desc_seq_num: U32, next_vol_desc_seq_ext: ExtentAd }

    struct PrimaryVolDesc (512) {
        desc_tag: Tag, vol_desc_seq_num: U32, primary_vol_desc_num: U32, vol_ident: [u8; 32],
        vol_seq_num: U16, max_vol_seq_num: U16, interchange_lvl: U16, max_interchange_lvl: U16,
        char_set_list: U32, max_char_set_list: U32, vol_set_ident: [u8; 128],
        desc_char_set: [u8; 64], explanatory_char_set: [u8; 64], vol_abstract: ExtentAd,
        vol_copyright: ExtentAd, app_ident: Regid, recording_date_and_time: Timestamp,
        imp_ident: Regid, imp_use: [u8; 64], predecessor_vol_desc_seq_location: U32, flags: U16,
        reserved: [u8; 22],
    }

    struct PartitionDesc (512) {
        desc_tag: Tag, vol_desc_seq_num: U32, partition_flags: U16, partition_number: U16,
        partition_contents: Regid, partition_contents_use: PartitionHeaderDesc, access_type: U32,
        partition_starting_location: U32, partition_length: U32, imp_ident: Regid,
        imp_use: [u8; 128], reserved: [u8; 156],
    }

    struct PartitionHeaderDesc (128) {
        unalloc_space_table: ShortAd, unalloc_space_bitmap: ShortAd,
        partition_integrity_table: ShortAd, freed_space_table: ShortAd, freed_space_bitmap: ShortAd,
        reserved: [u8; 88],
    }

    /// Head of the logical volume descriptor; partition maps follow.
    struct LogicalVolDesc (440) {
        desc_tag: Tag, vol_desc_seq_num: U32, desc_char_set: [u8; 64], logical_vol_ident: [u8; 128],
        logical_block_size: U32, domain_ident: Regid,
        /// The extent of the file set descriptor.
        logical_vol_contents_use: LongAd,
        map_table_length: U32, num_partition_maps: U32, imp_ident: Regid, imp_use: [u8; 128],
        integrity_seq_ext: ExtentAd,
    }

    struct GenericPartitionMap1 (6) {
        partition_map_type: u8, partition_map_length: u8, vol_seq_num: U16, partition_num: U16,
    }

    /// Map of type 2, whose bytes contain the fields of sparable and metadata partitions (`struct
    /// udfPartitionMap2`).
    struct UdfPartitionMap2 (64) {
        partition_map_type: u8, partition_map_length: u8, reserved1: [u8; 2], part_ident: Regid,
        vol_seq_num: U16, partition_num: U16, map: [u8; 24],
    }

    /// Fields of a map of type 2 (`struct sparablePartitionMap`).
    struct SparableMap (24) {
        packet_length: U16, num_sparing_tables: u8, reserved: u8, size_sparing_table: U32,
        loc_sparing_table: [U32; 4],
    }

    /// Fields of a map of type 2 (`struct metadataPartitionMap`).
    struct MetadataMap (24) {
        metadata_file_loc: U32, metadata_mirror_file_loc: U32, metadata_bitmap_file_loc: U32,
        alloc_unit_size: U32, align_unit_size: U16, flags: u8, reserved: [u8; 5],
    }

    /// Head of a sparing table; entries follow.
    struct SparingTable (56) {
        desc_tag: Tag, sparing_ident: Regid, reallocation_table_len: U16, reserved: [u8; 2],
        sequence_num: U32,
    }

    struct SparingEntry (8) { orig_location: U32, mapped_location: U32 }

    /// Header of the file with virtual blocks since UDF 2.00; entries follow (`struct
    /// virtualAllocationTable20`).
    struct VirtualAllocationTable20 (152) {
        length_header: U16, length_imp_use: U16, logical_vol_ident: [u8; 128],
        previous_vat_icb_loc: U32, num_files: U32, num_dirs: U32, min_udf_read_rev: U16,
        min_udf_write_rev: U16, max_udf_write_rev: U16, reserved: U16,
    }

    /// End of that file before UDF 2.00 (`struct virtualAllocationTable15`).
    struct VirtualAllocationTable15 (36) { vat_ident: Regid, previous_vat_icb_loc: U32 }

    /// Head of the logical volume integrity descriptor; two tables and
    /// [`LogicalVolIntegrityDescImpUse`] follow.
    struct LogicalVolIntegrityDesc (80) {
        desc_tag: Tag, recording_date_and_time: Timestamp, integrity_type: U32,
        next_integrity_ext: ExtentAd, logical_vol_contents_use: [u8; 32], num_of_partitions: U32,
        length_of_imp_use: U32,
    }

    struct LogicalVolIntegrityDescImpUse (46) {
        imp_ident: Regid, num_files: U32, num_dirs: U32, min_udf_read_rev: U16,
        min_udf_write_rev: U16, max_udf_write_rev: U16,
    }

    struct FileSetDesc (512) {
        desc_tag: Tag, recording_date_and_time: Timestamp, interchange_lvl: U16,
        max_interchange_lvl: U16, char_set_list: U32, max_char_set_list: U32, file_set_num: U32,
        file_set_desc_num: U32, logical_vol_ident_char_set: [u8; 64], logical_vol_ident: [u8; 128],
        file_set_char_set: [u8; 64], file_set_ident: [u8; 32], copyright_file_ident: [u8; 32],
        abstract_file_ident: [u8; 32], root_directory_icb: LongAd, domain_ident: Regid,
        next_extent: LongAd, stream_directory_icb: LongAd, reserved: [u8; 32],
    }

    struct IcbTag (20) {
        prior_recorded_num_direct_entries: U32, strategy_type: U16, strategy_parameter: U16,
        num_entries: U16, reserved: u8, file_type: u8, parent_icb_location: LbAddr, flags: U16,
    }

    struct FileEntryHead (176) {
        desc_tag: Tag, icb_tag: IcbTag, uid: U32, gid: U32, permissions: U32, file_link_count: U16,
        record_format: u8, record_display_attr: u8, record_length: U32, information_length: U64,
        logical_blocks_recorded: U64, access_time: Timestamp, modification_time: Timestamp,
        attr_time: Timestamp, checkpoint: U32, extended_attr_icb: LongAd, imp_ident: Regid,
        unique_id: U64, length_extended_attr: U32, length_alloc_descs: U32,
    }

    struct ExtendedFileEntryHead (216) {
        desc_tag: Tag, icb_tag: IcbTag, uid: U32, gid: U32, permissions: U32, file_link_count: U16,
        record_format: u8, record_display_attr: u8, record_length: U32, information_length: U64,
        object_size: U64, logical_blocks_recorded: U64, access_time: Timestamp,
        modification_time: Timestamp, create_time: Timestamp, attr_time: Timestamp, checkpoint: U32,
        reserved: U32, extended_attr_icb: LongAd, stream_directory_icb: LongAd, imp_ident: Regid,
        unique_id: U64, length_extended_attr: U32, length_alloc_descs: U32,
    }

    struct IndirectEntry (52) { desc_tag: Tag, icb_tag: IcbTag, indirect_icb: LongAd }

    struct AllocExtDesc (24) {
        desc_tag: Tag, previous_alloc_ext_location: U32, length_alloc_descs: U32,
    }

    /// Head of a directory entry; implementation use and the name follow.
    struct FileIdentDesc (38) {
        desc_tag: Tag, file_version_num: U16, file_characteristics: u8, length_file_ident: u8,
        icb: LongAd, length_of_imp_use: U16,
    }

    struct ExtendedAttrHeaderDesc (24) {
        desc_tag: Tag, imp_attr_location: U32, app_attr_location: U32,
    }

    struct GenericFormat (12) {
        attr_type: U32, attr_subtype: u8, reserved: [u8; 3], attr_length: U32,
    }

    struct DeviceSpec (24) {
        attr: GenericFormat, imp_use_length: U32, major_device_ident: U32, minor_device_ident: U32,
    }

    /// Head of a component of a link target; its name follows.
    struct PathComponent (4) {
        component_type: u8, length_component_ident: u8, component_file_version_num: U16,
    }
}

impl Regid {
    pub(crate) fn is(&self, name: &[u8]) -> bool {
        self.ident.starts_with(name)
    }

    pub(crate) fn revision(&self) -> u16 {
        let [low, high, ..] = self.ident_suffix;
        u16::from_le_bytes([low, high])
    }
}

impl Timestamp {
    /// Converts the time as Linux does (`udf_disk_stamp_to_time`): time zones are in minutes, and
    /// invalid fractions of a second count as 0.
    pub(crate) fn time(&self) -> packfs_core::Timestamp {
        let raw = self.type_and_timezone.get();
        // The lower 12 bits are signed.
        let offset = i64::from((raw << 4).cast_signed() >> 4);
        let is_local = raw >> 12 == 1 && offset != -2047;
        let civil = packfs_core::Civil {
            year: i64::from(self.year.get()),
            month: self.month,
            day: self.day,
            hour: self.hour,
            minute: self.minute,
            second: self.second,
        };
        let parts = [self.centiseconds, self.hundreds_of_microseconds, self.microseconds];
        let micros = parts.iter().fold(0_u32, |sum, part| sum.times(100).plus(u32::from(*part)));
        let is_part = parts.iter().all(|part| *part < 100);
        packfs_core::Timestamp {
            seconds: civil.seconds().minus(if is_local { offset.times(60) } else { 0 }),
            nanos: if is_part { micros.times(1000) } else { 0 },
        }
    }
}
