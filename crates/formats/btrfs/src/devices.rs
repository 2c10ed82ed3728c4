//! The devices of a filesystem, identified by their superblocks, and reads of copies from them.

use crate::chunks::{Chunk, Stripe};
use crate::corruption::Corruption;
use crate::disk::STRIPE_LEN;
use crate::key::Uuid;
use crate::parity::Syndromes;
use crate::super_block::SuperBlock;
use packfs_core::{Error, Image, Result, usize_of};
use packfs_format::{BlockCache, Opening, units::*};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

struct Device {
    super_block: SuperBlock,
    image: Arc<dyn Image>,
}

/// Bytes of a row that are kept while its columns are computed in one way after the other.
const ROWS_LEN: usize = 1 << 20;

struct ComputedRow {
    wanted: usize,
    sums: Syndromes,
    /// Error of a column that cannot be read.
    failed: Option<Error>,
}

pub(crate) struct Devices {
    devices: Vec<Device>,
    /// Index of the device whose superblock describes the filesystem.
    first: usize,
    rows: BlockCache<ComputedRow>,
    /// Number of damaged copies that were read and replaced by others.
    pub(crate) healed: AtomicU64,
    /// Number of symbolic links whose target a dump of metadata does not contain.
    pub(crate) blanked: AtomicU64,
    /// Devices that the filesystem lists; `None` until the tree of chunks is read.
    pub(crate) listed: Option<HashSet<(u64, Uuid)>>,
    pub(crate) warnings: Vec<String>,
}

impl Devices {
    /// Reads the superblocks of the image and its further devices.
    ///
    /// Errors: `Usage` for a device that is given twice or belongs to another filesystem.
    pub(crate) fn new(image: Arc<dyn Image>, opening: &Opening) -> Result<Devices> {
        let super_block = SuperBlock::read(&*image)?;
        let mut devices = vec![Device { super_block, image }];
        for image in &opening.devices {
            let super_block = SuperBlock::read(&**image).map_err(|error| error.at(image.name()))?;
            devices.push(Device { super_block, image: Arc::clone(image) });
        }
        let mut all = Devices {
            devices,
            first: 0,
            rows: BlockCache::new(ROWS_LEN),
            healed: AtomicU64::new(0),
            blanked: AtomicU64::new(0),
            listed: None,
            warnings: Vec::new(),
        };
        all.choose_first();
        all.refuse_strangers()?;
        all.remark();
        Ok(all)
    }

    /// Chooses the newest superblock, but that of a seed only if no other is given.
    fn choose_first(&mut self) {
        let rank = |device: &Device| {
            let block = &device.super_block;
            (!block.is_seed(), block.generation, block.at == crate::disk::SUPER_AT)
        };
        let best = self.devices.iter().map(rank).max();
        self.first = self.devices.iter().position(|device| Some(rank(device)) == best).unwrap_or(0);
    }

    fn refuse_strangers(&self) -> Result<()> {
        for (index, device) in self.devices.iter().enumerate() {
            let block = &device.super_block;
            let earlier = self.devices.iter().take(index);
            for other in earlier.map(|other| &other.super_block) {
                if (other.fsid, other.device.id, other.device.uuid)
                    == (block.fsid, block.device.id, block.device.uuid)
                {
                    let message = format!("{} is device {} again", device.image.name(), block.device.id);
                    return Err(Error::usage(message));
                }
            }
            if block.fsid != self.super_block().fsid && !block.is_seed() {
                let (name, fsid) = (device.image.name(), block.fsid);
                let message = format!("{name} belongs to the filesystem {fsid}");
                return Err(
                    Error::usage(message).hint(format!("the image is of {}", self.super_block().fsid))
                );
            }
        }
        Ok(())
    }

    fn remark(&mut self) {
        let newest = self.super_block().generation;
        for device in &self.devices {
            let block = &device.super_block;
            if block.at != crate::disk::SUPER_AT {
                self.warnings.push(format!(
                    "{}: the superblock is damaged; its copy at {:#x} is used",
                    device.image.name(),
                    block.at
                ));
            }
            if block.generation < newest && !block.is_seed() {
                self.warnings.push(format!(
                    "{}: device {} is of generation {}, the newest of {newest}; it may hold old data",
                    device.image.name(),
                    block.device.id,
                    block.generation
                ));
            }
        }
        if self.super_block().is_dump() {
            self.warnings.push("a restored dump of metadata (btrfs-image): file data are not in it".into());
        }
        if self.super_block().is_changing() {
            self.warnings
                .push("a conversion of the filesystem was interrupted; some files may be unreadable".into());
        }
    }

    pub(crate) fn super_block(&self) -> &SuperBlock {
        match self.devices.get(self.first).or(self.devices.first()) {
            Some(device) => &device.super_block,
            None => unreachable!("an image was opened"),
        }
    }

    /// Returns the UUIDs that tree blocks may carry.
    pub(crate) fn uuids(&self) -> Vec<Uuid> {
        let mut uuids: Vec<Uuid> =
            self.devices.iter().map(|device| device.super_block.metadata_uuid).collect();
        uuids.dedup();
        uuids
    }

    pub(crate) fn has(&self, id: u64, uuid: Uuid) -> bool {
        self.get(id, uuid).is_some()
    }

