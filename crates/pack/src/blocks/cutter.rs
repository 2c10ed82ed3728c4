//! The worker's side of packing blocks: reads spans of files, cuts them into blocks, compresses
//! these, and hashes tails.

use super::whole_files::{self, WholeFiles};
use crate::base::{Kept, KeptBlocks, OldBlocks, Reuse};
use crate::class::Class;
use crate::conductor::{self, Cut};
use crate::context::{Context, Piece, is_zero};
use crate::digest_log::PieceDigest;
use crate::engine::Job;
use crate::gain::Gain;
use crate::probe::Probe;
use crate::runs::{HostBlock, Runs};
use crate::seen::TailBytes;
use packfs_codec::BranchSet;
use packfs_codec::Encoder;
use packfs_core::{ContentReader, Error, NodeId, Result};
use packfs_format::{BlockStorage, Blocks, Incompressible, StoredBlock};
use std::ops::Range;

#[derive(Default)]
pub(crate) struct BlockPiece {
    pub blocks: Vec<StoredBlock>,
    /// True if the bytes are stored uncompressed in one run, not in blocks.
    pub is_flat: bool,
    /// Number of zeros stored for the piece, if it stores nothing else.
    pub zeros_len: u64,
    pub tail: Option<TailBytes>,
    /// Block of another file that begins with the tail.
    pub host_block: Option<HostBlock>,
}

struct Source<'a> {
    context: &'a Context<'a, Blocks>,
    node: NodeId,
    reader: Option<Box<dyn ContentReader + 'a>>,
    data: Range<u64>,
}

impl<'a> Source<'a> {
    fn new(context: &'a Context<'a, Blocks>, node: NodeId, kept: &mut Option<Source<'a>>) -> Self {
        let kept = kept.take().filter(|kept| kept.node == node);
        kept.unwrap_or(Source { context, node, reader: None, data: 0..0 })
    }

    fn opened(&mut self) -> Result<&mut (dyn ContentReader + 'a)> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.context.open(self.node)?,
        };
        Ok(self.reader.insert(reader).as_mut())
    }

    /// Returns true if the block becomes a hole; `raw` is unspecified then.
    fn read_block(&mut self, offset: u64, raw: &mut [u8], digest: &mut PieceDigest) -> Result<bool> {
        let holes = self.context.plan.holes;
        if holes && self.data.end <= offset {
            self.data = self.opened()?.next_data(offset)?.unwrap_or(u64::MAX..u64::MAX);
        }
        if holes && self.data.start >= offset + raw.len() as u64 {
            digest.add_zeros(raw.len() as u64);
            return Ok(true);
        }
        self.opened()?.read_exact_at(offset, raw)?;
        digest.add(raw);
        Ok(holes && is_zero(raw))
    }

    fn check_unchanged(&mut self) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| reader.check_unchanged())
    }
}

