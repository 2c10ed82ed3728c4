//! A small image made by hand, byte for byte, and what the reader says of it and of its damaged
//! copies.
//!
//! The image is made from the raw structures alone, so that reader and writer cannot share a
//! misunderstanding here.

mod notices;
mod reads;
mod refuses;

use crate::disk::*;
use crate::volume::Iso9660Volume;
use packfs_format::{Directories, InodeId, Volume};
use packfs_testkit::LabelledImage;
use zerocopy::{FromZeros, IntoBytes};

const SECTOR: usize = SECTOR_LEN as usize;

// Sectors of the image.
const TABLE: u32 = 20;
const TABLE_BE: u32 = 21;
const ROOT: u32 = 22;
const SUB: u32 = 23;
const AREA: u32 = 24;
const PLAIN: u32 = 25;
const COMPRESSED: u32 = 26;
const CATALOG: u32 = 27;
const JOLIET: u32 = 28;
const JOLIET_TABLE: u32 = 29;
const JOLIET_TABLE_BE: u32 = 30;
const PARTS: u32 = 31;
const MOVED: u32 = 34;
const SECTORS: u32 = 35;

/// An image under construction.
type Made = LabelledImage<Iso9660Volume>;

trait PutSectors {
    fn put_sector(&mut self, label: &str, sector: u32, bytes: &[u8]);

    /// Puts records one after the other; each is labelled, and so is its system use area.
    fn put_records(&mut self, sector: u32, records: &[(&str, Vec<u8>)]);
}

impl PutSectors for Made {
    fn put_sector(&mut self, label: &str, sector: u32, bytes: &[u8]) {
        self.put_at(label, sector as usize * SECTOR, bytes);
    }

    fn put_records(&mut self, sector: u32, records: &[(&str, Vec<u8>)]) {
        let mut at = sector as usize * SECTOR;
        for (label, record) in records {
            let name_len = usize::from(record[32]);
            self.put_at(label, at, record);
            self.label(&format!("{label} susp"), at + 33 + name_len + (name_len + 1) % 2);
            at += record.len();
        }
    }
}

const TIME: RecordTime =
    RecordTime { year: 120, month: 9, day: 13, hour: 12, minute: 26, second: 40, offset: 0 };
/// The same.
const TIME_SECONDS: i64 = 1_600_000_000;

fn record(name: &[u8], extent: u32, data_len: u32, flags: u8, susp: &[u8]) -> Vec<u8> {
    let padding = (name.len() + 1) % 2;
    let len = (33 + name.len() + padding + susp.len()).next_multiple_of(2);
    let head = RecordHead {
        len: len as u8,
        attributes_len: 0,
        extent: Both32::new(extent),
        data_len: Both32::new(data_len),
        time: TIME,
        flags,
        unit_len: 0,
        gap_len: 0,
        volume_number: Both16::new(1),
        name_len: name.len() as u8,
    };
    let mut record = head.as_bytes().to_vec();
    record.extend_from_slice(name);
    record.resize(33 + name.len() + padding, 0);
    record.extend_from_slice(susp);
    record.resize(len, 0);
    record
}

fn entry(signature: &[u8; 2], fields: &[u8]) -> Vec<u8> {
    [&signature[..], &[4 + fields.len() as u8, 1], fields].concat()
}

fn both(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| Both32::new(number).as_bytes().to_vec()).collect()
}

fn posix(mode: u32, links: u32, inode: u32) -> Vec<u8> {
    entry(b"PX", &both(&[mode, links, 1000, 100, inode]))
}

fn name(name: &[u8]) -> Vec<u8> {
    entry(b"NM", &[&[0], name].concat())
}

/// A path table of the root and this many directories in it.
fn path_table(extents: &[u32], is_big: bool) -> Vec<u8> {
    let mut table = Vec::new();
    for (number, &extent) in extents.iter().enumerate() {
        let (extent, parent) = if is_big {
            (extent.to_be_bytes(), 1_u16.to_be_bytes())
        } else {
            (extent.to_le_bytes(), 1_u16.to_le_bytes())
        };
        let name = if number == 0 { [0, 0] } else { *b"D\0" };
        table.extend_from_slice(&[&[1, 0][..], &extent, &parent, &name].concat());
    }
    table
}