    /// True if a device is the opened image itself.
    pub(crate) fn is_opened(&self, id: u64, uuid: Uuid) -> bool {
        let opened = self.devices.first().map(|device| &device.super_block.device);
        opened.is_some_and(|opened| (opened.id, opened.uuid) == (id, uuid))
    }

    fn get(&self, id: u64, uuid: Uuid) -> Option<&Device> {
        let is_it = |device: &&Device| {
            let item = &device.super_block.device;
            (item.id, item.uuid) == (id, uuid)
        };
        self.devices.iter().find(is_it)
    }

    /// `offset` counts on the device; `at` is the logical address for messages.
    pub(crate) fn read(&self, stripe: &Stripe, offset: u64, at: u64, buf: &mut [u8]) -> Result<()> {
        let Some(device) = self.get(stripe.device, stripe.uuid) else {
            if self.listed.as_ref().is_some_and(|all| !all.contains(&(stripe.device, stripe.uuid))) {
                return Err(Corruption::NoDevice { at, device: stripe.device }.into());
            }
            let message =
                format!("logical address {at:#x} is on device {}, which is not given", stripe.device);
            return Err(Error::failed(message).hint("--device FILE adds a device"));
        };
        let end = end_of(offset, buf.len() as u64);
        if end > device.image.len() {
            let end = device.image.len();
            return Err(Corruption::Beyond { at, device: stripe.device, end }.into());
        }
        device.image.read_exact_at(offset, buf)
    }

    /// Returns the copies of a chunk in reading order: those on devices that missed the last commit
    /// come last.
    pub(crate) fn order(&self, chunk: &Chunk, at: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..chunk.copies()).collect();
        if order.len() > 1 && self.devices.iter().any(|device| self.is_outdated(device)) {
            order.sort_by_key(|copy| self.is_outdated_copy(chunk, at, *copy));
        }
        order
    }

    fn is_outdated(&self, device: &Device) -> bool {
        let block = &device.super_block;
        block.generation < self.super_block().generation && !block.is_seed()
    }

    fn is_outdated_copy(&self, chunk: &Chunk, at: u64, copy: usize) -> bool {
        if chunk.profile.parities() > 0 && copy > 0 {
            return false;
        }
        let spot = chunk.spot(at.minus(chunk.at), copy);
        let stripe = chunk.stripes.get(spot.stripe);
        let device = stripe.and_then(|stripe| self.get(stripe.device, stripe.uuid));
        device.is_some_and(|device| self.is_outdated(device))
    }

    /// Reads one copy of bytes that are contiguous in the chunk.
    pub(crate) fn read_copy(&self, chunk: &Chunk, at: u64, copy: usize, buf: &mut [u8]) -> Result<()> {
        let offset = at.minus(chunk.at);
        if chunk.profile.parities() > 0 && copy > 0 {
            let column = self.computed(chunk, at, copy, buf.len())?;
            buf.copy_from_slice(column.within(..buf.len()));
            return Ok(());
        }
        let spot = chunk.spot(offset, copy);
        let stripe = chunk.stripes.get(spot.stripe).ok_or(Corruption::Unmapped { at })?;
        self.read(stripe, end_of(stripe.at, spot.offset), at, buf)
    }

    /// Computes a column from the other columns of its row and the parities.
    fn computed(&self, chunk: &Chunk, at: u64, copy: usize, len: usize) -> Result<Vec<u8>> {
        let row = self.rows.get_or_if(
            at,
            |row| row.sums.len() == len,
            || Ok((self.row(chunk, at, len), len.times(2))),
        )?;
        // For RAID 6, each computation after the first assumes that one more column is wrong.
        let distrusted = copy.checked_sub(2);
        let distrusted = distrusted.map(|index| if index >= row.wanted { index.plus(1) } else { index });
        let failed = || row.failed.clone();
        let column = row.sums.column(distrusted);
        column.ok_or_else(|| failed().unwrap_or_else(|| Corruption::DataSum { at, copies: copy }.into()))
    }

    fn row(&self, chunk: &Chunk, at: u64, len: usize) -> ComputedRow {
        let offset = at.minus(chunk.at);
        let (number, width) = (offset / STRIPE_LEN, chunk.width());
        let row = number.quotient(width);
        let wanted = number.remainder(width);
        let in_stripe = row.times(STRIPE_LEN).plus(offset % STRIPE_LEN);
        let (mut failed, mut bytes) = (None, vec![0; len]);
        let mut column = |column: u64| {
            let stripe = chunk.stripes.get(usize_of(chunk.stripe_in_row(row, column)));
            let stripe = stripe.filter(|_| column != wanted)?;
            match self.read(stripe, end_of(stripe.at, in_stripe), at, &mut bytes) {
                Ok(()) => Some(bytes.clone()),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        };
        let mut sums = Syndromes::new(usize_of(wanted), usize_of(width), len);
        for index in (0..width).rev() {
            sums.add_column(usize_of(index), column(index).as_deref());
        }
        if let Some(p) = column(width) {
            sums.add_p(&p);
        }
        if let Some(q) = column(width.plus(1)).filter(|_| chunk.profile.parities() > 1) {
            sums.add_q(&q);
        }
        ComputedRow { wanted: usize_of(wanted), sums, failed }
    }
}
