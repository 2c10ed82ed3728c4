//! Cuts a segment of a file into clusters, each filled with as much input as fits.
//!
//! Every cluster but a segment's last holds at least as much input as it takes space. So no unit of
//! `block_len` input bytes contains the starts of two clusters, and a cluster of several blocks
//! extends beyond the whole unit after its start. EROFS indexes require both; segments start at
//! multiples of the unit. Data that does not shrink is stored in plain blocks. Neither files nor
//! images are known here.

use super::coder::Coders;
use super::incompressible_skip::{IncompressibleSkip, all_looks_incompressible};
use super::shape::End;
use super::stored::Stored;
use crate::gain::Gain;
use crate::noise::is_noise;
use packfs_codec::{Fit, FitEncoder};
use packfs_core::{Error, Result};
use packfs_format::ClusterForm;

/// Quarters of a block that an inline tail fills at most. The kernel reads inodes by the block, so
/// listing a tree reads every inline tail, and one that nearly fills a block saves little space.
/// A last cluster is split only if its end wastes more than this of a block.
const INLINE_QUARTERS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Measures {
    pub block_len: usize,
    /// Most stored bytes of a cluster; with `byte_aligned`, most bytes of input.
    pub cluster_len: usize,
    pub decoded_len_max: usize,
    pub inline_flat_max: usize,
    pub byte_aligned: bool,
    pub interlaced: bool,
    pub gain: Gain,
}

impl Measures {
    pub(super) fn inline_max(&self) -> usize {
        self.block_len / 4 * INLINE_QUARTERS
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// Goes to the packed stream from this position on.
    Packed(usize),
    /// Less than a block from this position on: plain or inline.
    Plain(usize),
    /// Inline from this position on, as encoded here.
    Inline {
        start: usize,
        bytes: Vec<u8>,
        compressed: bool,
    },
}

pub(super) struct Encoders<'a> {
    first: &'a mut dyn FitEncoder,
    second: Option<&'a mut dyn FitEncoder>,
}

impl<'a> Encoders<'a> {
    pub(super) fn of(coders: &'a mut Coders) -> Self {
        let second = coders.second.as_mut().map(|coder| coder.encoder.as_mut() as &mut dyn FitEncoder);
        Encoders { first: coders.first.encoder.as_mut(), second }
    }
}

/// The second codec may take 1 / `SECOND_COST` more space.
const SECOND_COST: usize = 32;

/// Cuts `input`, which starts at a multiple of the block, into `out`.
pub(super) fn cut<'a, F: From<ClusterForm> + PartialEq>(
    measures: Measures,
    input: &'a [u8],
    end: End,
    mut encoders: Encoders<'a>,
    scratch: &'a mut Vec<u8>,
    out: &'a mut Stored<F>,
) -> Result<Rest> {
    // Encoders adapt to earlier input; the result must not depend on other files.
    encoders.first.begin_segment();
    encoders.first.expect_shortening(end == End::Inline);
    let room = measures.cluster_len.max(measures.block_len);
    let rooms = if encoders.second.is_some() { 2 } else { 1 };
    if let Some(second) = &mut encoders.second {
        second.begin_segment();
    }
    scratch.resize(rooms * room, 0);
    let (scratch, second_scratch) = scratch.split_at_mut(room);
    if measures.byte_aligned {
        return cut_fixed_input(measures, input, end, encoders, (scratch, second_scratch), out);
    }
    let Encoders { first: encoder, second } = encoders;
    let mut incompressible_skip = IncompressibleSkip::new(measures.block_len, measures.cluster_len);
    // A short segment would go to the packed stream without a try.
    if end == End::Packed && all_looks_incompressible(input, measures.block_len) {
        incompressible_skip.fail(0, input);
    }
    let stretch = Stretch {
        measures,
        input,
        at: 0,
        filled_with: None,
        incompressible_skip,
        encoder,
        second,
        scratch,
        second_scratch,
        out,
    };
    stretch.cut(end)
}

