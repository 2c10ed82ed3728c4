//! Opening: superblock, devices, log, and warnings.

use crate::corruption::Corruption;
use crate::features;
use crate::log::{Log, LogState, Replayed, Rest};
use crate::realtime::Realtime;
use crate::super_block::SuperBlock;
use crate::volume::XfsVolume;
use packfs_core::{Error, Image, JoinedImage, Result};
use packfs_format::{BlockCache, NameIndex, Opening, units::*};
use std::sync::Arc;

/// Memory of the caches of inode clusters, and of other metadata.
const CLUSTERS_BYTES: usize = 16 << 20;
const BLOCKS_BYTES: usize = 32 << 20;
/// Memory of the cache of errors of directories.
const DAMAGE_BYTES: usize = 64 << 10;
const NOT_REPLAYED: &str = "the log was not replayed: recent changes may be missing or half done";
const ELSEWHERE: &str =
    "the log is on another device: changes that it may hold were not replayed; --device FILE names it";
const NO_RECORDS: &str = "the log is zeros, though mkfs.xfs writes a record: changes may be missing";

pub(crate) fn open(image: Arc<dyn Image>, opening: Opening) -> Result<XfsVolume> {
    let super_block = SuperBlock::read(&*image)?;
    let devices = Devices::find(&super_block, &opening)?;
    let mut warnings = Vec::new();
    let Replay { state: log, replayed, fault: log_fault } =
        replay(&image, &super_block, &devices, &opening, &mut warnings)?;
    let (super_block, changed) = match &replayed {
        Some(replayed) => (SuperBlock::read(&*replayed.image)?, Arc::clone(&replayed.image)),
        None => (super_block, Arc::clone(&image)),
    };
    if super_block.has(features::NEEDSREPAIR) {
        warnings.push("the filesystem needs repair (needsrepair), and Linux refuses to mount it".into());
    }
    if super_block.len() > image.len() {
        let (len, found) = (super_block.len(), image.len());
        warnings.push(format!("the filesystem has {len} bytes, the image {found}: its end is missing"));
    }
    let mut start = super_block.rt_start.checked_mul(super_block.block_len).filter(|start| *start != 0);
    let data_image = match devices.realtime {
        Some(second) => {
            let joined = JoinedImage::new([Arc::clone(&changed), second])?;
            start = start.or(joined.start_of(1));
            Some(Arc::new(joined) as _)
        }
        None => replayed.as_ref().map(|_| Arc::clone(&changed)),
    };
    let (notes, intents, left_out) = match replayed {
        Some(replayed) => (replayed.notes, replayed.intents, replayed.intents_left_out),
        None => Default::default(),
    };
    let mut volume = XfsVolume {
        realtime: Realtime::new(&super_block, start),
        data_image,
        image: changed,
        super_block,
        clusters: BlockCache::new(CLUSTERS_BYTES),
        blocks: BlockCache::new(BLOCKS_BYTES),
        names: NameIndex::new(),
        damage: BlockCache::new(DAMAGE_BYTES),
        warnings,
        log,
        log_fault,
        notes,
        patches: Default::default(),
    };
    volume.dir(packfs_format::InodeId(volume.super_block.root))?;
    volume.finish_intents(&intents, left_out);
    Ok(volume)
}

struct Replay {
    state: LogState,
    replayed: Option<Replayed>,
    fault: Option<Corruption>,
}

fn replay(
    image: &Arc<dyn Image>,
    super_block: &SuperBlock,
    devices: &Devices,
    opening: &Opening,
    warnings: &mut Vec<String>,
) -> Result<Replay> {
    let unread = |state| Replay { state, replayed: None, fault: None };
    let log = match Log::find(image, devices.log.as_ref(), super_block) {
        Ok(Some(log)) if opening.no_journal => {
            warnings.extend((log.state() == LogState::Dirty).then(|| NOT_REPLAYED.into()));
            return Ok(unread(log.state()));
        }
        Ok(Some(log)) => log,
        Ok(None) if opening.no_journal => {
            warnings.push(NOT_REPLAYED.into());
            return Ok(unread(LogState::External));
        }
        Ok(None) => {
            warnings.push(ELSEWHERE.into());
            return Ok(Replay { fault: Some(Corruption::LogElsewhere), ..unread(LogState::External) });
        }
        Err(error) if opening.no_journal => {
            warnings.push(format!("{NOT_REPLAYED}: {error}"));
            return Ok(unread(LogState::Dirty));
        }
        Err(error) => return Err(error),
    };
    let (state, replayed) = (log.state(), log.replay(image, super_block)?);
    warnings.extend(replayed.iter().flat_map(Replayed::warnings));
    warnings.extend(log.rest.and_then(Rest::warning));
    warnings.extend(log.is_empty.then(|| NO_RECORDS.into()));
    Ok(Replay { state, replayed, fault: log.rest.and_then(Rest::damage) })
}

/// Further devices of a filesystem.
#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) realtime: Option<Arc<dyn Image>>,
    pub(crate) log: Option<Arc<dyn Image>>,
}

impl Devices {
    /// Identifies the given devices: a log contains records of the filesystem.
    ///
    /// Errors: `Usage` if more are given than the filesystem has.
    fn find(super_block: &SuperBlock, opening: &Opening) -> Result<Devices> {
        let needs_realtime = super_block.rt_blocks > 0 && super_block.rt_start == 0;
        let needs_log = super_block.log_start == 0;
        let mut devices = Devices::default();
        for device in &opening.devices {
            let is_log = needs_log && (!needs_realtime || crate::log::is_log_of(&**device, super_block)?);
            let place = if is_log {
                &mut devices.log
            } else if needs_realtime {
                &mut devices.realtime
            } else {
                &mut None
            };
            let is_wanted = needs_log || needs_realtime;
            if !is_wanted || place.replace(Arc::clone(device)).is_some() {
                let wanted = u64::from(needs_log).plus(needs_realtime.into());
                let given = opening.devices.len();
                return Err(Error::usage(format!(
                    "{given} further devices are given, but the image has {wanted}"
                )));
            }
        }
        Ok(devices)
    }
}
