//! Settings of an image that contains the blocks of others.
//!
//! Blocks of different images agree if their codec and block size are equal. Of the codec's
//! options, decoders only need the dictionary of xz: the largest is recorded. Levels are
//! informative; if images differ, the options are omitted.

use crate::v4::disk::{
    SQUASHFS_EXPORT, SQUASHFS_NOD, SQUASHFS_NOF, SQUASHFS_NOI, SQUASHFS_NOID, SQUASHFS_NOX,
};
use crate::v4::options::Options;
use crate::v4::pack;
use crate::v4::volume::SquashfsVolume;
use packfs_codec::Algorithm;
use packfs_core::{Error, Result};
use packfs_format::{AnyStored, Coding, Merging, PackFormat, PackSettings, Volume};
use std::any::Any;
use std::collections::BTreeSet;

/// Flags of uncompressed structures, and their names in options.
const UNCOMPRESSED: [(u16, &str); 5] = [
    (SQUASHFS_NOI, "inodes"),
    (SQUASHFS_NOD, "data"),
    (SQUASHFS_NOF, "fragments"),
    (SQUASHFS_NOX, "xattrs"),
    (SQUASHFS_NOID, "ids"),
];

pub(crate) fn merger(merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
    if !merging.data_files.is_empty() {
        let error = Error::usage("squashfs images hold their data themselves");
        return Err(error.hint("EROFS images can leave it in other files"));
    }
    let volumes = merging.volumes.iter().map(|volume| of_this_format(*volume)).collect::<Result<Vec<_>>>()?;
    let codings = volumes.iter().map(|volume| coding(volume)).collect::<Result<Vec<_>>>()?;
    let (Some(first), Some(first_coding)) = (volumes.first(), codings.first()) else {
        return Err(Error::usage("there is no image to merge"));
    };
    for volume in &volumes {
        check_same(first, volume)?;
    }
    let is_set = |flag: u16| volumes.iter().all(|volume| volume.geometry.flag(flag));
    let stored: Vec<&str> =
        UNCOMPRESSED.iter().filter(|(flag, _)| is_set(*flag)).map(|(_, name)| *name).collect();
    let exports = if is_set(SQUASHFS_EXPORT) { "on" } else { "off" };
    let mut options = vec![("exports".to_owned(), exports.to_owned())];
    options.extend(merging.kernel.as_ref().map(|kernel| ("kernel".to_owned(), kernel.to_string())));
    if !stored.is_empty() {
        options.push(("uncompressed".into(), stored.join(",")));
    }
    let algorithm = first.geometry.layout.algorithm;
    let settings = |codec: String| PackSettings {
        codec: Some(codec),
        block_size: Some(first_coding.block_len),
        made_at: merging.made_at,
        options: options.clone(),
        ..PackSettings::default()
    };
    let spec = spec(algorithm, &volumes, &codings)?;
    // Options that packfs does not write are omitted, too.
    let settings = Some(settings(spec)).filter(|settings| Options::new(settings).is_ok());
    pack::packer(&settings.unwrap_or_else(|| PackSettings {
        codec: Some(algorithm.name().into()),
        block_size: Some(first_coding.block_len),
        made_at: merging.made_at,
        options,
        ..PackSettings::default()
    }))
}

fn of_this_format(volume: &dyn Volume) -> Result<&SquashfsVolume> {
    let found = match volume.stored() {
        Some(AnyStored::Blocks(stored)) => (stored as &dyn Any).downcast_ref::<SquashfsVolume>(),
        _ => None,
    };
    found
        .ok_or_else(|| Error::unsupported("request", format!("cannot merge {} images", volume.format().name)))
}

fn name(volume: &SquashfsVolume) -> String {
    volume.metadata.image().name()
}

fn coding(volume: &SquashfsVolume) -> Result<Coding> {
    volume.image_coding().ok_or_else(|| {
        let what = format!("cannot merge {}: its codec or the codec's options are a vendor's", name(volume));
        Error::unsupported("request", what).hint("packfs repack makes a standard image of it")
    })
}

/// Errors: `Usage` with both images and the difference.
fn check_same(one: &SquashfsVolume, other: &SquashfsVolume) -> Result<()> {
    let (a, b) = (&one.geometry.layout, &other.geometry.layout);
    let differs = if a.block_len != b.block_len {
        let repack = format!("--block-size {}", a.block_len);
        Some((format!("blocks of {} bytes", b.block_len), format!("{} bytes", a.block_len), repack))
    } else if a.algorithm != b.algorithm {
        let repack = format!("--codec {}", a.algorithm.name());
        Some((format!("codec {}", b.algorithm.name()), a.algorithm.name().to_owned(), repack))
    } else {
        None
    };
    let Some((found, wanted, repack)) = differs else { return Ok(()) };
    let (name, first) = (name(other), name(one));
    let message = format!("cannot merge {name} with {first}: it has {found}, the other {wanted}");
    Err(Error::usage(message)
        .hint(format!("packfs repack {name} NEW {repack} makes an image that can be merged")))
}

/// Returns the codec in the syntax of the option.
fn spec(algorithm: Algorithm, volumes: &[&SquashfsVolume], codings: &[Coding]) -> Result<String> {
    if let Some(first) = codings.first()
        && codings.iter().all(|coding| coding.spec == first.spec && coding.spec != "none")
    {
        return Ok(first.spec.clone());
    }
    if algorithm != Algorithm::Xz {
        return Ok(algorithm.name().into());
    }
    let (mut dict_len, mut filters) = (0, BTreeSet::new());
    for volume in volumes {
        let words = volume.codec_words()?.words;
        let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
        // Without options, the dictionary has the length of a block.
        let len = value("dict=").and_then(|len| len.parse().ok());
        dict_len = len.unwrap_or(volume.geometry.layout.block_len).max(dict_len);
        filters.extend(value("bcj=").into_iter().flat_map(|names| names.split('+')).map(str::to_owned));
    }
    let filters: Vec<String> = filters.into_iter().collect();
    let filters = if filters.is_empty() { String::new() } else { format!(",bcj={}", filters.join("+")) };
    Ok(format!("xz,dict={dict_len}{filters}"))
}
