//! Owners of the bytes of the opened device.

use crate::bytes::Fields;
use crate::chunks::{Chunk, Profile};
use crate::disk::{COPIES_AT, STRIPE_LEN, SUPER_AT, SUPER_LEN, kind, tree};
use crate::volume::BtrfsVolume;
use packfs_core::{Result, range_at};
use packfs_format::{SpaceOwner, space_owners};
use std::ops::Range;

/// Claims that are kept apart, at most; further ones are joined with what lies between.
const CLAIMS_MAX: usize = 4 << 20;

/// Claims of one device, those that adjoin joined.
#[derive(Default)]
struct Claims(Vec<(Range<u64>, &'static str)>);

impl Claims {
    fn add(&mut self, range: Range<u64>, owner: &'static str) {
        let is_full = self.0.len() >= CLAIMS_MAX;
        match self.0.last_mut() {
            Some((last, own))
                if *own == owner && (last.end == range.start || is_full && last.end < range.start) =>
            {
                last.end = range.end;
            }
            _ => self.0.push((range, owner)),
        }
    }
}

impl BtrfsVolume {
    /// Implements [`packfs_format::Volume::space`].
    pub(crate) fn owners(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = Claims::default();
        claims.add(range_at(SUPER_AT, SUPER_LEN as u64), "superblock");
        for at in COPIES_AT.into_iter().filter(|at| *at < self.opened_device_len()) {
            claims.add(range_at(at, SUPER_LEN as u64), "superblock");
        }
        let extents = self.fs.root(tree::EXTENT)?;
        let node_len = u64::from(self.fs.store.super_block().node_len);
        for item in extents.tree.all(&self.fs.store) {
            let item = item?;
            let (len, owner) = match item.key.kind {
                kind::METADATA_ITEM => (node_len, "metadata"),
                kind::EXTENT_ITEM if Fields(item.bytes()).u64(0x10) & DATA_EXTENT != 0 => {
                    (item.key.offset, "file data")
                }
                kind::EXTENT_ITEM => (item.key.offset, "metadata"),
                _ => continue,
            };
            self.claim(item.key.object, len, owner, &mut claims);
        }
        claims.0.sort_by_key(|(range, _)| range.start);
        let end = self.opened_device_len();
        if end < self.image.len() {
            claims.add(end..self.image.len(), "behind the filesystem");
        }
        Ok(space_owners(claims.0, self.image.len()))
    }

    /// Claims the places of logical addresses on the opened device.
    fn claim(&self, at: u64, len: u64, owner: &'static str, claims: &mut Claims) {
        let mut done = 0;
        while done < len {
            let part_at = at.saturating_add(done);
            let Ok(chunk) = self.fs.store.chunks.of(part_at) else { return };
            let offset = part_at.saturating_sub(chunk.at);
            let spot = chunk.spot(offset, 0);
            let room = spot.room.min(len.saturating_sub(done));
            for copy in 0..copies_on_disk(chunk) {
                let spot = chunk.spot(offset, copy);
                self.claim_spot(chunk, spot.stripe, range_at(spot.offset, room), owner, claims);
            }
            if chunk.profile.parities() > 0 {
                self.claim_parities(chunk, offset, room, owner, claims);
            }
            done = done.saturating_add(room.max(1));
        }
    }

    fn claim_parities(
        &self,
        chunk: &Chunk,
        offset: u64,
        room: u64,
        owner: &'static str,
        claims: &mut Claims,
    ) {
        let row = (offset / STRIPE_LEN).checked_div(chunk.width()).unwrap_or(0);
        let start = row.saturating_mul(STRIPE_LEN).saturating_add(offset % STRIPE_LEN);
        let parity = if owner == "metadata" { "metadata" } else { "parity" };
        for index in 0..chunk.profile.parities() as u64 {
            let stripe = chunk.stripe_in_row(row, chunk.width().saturating_add(index));
            let stripe = usize::try_from(stripe).unwrap_or(usize::MAX);
            self.claim_spot(chunk, stripe, range_at(start, room), parity, claims);
        }
    }

    fn claim_spot(
        &self,
        chunk: &Chunk,
        stripe: usize,
        range: Range<u64>,
        owner: &'static str,
        claims: &mut Claims,
    ) {
        let Some(stripe) = chunk.stripes.get(stripe) else { return };
        if self.fs.store.devices.is_opened(stripe.device, stripe.uuid) {
            let place = |at: u64| stripe.at.saturating_add(at);
            claims.add(place(range.start)..place(range.end), owner);
        }
    }
}

/// Flag of an extent of file data.
const DATA_EXTENT: u64 = 1;

/// Returns the number of copies that are stored.
fn copies_on_disk(chunk: &Chunk) -> usize {
    match chunk.profile {
        Profile::Raid5 | Profile::Raid6 => 1,
        _ => chunk.copies(),
    }
}
