//! Partition maps: addresses of a partition's blocks in the volume.

use crate::blocks::Blocks;
use crate::corruption::{Corruption, Place};
use crate::descriptors::Logical;
use crate::disk::*;
use packfs_core::{Error, ErrorKind, Result, len_of, range_at};
use packfs_format::{structure, units::*};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

const SPARED_MAX: usize = 65_535;

/// Block of a partition; identifies a file by its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Addr {
    pub(crate) partition: u16,
    pub(crate) block: u32,
}

impl From<LbAddr> for Addr {
    fn from(raw: LbAddr) -> Addr {
        Addr { partition: raw.partition_reference_num.get(), block: raw.logical_block_num.get() }
    }
}

/// Contiguous blocks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Blocks of the file.
    pub(crate) range: Range<u64>,
    /// First block in the volume.
    pub(crate) at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    Physical(Range<u64>),
    /// Blocks of the volume, with packets that were moved away from defects.
    Sparable {
        blocks: Range<u64>,
        packet_len: u64,
        /// First blocks of packets in the partition, sorted, and in the volume.
        spared: Vec<(u32, u32)>,
        /// Byte ranges of the tables.
        tables: Vec<Range<u64>>,
    },
    /// Blocks of another partition, mapped by a table in a file at the end of a write-once disc,
    /// with its byte ranges.
    Virtual {
        of: u16,
        table: Vec<u32>,
        places: Vec<Range<u64>>,
    },
    /// Blocks of a file of another partition, and of its mirror.
    Metadata {
        of: u16,
        main: Vec<Run>,
        mirror: Vec<Run>,
        files: MetadataMap,
    },
}

impl Map {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Map::Physical(_) => "physical",
            Map::Sparable { .. } => "sparable",
            Map::Virtual { .. } => "virtual",
            Map::Metadata { .. } => "metadata",
        }
    }

    /// Blocks of the volume that a map uses directly.
    pub(crate) fn blocks(&self) -> Option<Range<u64>> {
        match self {
            Map::Physical(blocks) | Map::Sparable { blocks, .. } => Some(blocks.clone()),
            Map::Virtual { .. } | Map::Metadata { .. } => None,
        }
    }
}

/// Map of a volume before the files that it needs were read.
pub(crate) enum RawMap {
    Whole(Map),
    /// The table is in a file, with another form before UDF 2.00.
    Virtual {
        of: u16,
        is_old: bool,
    },
    Metadata {
        of: u16,
        files: MetadataMap,
    },
}

pub(crate) fn read_maps(
    blocks: &Blocks,
    logical: &Logical,
    partitions: &[PartitionDesc],
) -> Result<Vec<RawMap>> {
    let (place, mut at) = (logical.place, 0_usize);
    let mut maps: Vec<(u16, RawMap)> = Vec::new();
    let count = packfs_core::usize_of(logical.descriptor.num_partition_maps.get().into());
    let table_len = packfs_core::usize_of(logical.descriptor.map_table_length.get().into());
    let table = logical.maps.within(..table_len.min(logical.maps.len()));
    for index in 0..count {
        let fault = |fault| Corruption::Map { place, index, fault };
        let map: GenericPartitionMap1 = structure(table, at).ok_or_else(|| fault("ends early"))?;
        let (number, raw) = match (map.partition_map_type, map.partition_map_length) {
            (MAP_PHYSICAL, 6) => {
                let number = map.partition_num.get();
                (number, RawMap::Whole(Map::Physical(partition(partitions, place, index, number)?)))
            }
            (MAP_BY_NAME, 64) => {
                let map: UdfPartitionMap2 = structure(table, at).ok_or_else(|| fault("ends early"))?;
                let number = map.partition_num.get();
                let physical = partition(partitions, place, index, number)?;
                // Other partitions are within one of those before them.
                let of = maps.iter().position(|(own, raw)| *own == number && matches!(raw, RawMap::Whole(_)));
                (number, by_name(blocks, &map, physical, of).map_err(|found| found.of(place, index))?)
            }
            _ => return Err(fault("neither type 1 of 6 bytes nor type 2 of 64").into()),
        };
        maps.push((number, raw));
        at = at.plus(map.partition_map_length.into());
    }
    Ok(maps.into_iter().map(|(_, raw)| raw).collect())
}

fn partition(partitions: &[PartitionDesc], place: Place, index: usize, found: u16) -> Result<Range<u64>> {
    let own = partitions.iter().find(|own| own.partition_number.get() == found);
    let own = own.ok_or(Corruption::NoPartition { place, index, found })?;
    Ok(range_at(own.partition_starting_location.get().into(), own.partition_length.get().into()))
}

