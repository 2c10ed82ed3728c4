//! Settings of an image that contains the clusters of others.
//!
//! Kernels size their decoders by the settings after the superblock: dictionaries and windows are
//! the longest of any image. Clusters have a recipe for each pair of algorithms, so that the recipe
//! of a file follows from its image.

use super::ErofsPacker;
use crate::codec::{self, ALGORITHMS};
use crate::disk;
use crate::kernel::{self, Version};
use crate::options::Options;
use crate::reader::Reader;
use packfs_codec::{
    Algorithm, CodecSettings, DeflateSettings, Lz4Settings, LzmaFraming, LzmaSettings, ZstdSettings,
};
use packfs_core::{Error, Image, Result};
use packfs_format::{AnyStored, ClusterRecipe, Merging, PackFormat, PackSettings, Recipe, Volume, units::*};
use std::any::Any;

/// Limit of devices: their number has 16 bits.
const DEVICES_MAX: usize = u16::MAX as usize;

pub(crate) fn merger(merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
    let readers = merging.volumes.iter().map(|volume| of_this_format(*volume)).collect::<Result<Vec<_>>>()?;
    let Some(first) = readers.first() else { return Err(Error::usage("there is no image to merge")) };
    readers.iter().try_for_each(|reader| check_same(first, reader))?;
    if merging.data_files.len() > DEVICES_MAX {
        let what = format!("{} devices, at most {DEVICES_MAX} allowed", merging.data_files.len());
        return Err(Error::unsupported("merge", what).hint("merge some of them first"));
    }
    let named = merging.kernel.as_deref().map(kernel::parse).transpose()?;
    let kernel = kernel_of(&readers, merging, named)?;
    let wide = kernel >= kernel::WIDE && is_wide(&readers, merging, named);
    let typed = [
        ("block", first.geometry.block_len().to_string()),
        ("kernel", format!("{}.{}", kernel.0, kernel.1)),
        ("48bit", if wide { "on" } else { "off" }.to_owned()),
        ("fragments", "off".to_owned()),
    ];
    let settings = PackSettings {
        codec: Some("none".into()),
        made_at: merging.made_at,
        options: typed
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .chain(merging.options.iter().cloned())
            .collect(),
        ..PackSettings::default()
    };
    let used: Vec<Algorithm> =
        (0..).zip(ALGORITHMS).filter(|(number, _)| uses(&readers, *number)).map(|row| row.1).collect();
    let options = Options {
        codec_name: if used.is_empty() {
            "none".to_owned()
        } else {
            used.iter().map(|algorithm| codec::name(*algorithm)).collect::<Vec<_>>().join("+")
        },
        // The union of names may need a newer kernel than each image alone.
        kernel: kernel::KERNELS[kernel::KERNELS.len() - 1].1,
        devices: merging.data_files.clone(),
        merged: Some(used.iter().map(|algorithm| settings_of(*algorithm, &readers)).collect()),
        is_flat: merging.is_flat,
        far_devices: named.is_some_and(|named| named >= kernel::FAR_DEVICES),
        ..Options::new(&settings)?
    };
    Ok(Box::new(ErofsPacker { options, merged: Some(recipes(&readers)) }))
}

/// Returns the oldest kernel that reads the new image.
///
/// Errors: `Usage` if an older one was given.
fn kernel_of(readers: &[&Reader], merging: &Merging<'_>, named: Option<Version>) -> Result<Version> {
    let needed = |reader: &&Reader| {
        let geometry = &reader.geometry;
        kernel::needed(geometry.incompat, geometry.algorithms, geometry.super_block.blkszbits)
    };
    let with_devices = match (merging.data_files.is_empty(), merging.is_flat) {
        (true, _) => kernel::CHUNKS,
        (false, true) => kernel::FLAT_DEVICES,
        (false, false) => kernel::DEVICES,
    };
    let Some(named) = named else {
        return Ok(readers.iter().map(needed).max().unwrap_or(kernel::KERNEL_DEFAULT).max(with_devices));
    };
    let newer = readers.iter().map(|reader| (Image::name(*reader), needed(reader)));
    let devices = (!merging.data_files.is_empty()).then(|| ("its device table".to_owned(), with_devices));
    match newer.chain(devices).find(|(_, needed)| *needed > named) {
        None => Ok(named.max(kernel::CHUNKS)),
        Some((name, needed)) => {
            let named = format!("{}.{}", named.0, named.1);
            let needed = format!("{}.{}", needed.0, needed.1);
            let error = Error::usage(format!("cannot merge for Linux {named}: {name} needs Linux {needed}"));
            Err(error.hint(format!("packfs repack makes images for {named}")))
        }
    }
}

