//! Layers as they are written: an image with an index of its chunks, compressed or not
//! (erofs-image-spec, sections 3.3 and 3.4).

use crate::chunk_index::{CHUNK_LEN_MAX, Chunk, Index};
use packfs_codec::{CodecSettings, Encoder, ZstdSettings, encoder};
use packfs_core::{Error, FileImage, Image, Progress, Result, ResultExt, Stage, from_hex, usize_of};
use packfs_integrity::in_order;
use packfs_remote::oci::{Digest, Hashing};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

/// Length of chunks: about the bytes of a round trip, so that a read fetches little in vain.
const CHUNK_LEN: u64 = 256 << 10;
/// Most chunks of a layer, which keeps its index below the length that readers take. Chunks of
/// layers over 256 GiB are longer.
const CHUNKS_MAX: u64 = 1 << 20;
/// Magic of a skippable frame of Zstandard.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Encoding of EROFS layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerEncoding {
    /// The image itself, whose digest is that of the layer.
    #[default]
    Plain,
    /// The image, followed by an index of its chunks with SHA-256 checksums.
    Indexed,
    /// Zstandard frames, one for each chunk, followed by the index. Other decoders skip it.
    Zstd {
        /// Level, from 1 to 22.
        level: i32,
    },
}

/// A layer in an unnamed file.
pub(crate) struct EncodedLayer {
    pub file: FileImage,
    pub digest: Digest,
    /// Digest of the decoded layer.
    pub diff_id: Digest,
    /// Place of the index, and of the frame around it.
    pub index: Range<u64>,
    pub index_digest: Digest,
}