fn descriptor(kind: u8, root: u32, table: [u32; 2], table_len: u32) -> VolumeDescriptor {
    let mut descriptor = VolumeDescriptor::new_zeroed();
    descriptor.kind = kind;
    descriptor.standard_id = STANDARD_ID;
    descriptor.version = 1;
    descriptor.volume_id = *b"MADE BY HAND                    ";
    descriptor.space_len = Both32::new(SECTORS);
    descriptor.set_len = Both16::new(1);
    descriptor.number = Both16::new(1);
    descriptor.block_len = Both16::new(2048);
    descriptor.path_table_len = Both32::new(table_len);
    descriptor.path_table_le = table[0].into();
    descriptor.path_table_be = table[1].into();
    let bytes = record(&[0], root, 2048, FLAG_DIRECTORY, &[]);
    descriptor.as_mut_bytes()[156..190].copy_from_slice(&bytes);
    descriptor.created = *b"2020091312264000\0";
    descriptor.structure_version = 1;
    descriptor
}

fn catalog() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[0] = 1;
    bytes[28..32].copy_from_slice(&[0xaa, 0x55, 0x55, 0xaa]);
    bytes[32..44].copy_from_slice(&[0x88, 0, 0, 0, 0, 0, 4, 0, PLAIN as u8, 0, 0, 0]);
    bytes
}

/// The sound image, with Rock Ridge and Joliet:
///
/// ```text
/// /         two links to a file, and what follows
/// /plain    5 bytes; its name goes on in a continuation area
/// /packed   zisofs: 40,000 bytes, a hole and a compressed block
/// /parts    two extents apart, 2048 and 100 bytes
/// /device   259:300
/// /link     to "/sub/plain", its target in two entries
/// /again    a second link to /plain
/// /sub      a directory with one that was moved: /sub/deep, in sector 34
/// ```
fn made() -> Made {
    let mut made = LabelledImage::new(Iso9660Volume::open);
    made.bytes = vec![0; SECTORS as usize * SECTOR];
    put_descriptors(&mut made);
    put_rock_ridge(&mut made);
    let wide: Vec<u8> = "Plain File.txt;1".encode_utf16().flat_map(u16::to_be_bytes).collect();
    made.put_records(
        JOLIET,
        &[
            ("joliet self", record(&[0], JOLIET, 2048, FLAG_DIRECTORY, &[])),
            ("joliet parent", record(&[1], JOLIET, 2048, FLAG_DIRECTORY, &[])),
            ("joliet file", record(&wide, PLAIN, 5, 0, &[])),
        ],
    );
    made.put_sector("data", PLAIN, b"hello");
    // Two blocks: pointers 28, 28, 98.
    let header = [&ZISOFS_MAGIC_1[..], &40_000_u32.to_le_bytes(), b"\x04\x0f\0\0"].concat();
    let pointers = [28_u32, 28, 98].map(u32::to_le_bytes).concat();
    made.put_sector("zisofs", COMPRESSED, &[header, pointers].concat());
    made
}

/// Puts volume descriptors, path tables and the boot catalog.
fn put_descriptors(made: &mut Made) {
    let primary = descriptor(PRIMARY, ROOT, [TABLE, TABLE_BE], 30);
    made.put_sector("primary", 16, primary.as_bytes());
    let mut boot = vec![0; SECTOR];
    boot[1..7].copy_from_slice(b"CD001\x01");
    boot[7..7 + EL_TORITO_ID.len()].copy_from_slice(EL_TORITO_ID);
    boot[71..75].copy_from_slice(&CATALOG.to_le_bytes());
    made.put_sector("boot", 17, &boot);
    let mut joliet = descriptor(SUPPLEMENTARY, JOLIET, [JOLIET_TABLE, JOLIET_TABLE_BE], 10);
    joliet.escapes[..3].copy_from_slice(b"%/E");
    made.put_sector("joliet", 18, joliet.as_bytes());
    made.put_sector("end", 19, b"\xffCD001\x01");
    made.put_sector("table", TABLE, &path_table(&[ROOT, SUB, MOVED], false));
    made.put_sector("big table", TABLE_BE, &path_table(&[ROOT, SUB, MOVED], true));
    made.put_sector("joliet table", JOLIET_TABLE, &path_table(&[JOLIET], false));
    made.put_sector("joliet big table", JOLIET_TABLE_BE, &path_table(&[JOLIET], true));
    made.put_sector("catalog", CATALOG, &catalog());
}