fn cut_fixed_input<F: From<ClusterForm> + PartialEq>(
    measures: Measures,
    input: &[u8],
    end: End,
    Encoders { first, mut second }: Encoders<'_>,
    (scratch, second_scratch): (&mut [u8], &mut [u8]),
    out: &mut Stored<F>,
) -> Result<Rest> {
    let mut at = 0;
    for raw in input.chunks(measures.cluster_len) {
        if end == End::Packed && raw.len() < measures.cluster_len {
            return Ok(Rest::Packed(at));
        }
        let room =
            if measures.gain != Gain::ANY && is_noise(raw) { 0 } else { measures.gain.room(raw.len()) };
        let found = fit(first, raw, &mut scratch[..room])?;
        at += raw.len();
        if found.consumed < raw.len() {
            out.push_plain(raw, 1, 0);
            continue;
        }
        if let Some(second) = &mut second {
            let room = room.min(found.written + found.written / SECOND_COST);
            let other = fit(&mut **second, raw, &mut second_scratch[..room])?;
            if other.consumed == raw.len() {
                out.push_compressed(raw.len(), &second_scratch[..other.written], 1, true);
                continue;
            }
        }
        out.push_compressed(raw.len(), &scratch[..found.written], 1, false);
    }
    Ok(Rest::Nothing)
}

fn fit(encoder: &mut dyn FitEncoder, src: &[u8], dst: &mut [u8]) -> Result<Fit> {
    let (src_len, dst_len) = (src.len(), dst.len());
    if dst_len == 0 {
        return Ok(Fit { consumed: 0, written: 0 });
    }
    Ok(checked(encoder.compress_to_fit(src, dst).map_err(Error::failed)?, src_len, dst_len))
}

/// An inconsistent fit counts as empty, so that the data is stored plain.
fn checked(fit: Fit, src_len: usize, dst_len: usize) -> Fit {
    let holds = fit.consumed <= src_len && fit.written <= dst_len && (fit.consumed > 0) == (fit.written > 0);
    debug_assert!(holds, "{fit:?} of {src_len} into {dst_len}");
    if holds { fit } else { Fit { consumed: 0, written: 0 } }
}

struct Stretch<'a, F> {
    measures: Measures,
    input: &'a [u8],
    at: usize,
    filled_with: Option<usize>,
    incompressible_skip: IncompressibleSkip,
    encoder: &'a mut dyn FitEncoder,
    second: Option<&'a mut dyn FitEncoder>,
    scratch: &'a mut [u8],
    second_scratch: &'a mut [u8],
    out: &'a mut Stored<F>,
}

