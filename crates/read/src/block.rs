//! Decodes one block, and says what is wrong with it if that fails.

use packfs_codec::Decoders;
use packfs_core::{BlockRef, Error, Result};
use std::sync::{Mutex, PoisonError};

/// Longest decoded block that is believed; more is taken for an attack.
const DECODED_LEN_MAX: u32 = 64 << 20;

/// Decodes `stored` into `out`, which is made as long as the block.
///
/// Errors: `Corrupt`, naming the block's place, for damage and for a block of another length than it must have.
pub(crate) fn decode(
    decoders: &mut Decoders,
    block: &BlockRef,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    if block.decoded_len > DECODED_LEN_MAX {
        return Err(corrupt(
            block,
            format!("decodes to {} bytes, at most {DECODED_LEN_MAX} allowed", block.decoded_len),
        ));
    }
    let Some(algorithm) = block.algorithm else {
        out.clear();
        out.extend_from_slice(stored);
        return check_len(block, stored.len());
    };
    // Bytes beyond what is decoded are cut off below, so old ones need not be cleared.
    out.resize(block.decoded_len as usize, 0);
    let len = decoders
        .decompress(algorithm, stored, out)
        .map_err(|fault| corrupt(block, format!("{algorithm} data of {} bytes: {fault}", stored.len())))?;
    out.truncate(len);
    check_len(block, len)
}

fn check_len(block: &BlockRef, len: usize) -> Result<()> {
    let allowed = block.decoded_len as usize;
    if len > allowed || block.exact && len != allowed {
        let at_most = if block.exact { "" } else { "at most " };
        return Err(corrupt(block, format!("decodes to {len} bytes, {at_most}{allowed} expected")));
    }
    Ok(())
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
