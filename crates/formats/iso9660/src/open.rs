//! Conversion of the volume descriptors to a checked [`Geometry`].
//!
//! Owns every rule of the image as a whole, and the choice between Rock Ridge, Joliet, and plain
//! names, which is that of Linux.

use crate::corruption::{Corruption, Place};
use crate::disk::*;
use crate::record::Record;
use crate::sectors::Sectors;
use crate::susp;
use packfs_core::{Error, Result, range_at, usize_of};
use zerocopy::{FromZeros, IntoBytes};

const DESCRIPTORS_MAX: usize = 128;
pub(crate) const DESCRIPTOR: &str = "volume descriptor";
/// Names of Rock Ridge in ER entries.
const ROCK_RIDGE_IDS: [&[u8]; 3] = [b"RRIP_1991A", b"IEEE_P1282", b"IEEE_1282"];

/// The displayed tree of an image, and its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Tree of the primary descriptor, with Rock Ridge.
    RockRidge,
    /// Tree of the supplementary descriptor with names in UCS-2.
    Joliet,
    /// Tree of the primary descriptor without extensions.
    Plain,
}

impl View {
    pub(crate) fn word(self) -> &'static str {
        match self {
            View::RockRidge => "Rock Ridge",
            View::Joliet => "Joliet",
            View::Plain => "plain",
        }
    }
}

/// A descriptor of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) at: u64,
    pub(crate) descriptor: Box<VolumeDescriptor>,
}

impl Described {
    pub(crate) fn root_at(&self) -> u64 {
        self.descriptor.root.data_at(self.descriptor.block_len.get())
    }
}

/// Validated locations of an image's structures.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) primary: Described,
    /// The Joliet descriptor and its level, 1 to 3.
    pub(crate) joliet: Option<(Described, u8)>,
    /// Offset of the El Torito boot record, and first sector of its catalog.
    pub(crate) catalog: Option<(u64, u32)>,
    pub(crate) descriptors_end: u64,
    pub(crate) image_len: u64,
    /// 512, 1024, or 2048.
    pub(crate) block_len: u32,
    pub(crate) view: View,
    /// Offset of the root's record of itself.
    pub(crate) root_at: u64,
    /// Bytes before the entries in each system use area, and in that of the root.
    pub(crate) skip: usize,
    pub(crate) root_skip: usize,
    /// Extensions that the root announces.
    pub(crate) extensions: Vec<String>,
}

impl Geometry {
    pub(crate) fn read(sectors: &Sectors) -> Result<Geometry> {
        let found = Descriptors::read(sectors)?;
        let primary = found.primary.ok_or(Corruption::NoVolume)?;
        let place = Place::at(DESCRIPTOR, primary.at);
        let block_len = primary.descriptor.block_len.get();
        if ![512, 1024, 2048].contains(&block_len) {
            return Err(Corruption::BlockLen { place, found: block_len }.into());
        }
        let joliet = found.joliet.filter(|(joliet, _)| joliet.descriptor.block_len.get() == block_len);
        let root_at = primary.root_at();
        let root = root(sectors, root_at)?;
        let announced = Announced::read(sectors, &root, block_len.into())?;
        let mut geometry = Geometry {
            primary,
            joliet,
            catalog: found.catalog,
            descriptors_end: found.end,
            image_len: sectors.len(),
            block_len: block_len.into(),
            view: View::Plain,
            root_at,
            skip: announced.skip,
            root_skip: announced.root_skip,
            extensions: announced.extensions,
        };
        geometry.choose_view(sectors, &root, announced.is_rock_ridge)?;
        Ok(geometry)
    }

    /// Prefers Rock Ridge to Joliet to plain names, except for an empty tree.
    fn choose_view(&mut self, sectors: &Sectors, root: &Record, is_rock_ridge: bool) -> Result<()> {
        let joliet_root = self.joliet.as_ref().map(|(joliet, _)| joliet.root_at());
        let prefers_joliet = !is_rock_ridge || is_empty(sectors, root, self.block_len)?;
        match joliet_root {
            Some(joliet_root) if prefers_joliet => {
                let record = crate::open::root(sectors, joliet_root)?;
                if !is_rock_ridge || !is_empty(sectors, &record, self.block_len)? {
                    (self.view, self.root_at) = (View::Joliet, joliet_root);
                    return Ok(());
                }
            }
            _ => {}
        }
        if is_rock_ridge {
            self.view = View::RockRidge;
        }
        Ok(())
    }

    pub(crate) fn volume_end(&self) -> u64 {
        block_at(self.primary.descriptor.space_len.get().into(), self.block_len)
    }
}

#[derive(Default)]
struct Descriptors {
    primary: Option<Described>,
    joliet: Option<(Described, u8)>,
    catalog: Option<(u64, u32)>,
    end: u64,
}

