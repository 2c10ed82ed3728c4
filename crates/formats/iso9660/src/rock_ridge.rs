//! Rock Ridge: system use entries of a file (RRIP 1.10 and 1.12), including those of zisofs and
//! AAIP.
//!
//! Owns the tolerant parsing of entries: a fault ends it, and earlier entries remain valid.
//! Requests for lost entries are refused.

use crate::corruption::{Corruption, Place};
use crate::dates;
use crate::disk::*;
use crate::record::Record;
use crate::sectors::Sectors;
use crate::susp::{self, Entry};
use crate::zisofs::Marked;
use packfs_core::{DeviceNumber, Result, Timestamp};
use packfs_format::{structure, units::*};

/// Longest target of a symbolic link; areas contain little more.
const TARGET_LEN_MAX: usize = 65_535;
/// Upper bound of valid names.
const NAME_LEN_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posix {
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Since RRIP 1.12.
    pub(crate) inode: Option<u32>,
}

/// The target of a symbolic link so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) bytes: Vec<u8>,
    /// True if the next component is appended without a slash: the previous one continues, is the
    /// root, or does not exist.
    joins: Option<bool>,
    /// Set if the last entry continues in another.
    pub(crate) continues: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RockRidge {
    pub(crate) posix: Option<Posix>,
    pub(crate) device: Option<DeviceNumber>,
    pub(crate) name: Option<Vec<u8>>,
    name_continues: bool,
    pub(crate) target: Option<Target>,
    pub(crate) modified: Option<Timestamp>,
    /// Offset from GMT of the time, if it is invalid.
    pub(crate) odd_offset: Option<i8>,
    /// First block of the directory that was relocated from here (CL).
    pub(crate) child: Option<u32>,
    /// First block of the original parent of this directory (PL).
    pub(crate) parent: Option<u32>,
    /// Set if the directory was relocated (RE); it is displayed at its original position.
    pub(crate) is_relocated: bool,
    pub(crate) zisofs: Option<Marked>,
    /// Set for a sparse file (SF), which no known program writes.
    pub(crate) is_sparse: bool,
    /// Concatenated component areas of its AL entries.
    pub(crate) attributes: Vec<u8>,
    pub(crate) areas: Vec<(u64, u64)>,
    pub(crate) fault: Option<Corruption>,
}

impl RockRidge {
    /// Reads the entries of a record, `skip` bytes after the start of its system use area.
    pub(crate) fn read(sectors: &Sectors, record: &Record, skip: usize, block_len: u32) -> Result<Self> {
        let mut found = RockRidge::default();
        let walked = susp::each_entry(sectors, record, skip, block_len, |entry| found.take(&entry))?;
        found.areas = walked.areas;
        found.fault = walked.fault;
        if found.fault.is_none() {
            found.fault = found.unfinished(record.place());
        }
        Ok(found)
    }

