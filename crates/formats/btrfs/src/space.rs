//! Owners of the bytes of the opened device.

use crate::chunks::Chunk;
use crate::disk::{COPIES_AT, ExtentItem, STRIPE_LEN, SUPER_AT, SUPER_LEN, kind, tree};
use crate::volume::BtrfsVolume;
use packfs_core::{Result, range_at};
use packfs_format::{Claims, Space, SpaceOwner, units::*};
use std::ops::Range;

/// Limit of units of 64 KiB that are claimed one by one; further ones are claimed by whole rows.
const UNITS_MAX: u64 = 1 << 22;

struct Claiming {
    claims: Claims,
    units: u64,
}

impl BtrfsVolume {
    /// Claims the bytes of the opened device that a range of logical addresses is mapped to.
    fn claim(&self, range: Range<u64>, owner: &'static str, claiming: &mut Claiming) {
        let mut at = range.start;
        while at < range.end {
            let Ok(chunk) = self.fs.store.chunks.of(at) else { return };
            let end = chunk.range().end.min(range.end);
            let part = at.minus(chunk.at)..end.minus(chunk.at);
            self.claim_in_chunk(chunk, part, owner, claiming);
            at = end;
        }
    }

    fn claim_in_chunk(&self, chunk: &Chunk, part: Range<u64>, owner: &'static str, claiming: &mut Claiming) {
        if !chunk.profile.is_striped() {
            for copy in 0..chunk.copies() {
                self.claim_spot(chunk, copy, part.clone(), owner, claiming);
            }
            return;
        }
        let row_len = chunk.width().times(STRIPE_LEN);
        let row = |at: u64| at.quotient(row_len);
        let whole = row(part.start.plus(row_len.minus(1)))..row(part.end);
        let is_whole = chunk.profile.parities() == 0 && !whole.is_empty();
        if claiming.units == 0 {
            let all = row(part.start)..row(part.end.plus(row_len.minus(1)));
            self.claim_rows(chunk, all, owner, claiming);
        } else if is_whole {
            self.claim_units(chunk, part.start..whole.start.times(row_len), owner, claiming);
            self.claim_rows(chunk, whole.clone(), owner, claiming);
            self.claim_units(chunk, whole.end.times(row_len)..part.end, owner, claiming);
        } else {
            self.claim_units(chunk, part, owner, claiming);
        }
    }

    fn claim_rows(&self, chunk: &Chunk, rows: Range<u64>, owner: &'static str, claiming: &mut Claiming) {
        claiming.units = left(claiming.units, chunk.stripes.len() as u64);
        let range = rows.start.times(STRIPE_LEN)..rows.end.times(STRIPE_LEN);
        for stripe in 0..chunk.stripes.len() {
            self.claim_spot(chunk, stripe, range.clone(), owner, claiming);
        }
    }

    fn claim_units(&self, chunk: &Chunk, part: Range<u64>, owner: &'static str, claiming: &mut Claiming) {
        let mut at = part.start;
        while at < part.end {
            if claiming.units == 0 {
                return self.claim_in_chunk(chunk, at..part.end, owner, claiming);
            }
            claiming.units = claiming.units.minus(1);
            let room = chunk.spot(at, 0).room.min(part.end.minus(at)).max(1);
            let copies = if chunk.profile.parities() > 0 { 1 } else { chunk.copies() };
            for copy in 0..copies {
                let spot = chunk.spot(at, copy);
                self.claim_spot(chunk, spot.stripe, range_at(spot.offset, room), owner, claiming);
            }
            if chunk.profile.parities() > 0 {
                self.claim_parities(chunk, at, room, owner, claiming);
            }
            at = at.plus(room);
        }
    }

    fn claim_parities(
        &self,
        chunk: &Chunk,
        offset: u64,
        room: u64,
        owner: &'static str,
        claiming: &mut Claiming,
    ) {
        let row = (offset / STRIPE_LEN).quotient(chunk.width());
        let start = row.times(STRIPE_LEN).plus(offset % STRIPE_LEN);
        let parity = if owner == "metadata" { "metadata" } else { "parity" };
        for index in 0..chunk.profile.parities() as u64 {
            let stripe = chunk.stripe_in_row(row, chunk.width().plus(index));
            let stripe = usize::try_from(stripe).unwrap_or(usize::MAX);
            self.claim_spot(chunk, stripe, range_at(start, room), parity, claiming);
        }
    }

    fn claim_spot(
        &self,
        chunk: &Chunk,
        stripe: usize,
        range: Range<u64>,
        owner: &'static str,
        claiming: &mut Claiming,
    ) {
        let Some(stripe) = chunk.stripes.get(stripe) else { return };
        if self.fs.store.devices.is_opened(stripe.device, stripe.uuid) {
            let place = |at: u64| end_of(stripe.at, at);
            claiming.claims.add(place(range.start)..place(range.end), owner);
        }
    }
}

impl Space for BtrfsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut claiming = Claiming { claims: Claims::new(), units: UNITS_MAX };
        claiming.claims.add(range_at(SUPER_AT, SUPER_LEN as u64), "superblock");
        let end = self.opened_device_len();
        for at in COPIES_AT.into_iter().filter(|at| *at < end) {
            claiming.claims.add(range_at(at, SUPER_LEN as u64), "superblock");
        }
        let extents = self.fs.root(tree::EXTENT)?;
        let node_len = u64::from(self.fs.store.super_block().node_len);
        let mut done = 0;
        for item in extents.tree.all(&self.fs.store) {
            let item = item?;
            let (len, owner) = match item.key.kind {
                kind::METADATA_ITEM => (node_len, "metadata"),
                kind::EXTENT_ITEM if item.head::<ExtentItem>()?.flags.get() & DATA_EXTENT != 0 => {
                    (item.key.offset, "file data")
                }
                kind::EXTENT_ITEM => (item.key.offset, "metadata"),
                _ => continue,
            };
            // `check` reports overlapping extents.
            let extent = range_at(item.key.object, len);
            self.claim(extent.start.max(done)..extent.end, owner, &mut claiming);
            done = done.max(extent.end);
        }
        claiming.claims.add(end.min(self.image.len())..self.image.len(), "behind the filesystem");
        Ok(claiming.claims.owners(self.image.len()))
    }
}

/// `BTRFS_EXTENT_FLAG_DATA`.
const DATA_EXTENT: u64 = 1;
