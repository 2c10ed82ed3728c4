//! Decodes one block, and says what is wrong with it if that fails.

use packfs_codec::Decoders;
use packfs_core::{BlockRef, DecodedLen, Error, Image, Result};
use std::sync::{Mutex, PoisonError};

/// Longest block that is believed, stored or decoded; more is taken for an attack.
pub(crate) const LEN_MAX: u32 = 64 << 20;

/// Whether a block's lengths may be believed. To be asked before anything is allocated for it.
///
/// Errors: `Corrupt` if it is too long, or lies outside of the image.
pub(crate) fn check(image: &dyn Image, block: &BlockRef) -> Result<()> {
    for (what, len) in [("is stored in", block.stored_len), ("decodes to", block.decoded_len)] {
        if len > LEN_MAX {
            return Err(corrupt(block, format!("{what} {len} bytes, at most {LEN_MAX} allowed")));
        }
    }
    let end = block.offset.saturating_add(u64::from(block.stored_len));
    if end > image.len() {
        let fault = format!("{} bytes are stored, image ends at {:#x}", block.stored_len, image.len());
        return Err(corrupt(block, fault).hint("the file looks truncated"));
    }
    Ok(())
}

/// Decodes a block that has passed [`check`]: from `stored` into the start of `out`, which is at least as long as the
/// block; returns how long it is. A block that is not encoded is only measured: its bytes are those stored.
///
/// Errors: `Corrupt`, naming the block's place, for damage and for a block of another length than it must have.
pub(crate) fn decode(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    out: &mut [u8],
) -> Result<usize> {
    let allowed = block.decoded_len as usize;
    let len = match (block.algorithm, out.get_mut(..allowed)) {
        (None, _) => stored.len(),
        (Some(_), None) => return Err(Error::failed("internal: no room for a block")),
        (Some(algorithm), Some(out)) => {
            let stored = if block.zero_padded { without_padding(stored) } else { stored };
            let decoded = match block.decodes_to {
                DecodedLen::Prefix => decoders.decompress_prefix(algorithm, stored, out),
                DecodedLen::Exactly | DecodedLen::AtMost => decoders.decompress(algorithm, stored, out),
            };
            decoded.map_err(|fault| {
                corrupt(block, format!("{algorithm} data of {} bytes: {fault}", stored.len()))
            })?
        }
    };
    let (fits, expected) = match block.decodes_to {
        DecodedLen::Exactly => (len == allowed, ""),
        DecodedLen::AtMost => (len <= allowed, "at most "),
        // Bytes that are not encoded are all there, and those behind the prefix are nobody's.
        DecodedLen::Prefix => (len >= allowed, "at least "),
    };
    if !fits {
        return Err(corrupt(block, format!("decodes to {len} bytes, {expected}{allowed} expected")));
    }
    Ok(len)
}

/// What is left of a block when the zeros in front of it are skipped; padding is shorter than a block of the disk, and
/// mostly shorter than a word or two.
fn without_padding(stored: &[u8]) -> &[u8] {
    let padding_len = stored.iter().position(|&byte| byte != 0).unwrap_or(stored.len());
    &stored[padding_len..]
}

fn corrupt(block: &BlockRef, fault: String) -> Error {
    Error::corrupt("image", format!("block at {:#x}: {fault}", block.offset))
}

/// The part of a decoded block that an extent names.
///
/// Errors: `Corrupt` if the block is shorter than that.
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

/// Decoders for whoever reads at random: as many as there are readers at a time.
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
