//! Records of the log (`struct xlog_rec_header`): header, checksum, and data.

use super::ring::{HEADER_COVERS, LEN_MAX, MAGIC, Ring, SECTOR_LEN, UUID_AT};
use crate::corruption::Corruption;
use crate::disk::{be32, be64, le32, part, uuid};
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};
use packfs_format::crc32c;

const CRC_AT: usize = 32;
/// Offset of the first words of the sectors of data, in the first header and in further ones.
const WORDS_AT: usize = 44;
const MORE_WORDS_AT: usize = 4;
/// Bytes of a header that its checksum covers, on 64-bit and on 32-bit x86 machines.
const SUMMED: [usize; 2] = [328, 324];
/// Bytes of a further header that the checksum covers.
const SUMMED_MORE: usize = 260;
/// Format of records of little-endian Linux.
const FORMAT: u32 = 1;

/// Header of a record. Linux writes some without data where a record was not written in full.
pub(super) struct Header {
    /// Sectors of the header.
    bytes: Vec<u8>,
    /// Its place in the ring.
    pub(super) sector: u64,
    /// Number of the record, which says its place.
    pub(super) lsn: u64,
    /// First record with changes that may not be on disk.
    pub(super) tail: u64,
    /// Bytes of data.
    pub(super) len: u64,
    /// Number of operations.
    pub(super) operations: u32,
}

impl Header {
    /// Reads the header of the record at a sector, and checks its figures.
    pub(super) fn read(ring: &Ring, sector: u64) -> Result<Header> {
        let sector = ring.wrapped(sector);
        let fault = |fault| Corruption::LogRecord { sector, fault };
        let mut bytes = ring.read(sector, 1)?;
        if be32(&bytes, 0) != MAGIC {
            return Err(fault("begins with other bytes than 0xfeedbabe").into());
        }
        let version = be32(&bytes, 8);
        if !(1..=3).contains(&version) {
            return Err(fault("its version is not 1 or 2").into());
        }
        let (len, room) = (u64::from(be32(&bytes, 12)), u64::from(be32(&bytes, 320)));
        if len.max(room) > LEN_MAX {
            return Err(fault("its length is over 256 KiB").into());
        }
        let count = match ring.has_long_records && version & 2 != 0 {
            true => room.div_ceil(HEADER_COVERS).max(1),
            false => 1,
        };
        if count > 1 {
            bytes = ring.read(sector, count)?;
        }
        let (lsn, tail, operations) = (be64(&bytes, 16), be64(&bytes, 24), be32(&bytes, 40));
        Ok(Header { bytes, sector, lsn, tail, len, operations })
    }

    /// Returns the cycle that it was written in.
    pub(super) fn cycle(&self) -> u32 {
        be32(&self.bytes, 4)
    }

    /// Returns the sectors of the header.
    pub(super) fn sectors(&self) -> u64 {
        self.bytes.len() as u64 / SECTOR
    }

    /// Returns the sectors of header and data.
    pub(super) fn all_sectors(&self) -> u64 {
        self.sectors().saturating_add(self.len.div_ceil(SECTOR))
    }

    /// Fails for a record of another filesystem, or of another kind of machine.
    pub(super) fn check_origin(&self, ring: &Ring) -> Result<()> {
        let fault = |fault| Corruption::LogRecord { sector: self.sector, fault };
        if be32(&self.bytes, 300) != FORMAT {
            return Err(fault("written by a big-endian machine, or by IRIX").into());
        }
        self.check_uuid(ring)
    }

    /// Fails for a record of another filesystem; IRIX leaves the identifier out.
    pub(super) fn check_uuid(&self, ring: &Ring) -> Result<()> {
        let found = uuid(&self.bytes, UUID_AT);
        match found == ring.uuid || found == [0; 16] {
            true => Ok(()),
            false => {
                let fault = "belongs to a filesystem with another UUID";
                Err(Corruption::LogRecord { sector: self.sector, fault }.into())
            }
        }
    }

    /// Reads the data as it is on disk.
    pub(super) fn data(&self, ring: &Ring) -> Result<Vec<u8>> {
        ring.read(self.sector.saturating_add(self.sectors()), self.len.div_ceil(SECTOR))
    }

    /// Returns true if the checksum is right, or none is stored.
    pub(super) fn is_sum_of(&self, data: &[u8]) -> bool {
        let found = le32(&self.bytes, CRC_AT);
        found == 0 || SUMMED.iter().any(|len| self.sum(data, *len) == found)
    }

    /// Returns true if a checksum is stored.
    pub(super) fn has_sum(&self) -> bool {
        le32(&self.bytes, CRC_AT) != 0
    }

    fn sum(&self, data: &[u8], header_len: usize) -> u32 {
        let before = crc32c(!0, part(&self.bytes, 0, CRC_AT).unwrap_or_default());
        let rest = self.bytes.get(CRC_AT.saturating_add(4)..header_len).unwrap_or_default();
        let mut sum = crc32c(crc32c(before, &[0; 4]), rest);
        let used = usize_of(self.len.div_ceil(HEADER_COVERS));
        for more in self.bytes.chunks_exact(SECTOR_LEN).take(used).skip(1) {
            sum = crc32c(sum, part(more, 0, SUMMED_MORE).unwrap_or_default());
        }
        !crc32c(sum, data.get(..usize_of(self.len)).unwrap_or_default())
    }

    /// Returns true if the checksum would be right, were every sector of the cycle that it should
    /// have.
    pub(super) fn is_sum_in_cycles(&self, ring: &Ring, cycle_of: &dyn Fn(u64) -> u32) -> Result<bool> {
        let mut bytes = ring.read(self.sector, self.all_sectors())?;
        for (index, sector) in bytes.chunks_exact_mut(SECTOR_LEN).enumerate() {
            let cycle = cycle_of(self.sector.saturating_add(index as u64));
            let at = if index == 0 { 4 } else { 0 };
            if let Some(word) = sector.get_mut(at..usize::saturating_add(at, 4)) {
                word.copy_from_slice(&cycle.to_be_bytes());
            }
        }
        let data = bytes.split_off(self.bytes.len().min(bytes.len()));
        let header = Header { bytes, ..*self };
        Ok(header.has_sum() && header.is_sum_of(&data))
    }

    /// Puts the first word of each sector back, where the cycle was.
    pub(super) fn unpack(&self, data: &mut [u8]) {
        let per_header = usize_of(HEADER_COVERS / SECTOR);
        let headers = self.bytes.chunks_exact(SECTOR_LEN);
        for (index, (header, sectors)) in headers.zip(data.chunks_mut(usize_of(HEADER_COVERS))).enumerate() {
            let words_at = if index == 0 { WORDS_AT } else { MORE_WORDS_AT };
            let words = part(header, words_at, per_header.saturating_mul(4)).unwrap_or_default();
            for (sector, word) in sectors.chunks_mut(SECTOR_LEN).zip(words.chunks_exact(4)) {
                if let Some(start) = sector.get_mut(..4) {
                    start.copy_from_slice(word);
                }
            }
        }
    }
}
