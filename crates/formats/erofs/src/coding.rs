//! Encoding of an image's blocks, which decides if they can be copied into another image.
//!
//! Kernels size their decoders by the settings after the superblock, so these must agree. Those of
//! LZ4 do not matter, because the engine that places clusters records the longest one. Levels are
//! not recorded.

use crate::disk;
use crate::reader::Reader;
use packfs_codec::Algorithm;
use packfs_format::{Coding, ExtentFrom, units::*};
use std::ops::ControlFlow;

/// Clusters of the packed inode that are examined to detect their length.
const CLUSTERS_SEEN: usize = 256;

impl Reader {
    /// See [`packfs_format::Volume::coding`].
    pub(crate) fn image_coding(&self) -> Option<Coding> {
        let geometry = &self.geometry;
        let is_used = |number: usize| {
            geometry.has(disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING) && geometry.algorithms >> number & 1 != 0
        };
        let words = |algorithm: Algorithm| {
            let words = geometry.settings.words.iter();
            let mut own = words.filter(|words| words.starts_with(crate::codec::name(algorithm)));
            own.next().cloned().unwrap_or_default()
        };
        let used = crate::codec::ALGORITHMS.into_iter().enumerate().filter(|(number, _)| is_used(*number));
        let codecs: Vec<(Algorithm, Vec<u8>)> = used
            .map(|(_, algorithm)| match algorithm {
                Algorithm::Lz4 => (algorithm, Vec::new()),
                _ => (algorithm, words(algorithm).into_bytes()),
            })
            .collect();
        let spec = match codecs.last() {
            Some((Algorithm::Lz4, _)) => "lz4hc:12".to_owned(),
            Some((algorithm, _)) => crate::codec::name(*algorithm).to_owned(),
            None => "none".to_owned(),
        };
        let block_len = u32::try_from(geometry.block_len()).ok()?;
        Some(Coding { format: "erofs", block_len, codecs, spec, typed_len: self.cluster_len() })
    }

    /// Longest of the first clusters of the packed inode.
    fn cluster_len(&self) -> Option<u32> {
        let (mut longest, mut seen) = (None, 0_usize);
        let packed = self.packed.as_ref()?;
        self.content(packed, 0..packed.size, &mut |extent| {
            if let ExtentFrom::Block { block, .. } = extent.from {
                longest = longest.max(Some(block.stored_len));
            }
            seen = seen.plus(1);
            if seen == CLUSTERS_SEEN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .ok()?;
        longest.filter(|len| len.is_power_of_two())
    }
}