    /// Returns the fault of an entry whose continuation is missing.
    fn unfinished(&self, place: Place) -> Option<Corruption> {
        let target_continues = self.target.as_ref().is_some_and(|target| target.continues);
        match (self.name_continues, target_continues) {
            (true, _) => Some(Corruption::Continues { place, what: "name" }),
            (_, true) => Some(Corruption::Continues { place, what: "link target" }),
            _ => None,
        }
    }

    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Corruption> {
        let &Entry { signature, version, fields, place } = entry;
        let short = Corruption::Fields { place, signature };
        let number = |at| both32(fields, at).ok_or(short);
        match &signature {
            b"PX" => {
                self.posix = Some(Posix {
                    mode: number(0)?,
                    links: number(8)?,
                    uid: number(16)?,
                    gid: number(24)?,
                    inode: both32(fields, 32),
                });
            }
            b"PN" => self.device = Some(device(number(0)?, number(8)?)),
            b"NM" => self.take_name(fields.split_first().ok_or(short)?, place)?,
            b"SL" => {
                let (&flags, components) = fields.split_first().ok_or(short)?;
                let target = self.target.get_or_insert_default();
                target.continues = flags & CONTINUES != 0;
                target.take(components, place)?;
            }
            b"TF" => self.take_times(fields, short)?,
            b"CL" => self.child = Some(number(0)?),
            b"PL" => self.parent = Some(number(0)?),
            b"RE" => self.is_relocated = true,
            b"SF" => self.is_sparse = true,
            b"ZF" | b"Z2" => self.zisofs = Some(Marked::read(version, fields).ok_or(short)?),
            b"AL" => {
                let components = fields.get(1..).ok_or(short)?;
                self.attributes.extend_from_slice(components);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_name(&mut self, (&flags, part): (&u8, &[u8]), place: Place) -> Result<(), Corruption> {
        if flags & (CURRENT | PARENT) != 0 {
            return Ok(());
        }
        let name = self.name.get_or_insert_default();
        // A further name that the previous one did not announce is ignored.
        if !name.is_empty() && !self.name_continues {
            return Ok(());
        }
        if name.len().plus(part.len()) > NAME_LEN_MAX {
            return Err(Corruption::EntryName { place, fault: "name longer than 255 bytes" });
        }
        name.extend_from_slice(part);
        self.name_continues = flags & CONTINUES != 0;
        Ok(())
    }

    fn take_times(&mut self, fields: &[u8], short: Corruption) -> Result<(), Corruption> {
        let (&flags, times) = fields.split_first().ok_or(short)?;
        if flags & TF_MODIFY == 0 {
            return Ok(());
        }
        // The creation time precedes it, if present.
        let before = usize::from(flags & 1);
        if flags & TF_LONG != 0 {
            let digits = times.get(before * 17..).and_then(<[u8]>::first_chunk).ok_or(short)?;
            self.modified = dates::of_digits(digits);
        } else {
            let time: RecordTime = structure(times, before * 7).ok_or(short)?;
            self.modified = Some(dates::of_record(time));
            self.odd_offset = Some(time.offset).filter(|offset| !dates::is_offset(*offset));
        }
        Ok(())
    }
}

impl Target {
    /// Appends the component records of one entry.
    fn take(&mut self, mut components: &[u8], place: Place) -> Result<(), Corruption> {
        let ends = Corruption::Target { place, fault: "a component of the link target ends after its entry" };
        while let [flags, len, ..] = *components {
            let text = components.get(2..2 + usize::from(len)).ok_or(ends)?;
            components = components.within(2 + usize::from(len)..);
            if self.joins == Some(false) {
                self.bytes.push(b'/');
            }
            let kind = flags & !CONTINUES;
            self.bytes.extend_from_slice(match kind {
                0 => text,
                CURRENT => b".",
                PARENT => b"..",
                // After another component it adds a slash, as in Linux: writers store doubled
                // slashes so.
                ROOT => b"/",
                _ => {
                    return Err(Corruption::Target {
                        place,
                        fault: "a component of the link target of an unknown kind",
                    });
                }
            });
            self.joins = Some(flags & CONTINUES != 0 || kind == ROOT);
            if self.bytes.len() > TARGET_LEN_MAX {
                return Err(Corruption::Target { place, fault: "link target of more than 65535 bytes" });
            }
        }
        if components.is_empty() { Ok(()) } else { Err(ends) }
    }
}

/// Decodes a device number. genisoimage writes major and minor in a word each; libisofs writes both
/// in the low one as Linux packs them, and 0 in the high one.
fn device(high: u32, low: u32) -> DeviceNumber {
    if high == 0 && low > 0xff { DeviceNumber::decode(low) } else { DeviceNumber { major: high, minor: low } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(entries: &[&[u8]]) -> Result<Vec<u8>, Corruption> {
        let mut target = Target::default();
        for components in entries {
            target.take(components, Place::at("test", 0))?;
        }
        Ok(target.bytes)
    }

    #[test]
    fn targets_are_put_together_from_components() {
        let read = |entries: &[&[u8]]| String::from_utf8(target(entries).unwrap()).unwrap();
        assert_eq!(read(&[b"\x08\0\0\x03sub\0\x06hard-a"]), "/sub/hard-a");
        assert_eq!(read(&[b"\x04\0\x04\0\0\x01a"]), "../../a");
        assert_eq!(read(&[b"\x02\0\0\x01a"]), "./a");
        assert_eq!(read(&[b"\0\x01a\x01\x02bc", b"\x01\x01d", b"\0\x01e\0\x01f"]), "a/bcde/f");
        assert_eq!(read(&[b"\x08\0"]), "/");
        assert_eq!(read(&[b"\x04\0\0\x03lib\x08\0\0\x03foo"]), "../lib//foo");
        assert_eq!(read(&[b"\x08\0\x08\0\0\x01x", b"\x08\0\0\x01y"]), "//x//y");
        assert_eq!(read(&[b"\0\x01a\0\0\0\x01b\0\0"]), "a//b/", "a component may be empty");
        assert_eq!(read(&[b"\x08\0\x01\x01a\0\x01b"]), "/ab");
        assert!(target(&[b"\0\x05abc"]).is_err());
        assert!(target(&[b"\0"]).is_err());
        assert!(target(&[b"\x40\x01a"]).is_err());
    }

    #[test]
    fn device_numbers_of_both_writers_are_read() {
        for (high, low, major, minor) in
            [(5, 1, 5, 1), (0, 0x501, 5, 1), (0, 0x11_032c, 259, 300), (259, 300, 259, 300), (0, 7, 0, 7)]
        {
            assert_eq!(device(high, low), DeviceNumber { major, minor }, "{high} {low}");
        }
    }
}
