//! Header of a compressed file's map, which determines the kind of index.

use crate::corruption::Allowed;
use crate::disk::*;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use packfs_core::{Result, len_of, usize_of};
use packfs_format::units::*;
use std::mem::size_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHead {
    pub(crate) at: u64,
    /// Entries of 4 and 2 bytes instead of 8.
    pub(crate) compact: bool,
    /// Compact: number of 4-byte entries before the 2-byte ones, and number of the latter.
    pub(crate) initial_4b: u64,
    pub(crate) count_2b: u64,
    /// Clusters of several blocks: for HEAD1, and for HEAD2 and PLAIN.
    pub(crate) big: [bool; 2],
    /// Stored length of the last cluster if it follows the index.
    pub(crate) inline_len: Option<u16>,
    /// Offset of the last cluster in the packed inode (lower 32 bits).
    pub(crate) packed_at: Option<u32>,
    pub(crate) interlaced: bool,
    pub(crate) algorithms: [u8; 2],
    /// Base-2 logarithm of a logical cluster.
    pub(crate) lcluster_bits: u32,
    pub(crate) lcluster_count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodedHead {
    /// Address of the first record; before records of 4 bytes it is preceded by the address of the
    /// data.
    pub(crate) at: u64,
    /// Bytes of a record: 4, 8, 16 or 32.
    pub(crate) record_len: u64,
    pub(crate) count: u64,
    /// Records of 4 and 8 bytes: logarithm of the length of each.
    pub(crate) lcluster_bits: u32,
    pub(crate) interlaced: bool,
    /// The last extent is in the packed inode.
    pub(crate) packed: bool,
}

pub(crate) struct PackPlace {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) first: u64,
    pub(crate) count: usize,
    pub(crate) entry_bits: usize,
}

impl IndexHead {
    /// End of the index, where an inline cluster starts.
    pub(crate) fn end(&self) -> u64 {
        let last = left(self.lcluster_count, 1);
        if self.compact {
            let pack = self.pack_place(last);
            return pack.at.plus(pack.len);
        }
        nth_at(self.at, last.plus(1), size_of::<LclusterIndex>() as u64)
    }

    pub(crate) fn pack_place(&self, index: u64) -> PackPlace {
        let (initial, count_2b) = (self.initial_4b, self.count_2b);
        let of_4b = |at: u64, first: u64| {
            let number = index.minus(first) / COMPACT_4B_PACK_COUNT;
            PackPlace {
                at: nth_at(at, number, COMPACT_4B_PACK_LEN),
                len: COMPACT_4B_PACK_LEN,
                first: nth_at(first, number, COMPACT_4B_PACK_COUNT),
                count: usize_of(COMPACT_4B_PACK_COUNT),
                entry_bits: COMPACT_4B_ENTRY_BITS,
            }
        };
        if count_2b == 0 || index < initial {
            return of_4b(self.at, 0);
        }
        let at_2b = nth_at(self.at, initial / COMPACT_4B_PACK_COUNT, COMPACT_4B_PACK_LEN);
        let end_2b = initial.plus(count_2b);
        if index >= end_2b {
            let at = nth_at(at_2b, count_2b / COMPACT_2B_PACK_COUNT, COMPACT_2B_PACK_LEN);
            return of_4b(at, end_2b);
        }
        let number = len_of(&(initial..index)) / COMPACT_2B_PACK_COUNT;
        PackPlace {
            at: nth_at(at_2b, number, COMPACT_2B_PACK_LEN),
            len: COMPACT_2B_PACK_LEN,
            first: nth_at(initial, number, COMPACT_2B_PACK_COUNT),
            count: usize_of(COMPACT_2B_PACK_COUNT),
            entry_bits: COMPACT_2B_ENTRY_BITS,
        }
    }
}

