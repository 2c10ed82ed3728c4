use crate::buffers::{Buffer, Buffers};
use packfs_codec::Algorithm;
use packfs_codec::{BlockRef, DecodedLen};
use packfs_codec::{Decoders, without_padding};
use packfs_core::{Error, Image, Result, range_at};
use packfs_format::units::*;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest block accepted, stored or decoded; longer ones are hostile.
pub(crate) const LEN_MAX: u32 = 64 << 20;
pub(crate) const BLOCKS_AT_ONCE: usize = 64;
/// Least prefix that is decoded: other readers may want more of it, and a block that proves shorter
/// is then known whole.
const PREFIX_LEN_MIN: usize = 128 << 10;

/// Prefixes are decoded in multiples of this.
const PREFIX_STEP: u32 = 4096;

/// Identity of a block, independent of the prefix that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    stored_len: u32,
    zero_padded: bool,
    algorithm: Option<Algorithm>,
}

impl Place {
    pub(crate) fn of(block: &BlockRef) -> Place {
        let BlockRef { offset, stored_len, zero_padded, algorithm, .. } = *block;
        Place { offset, stored_len, zero_padded, algorithm }
    }
}

pub(crate) struct Decoded {
    bytes: Buffer,
    whole: bool,
}

impl Deref for Decoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Decoded {
    pub(crate) fn memory_len(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn of_stored(bytes: Buffer) -> Self {
        Decoded { bytes, whole: true }
    }
}

/// Bytes of a file in shared memory, cheap to clone and to send to another thread.
#[derive(Clone)]
pub struct SharedBytes {
    decoded: Arc<Decoded>,
    range: Range<usize>,
}

impl SharedBytes {
    /// Errors: `Corrupt` if the block is too short.
    pub(crate) fn of(block: &BlockRef, decoded: Arc<Decoded>, start: u32, len: u64) -> Result<Self> {
        let start_at = start as usize;
        let end = start_at + slice(block, &decoded, start, len)?.len();
        Ok(SharedBytes { decoded, range: start_at..end })
    }

    pub(crate) fn all(decoded: Arc<Decoded>) -> Self {
        let range = 0..decoded.len();
        SharedBytes { decoded, range }
    }
}

/// Wraps bytes of any origin.
impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        SharedBytes::all(Arc::new(Decoded::of_stored(Buffer::homeless(bytes))))
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.decoded.within(self.range.clone())
    }
}

impl std::fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// If an image has the same block with different lengths, each is decoded separately.
pub(crate) fn is_enough(decoded: &Decoded, wanted: &BlockRef) -> bool {
    let long_enough = wanted.decodes_to == DecodedLen::Prefix && decoded.len() >= wanted.decoded_len as usize;
    (long_enough || decoded.whole) && wanted.allows_len(decoded.len())
}

pub(crate) fn stored_range(block: &BlockRef) -> Range<u64> {
    range_at(block.offset, block.stored_len.into())
}

/// Must precede any allocation for the block.
///
/// Errors: `Corrupt` if it is too long, or outside the image.
pub(crate) fn check(image: &dyn Image, block: &BlockRef) -> Result<()> {
    for (what, len) in [("is stored in", block.stored_len), ("decodes to", block.decoded_len)] {
        if len > LEN_MAX {
            return Err(corrupt(block, format!("{what} {len} bytes, at most {LEN_MAX} allowed")));
        }
    }
    if stored_range(block).end > image.len() {
        let fault = format!("{} bytes are stored, image ends at {:#x}", block.stored_len, image.len());
        return Err(corrupt(block, fault).hint("the file looks truncated"));
    }
    Ok(())
}

/// Decodes a block that passed [`check`] from `stored` into the start of `out`, which is at least
/// as long as the block; returns its length. An uncompressed block is only measured.
///
/// Errors: `Corrupt`, naming the block's location, for damage and for an unexpected length.
pub(crate) fn decode(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    debug_assert!(block.algorithm.is_none() || out.len() >= block.decoded_len as usize);
    let room = out.len().min(block.decoded_len as usize);
    let len = match block.algorithm {
        None => stored.len(),
        Some(algorithm) => {
            let out = &mut out[..room];
            decoders.decompress_block(algorithm, block, stored, out).map_err(|fault| {
                let len = stored.len();
                fault.of(
                    "image",
                    format!("block at {:#x}: {algorithm} data of {len} bytes: {fault}", block.offset),
                )
            })?
        }
    };
    check_len(block, len).map(|()| len)
}