/// Reason for which a map is not usable.
enum MapFault {
    Corrupt(&'static str),
    Other(Error),
}

impl MapFault {
    fn of(self, place: Place, index: usize) -> Error {
        match self {
            MapFault::Corrupt(fault) => Corruption::Map { place, index, fault }.into(),
            MapFault::Other(error) => error,
        }
    }
}

fn by_name(
    blocks: &Blocks,
    map: &UdfPartitionMap2,
    physical: Range<u64>,
    of: Option<usize>,
) -> std::result::Result<RawMap, MapFault> {
    let of = of.and_then(|of| u16::try_from(of).ok());
    let of = of.ok_or(MapFault::Corrupt("is in no partition before it"));
    if map.part_ident.is(ID_SPARABLE) {
        return sparable(blocks, map, physical).map(RawMap::Whole);
    }
    if map.part_ident.is(ID_VIRTUAL) {
        return Ok(RawMap::Virtual { of: of?, is_old: map.part_ident.revision() < 0x200 });
    }
    if map.part_ident.is(ID_METADATA) {
        let files = structure(&map.map, 0).ok_or(MapFault::Corrupt("ends early"))?;
        return Ok(RawMap::Metadata { of: of?, files });
    }
    let name = packfs_core::escaped(map.part_ident.ident.trim_ascii_end()).to_string();
    let what = format!("a partition map \"{}\"", name.trim_end_matches("\\0"));
    Err(MapFault::Other(Error::unsupported("udf image", what)))
}

fn sparable(
    blocks: &Blocks,
    map: &UdfPartitionMap2,
    physical: Range<u64>,
) -> std::result::Result<Map, MapFault> {
    let fields: SparableMap = structure(&map.map, 0).ok_or(MapFault::Corrupt("ends early"))?;
    let packet_len = fields.packet_length.get();
    if !packet_len.is_power_of_two() {
        return Err(MapFault::Corrupt("the length of a packet is no power of 2"));
    }
    let (mut tables, mut newest) = (Vec::new(), None);
    let places = fields.loc_sparing_table.iter().take(fields.num_sparing_tables.min(4).into());
    let mut fault = None;
    for at in places.map(|block| blocks.at(block.get().into())) {
        tables.push(range_at(at, fields.size_sparing_table.get().into()));
        match sparing_table(blocks, Place::at("sparing table", at), packet_len.into()) {
            Ok((number, spared)) => {
                if newest.as_ref().is_none_or(|(before, _)| *before < number) {
                    newest = Some((number, spared));
                }
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => fault = Some(error),
            Err(error) => return Err(MapFault::Other(error)),
        }
    }
    match (newest, fault) {
        (Some((_, spared)), _) => {
            Ok(Map::Sparable { blocks: physical, packet_len: packet_len.into(), spared, tables })
        }
        (None, Some(fault)) => Err(MapFault::Other(fault)),
        (None, None) => Err(MapFault::Corrupt("without a sparing table")),
    }
}

/// Reads a sparing table, which may be longer than a block: its number, and the packets that it
/// moves.
pub(crate) fn sparing_table(
    blocks: &Blocks,
    place: Place,
    packet_len: u64,
) -> Result<(u32, Vec<(u32, u32)>)> {
    let mut bytes = vec![0; size_of::<SparingTable>()];
    blocks.read(place, &mut bytes)?;
    let head: Option<SparingTable> = structure(&bytes, 0);
    let count = head.map_or(0, |head| usize::from(head.reallocation_table_len.get())).min(SPARED_MAX);
    let len = count.times(size_of::<SparingEntry>()).plus(bytes.len());
    bytes.resize(len, 0);
    blocks.read(place, &mut bytes)?;
    let tag = crate::blocks::verified(place, &bytes)?;
    let head: Option<SparingTable> = structure(&bytes, 0);
    let Some(head) = head.filter(|head| tag.tag_ident.get() == SPARING && head.sparing_ident.is(ID_SPARING))
    else {
        return Err(Corruption::Ident { place, found: tag.tag_ident.get(), wanted: SPARING }.into());
    };
    let entries = bytes.within(size_of::<SparingTable>()..);
    let entries = entries.chunks_exact(size_of::<SparingEntry>());
    let mut spared: Vec<(u32, u32)> = entries
        .filter_map(|entry| structure::<SparingEntry>(entry, 0))
        .map(|entry| (entry.orig_location.get(), entry.mapped_location.get()))
        // Higher values mark free or defective packets.
        .filter(|(from, _)| *from < 0xffff_fff0)
        .collect();
    if let Some(&(found, _)) = spared.iter().find(|(from, _)| !u64::from(*from).is_multiple_of(packet_len)) {
        return Err(Corruption::Spared { place, found, packet_len }.into());
    }
    spared.sort_unstable();
    Ok((head.sequence_num.get(), spared))
}

/// Partitions of a volume.
pub(crate) struct Reader {
    pub(crate) blocks: Blocks,
    pub(crate) maps: Vec<Map>,
    /// Set once a block of the mirror replaced one of the metadata file.
    pub(crate) has_used_mirror: AtomicBool,
}

impl Reader {
    /// Returns the volume block of a partition's block, and the number of contiguous blocks there,
    /// up to `len`, which is not 0.
    pub(crate) fn place(&self, partition: u16, block: u64, len: u64) -> Result<(u64, u64)> {
        let count = self.maps.len();
        let map = self.maps.get(usize::from(partition));
        match map.ok_or(Corruption::Reference { found: partition, count })? {
            Map::Physical(blocks) => {
                check_block(partition, block, len, blocks)?;
                Ok((blocks.start.plus(block), len))
            }
            Map::Sparable { blocks, packet_len, spared, .. } => {
                check_block(partition, block, len, blocks)?;
                let within = block.remainder(*packet_len);
                let packet = block.minus(within);
                let index = spared.partition_point(|(from, _)| u64::from(*from) < packet);
                Ok(match spared.get(index) {
                    Some((from, to)) if u64::from(*from) == packet => {
                        (u64::from(*to).plus(within), len.min(packet_len.minus(within)))
                    }
                    Some((next, _)) => (blocks.start.plus(block), len.min(u64::from(*next).minus(block))),
                    None => (blocks.start.plus(block), len),
                })
            }
            Map::Virtual { of, table, .. } => {
                let found = table.get(packfs_core::usize_of(block)).filter(|to| **to != u32::MAX);
                let to = *found.ok_or(Corruption::Unmapped { partition, found: block })?;
                self.place(*of, to.into(), 1)
            }
            Map::Metadata { main, mirror, .. } => {
                let found = in_runs(main, block, len).or_else(|| in_runs(mirror, block, len));
                Ok(found.ok_or(Corruption::Metadata { partition, found: block })?)
            }
        }
    }

    /// Offset of a partition's block.
    pub(crate) fn offset(&self, addr: Addr) -> Result<u64> {
        let (block, _) = self.place(addr.partition, addr.block.into(), 1)?;
        Ok(self.blocks.at(block))
    }

    /// Reads the descriptor in a partition's block, which has one of these tags.
    pub(crate) fn tagged(&self, what: &'static str, addr: Addr, idents: &[u16]) -> Result<(Place, Vec<u8>)> {
        let place = Place::at(what, self.offset(addr)?);
        match self.blocks.tagged(place, addr.block, idents) {
            Ok(bytes) => Ok((place, bytes)),
            Err(error) => self.tagged_in_mirror(what, addr, idents).unwrap_or(Err(error)),
        }
    }

    /// Reads it from the mirror of the metadata file, if that exists.
    fn tagged_in_mirror(
        &self,
        what: &'static str,
        addr: Addr,
        idents: &[u16],
    ) -> Option<Result<(Place, Vec<u8>)>> {
        let Some(Map::Metadata { mirror, .. }) = self.maps.get(usize::from(addr.partition)) else {
            return None;
        };
        let (block, _) = in_runs(mirror, addr.block.into(), 1)?;
        let place = Place::at(what, self.blocks.at(block));
        let bytes = self.blocks.tagged(place, addr.block, idents).ok()?;
        self.has_used_mirror.store(true, Ordering::Relaxed);
        Some(Ok((place, bytes)))
    }
}

fn check_block(partition: u16, found: u64, len: u64, blocks: &Range<u64>) -> Result<()> {
    let end = len_of(blocks);
    if range_at(found, len).end <= end {
        Ok(())
    } else {
        Err(Corruption::Block { partition, found, len, end }.into())
    }
}

pub(crate) fn in_runs(runs: &[Run], block: u64, len: u64) -> Option<(u64, u64)> {
    let index = runs.partition_point(|run| run.range.end <= block);
    let run = runs.get(index).filter(|run| run.range.contains(&block))?;
    let at = run.at.plus(block.minus(run.range.start));
    Some((at, len.min(run.range.end.minus(block))))
}