/// True if the new image has 48-bit addresses: because an input has them, or because the given
/// kernel reads them and data may be that far.
fn is_wide(readers: &[&Reader], merging: &Merging<'_>, named: Option<Version>) -> bool {
    let has_wide = |reader: &&Reader| reader.geometry.has(disk::EROFS_FEATURE_INCOMPAT_48BIT);
    let near_len = readers.first().map_or(0, |reader| reader.geometry.block_len()) << 32;
    // Metadata is a small fraction of data.
    let is_far = merging.data_len.plus(merging.data_len / 8) >= near_len;
    readers.iter().any(has_wide) || named.is_some() && is_far
}

fn of_this_format(volume: &dyn Volume) -> Result<&Reader> {
    let found = match volume.stored() {
        Some(AnyStored::Clusters(stored)) => (stored as &dyn Any).downcast_ref::<Reader>(),
        _ => None,
    };
    found
        .ok_or_else(|| Error::unsupported("request", format!("cannot merge {} images", volume.format().name)))
}

/// Errors: `Usage` with both images and the difference.
fn check_same(one: &Reader, other: &Reader) -> Result<()> {
    let (wanted, found) = (one.geometry.block_len(), other.geometry.block_len());
    if wanted == found {
        return Ok(());
    }
    let (name, first) = (Image::name(other), Image::name(one));
    let message =
        format!("cannot merge {name} with {first}: it has blocks of {found} bytes, the other {wanted}");
    let hint = format!("packfs repack {name} NEW -O block={wanted} makes an image that can be merged");
    Err(Error::usage(message).hint(hint))
}

fn uses(readers: &[&Reader], number: u8) -> bool {
    let may = |reader: &&Reader| {
        let geometry = &reader.geometry;
        geometry.has(disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING) && geometry.algorithms >> number & 1 != 0
    };
    readers.iter().any(may)
}

/// Returns settings of an algorithm that decode clusters of all images.
fn settings_of(algorithm: Algorithm, readers: &[&Reader]) -> CodecSettings {
    let longest = |key: &str| {
        let words = readers.iter().flat_map(|reader| &reader.geometry.settings.words);
        words.filter_map(|words| words.split_once(key)?.1.split(' ').next()?.parse::<u32>().ok()).max()
    };
    match algorithm {
        Algorithm::MicroLzma => CodecSettings::Lzma(LzmaSettings {
            framing: LzmaFraming::Micro,
            preset: 6,
            extreme: false,
            dict_len: longest("dict_size=").unwrap_or(disk::LZMA_DICT_SIZE_MIN),
        }),
        Algorithm::Deflate => CodecSettings::Deflate(DeflateSettings { level: 9 }),
        Algorithm::Zstd => {
            let log = longest("windowlog=").and_then(|log| u8::try_from(log).ok());
            let window_log_max = Some(log.unwrap_or(disk::ZSTD_WINDOWLOG_ABSOLUTEMIN));
            CodecSettings::Zstd(ZstdSettings { level: 3, window_log_max })
        }
        _ => CodecSettings::Lz4(Lz4Settings { acceleration: 1 }),
    }
}

fn recipes(readers: &[&Reader]) -> Vec<Recipe> {
    let settings = ALGORITHMS.map(|algorithm| settings_of(algorithm, readers));
    let pairs = settings.iter().flat_map(|first| settings.iter().map(move |second| (first, second)));
    pairs
        .map(|(first, second)| {
            let second = (first.algorithm() != second.algorithm()).then(|| second.clone());
            Recipe::Clusters(ClusterRecipe { codec: first.clone(), second, cluster_len: 0 })
        })
        .collect()
}