/// Writes an image with an index of its chunks, compressed if a level is given. The bytes do not
/// depend on the number of threads.
///
/// Errors: `Usage` for a wrong level; `Io`, `Cancelled`, those of reading the image.
pub(crate) fn encode(
    image: &dyn Image,
    level: Option<i32>,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<EncodedLayer> {
    let settings = level.map(|level| CodecSettings::Zstd(ZstdSettings { level, window_log_max: None }));
    if let Some(settings) = &settings {
        encoder(settings).map_err(|error| Error::usage(error.to_string()))?;
    }
    progress.begin(Stage::Data, 1, image.len());
    let mut blob = Blob::new()?;
    let mut decoded = Hashing::sha256();
    let mut index = Index { len: image.len(), is_zstd: level.is_some(), chunks: Vec::new() };
    let chunk_len = chunk_len(image.len());
    let ranges = (0..image.len().div_ceil(chunk_len)).map(|number| {
        let start = number * chunk_len;
        start..start.saturating_add(chunk_len).min(image.len())
    });
    let chunks = ranges.map(|range| {
        let mut bytes = vec![0; usize_of(range.end - range.start)];
        image.read_exact_at(range.start, &mut bytes)?;
        if level.is_some() {
            decoded.update(&bytes);
        }
        Ok((range, bytes))
    });
    in_order(
        jobs,
        chunks,
        progress,
        || settings.as_ref().and_then(|settings| encoder(settings).ok()),
        |encoder, (_, bytes)| {
            let frame = encoder.as_mut().map(|encoder| frame(&mut **encoder, bytes)).transpose()?;
            let checksum = from_hex(Digest::of(frame.as_ref().unwrap_or(bytes)).parts().1);
            Ok((frame, checksum.unwrap_or_default().into()))
        },
        &mut |(decoded, bytes), (frame, checksum): (Option<Vec<u8>>, _)| {
            progress.advance(0, bytes.len() as u64, 0);
            let stored = blob.write(&frame.unwrap_or(bytes))?;
            index.chunks.push(Chunk { stored, decoded, checksum });
            Ok(())
        },
    )?;
    // The frame is not aligned to 4 bytes, because padding would count as part of the last chunk.
    let index = index.to_bytes();
    let start = blob.len;
    if level.is_some() {
        blob.write(&[SKIPPABLE.to_le_bytes(), (index.len() as u32).to_le_bytes()].concat())?;
    }
    blob.write(&index)?;
    let digest = blob.hashing.finish();
    Ok(EncodedLayer {
        diff_id: if level.is_some() { decoded.finish() } else { digest.clone() },
        digest,
        index: start..blob.len,
        index_digest: Digest::of(&index),
        file: FileImage::of(blob.file, Path::new(&image.name()))?,
    })
}

fn chunk_len(len: u64) -> u64 {
    let wanted = len.div_ceil(CHUNKS_MAX).checked_next_power_of_two();
    wanted.unwrap_or(CHUNK_LEN_MAX).clamp(CHUNK_LEN, CHUNK_LEN_MAX)
}

/// Compresses a chunk to a frame.
fn frame(encoder: &mut dyn Encoder, bytes: &[u8]) -> Result<Vec<u8>> {
    // Incompressible data grows by less.
    let mut frame = vec![0; bytes.len() + bytes.len() / 128 + 1024];
    let len = encoder.compress(bytes, &mut frame).map_err(|error| Error::failed(error.to_string()))?;
    frame.truncate(len.ok_or_else(|| Error::failed("internal: a frame is longer than its bound"))?);
    Ok(frame)
}

/// File that is hashed while it is written.
struct Blob {
    file: std::fs::File,
    hashing: Hashing,
    len: u64,
}

impl Blob {
    fn new() -> Result<Self> {
        let folder = packfs_pack::temporary_folder();
        let file = tempfile::tempfile_in(&folder).or_io(|| format!("cannot create a file in {folder:?}"))?;
        Ok(Blob { file, hashing: Hashing::sha256(), len: 0 })
    }

    /// Appends bytes; returns their place.
    fn write(&mut self, bytes: &[u8]) -> Result<Range<u64>> {
        self.file.write_all(bytes).or_io(|| "cannot write a layer to a temporary file")?;
        self.hashing.update(bytes);
        let start = self.len;
        self.len = start.saturating_add(bytes.len() as u64);
        Ok(start..self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::{MemoryImage, Silent};
    use packfs_testkit::Random;

    fn bytes_of(image: &dyn Image) -> Vec<u8> {
        let mut bytes = vec![0; usize_of(image.len())];
        image.read_exact_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn other_decoders_read_the_whole_layer() {
        let bytes = Random::new(5).text(1_000_000);
        for bytes in [&bytes[..], &[]] {
            let image = MemoryImage::new("image", bytes.to_vec());
            let encoded = encode(&image, Some(3), 3, &Silent).unwrap();
            let blob = bytes_of(&encoded.file);
            assert!(zstd::decode_all(&*blob).unwrap() == bytes);
            assert_eq!((encoded.diff_id, encoded.digest), (Digest::of(bytes), Digest::of(&blob)));
            assert_eq!(encoded.index.end, blob.len() as u64);
            assert_eq!(encoded.index_digest, Digest::of(&blob[usize_of(encoded.index.start) + 8..]));
            assert!(blob == bytes_of(&encode(&image, Some(3), 1, &Silent).unwrap().file));
            let plain = encode(&image, None, 2, &Silent).unwrap();
            assert!(bytes_of(&plain.file)[..usize_of(plain.index.start)] == *bytes);
            assert_eq!(plain.diff_id, plain.digest);
        }
        let image = MemoryImage::new("image", bytes);
        assert!(encode(&image, Some(23), 1, &Silent).is_err());
    }

    #[test]
    fn indexes_of_long_layers_are_no_longer_than_readers_take() {
        assert_eq!(chunk_len(0), CHUNK_LEN);
        assert_eq!(chunk_len(256 << 30), CHUNK_LEN);
        assert_eq!(chunk_len((256 << 30) + 1), 2 * CHUNK_LEN);
        assert_eq!(chunk_len(u64::MAX), CHUNK_LEN_MAX);
    }
}