pub(crate) struct Cutter<'a> {
    context: &'a Context<'a, Blocks>,
    reuse: Option<&'a Reuse<'a, KeptBlocks>>,
    runs: &'a Runs,
    block: Option<Box<dyn Encoder>>,
    /// Encoder of fragment blocks; `None` if they are compressed like any other.
    shared: Option<Option<Box<dyn Encoder>>>,
    raw: Vec<u8>,
    gain: Gain,
    probe: Probe,
    incompressible: Incompressible,
    whole_files: &'a WholeFiles,
    old: Option<OldBlocks<'a>>,
    is_verified: bool,
    /// The file of the last piece, if more of it follows.
    kept: Option<Source<'a>>,
    /// A whole block of zeros, cached after the first one was stored.
    zeros: Option<(StoredBlock, Vec<u8>)>,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(job: &Job<'a, Blocks>, whole_files: &'a WholeFiles) -> Result<Self> {
        let Job { context, reuse, parts: runs, options, .. } = *job;
        let plan = context.plan;
        let encoder = |settings: &Option<_>| options.encoder(settings.as_ref());
        let shared = (plan.data.shared_codec != plan.data.block_codec)
            .then(|| encoder(&plan.data.shared_codec))
            .transpose()?;
        let raw = vec![0; context.block_len() as usize];
        let old = OldBlocks::new(context, reuse);
        let block = encoder(&plan.data.block_codec)?;
        let probe = Probe::new(plan.data.block_codec.as_ref(), options.effort, options.min_gain)?;
        let (gain, incompressible) = (options.min_gain, plan.data.incompressible);
        let is_verified = options.verify.is_some();
        Ok(Cutter {
            context,
            reuse,
            runs,
            block,
            shared,
            raw,
            gain,
            probe,
            incompressible,
            whole_files,
            old,
            is_verified,
            kept: None,
            zeros: None,
        })
    }

    fn cut_piece(&mut self, piece: &Piece, stored: &mut Vec<u8>) -> Result<Cut<BlockPiece>> {
        if piece.is_hole {
            return self.cut_hole(piece, stored);
        }
        let is_flat = self.context.job(piece).storage == BlockStorage::Flat;
        if self.incompressible != Incompressible::StoreFile && !is_flat {
            return self.cut_into_blocks(piece, stored);
        }
        if is_flat || self.block.is_none() {
            return self.cut_flat(piece, stored);
        }
        if piece.range.start > 0 || !piece.last {
            let cut = if self.is_flat(piece)? { Self::cut_flat } else { Self::cut_into_blocks };
            return cut(self, piece, stored);
        }
        let before = stored.len();
        let cut = self.cut_into_blocks(piece, stored)?;
        let encoded_len = (stored.len() - before) as u64;
        if WholeFiles::of_short(
            self.context,
            piece.range.end,
            (cut.piece.blocks.len(), encoded_len),
            self.gain,
        ) {
            return Ok(cut);
        }
        stored.truncate(before);
        self.cut_flat(piece, stored)
    }

    fn cut_hole(&mut self, piece: &Piece, stored: &mut Vec<u8>) -> Result<Cut<BlockPiece>> {
        let context = self.context;
        let node = context.node(piece.job);
        let mut source = Source::new(context, node, &mut self.kept);
        source.opened()?;
        source.check_unchanged()?;
        self.keep(source, piece);
        let len = piece.len();
        let mut digest = PieceDigest::new(self.is_verified, piece.range.start);
        digest.add_zeros(len);
        let class = Class::of(context.tree.first_name(node), &[]);
        let seen = digest.finish();
        let cut = |piece| Ok(Cut { piece, class, seen });
        if self.is_flat(piece)? {
            return cut(BlockPiece { is_flat: true, zeros_len: len, ..BlockPiece::default() });
        }
        // Pieces that are holes consist of whole blocks.
        let count = (len / context.block_len()) as usize;
        if context.plan.holes {
            let blocks = vec![StoredBlock::HOLE; count];
            return cut(BlockPiece { blocks, ..BlockPiece::default() });
        }
        let (block, bytes) = self.zero_block()?;
        let zeros_len = if block.compressed { 0 } else { len };
        if block.compressed {
            stored.extend((0..count).flat_map(|_| bytes).copied());
        }
        cut(BlockPiece { blocks: vec![*block; count], zeros_len, ..BlockPiece::default() })
    }

    fn is_flat(&mut self, piece: &Piece) -> Result<bool> {
        let is_flat = self.context.job(piece).storage == BlockStorage::Flat;
        if self.incompressible != Incompressible::StoreFile && !is_flat {
            return Ok(false);
        }
        match self.block.as_mut().filter(|_| !is_flat) {
            Some(encoder) => {
                Ok(!self.whole_files.of_long(self.context, piece.job, encoder.as_mut(), self.gain)?)
            }
            None => Ok(true),
        }
    }

    /// A whole block of zeros, as stored if the plan allows no holes.
    fn zero_block(&mut self) -> Result<&(StoredBlock, Vec<u8>)> {
        let zeros = match self.zeros.take() {
            Some(known) => known,
            None => {
                let raw = vec![0; self.context.block_len() as usize];
                let mut encoder = self.block.as_deref_mut();
                if let Some(encoder) = &mut encoder {
                    encoder.expect_code(BranchSet::UNKNOWN);
                }
                let mut bytes = Vec::new();
                let how = (self.gain, self.incompressible, &mut self.probe);
                (store(encoder, how, &raw, &mut bytes)?, bytes)
            }
        };
        Ok(self.zeros.insert(zeros))
    }

    fn keep(&mut self, source: Source<'a>, piece: &Piece) {
        self.kept = (!piece.last).then_some(source);
    }

    /// Holes are stored as zeros.
    fn cut_flat(&mut self, piece: &Piece, stored: &mut Vec<u8>) -> Result<Cut<BlockPiece>> {
        let context = self.context;
        let node = context.node(piece.job);
        let mut digest = PieceDigest::new(self.is_verified, piece.range.start);
        let mut source = Source::new(context, node, &mut self.kept);
        let mut class = None;
        let mut offset = piece.range.start;
        while offset < piece.range.end {
            let len = context.block_len().min(piece.range.end - offset);
            let start = stored.len();
            stored.resize(start + len as usize, 0);
            let raw = &mut stored[start..];
            if source.read_block(offset, raw, &mut digest)? {
                raw.fill(0);
            } else if class.is_none() {
                class = Some(Class::of_read(context, node, (offset, raw), source.opened()?)?);
            }
            offset += len;
        }
        source.check_unchanged()?;
        self.keep(source, piece);
        let class = class.unwrap_or_else(|| Class::of(context.tree.first_name(node), &[]));
        let piece = BlockPiece { is_flat: true, ..BlockPiece::default() };
        Ok(Cut { piece, class, seen: digest.finish() })
    }

    fn cut_into_blocks(&mut self, piece: &Piece, stored: &mut Vec<u8>) -> Result<Cut<BlockPiece>> {
        let context = self.context;
        let node = context.node(piece.job);
        let tail_len = if piece.last { context.shared_tail_len(piece.job) } else { 0 };
        let blocks_end = piece.range.end - tail_len;
        let mut cut = BlockPiece::default();
        let mut digest = PieceDigest::new(self.is_verified, piece.range.start);
        let mut source = Source::new(context, node, &mut self.kept);
        if let Some(old) = &mut self.old {
            old.look_up(node, piece.range.start..blocks_end);
        }
        let mut class = None;
        let mut offset = piece.range.start;
        while offset < blocks_end {
            let len = context.block_len().min(blocks_end - offset);
            let raw = &mut self.raw[..len as usize];
            let old = self.old.as_mut();
            if let Some(block) = old.and_then(|old| old.copy_unread(offset, len as u32, stored, &mut digest))
            {
                cut.blocks.push(block);
                offset += len;
                continue;
            }
            if source.read_block(offset, raw, &mut digest)? {
                cut.blocks.push(StoredBlock::HOLE);
            } else {
                if class.is_none() {
                    let seen = class.insert(Class::of_read(context, node, (offset, raw), source.opened()?)?);
                    if let Some(block) = &mut self.block {
                        block.expect_code(seen.branches());
                    }
                }
                let old = self.old.as_mut().and_then(|old| old.copy_same(offset, raw, stored));
                let store = || {
                    store(
                        self.block.as_deref_mut(),
                        (self.gain, self.incompressible, &mut self.probe),
                        raw,
                        stored,
                    )
                };
                cut.blocks.push(old.map_or_else(store, Ok)?);
            }
            offset += len;
        }
        let kept_by = self.reuse.filter(|reuse| tail_len > 0 && reuse.kept.keeps_tail_of(node));
        if let Some(reuse) = kept_by {
            digest.skip(reuse.digest_of_kept(node));
        } else if tail_len > 0 {
            let mut bytes = vec![0; tail_len as usize].into_boxed_slice();
            source.opened()?.read_exact_at(blocks_end, &mut bytes)?;
            digest.add(&bytes);
            if blocks_end == 0 {
                class = Some(Class::of(context.tree.first_name(node), &bytes));
            }
            cut.host_block = self.runs.find_host_block(context, piece.job, &bytes)?;
            cut.tail = Some(TailBytes::new(bytes));
        }
        source.check_unchanged()?;
        self.keep(source, piece);
        // Data that was copied unread, or is all holes, is classified by name.
        let class = class.unwrap_or_else(|| Class::of(context.tree.first_name(node), &[]));
        Ok(Cut { piece: cut, class, seen: digest.finish() })
    }
}

