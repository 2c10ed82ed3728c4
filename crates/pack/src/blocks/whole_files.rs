//! Decides if a file is compressed, for formats that compress all blocks of a file or none.

use crate::context::Context;
use crate::gain::Gain;
use packfs_codec::BranchSet;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};
use packfs_format::Blocks;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const SAMPLE_COUNT: u64 = 8;

#[derive(Default)]
pub(crate) struct WholeFiles {
    decided: Mutex<HashMap<u32, bool>>,
}

impl WholeFiles {
    /// Returns true if compression pays: `len` bytes became `block_count` blocks and `encoded_len`
    /// bytes.
    pub(crate) fn of_short(
        context: &Context<'_, Blocks>,
        len: u64,
        (block_count, encoded_len): (usize, u64),
        gain: Gain,
    ) -> bool {
        let lead_len = context.plan.data.lead.map_or(0, |lead| lead.len(block_count as u64));
        let encoded_len = lead_len + encoded_len;
        let align = u64::from(context.plan.data.file_align.max(1));
        // The unused end of the last unit is lost either way.
        encoded_len.next_multiple_of(align) < len.next_multiple_of(align)
            && gain.holds(len as usize, encoded_len as usize)
    }

    /// Judged by blocks sampled from the whole file, so every thread comes to the same result.
    pub(crate) fn of_long(
        &self,
        context: &Context<'_, Blocks>,
        job: u32,
        encoder: &mut dyn Encoder,
        gain: Gain,
    ) -> Result<bool> {
        if let Some(&known) = self.decided.lock().unwrap_or_else(PoisonError::into_inner).get(&job) {
            return Ok(known);
        }
        let node = context.node(job);
        let (len, block_len) = (context.len(node), context.block_len());
        let block_count = len.div_ceil(block_len);
        let sample_count = block_count.min(SAMPLE_COUNT);
        let mut reader = context.open(node)?;
        let (mut raw, mut encoded) = (vec![0; block_len as usize], Vec::new());
        let mut raw_len = 0;
        // Resets the hint left from another file.
        encoder.expect_code(BranchSet::UNKNOWN);
        for sample in 0..sample_count {
            let offset = sample * block_count / sample_count * block_len;
            let block = &mut raw[..block_len.min(len - offset) as usize];
            reader.read_exact_at(offset, block)?;
            raw_len += block.len();
            encode(encoder, block, &mut encoded)?;
        }
        let is_worth_it = gain.holds(raw_len, encoded.len());
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).insert(job, is_worth_it);
        Ok(is_worth_it)
    }
}

/// Appends the block even if it grows.
pub(crate) fn encode(encoder: &mut dyn Encoder, raw: &[u8], out: &mut Vec<u8>) -> Result<u32> {
    let start = out.len();
    // No codec expands by more than an eighth, apart from its header and trailer.
    out.resize(start + raw.len() + raw.len() / 8 + 1024, 0);
    let len = encoder
        .compress(raw, &mut out[start..])
        .map_err(Error::failed)?
        .ok_or_else(|| Error::failed("cannot compress a block: it grew by more than an eighth"))?;
    out.truncate(start + len);
    Ok(len as u32)
}
