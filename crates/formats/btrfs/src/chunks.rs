//! Chunks: mapping of logical addresses to devices, number of copies, and profile.

use crate::corruption::Corruption;
use crate::disk::{ChunkHead, RawStripe, STRIPE_LEN};
use crate::key::Uuid;
use packfs_core::{Error, Result, range_at};
use packfs_format::{structure, structures, units::*};
use std::ops::Range;

const HEAD_LEN: usize = size_of::<ChunkHead>();
const STRIPE_ITEM_LEN: usize = size_of::<RawStripe>();
/// Longest accepted chunk; the kernel writes at most 10 GiB.
const CHUNK_LEN_MAX: u64 = 1 << 48;

/// Powers of 2 distinguish 255 data columns.
const RAID6_STRIPES_MAX: usize = 257;

/// `BTRFS_BLOCK_GROUP_DATA` and the other type bits.
pub(crate) const DATA: u64 = 1;
pub(crate) const SYSTEM: u64 = 2;
pub(crate) const METADATA: u64 = 4;
const RAID0: u64 = 1 << 3;
const RAID1: u64 = 1 << 4;
const DUP: u64 = 1 << 5;
const RAID10: u64 = 1 << 6;
const RAID5: u64 = 1 << 7;
const RAID6: u64 = 1 << 8;
const RAID1C3: u64 = 1 << 9;
const RAID1C4: u64 = 1 << 10;
const PROFILES: u64 = 0x7f8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Profile {
    Single,
    Dup,
    Raid0,
    Raid1,
    Raid1c3,
    Raid1c4,
    Raid10,
    Raid5,
    Raid6,
}

impl Profile {
    fn of(kind: u64) -> Option<Profile> {
        Some(match kind & PROFILES {
            0 => Profile::Single,
            DUP => Profile::Dup,
            RAID0 => Profile::Raid0,
            RAID1 => Profile::Raid1,
            RAID1C3 => Profile::Raid1c3,
            RAID1C4 => Profile::Raid1c4,
            RAID10 => Profile::Raid10,
            RAID5 => Profile::Raid5,
            RAID6 => Profile::Raid6,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Profile::Single => "single",
            Profile::Dup => "dup",
            Profile::Raid0 => "raid0",
            Profile::Raid1 => "raid1",
            Profile::Raid1c3 => "raid1c3",
            Profile::Raid1c4 => "raid1c4",
            Profile::Raid10 => "raid10",
            Profile::Raid5 => "raid5",
            Profile::Raid6 => "raid6",
        }
    }

    fn takes(self, stripes: usize) -> bool {
        match self {
            Profile::Single => stripes == 1,
            Profile::Dup | Profile::Raid1 => stripes == 2,
            Profile::Raid1c3 => stripes == 3,
            Profile::Raid1c4 => stripes == 4,
            Profile::Raid0 => stripes >= 1,
            Profile::Raid10 => stripes >= 2 && stripes.is_multiple_of(2),
            Profile::Raid5 => stripes >= 2,
            Profile::Raid6 => (3..=RAID6_STRIPES_MAX).contains(&stripes),
        }
    }

    /// True if consecutive units of data are on several stripes in turn.
    pub(crate) fn is_striped(self) -> bool {
        matches!(self, Profile::Raid0 | Profile::Raid10 | Profile::Raid5 | Profile::Raid6)
    }

    pub(crate) fn parities(self) -> usize {
        match self {
            Profile::Raid5 => 1,
            Profile::Raid6 => 2,
            _ => 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe {
    pub(crate) device: u64,
    pub(crate) uuid: Uuid,
    pub(crate) at: u64,
}

/// A range of logical addresses and its stripes.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) kind: u64,
    pub(crate) profile: Profile,
    pub(crate) stripes: Box<[Stripe]>,
}

/// Position of a byte in a chunk: stripe, offset in it, and number of contiguous bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) stripe: usize,
    pub(crate) offset: u64,
    pub(crate) room: u64,
}

fn stripe_of(raw: RawStripe) -> Stripe {
    Stripe { device: raw.devid.get(), at: raw.offset.get(), uuid: Uuid(raw.dev_uuid) }
}

impl Chunk {
    pub(crate) fn read(bytes: &[u8], at: u64, sector_len: u32) -> Result<(Chunk, usize)> {
        let figure =
            |figure, found, allowed| Err(Error::from(Corruption::Chunk { at, figure, found, allowed }));
        let Some(raw) = structure::<ChunkHead>(bytes, 0) else {
            return figure("bytes", bytes.len() as u64, "48 and more");
        };
        let len = raw.length.get();
        let stripe_len = raw.stripe_len.get();
        let kind = raw.chunk_type.get();
        let (count, sub) = (usize::from(raw.num_stripes.get()), raw.sub_stripes.get());
        if len == 0 || !len.is_multiple_of(sector_len.into()) || len > CHUNK_LEN_MAX {
            return figure("length", len, "multiples of the sector size up to 2^48");
        }
        if !at.is_multiple_of(sector_len.into())
            || at.checked_add(len).is_none_or(|end| end > i64::MAX as u64)
        {
            return figure("address", at, "multiples of the sector size below 2^63");
        }
        if stripe_len != STRIPE_LEN {
            return figure("stripe length", stripe_len, "65536");
        }
        let profile = Profile::of(kind).filter(|_| kind & (DATA | SYSTEM | METADATA) != 0);
        let Some(profile) = profile else {
            return figure("type", kind, "data, metadata, or system, and one profile");
        };
        if !profile.takes(count) {
            return figure("number of stripes", count as u64, "those of its profile");
        }
        if profile == Profile::Raid10 && sub != 2 {
            return figure("number of copies", sub.into(), "2");
        }
        let end = count.times(STRIPE_ITEM_LEN).plus(HEAD_LEN);
        let Some(items) = bytes.get(HEAD_LEN..end) else {
            return figure("bytes", bytes.len() as u64, "those of its stripes");
        };
        let stripes = structures(items).map(stripe_of).collect();
        Ok((Chunk { at, len, kind, profile, stripes }, end))
    }

    /// Returns the chunk of a restored dump, which maps all logical addresses to equal offsets of
    /// the device. Its stored length is -1.
    pub(crate) fn whole(bytes: &[u8]) -> Option<Chunk> {
        let stripe = stripe_of(structure(bytes, HEAD_LEN)?);
        let stripes = Box::new([Stripe { at: 0, ..stripe }]);
        let kind = DATA | SYSTEM | METADATA;
        Some(Chunk { at: 0, len: CHUNK_LEN_MAX, kind, profile: Profile::Single, stripes })
    }

    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.at, self.len)
    }