impl conductor::Cutter for Cutter<'_> {
    type Hint = ();
    type Piece = BlockPiece;
    type Batch = (Vec<u8>, BranchSet);
    type Packed = (StoredBlock, Vec<u8>);

    fn cut(&mut self, piece: &Piece, _: &(), stored: &mut Vec<u8>) -> Result<Cut<BlockPiece>> {
        self.cut_piece(piece, stored)
    }

    fn pack(&mut self, (raw, branches): (Vec<u8>, BranchSet)) -> Result<(StoredBlock, Vec<u8>)> {
        let mut encoder = match &mut self.shared {
            Some(own) => own.as_deref_mut(),
            None => self.block.as_deref_mut(),
        };
        if let Some(encoder) = &mut encoder {
            encoder.expect_code(branches);
        }
        let mut stored = Vec::new();
        let block = store(encoder, (self.gain, self.incompressible, &mut self.probe), &raw, &mut stored)?;
        Ok((block, stored))
    }
}

fn store(
    encoder: Option<&mut (dyn Encoder + '_)>,
    (gain, incompressible, probe): (Gain, Incompressible, &mut Probe),
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<StoredBlock> {
    let start = out.len();
    let encoder = match (encoder, incompressible) {
        (Some(encoder), Incompressible::Encode | Incompressible::StoreFile) => {
            let stored_len = whole_files::encode(encoder, raw, out)?;
            return Ok(StoredBlock { stored_len, compressed: true });
        }
        (encoder, _) => encoder,
    };
    if let Some(encoder) = encoder
        && probe.is_worth_trying(raw)?
    {
        out.resize(start + gain.room(raw.len()), 0);
        if let Some(len) = encoder.compress(raw, &mut out[start..]).map_err(Error::failed)? {
            out.truncate(start + len);
            return Ok(StoredBlock { stored_len: len as u32, compressed: true });
        }
        out.truncate(start);
    }
    out.extend_from_slice(raw);
    Ok(StoredBlock { stored_len: raw.len() as u32, compressed: false })
}
