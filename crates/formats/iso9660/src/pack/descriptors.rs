//! Volume descriptors.

use super::records::Head;
use crate::disk::*;
use crate::options::Options;
use packfs_core::{Civil, Timestamp};
use zerocopy::FromBytes;

#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub sectors: u32,
    /// First sector and length of the root.
    pub root: (u32, u32),
    pub root_time: RecordTime,
    pub table_len: u32,
    /// Sectors of the path tables, little-endian and big-endian.
    pub tables: [u32; 2],
}

const APPLICATION: &str = "PACKFS";

pub(super) fn primary(options: &Options, volume: &Volume) -> Vec<u8> {
    descriptor(PRIMARY, options, volume, false)
}

/// Returns the supplementary descriptor of Joliet, level 3.
pub(super) fn joliet(options: &Options, volume: &Volume) -> Vec<u8> {
    descriptor(SUPPLEMENTARY, options, volume, true)
}

pub(super) fn terminator() -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_LEN as usize];
    bytes[0] = TERMINATOR;
    bytes[1..6].copy_from_slice(&STANDARD_ID);
    bytes[6] = 1;
    bytes
}

fn descriptor(kind: u8, options: &Options, volume: &Volume, is_wide: bool) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_LEN as usize];
    let Ok(descriptor) = VolumeDescriptor::mut_from_bytes(&mut bytes) else { return Vec::new() };
    let text = |to: &mut [u8], text: &str| write_text(to, text, is_wide);
    descriptor.kind = kind;
    descriptor.standard_id = STANDARD_ID;
    descriptor.version = 1;
    text(&mut descriptor.system_id, "LINUX");
    text(&mut descriptor.volume_id, &options.volume_id);
    descriptor.space_len = Both32::new(volume.sectors);
    if is_wide {
        descriptor.escapes[..3].copy_from_slice(&JOLIET_ESCAPES[2]);
    }
    descriptor.set_len = Both16::new(1);
    descriptor.number = Both16::new(1);
    descriptor.block_len = Both16::new(SECTOR_LEN as u16);
    descriptor.path_table_len = Both32::new(volume.table_len);
    descriptor.path_table_le = volume.tables[0].into();
    descriptor.path_table_be = volume.tables[1].into();
    let root = Head { name: &NAME_SELF, extent: volume.root, time: volume.root_time, flags: FLAG_DIRECTORY };
    let record = root.with(&[]);
    if let Ok((head, _)) = RecordHead::read_from_prefix(&record) {
        descriptor.root = head;
    }
    for id in [&mut descriptor.volume_set_id, &mut descriptor.publisher_id, &mut descriptor.preparer_id] {
        text(id, "");
    }
    text(&mut descriptor.application_id, APPLICATION);
    for file in
        [&mut descriptor.copyright_file, &mut descriptor.abstract_file, &mut descriptor.bibliographic_file]
    {
        text(file, "");
    }
    let made_at = digits(options.made_at);
    descriptor.created = made_at;
    descriptor.modified = made_at;
    descriptor.expires = *b"0000000000000000\0";
    descriptor.effective = *b"0000000000000000\0";
    descriptor.structure_version = 1;
    bytes
}

/// Writes text padded with spaces; for Joliet in UTF-16, of which a last odd byte is zero.
fn write_text(to: &mut [u8], text: &str, is_wide: bool) {
    if !is_wide {
        to.fill(b' ');
        let len = text.len().min(to.len());
        to[..len].copy_from_slice(&text.as_bytes()[..len]);
        return;
    }
    let units = text.encode_utf16().chain(std::iter::repeat(u16::from(b' ')));
    for (pair, unit) in to.chunks_exact_mut(2).zip(units) {
        pair.copy_from_slice(&unit.to_be_bytes());
    }
}

fn digits(seconds: i64) -> [u8; 17] {
    let civil = Civil::of_seconds(super::losses::stored_seconds(Timestamp::from_seconds(seconds)));
    let Civil { year, month, day, hour, minute, second } = civil;
    let text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}00\0");
    let mut digits = [0; 17];
    digits.copy_from_slice(&text.as_bytes()[..17]);
    digits
}

pub(super) fn system_area() -> Vec<u8> {
    vec![0; DESCRIPTORS_AT as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dates::of_digits;

    #[test]
    fn times_are_read_as_they_are_written() {
        for seconds in [0, 1_600_000_000, -2_208_988_800, 5_869_583_999] {
            assert_eq!(of_digits(&digits(seconds)), Some(Timestamp::from_seconds(seconds)));
        }
    }

    #[test]
    fn text_is_filled_up() {
        let mut narrow = [0; 6];
        write_text(&mut narrow, "abc", false);
        assert_eq!(&narrow, b"abc   ");
        let mut wide = [7; 7];
        write_text(&mut wide, "ab", true);
        assert_eq!(&wide, b"\0a\0b\0 \x07");
    }
}