impl EncodedHead {
    pub(crate) fn end(&self) -> u64 {
        let in_front = if self.record_len == 4 { 8 } else { 0 };
        nth_at(self.at.plus(in_front), self.count, self.record_len)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterMap {
    /// The whole file is in the packed inode, at this offset.
    Packed(u64),
    Index(IndexHead),
    Encoded(EncodedHead),
}

impl Reader {
    pub(crate) fn cluster_map(&self, raw: &RawInode) -> Result<ClusterMap> {
        let place = raw.place.of("cluster map of the inode");
        let start = raw.tail_at().next_multiple_of(MAP_HEADER_ALIGN);
        let end = start.plus(size_of::<MapHeader>() as u64);
        let head: MapHeader = self.read_struct(start, place)?;
        if head.h_clusterbits >> Z_EROFS_FRAGMENT_INODE_BIT != 0 {
            let whole = [
                u64::from(head.h_u.get()),
                u64::from(head.h_advise.get()) << 32,
                u64::from(head.h_algorithmtype) << 48,
                u64::from(head.h_clusterbits & !(1 << Z_EROFS_FRAGMENT_INODE_BIT)) << 56,
            ];
            return Ok(ClusterMap::Packed(whole.iter().sum()));
        }
        let advise = head.h_advise.get();
        let has = |bit: u16| advise & bit != 0;
        let bits_above_block = u32::from(head.h_clusterbits & CLUSTERBITS_MASK);
        let lcluster_bits = self.geometry.block_bits.plus(bits_above_block);
        if raw.layout == Layout::CompressedFull && has(Z_EROFS_ADVISE_EXTENTS) {
            return Ok(ClusterMap::Encoded(self.encoded_head(raw, &head, end, lcluster_bits)?));
        }
        let compact = raw.layout == Layout::CompressedCompact;
        let big = [has(Z_EROFS_ADVISE_BIG_PCLUSTER_1), has(Z_EROFS_ADVISE_BIG_PCLUSTER_2)];
        if compact && big[0] != big[1] {
            return Err(place.fault("a compact index with clusters of several blocks for one head only"));
        }
        let max = match (compact, has(Z_EROFS_ADVISE_COMPACTED_2B)) {
            (true, true) => COMPACT_2B_LCLUSTERBITS_MAX,
            (true, false) => COMPACT_4B_LCLUSTERBITS_MAX,
            // Offsets within a logical cluster have 16 bits.
            (false, _) => 16,
        };
        if lcluster_bits > max {
            let allowed = Allowed::AtMost(u64::from(max));
            return Err(place.figure("logical cluster bits", lcluster_bits, allowed));
        }
        let lcluster_count = raw.size.div_ceil(1 << lcluster_bits);
        let (initial_4b, count_2b) = if compact && has(Z_EROFS_ADVISE_COMPACTED_2B) {
            entries_2b(end, raw.size.div_ceil(self.geometry.block_len()))
        } else {
            (0, 0)
        };
        let packed = has(Z_EROFS_ADVISE_FRAGMENT_PCLUSTER);
        let idata_len = (head.h_u.get() >> 16) as u16;
        let inline = !packed && has(Z_EROFS_ADVISE_INLINE_PCLUSTER) && idata_len > 0;
        Ok(ClusterMap::Index(IndexHead {
            at: if compact { end } else { end.plus(FULL_INDEX_GAP) },
            compact,
            initial_4b,
            count_2b,
            big,
            inline_len: inline.then_some(idata_len),
            packed_at: packed.then_some(head.h_u.get()),
            interlaced: has(Z_EROFS_ADVISE_INTERLACED_PCLUSTER),
            algorithms: [head.h_algorithmtype & 0xf, head.h_algorithmtype >> 4],
            lcluster_bits,
            lcluster_count,
        }))
    }

    fn encoded_head(
        &self,
        raw: &RawInode,
        head: &MapHeader,
        end: u64,
        lcluster_bits: u32,
    ) -> Result<EncodedHead> {
        let place = raw.place.of("cluster map of the inode");
        let advise = head.h_advise.get();
        let record_len = 4 << (advise >> Z_EROFS_ADVISE_EXTRECSZ_BIT & Z_EROFS_ADVISE_EXTRECSZ_MASK);
        let at = end.next_multiple_of(record_len);
        let count = match record_len {
            4 | 8 => raw.size.div_ceil(1 << lcluster_bits),
            _ => {
                let upper = u64::from(head.h_algorithmtype) | u64::from(head.h_clusterbits) << 8;
                u64::from(head.h_u.get()) | upper << 32
            }
        };
        let room = len_of(&(at..self.space_end())).quotient(record_len);
        if count == 0 || count > room {
            return Err(place.figure("extent count", count, Allowed::Between(1, room)));
        }
        Ok(EncodedHead {
            at,
            record_len,
            count,
            lcluster_bits,
            interlaced: advise & Z_EROFS_ADVISE_INTERLACED_PCLUSTER != 0,
            packed: advise & Z_EROFS_ADVISE_FRAGMENT_PCLUSTER != 0,
        })
    }
}

/// Returns the number of 4-byte entries before the 2-byte ones, and the number of the latter. An
/// index too short for both has only 4-byte entries.
fn entries_2b(index_start: u64, count: u64) -> (u64, u64) {
    let initial = compacted_4b_initial(index_start);
    let rest = left(count, initial);
    let count_2b = rest.minus(rest % COMPACT_2B_PACK_COUNT);
    (if count_2b == 0 { 0 } else { initial }, count_2b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_indexes_have_entries_of_four_bytes_only() {
        assert_eq!(entries_2b(8, 6), (0, 0));
        assert_eq!(entries_2b(8, 21), (0, 0));
        assert_eq!(entries_2b(8, 22), (6, 16));
        assert_eq!(entries_2b(32, 40), (0, 32));
    }
}