/// Puts the directories of the primary descriptor, with Rock Ridge.
fn put_rock_ridge(made: &mut Made) {
    let time = entry(
        b"TF",
        &[
            &[TF_MODIFY][..],
            RecordTime { year: 70, month: 1, day: 2, hour: 0, minute: 0, second: 0, offset: 0 }.as_bytes(),
        ]
        .concat(),
    );
    let announce =
        [entry(b"SP", b"\xbe\xef\0"), posix(0o040_755, 3, 1), entry(b"ER", b"\x0a\0\0\x01RRIP_1991A")]
            .concat();
    // The name goes on, and then attributes of AAIP.
    let area = [entry(b"NM", b"\0ain"), entry(b"AL", b"\0\0\x02\x03x\0\x05value")].concat();
    made.put_sector("area", AREA, &area);
    let goes_on = |len: usize| entry(b"CE", &both(&[AREA, 0, len as u32]));
    let plain = [posix(0o100_644, 2, 7), time.clone(), entry(b"NM", b"\x01pl"), goes_on(area.len())].concat();
    let again = [posix(0o100_644, 2, 7), name(b"again"), time].concat();
    let mark = [&b"pz\x04\x0f"[..], &both(&[40_000])].concat();
    let packed = [posix(0o100_600, 1, 8), name(b"packed"), entry(b"ZF", &mark)].concat();
    let device = [posix(0o020_600, 1, 9), name(b"device"), entry(b"PN", &both(&[0, 0x11_032c]))].concat();
    let target = [entry(b"SL", b"\x01\x08\0\0\x03sub\x01\x02pl"), entry(b"SL", b"\0\0\x03ain")].concat();
    let link = [posix(0o120_777, 1, 10), name(b"link"), target].concat();
    let parts = [posix(0o100_644, 1, 11), name(b"parts")].concat();
    let sub = [posix(0o040_755, 3, 12), name(b"sub")].concat();
    made.put_records(
        ROOT,
        &[
            ("self", record(&[0], ROOT, 2048, FLAG_DIRECTORY, &announce)),
            ("parent", record(&[1], ROOT, 2048, FLAG_DIRECTORY, &[])),
            ("again", record(b"AGAIN.;1", PLAIN, 5, 0, &again)),
            ("device", record(b"DEVICE.;1", PLAIN, 0, 0, &device)),
            ("link", record(b"LINK.;1", PLAIN, 0, 0, &link)),
            ("packed", record(b"PACKED.;1", COMPRESSED, 98, 0, &packed)),
            ("parts", record(b"PARTS.;1", PARTS, 2048, FLAG_MULTI_EXTENT, &parts)),
            ("part 2", record(b"PARTS.;1", PARTS + 2, 100, 0, &parts)),
            ("plain", record(b"PLAIN.;1", PLAIN, 5, 0, &plain)),
            ("sub", record(b"SUB", SUB, 2048, FLAG_DIRECTORY, &sub)),
        ],
    );
    let away = [posix(0o040_755, 2, 13), name(b"deep"), entry(b"CL", &both(&[MOVED]))].concat();
    let here = [posix(0o040_755, 2, 13), name(b"deep"), entry(b"RE", &[])].concat();
    made.put_records(
        SUB,
        &[
            ("sub self", record(&[0], SUB, 2048, FLAG_DIRECTORY, &posix(0o040_755, 3, 12))),
            ("sub parent", record(&[1], ROOT, 2048, FLAG_DIRECTORY, &[])),
            ("away", record(b"DEEP", PLAIN, 0, 0, &away)),
            ("here", record(b"DEEP2", MOVED, 2048, FLAG_DIRECTORY, &here)),
        ],
    );
    let moved = [posix(0o040_711, 2, 13), entry(b"PL", &both(&[SUB]))].concat();
    made.put_records(
        MOVED,
        &[
            ("moved self", record(&[0], MOVED, 2048, FLAG_DIRECTORY, &posix(0o040_711, 2, 13))),
            ("moved parent", record(&[1], ROOT, 2048, FLAG_DIRECTORY, &moved)),
        ],
    );
}

/// The entry of a name in the root directory.
fn find(volume: &Iso9660Volume, name: &str) -> InodeId {
    volume.lookup(volume.root(), name.as_bytes()).unwrap().unwrap()
}