fn check_len(block: &BlockRef, len: usize) -> Result<()> {
    if block.allows_len(len) {
        return Ok(());
    }
    let expected = match block.decodes_to {
        DecodedLen::Exactly => "",
        DecodedLen::AtMost => "at most ",
        // Uncompressed bytes are complete, and those after the prefix belong to no file.
        DecodedLen::Prefix => "at least ",
    };
    Err(corrupt(block, format!("decodes to {len} bytes, {expected}{} expected", block.decoded_len)))
}

/// The block must have passed [`check`].
pub(crate) fn decode_kept(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    buffers: &Arc<Buffers>,
) -> Result<Decoded> {
    match decode_beyond_prefix(decoders, block, stored, buffers) {
        Some(decoded) => Ok(decoded),
        None => decode_no_more(decoders, block, stored, buffers),
    }
}

/// Decodes only as far as a wanted prefix.
pub(crate) fn decode_no_more(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    buffers: &Arc<Buffers>,
) -> Result<Decoded> {
    let mut bytes = buffers.take(block.decoded_len as usize);
    if block.algorithm.is_none() {
        decode(decoders, block, stored, &mut [])?;
        bytes.clear();
        bytes.extend_from_slice(stored);
        return Ok(Decoded { bytes, whole: true });
    }
    // Old bytes in the buffer are overwritten or cut off.
    bytes.resize(block.decoded_len as usize, 0);
    let len = decode(decoders, block, stored, &mut bytes)?;
    bytes.truncate(len);
    // A short block must not keep the memory of a long one.
    Ok(Decoded { bytes: buffers.fitted(bytes), whole: block.decodes_to != DecodedLen::Prefix })
}

/// `Some` if decoding only the prefix pays: the codec decodes a prefix at the same speed per byte,
/// and enough is left undecoded.
pub(crate) fn prefix(block: &BlockRef, end: u64) -> Option<BlockRef> {
    let decoded_len = u32::try_from(end).ok()?.checked_next_multiple_of(PREFIX_STEP)?;
    let is_fit =
        block.algorithm.is_some_and(Algorithm::has_fast_prefix) && block.decodes_to == DecodedLen::Exactly;
    let is_worth_it = decoded_len <= block.decoded_len - block.decoded_len / 8;
    (is_fit && is_worth_it).then_some(BlockRef { decoded_len, decodes_to: DecodedLen::Prefix, ..*block })
}

pub(crate) fn keep_stored(decoders: &mut Decoders, block: &BlockRef, stored: Buffer) -> Result<Decoded> {
    decode(decoders, block, &stored, &mut [])?;
    Ok(Decoded { bytes: stored, whole: true })
}

/// `None` if the codec does not detect the end of a block, or there is damage after the prefix.
fn decode_beyond_prefix(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    buffers: &Arc<Buffers>,
) -> Option<Decoded> {
    let wanted_len = block.decoded_len as usize;
    let algorithm = block.algorithm.filter(|algorithm| algorithm.tells_end())?;
    let is_short = wanted_len < PREFIX_LEN_MIN;
    if block.decodes_to != DecodedLen::Prefix || !block.zero_padded || !is_short {
        return None;
    }
    let mut bytes = buffers.take(PREFIX_LEN_MIN);
    bytes.resize(PREFIX_LEN_MIN, 0);
    let len = decoders.decompress_prefix(algorithm, without_padding(stored), &mut bytes).ok()?;
    if len < wanted_len {
        return None;
    }
    let whole = len < PREFIX_LEN_MIN;
    bytes.truncate(len);
    Some(Decoded { bytes: buffers.fitted(bytes), whole })
}

fn corrupt(block: &BlockRef, fault: String) -> Error {
    Error::corrupt("image", format!("block at {:#x}: {fault}", block.offset))
}

/// Errors: `Corrupt` if the block is too short.
pub(crate) fn slice<'a>(block: &BlockRef, bytes: &'a [u8], start: u32, len: u64) -> Result<&'a [u8]> {
    let start = start as usize;
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    end.and_then(|end| bytes.get(start..end)).ok_or_else(|| {
        corrupt(
            block,
            format!("decodes to {} bytes, but a file has {len} bytes from byte {start} on", bytes.len()),
        )
    })
}

/// One decoder for each concurrent reader.
#[derive(Default)]
pub(crate) struct DecoderPool(Mutex<Vec<Decoders>>);

impl DecoderPool {
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Decoders) -> R) -> R {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoders = idle.unwrap_or_default();
        let result = f(&mut decoders);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(decoders);
        result
    }
}
