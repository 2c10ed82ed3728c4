//! Records of the log (`struct xlog_rec_header`): header, checksum, and data.

use super::ring::{HEADER_COVERS, LEN_MAX, Ring, SECTOR_LEN};
use crate::corruption::Corruption;
use crate::disk::{RecExtHeader, RecHeader, XLOG_HEADER_MAGIC_NUM, put};
use crate::super_block::SECTOR;
use packfs_core::{Result, usize_of};
use packfs_format::{crc32c, structure, units::*};
use std::mem::offset_of;
use zerocopy::IntoBytes;

/// Bytes of a header that its checksum covers, on 64-bit and on 32-bit x86 machines.
const SUMMED: [usize; 2] = [size_of::<RecHeader>(), offset_of!(RecHeader, h_pad0)];
/// `XLOG_FMT_LINUX_LE`.
const FORMAT: u32 = 1;

/// Header of a record. Linux writes headers without data instead of incomplete records.
pub(super) struct Header {
    raw: RecHeader,
    bytes: Vec<u8>,
    pub(super) sector: u64,
    /// Log sequence number: cycle and sector.
    pub(super) lsn: u64,
    /// LSN of the first record with changes that may not be on disk.
    pub(super) tail: u64,
    pub(super) len: u64,
    pub(super) operations: u32,
}

impl Header {
    pub(super) fn read(ring: &Ring, sector: u64) -> Result<Header> {
        let sector = ring.wrapped(sector);
        let fault = |fault| Corruption::LogRecord { sector, fault };
        let mut bytes = ring.read(sector, 1)?;
        let raw: RecHeader = structure(&bytes, 0).ok_or(fault("cut off"))?;
        if raw.h_magicno.get() != XLOG_HEADER_MAGIC_NUM {
            return Err(fault("begins with other bytes than 0xfeedbabe").into());
        }
        let version = raw.h_version.get();
        if !(1..=3).contains(&version) {
            return Err(fault("its version is not 1 or 2").into());
        }
        let (len, room) = (u64::from(raw.h_len.get()), u64::from(raw.h_size.get()));
        if len.max(room) > LEN_MAX {
            return Err(fault("its length is over 256 KiB").into());
        }
        let count =
            if ring.has_long_records && version & 2 != 0 { room.div_ceil(HEADER_COVERS).max(1) } else { 1 };
        if count > 1 {
            bytes = ring.read(sector, count)?;
        }
        if (bytes.len() as u64 / SECTOR).plus(len.div_ceil(SECTOR)) > ring.count {
            return Err(fault("is longer than the log").into());
        }
        let lsn = raw.h_lsn.get();
        let tail = raw.h_tail_lsn.get();
        let operations = raw.h_num_logops.get();
        Ok(Header { raw, bytes, sector, lsn, tail, len, operations })
    }

    pub(super) fn cycle(&self) -> u32 {
        self.raw.h_cycle.get()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.bytes.len() as u64 / SECTOR
    }

    pub(super) fn all_sectors(&self) -> u64 {
        self.sectors().plus(self.len.div_ceil(SECTOR))
    }

    /// Errors: a record of another filesystem, or of another type of machine.
    pub(super) fn check_origin(&self, ring: &Ring) -> Result<()> {
        let fault = |fault| Corruption::log_record(self.sector, fault);
        if self.raw.h_fmt.get() != FORMAT {
            return Err(fault("written by a big-endian machine, or by IRIX").into());
        }
        self.check_uuid(ring)
    }

    /// Errors: a record of another filesystem. IRIX does not store the identifier.
    pub(super) fn check_uuid(&self, ring: &Ring) -> Result<()> {
        let found = self.raw.h_fs_uuid;
        if found == ring.uuid || found == [0; 16] {
            Ok(())
        } else {
            Err(Corruption::log_record(self.sector, "belongs to a filesystem with another UUID").into())
        }
    }

    /// Reads the data without unpacking it.
    pub(super) fn data(&self, ring: &Ring) -> Result<Vec<u8>> {
        ring.read(self.sector.plus(self.sectors()), self.len.div_ceil(SECTOR))
    }

    /// True if the checksum is right, or not stored.
    pub(super) fn is_sum_of(&self, data: &[u8]) -> bool {
        let found = self.raw.h_crc.get();
        found == 0 || SUMMED.iter().any(|len| self.sum(data, *len) == found)
    }

    pub(super) fn has_sum(&self) -> bool {
        self.raw.h_crc.get() != 0
    }

    fn sum(&self, data: &[u8], header_len: usize) -> u32 {
        let raw = RecHeader { h_crc: 0.into(), ..self.raw };
        let mut sum = crc32c(!0, raw.as_bytes().within(..header_len));
        let used = usize_of(self.len.div_ceil(HEADER_COVERS));
        for more in self.bytes.chunks_exact(SECTOR_LEN).take(used).skip(1) {
            sum = crc32c(sum, more.within(..size_of::<RecExtHeader>()));
        }
        !crc32c(sum, data.within(..usize_of(self.len)))
    }

    /// True if the checksum would be right if every sector had its expected cycle.
    pub(super) fn is_sum_in_cycles(&self, ring: &Ring, cycle_of: &dyn Fn(u64) -> u32) -> Result<bool> {
        let mut bytes = ring.read(self.sector, self.all_sectors())?;
        let mut raw = self.raw;
        for (index, sector) in bytes.chunks_exact_mut(SECTOR_LEN).enumerate() {
            let cycle = cycle_of(self.sector.plus(index as u64));
            match index {
                0 => raw.h_cycle = cycle.into(),
                _ => put(sector, 0, &cycle.to_be_bytes()),
            }
        }
        let data = bytes.split_off(self.bytes.len().min(bytes.len()));
        let header = Header { raw, bytes, ..*self };
        Ok(header.has_sum() && header.is_sum_of(&data))
    }

    /// Restores the first word of each sector, which the cycle replaces.
    pub(super) fn unpack(&self, data: &mut [u8]) {
        let headers = self.bytes.chunks_exact(SECTOR_LEN).skip(1);
        let more =
            headers.filter_map(|header| structure(header, 0)).map(|more: RecExtHeader| more.xh_cycle_data);
        let words = std::iter::once(self.raw.h_cycle_data).chain(more).flatten();
        for (sector, word) in data.chunks_mut(SECTOR_LEN).zip(words) {
            put(sector, 0, &word);
        }
    }
}