impl<F: From<ClusterForm> + PartialEq> Stretch<'_, F> {
    fn cut(mut self, end: End) -> Result<Rest> {
        while self.at < self.input.len() {
            let rest = match end {
                End::OwnUnlessFlat if self.rest().len() <= self.measures.inline_flat_max => {
                    Some(Rest::Plain(self.at))
                }
                End::Own | End::OwnUnlessFlat => self.next_cluster(end)?,
                End::Packed if self.is_for_packed_stream() => Some(Rest::Packed(self.at)),
                End::Packed => self.next_cluster(end)?,
                End::Inline if self.rest().len() <= self.measures.block_len => self.inline_rest()?,
                End::Inline => self.next_cluster(end)?,
            };
            if let Some(rest) = rest {
                return Ok(rest);
            }
        }
        Ok(Rest::Nothing)
    }

    fn rest(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// Returns true if the rest of the segment is unlikely to fill a cluster, judged without
    /// compressing it.
    fn is_for_packed_stream(&self) -> bool {
        let Measures { block_len, cluster_len, .. } = self.measures;
        let rest_len = self.rest().len();
        match self.filled_with {
            _ if self.incompressible_skip.failed() => rest_len < block_len,
            Some(filled_with) => rest_len <= block_len || rest_len < filled_with / 4 * 3,
            None => rest_len <= 2 * cluster_len,
        }
    }

    fn next_cluster(&mut self, end: End) -> Result<Option<Rest>> {
        let Measures { block_len, cluster_len, decoded_len_max, .. } = self.measures;
        let rest = &self.input[self.at..];
        if rest.len() <= block_len || self.incompressible_skip.stores_plain(self.at, rest) {
            self.push_plain();
            return Ok(None);
        }
        let room = cluster_len.min((rest.len() - 1) / block_len * block_len);
        let window = &rest[..rest.len().min(decoded_len_max)];
        let likely = &rest[..rest.len().min(cluster_len)];
        let found = if self.measures.gain != Gain::ANY && is_noise(likely) {
            Fit { consumed: 0, written: 0 }
        } else {
            fit(self.encoder, window, &mut self.scratch[..room])?
        };
        if !self.is_gain(&found) {
            self.incompressible_skip.fail(self.at, rest);
            self.push_plain();
            return Ok(None);
        }
        if found.consumed == rest.len() {
            let waste = found.written.next_multiple_of(block_len) - found.written;
            match end {
                // Ends of files are alike: with others they take less space than in a nearly full
                // cluster.
                End::Packed if found.written < cluster_len => return Ok(Some(Rest::Packed(self.at))),
                End::Inline if found.written <= self.measures.inline_max() => {
                    let bytes = self.scratch[..found.written].to_vec();
                    return Ok(Some(Rest::Inline { start: self.at, bytes, compressed: true }));
                }
                End::Inline if waste > self.measures.inline_max() => {
                    return self.fill_whole_blocks(found.written);
                }
                _ => {}
            }
        }
        if !self.push_by_second(&found)? {
            self.push_compressed(&found);
        }
        Ok(None)
    }

    /// Uses the second codec if its result fits about as much into the same number of blocks.
    fn push_by_second(&mut self, found: &Fit) -> Result<bool> {
        let Some(second) = &mut self.second else { return Ok(false) };
        let rest = &self.input[self.at..];
        let window = &rest[..rest.len().min(self.measures.decoded_len_max)];
        let room = found.written.next_multiple_of(self.measures.block_len);
        let other = fit(&mut **second, window, &mut self.second_scratch[..room])?;
        let enough = if found.consumed == rest.len() {
            other.consumed == rest.len()
        } else {
            other.consumed >= found.consumed - found.consumed / SECOND_COST
        };
        if !enough || !self.is_gain(&other) {
            return Ok(false);
        }
        let compressed = &self.second_scratch[..other.written];
        self.out.push_compressed(other.consumed, compressed, self.measures.block_len, true);
        self.passed(other.consumed);
        Ok(true)
    }

    /// Fills the last whole blocks with a rest that compresses to `written` bytes, so that the
    /// remainder can be inline instead of a short block.
    fn fill_whole_blocks(&mut self, written: usize) -> Result<Option<Rest>> {
        let block_len = self.measures.block_len;
        let rest = &self.input[self.at..];
        let room = written / block_len * block_len;
        let all = self.scratch[..written].to_vec();
        let found = match room {
            0 => Fit { consumed: 0, written: 0 },
            _ => {
                let shorter = self.encoder.shorten(rest, &all, &mut self.scratch[..room]);
                checked(shorter.map_err(Error::failed)?, rest.len(), room)
            }
        };
        if found.consumed < rest.len() && found.consumed > 0 && self.is_gain(&found) {
            self.push_compressed(&found);
        } else {
            self.scratch[..written].copy_from_slice(&all);
            self.push_compressed(&Fit { consumed: self.rest().len(), written });
        }
        Ok(None)
    }

    fn is_gain(&self, found: &Fit) -> bool {
        let block_len = self.measures.block_len;
        let space = found.written.next_multiple_of(block_len);
        if found.consumed == self.rest().len() {
            found.consumed.next_multiple_of(block_len) > space
        } else {
            found.consumed > 0 && self.measures.gain.holds(found.consumed, space)
        }
    }

    /// Returns a rest of up to a block as inline data, compressed if that is smaller; a rest as
    /// long as a block cannot be inline.
    fn inline_rest(&mut self) -> Result<Option<Rest>> {
        // Indexes of a compressed file take at least 16 bytes.
        const INDEX_LEN: usize = 16;
        let start = self.at;
        let rest = &self.input[start..];
        let index_len = if self.filled_with.is_some() { 0 } else { INDEX_LEN };
        let inline_max = self.measures.inline_max();
        let room = rest.len().saturating_sub(1 + index_len).min(inline_max);
        if !self.incompressible_skip.failed() {
            let found = fit(self.encoder, rest, &mut self.scratch[..room])?;
            if found.consumed == rest.len() {
                let bytes = self.scratch[..found.written].to_vec();
                return Ok(Some(Rest::Inline { start, bytes, compressed: true }));
            }
        }
        if rest.len() > inline_max {
            self.push_plain();
            return Ok(None);
        }
        Ok(Some(Rest::Inline { start, bytes: rest.to_vec(), compressed: false }))
    }

    fn push_plain(&mut self) {
        let rest = &self.input[self.at..];
        let raw = &rest[..rest.len().min(self.measures.block_len)];
        let Measures { block_len, interlaced, .. } = self.measures;
        self.out.push_plain(raw, block_len, if interlaced { self.at % block_len } else { 0 });
        self.at += raw.len();
    }

    fn push_compressed(&mut self, found: &Fit) {
        let compressed = &self.scratch[..found.written];
        self.out.push_compressed(found.consumed, compressed, self.measures.block_len, false);
        self.passed(found.consumed);
    }

    fn passed(&mut self, len: usize) {
        self.filled_with = Some(len);
        self.at += len;
        self.incompressible_skip.succeed();
    }
}
