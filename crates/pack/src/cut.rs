//! What worker threads do: read a stretch of files, cut it into blocks, compress them, hash tails.

use crate::PackOptions;
use crate::class::Class;
use crate::context::{Context, Piece, is_zero};
use crate::gain::Gain;
use crate::noise::is_noise;
use crate::seen::TailBytes;
use packfs_codec::Encoder;
use packfs_core::codec::BranchSet;
use packfs_core::{Error, Result, StoredBlock};

/// What became of one [`Piece`].
#[derive(Default)]
pub(crate) struct CutPiece {
    pub blocks: Vec<StoredBlock>,
    /// How many of the piece's bytes are holes.
    pub hole_len: u64,
    /// Its stored blocks are the next so many bytes of the span's.
    pub stored_len: usize,
    pub tail: Option<TailBytes>,
    pub class: Class,
}

/// What became of a span: its pieces, or why they could not be read; and the stored bytes of all of them.
pub(crate) struct CutSpan {
    pub pieces: Vec<Result<CutPiece>>,
    pub stored: Vec<u8>,
}

/// One worker's encoders and scratch.
pub(crate) struct Cutter<'a> {
    context: &'a Context<'a>,
    block: Option<Box<dyn Encoder>>,
    /// `None`: shared blocks are compressed like any other.
    shared: Option<Option<Box<dyn Encoder>>>,
    raw: Vec<u8>,
    gain: Gain,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(context: &'a Context<'a>, options: &PackOptions) -> Result<Self> {
        let plan = context.plan;
        let encoder = |settings: &Option<_>| options.effort.encoder(settings.as_ref());
        let shared =
            (plan.shared_codec != plan.block_codec).then(|| encoder(&plan.shared_codec)).transpose()?;
        let raw = vec![0; context.block_len() as usize];
        Ok(Cutter { context, block: encoder(&plan.block_codec)?, shared, raw, gain: options.gain })
    }

    /// Reads and compresses a span. A piece that cannot be read is an error of its own; a codec's failure is the span's.
    pub(crate) fn cut(&mut self, pieces: &[Piece]) -> Result<CutSpan> {
        let mut span = CutSpan { pieces: Vec::with_capacity(pieces.len()), stored: Vec::new() };
        for piece in pieces {
            let before = span.stored.len();
            let cut = self.cut_piece(piece, &mut span.stored);
            if cut.is_err() {
                span.stored.truncate(before);
            }
            span.pieces.push(cut.map(|cut| CutPiece { stored_len: span.stored.len() - before, ..cut }));
        }
        Ok(span)
    }

    fn cut_piece(&mut self, piece: &Piece, stored: &mut Vec<u8>) -> Result<CutPiece> {
        let mut reader = self.context.open(self.context.node(piece.job))?;
        let tail_len = if piece.last { self.context.shared_tail_len(piece.job) } else { 0 };
        let blocks_end = piece.range.end - tail_len;
        let mut cut = CutPiece::default();
        if blocks_end > 0 {
            cut.class = Class::of_piece(self.context, piece, &mut *reader)?;
            if let Some(block) = &mut self.block {
                block.expect_code(cut.class.branches());
            }
        }
        let mut data = 0..0;
        let mut offset = piece.range.start;
        while offset < blocks_end {
            let len = self.context.block_len().min(blocks_end - offset);
            if self.context.plan.holes && data.end <= offset {
                data = reader.next_data(offset)?.unwrap_or(u64::MAX..u64::MAX);
            }
            let raw = &mut self.raw[..len as usize];
            let hole = self.context.plan.holes && {
                data.start >= offset + len || {
                    reader.read_exact_at(offset, raw)?;
                    is_zero(raw)
                }
            };
            if hole {
                cut.blocks.push(StoredBlock { stored_len: 0, compressed: false });
                cut.hole_len += len;
            } else {
                if !self.context.plan.holes {
                    reader.read_exact_at(offset, raw)?;
                }
                cut.blocks.push(store(self.block.as_deref_mut(), self.gain, raw, stored)?);
            }
            offset += len;
        }
        if tail_len > 0 {
            let mut bytes = vec![0; tail_len as usize].into_boxed_slice();
            reader.read_exact_at(blocks_end, &mut bytes)?;
            if blocks_end == 0 {
                cut.class = Class::of(self.context.tree.first_name(self.context.node(piece.job)), &bytes);
            }
            cut.tail = Some(TailBytes::new(bytes));
        }
        Ok(cut)
    }

    /// Compresses a shared block of files that hold such code.
    pub(crate) fn compress_shared(
        &mut self,
        raw: &[u8],
        branches: BranchSet,
    ) -> Result<(StoredBlock, Vec<u8>)> {
        let encoder = match &mut self.shared {
            Some(own) => own.as_deref_mut(),
            None => self.block.as_deref_mut(),
        };
        let mut encoder = encoder;
        if let Some(encoder) = &mut encoder {
            encoder.expect_code(branches);
        }
        let mut stored = Vec::new();
        let block = store(encoder, self.gain, raw, &mut stored)?;
        Ok((block, stored))
    }
}

/// Appends `raw` to `out`, compressed if that saves enough.
fn store(
    encoder: Option<&mut (dyn Encoder + '_)>,
    gain: Gain,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> Result<StoredBlock> {
    let start = out.len();
    if let Some(encoder) = encoder
        && (gain == Gain::ANY || !is_noise(raw))
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
