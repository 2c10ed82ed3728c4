//! Encoding of an image's blocks, which decides if they can be copied into another image.
//!
//! No superblock before 4.0 records a level, so any two images of zlib blocks agree, whatever their
//! versions and byte orders.

use crate::legacy::disk::SQUASHFS_NOD;
use crate::legacy::options::Options;
use crate::legacy::volume::LegacyVolume;
use packfs_codec::Algorithm;
use packfs_format::Coding;

impl LegacyVolume {
    /// See [`packfs_format::Volume::coding`]. Vendors' LZMA cannot be encoded.
    pub(crate) fn image_coding(&self) -> Option<Coding> {
        let block_len = self.geometry.layout.block_len;
        match self.geometry.layout.algorithm {
            // Data stored without a trial may be compressible.
            _ if self.geometry.flag(SQUASHFS_NOD) => Some(coding(block_len, "none".into(), &[])),
            Algorithm::Zlib => Some(coding(block_len, "gzip".into(), &[Algorithm::Zlib])),
            _ => None,
        }
    }
}

pub(crate) fn of_options(options: &Options) -> Coding {
    coding(options.block_len, options.codec_name.clone(), &[Algorithm::Zlib])
}

fn coding(block_len: u32, spec: String, algorithms: &[Algorithm]) -> Coding {
    let codecs = algorithms.iter().map(|&algorithm| (algorithm, Vec::new())).collect();
    Coding { format: "squashfs-legacy", block_len, codecs, spec, typed_len: Some(block_len) }
}