impl Descriptors {
    fn read(sectors: &Sectors) -> Result<Self> {
        let mut found = Descriptors::default();
        for at in (DESCRIPTORS_AT..).step_by(usize_of(SECTOR_LEN)).take(DESCRIPTORS_MAX) {
            let mut descriptor = VolumeDescriptor::new_box_zeroed()
                .map_err(|_| Error::failed("no memory for a volume descriptor"))?;
            let read = sectors.read(Place::at(DESCRIPTOR, at), descriptor.as_mut_bytes());
            match read {
                Ok(()) if descriptor.standard_id == STANDARD_ID => {}
                // Some writers omit the terminator, so the list extends to the end of the image.
                Err(error) if found.primary.is_none() => return Err(error),
                _ => break,
            }
            found.end = range_at(at, SECTOR_LEN).end;
            match descriptor.kind {
                PRIMARY if found.primary.is_none() => found.primary = Some(Described { at, descriptor }),
                SUPPLEMENTARY => found.take_supplementary(at, descriptor),
                BOOT_RECORD => found.take_boot_record(at, &descriptor),
                TERMINATOR => break,
                _ => {}
            }
        }
        Ok(found)
    }

    fn take_supplementary(&mut self, at: u64, descriptor: Box<VolumeDescriptor>) {
        let level =
            JOLIET_ESCAPES.iter().zip(1..).find(|(escape, _)| descriptor.escapes.starts_with(*escape));
        // Bit 0 marks escapes of an unregistered set.
        let Some((_, level)) = level.filter(|_| descriptor.flags & 1 == 0) else { return };
        if self.joliet.as_ref().is_none_or(|&(_, before)| before < level) {
            self.joliet = Some((Described { at, descriptor }, level));
        }
    }

    fn take_boot_record(&mut self, at: u64, descriptor: &VolumeDescriptor) {
        let bytes = descriptor.as_bytes();
        // Its fields differ: the system at byte 7, the catalog at byte 71.
        let is_el_torito = bytes.get(7..).is_some_and(|system| system.starts_with(EL_TORITO_ID));
        let catalog = bytes.get(71..).and_then(<[u8]>::first_chunk);
        if let (true, None, Some(&catalog)) = (is_el_torito, self.catalog, catalog) {
            self.catalog = Some((at, u32::from_le_bytes(catalog)));
        }
    }
}

fn root(sectors: &Sectors, at: u64) -> Result<Record> {
    let place = Place::at("root directory", at);
    let record = Record::read(sectors, at, sectors.len())?;
    let record = record.filter(|record| record.has(FLAG_DIRECTORY) && record.name() == NAME_SELF);
    record.ok_or_else(|| Corruption::NotADirectory { place }.into())
}

fn is_empty(sectors: &Sectors, directory: &Record, block_len: u32) -> Result<bool> {
    let start = directory.data_at(block_len);
    let end = range_at(start, directory.data_len()).end.min(sectors.len());
    // Both are at the start, so the first sector suffices.
    let first_end = range_at(start, SECTOR_LEN).end.min(end);
    let mut at = start;
    while at < first_end {
        match Record::read(sectors, at, end)? {
            Some(record) if record.is_self_or_parent() => at = record.end(),
            Some(_) => return Ok(false),
            None => break,
        }
    }
    Ok(end == first_end)
}

/// Extensions in the root's system use entries.
struct Announced {
    skip: usize,
    root_skip: usize,
    is_rock_ridge: bool,
    extensions: Vec<String>,
}

impl Announced {
    fn read(sectors: &Sectors, root: &Record, block_len: u32) -> Result<Self> {
        let area = root.system_use();
        let skip_at = |from: usize| match *area.get(from..)? {
            [b'S', b'P', len, _, first, second, skip, ..] if len >= 7 && [first, second] == SP_CHECK => {
                Some((usize::from(skip), from))
            }
            _ => None,
        };
        let shared = skip_at(0).or_else(|| skip_at(XA_LEN));
        let (skip, root_skip) = shared.unwrap_or((0, 0));
        let mut announced = Announced { skip, root_skip, is_rock_ridge: false, extensions: Vec::new() };
        let mut has_posix = false;
        susp::each_entry(sectors, root, root_skip, block_len, |entry| {
            match &entry.signature {
                b"PX" => has_posix = true,
                b"ER" => {
                    let len = entry.fields.first().copied().map_or(0, usize::from);
                    let id = entry.fields.get(4..).and_then(|rest| rest.get(..len)).unwrap_or_default();
                    announced.is_rock_ridge |= ROCK_RIDGE_IDS.contains(&id);
                    announced.extensions.push(String::from_utf8_lossy(id).into_owned());
                }
                _ => {}
            }
            Ok(())
        })?;
        announced.is_rock_ridge |= has_posix;
        Ok(announced)
    }
}