    /// Number of stripes with data in a row.
    pub(crate) fn width(&self) -> u64 {
        let count = self.stripes.len();
        let width = match self.profile {
            Profile::Raid0 => count,
            Profile::Raid10 => count / 2,
            Profile::Raid5 | Profile::Raid6 => count.minus(self.profile.parities()),
            _ => 1,
        };
        width.max(1) as u64
    }

    /// Number of ways to read a byte: copies, or with parities each way to compute it.
    pub(crate) fn copies(&self) -> usize {
        match self.profile {
            Profile::Single | Profile::Raid0 => 1,
            Profile::Dup | Profile::Raid1 | Profile::Raid1c3 | Profile::Raid1c4 => self.stripes.len(),
            Profile::Raid10 | Profile::Raid5 => 2,
            // The column itself, from P, and once for each other stripe that may be wrong, too.
            Profile::Raid6 => self.stripes.len(),
        }
    }

    pub(crate) fn spot(&self, offset: u64, copy: usize) -> Spot {
        let (number, rest) = (offset / STRIPE_LEN, offset % STRIPE_LEN);
        let width = self.width();
        let row = number.quotient(width);
        let column = number.remainder(width);
        let left = self.len.minus(offset);
        let in_row = |stripe: u64| Spot {
            stripe: usize::try_from(stripe).unwrap_or(usize::MAX),
            offset: row.times(STRIPE_LEN).plus(rest),
            room: STRIPE_LEN.minus(rest).min(left),
        };
        match self.profile {
            Profile::Single => Spot { stripe: 0, offset, room: left },
            Profile::Dup | Profile::Raid1 | Profile::Raid1c3 | Profile::Raid1c4 => {
                Spot { stripe: copy, offset, room: left }
            }
            Profile::Raid0 => in_row(column),
            Profile::Raid10 => in_row(column.times(2).plus(copy as u64)),
            Profile::Raid5 | Profile::Raid6 => in_row(self.stripe_in_row(row, column)),
        }
    }

    /// Returns the stripe of a column in a row. Columns rotate; those after the data are P and Q.
    pub(crate) fn stripe_in_row(&self, row: u64, column: u64) -> u64 {
        column.wrapping_add(row).remainder(self.stripes.len() as u64)
    }

    pub(crate) fn stripe_len(&self) -> u64 {
        self.len.quotient(self.width())
    }

    pub(crate) fn contents(&self) -> &'static str {
        match (self.kind & DATA != 0, self.kind & METADATA != 0) {
            (true, true) => "data and metadata",
            (true, false) => "data",
            (false, true) => "metadata",
            (false, false) => "system",
        }
    }
}

/// Sorted by address, without overlaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks(Vec<Chunk>);

impl Chunks {
    pub(crate) fn new(mut chunks: Vec<Chunk>) -> Result<Chunks> {
        chunks.sort_by_key(|chunk| chunk.at);
        for pair in chunks.windows(2) {
            if let [before, chunk] = pair
                && before.range().end > chunk.at
            {
                return Err(Corruption::ChunkOverlap { at: chunk.at, before: before.at }.into());
            }
        }
        Ok(Chunks(chunks))
    }

    pub(crate) fn of(&self, at: u64) -> Result<&Chunk> {
        let after = self.0.partition_point(|chunk| chunk.at <= at);
        let chunk = after.checked_sub(1).and_then(|index| self.0.get(index));
        chunk.filter(|chunk| at < chunk.range().end).ok_or_else(|| Corruption::Unmapped { at }.into())
    }

    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |chunk| chunk.range().end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.0.iter()
    }
}
