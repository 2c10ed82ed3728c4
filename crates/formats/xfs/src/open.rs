//! Opening: superblock, devices, and what has to be told of them.

use crate::features;
use crate::log::LogState;
use crate::realtime::{JoinedImage, Realtime};
use crate::super_block::SuperBlock;
use crate::volume::XfsVolume;
use packfs_core::{Error, Image, Result};
use packfs_format::{BlockCache, NameIndex, Opening};
use std::sync::Arc;

/// Bytes of clusters of inodes, and of other metadata, that are kept.
const CLUSTERS_BYTES: usize = 16 << 20;
const BLOCKS_BYTES: usize = 32 << 20;

/// Opens an image.
pub(crate) fn open(image: Arc<dyn Image>, opening: Opening) -> Result<XfsVolume> {
    let super_block = SuperBlock::read(&*image)?;
    let mut warnings = Vec::new();
    if super_block.has(features::NEEDSREPAIR) {
        warnings.push("the filesystem needs repair (needsrepair), and Linux refuses to mount it".into());
    }
    if super_block.len() > image.len() {
        let (len, found) = (super_block.len(), image.len());
        warnings.push(format!("the filesystem has {len} bytes, the image {found}: its end is missing"));
    }
    let log = LogState::of(&*image, &super_block)?;
    warnings.extend(log.warning().filter(|_| !opening.no_journal).map(str::to_owned));
    let devices = Devices::find(&super_block, &opening)?;
    let start = match super_block.rt_start {
        0 => devices.realtime.as_ref().map(|_| image.len()),
        start => start.checked_mul(super_block.block_len),
    };
    let data_image: Option<Arc<dyn Image>> =
        devices.realtime.map(|second| Arc::new(JoinedImage::new(Arc::clone(&image), second)) as _);
    let volume = XfsVolume {
        realtime: Realtime::new(&super_block, start),
        data_image,
        image,
        super_block,
        clusters: BlockCache::new(CLUSTERS_BYTES),
        blocks: BlockCache::new(BLOCKS_BYTES),
        names: NameIndex::new(),
        warnings,
        log,
    };
    volume.dir(packfs_format::InodeId(volume.super_block.root))?;
    Ok(volume)
}

/// Further devices of a filesystem.
#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) realtime: Option<Arc<dyn Image>>,
    pub(crate) log: Option<Arc<dyn Image>>,
}

impl Devices {
    /// Tells the devices that were given apart: a log begins with a record of it.
    ///
    /// Errors: `Usage` if there are more than the filesystem has.
    fn find(super_block: &SuperBlock, opening: &Opening) -> Result<Devices> {
        let needs_realtime = super_block.rt_blocks > 0 && super_block.rt_start == 0;
        let needs_log = super_block.log_start == 0;
        let mut devices = Devices::default();
        for device in &opening.devices {
            let mut magic = [0; 4];
            let is_log = device.read_at(0, &mut magic)? == 4 && magic == LOG_MAGIC;
            let place = match needs_log && (is_log || !needs_realtime) {
                true => &mut devices.log,
                false if needs_realtime => &mut devices.realtime,
                false => &mut None,
            };
            let is_wanted = needs_log || needs_realtime;
            if !is_wanted || place.replace(Arc::clone(device)).is_some() {
                let wanted = u64::from(needs_log).saturating_add(needs_realtime.into());
                let given = opening.devices.len();
                return Err(Error::usage(format!(
                    "{given} further devices are given, but the image has {wanted}"
                )));
            }
        }
        Ok(devices)
    }
}

/// First bytes of a log that was used.
const LOG_MAGIC: [u8; 4] = 0xfeed_babe_u32.to_be_bytes();
