//! Images of mkfs.erofs whose data stays in other files: an index of an archive, and an image
//! stacked over several.

use crate::common::parse::Given;
use crate::common::teller::Teller;
use packfs::source::Loaded;
use packfs::{
    DataPlace, Error, MadeAt, Marks, OnConflict, OpenOptions, Pack, PackOptions, PackReport, Result,
    ResultExt,
};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Block length of an index, in bytes: data in archives is aligned to it.
const TAR_BLOCK: &str = "512";

/// Options that do not concern data.
const OF_IMAGES: [&str; 4] = ["uuid", "label", "checksum", "xattr-filter"];
/// Indexes have packed metadata.
const OF_INDEXES: [&str; 6] = ["48bit", "digest-xattr", "dot-omitted", "epoch", "times", "prefixes"];

pub enum Archive {
    File(PathBuf),
    /// A copy of a pipe, or decoded.
    Copy(NamedTempFile),
}

impl Archive {
    pub fn copied(mut from: impl Read) -> Result<Self> {
        let cannot = || "cannot copy the archive to a temporary file";
        let mut copy = NamedTempFile::new_in(packfs::temporary_folder()).or_io(cannot)?;
        std::io::copy(&mut from, copy.as_file_mut()).or_io(cannot)?;
        copy.as_file_mut().rewind().or_io(cannot)?;
        Ok(Archive::Copy(copy))
    }

    pub fn path(&self) -> &Path {
        match self {
            Archive::File(path) => path,
            Archive::Copy(file) => file.path(),
        }
    }
}

/// The archive becomes the device of the image.
pub fn indexed(
    archive: &Archive,
    image: &Path,
    loaded: Loaded,
    options: PackOptions,
    teller: &Teller,
) -> Result<PackReport> {
    let device = archive.path().to_str().map(str::to_owned);
    let device = device.ok_or_else(|| Error::usage(format!("{:?} is not UTF-8", archive.path())))?;
    let is_kept = |(name, _): &(String, String)| {
        OF_IMAGES.contains(&name.as_str()) || OF_INDEXES.contains(&name.as_str())
    };
    let mut format_options: Vec<_> = options.options.into_iter().filter(is_kept).collect();
    for (name, value) in [("block", TAR_BLOCK), ("fragments", "off"), ("device", &device)] {
        format_options.push((name.to_owned(), value.to_owned()));
    }
    let options =
        PackOptions { codec: Some("none".to_owned()), block_size: None, options: format_options, ..options };
    let report = Pack::of_loaded(Arc::new(loaded), image).options(options).index_with(teller);
    report.map_err(|error| error.hint("--tar=f packs the archive with its data"))
}

pub fn are_images(sources: &[PathBuf]) -> bool {
    let is_image = |path: &PathBuf| {
        let is_file = File::open(path).and_then(|file| file.metadata()).is_ok_and(|found| !found.is_dir());
        is_file
            && OpenOptions::new().outermost().open(path).is_ok_and(|opened| opened.format().name() == "erofs")
    };
    !sources.is_empty() && sources.iter().all(is_image)
}

/// The images become devices of the new one.
pub fn merged(
    given: &Given,
    image: &Path,
    sources: &[PathBuf],
    options: &PackOptions,
    teller: &Teller,
) -> Result<PackReport> {
    let data = match given.text("--clean")? {
        None => DataPlace::Inputs,
        Some("" | "data") => DataPlace::Image,
        Some(other) => {
            return Err(Error::usage(format!("--clean={other} is not supported with images as sources"))
                .hint("--clean=data copies their data, and without it they are devices"));
        }
    };
    if options.offset != 0 {
        return Err(Error::usage("--offset is not supported with images as sources")
            .hint("packfs merge A B -o - writes the image to a pipe"));
    }
    if given.has("--xattr-inode-digest") {
        return Err(Error::usage("--xattr-inode-digest is not supported with images as sources")
            .hint("packfs unpack makes a directory of any image"));
    }
    let strips = given.last("--ovlfs-strip").is_some_and(|value| value.is_empty() || value == "1");
    let marks = if strips { Marks::Applied } else { Marks::AppliedAndKept };
    let mut merge = packfs::merge(sources, image).on_conflict(OnConflict::LastWins).marks(marks).data(data);
    if let MadeAt::Seconds(seconds) = options.made_at {
        merge = merge.made_at(seconds);
    }
    for (name, value) in options.options.iter().filter(|(name, _)| OF_IMAGES.contains(&name.as_str())) {
        merge = merge.format_option(name, value);
    }
    let merged = merge.run_with(teller)?.report;
    let mut report = PackReport::default();
    report.image_len = merged.image_size;
    report.nodes = merged.nodes;
    report.metadata_len = merged.metadata_bytes;
    Ok(report)
}
