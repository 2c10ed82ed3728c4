//! What worker threads do: read a stretch of files, cut it into blocks, compress them, hash tails.

use packfs_codec::Encoder;
use packfs_core::codec::CodecSettings;
use packfs_core::{
    ContentReader, Contents, Cut, Error, NodeId, NodeKind, Plan, Result, StoredBlock, Tail, Tree,
};
use std::ops::Range;

/// A stretch of one file: whole blocks, or up to the file's end with its tail.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Index of the file in the plan.
    pub job: u32,
    /// Which bytes of the file; starts at a block boundary.
    pub range: Range<u64>,
    /// Whether `range` ends where the file ends.
    pub last: bool,
}

/// What a task needs to know of the whole.
pub(crate) struct Context<'a> {
    pub tree: &'a Tree,
    pub contents: &'a dyn Contents,
    pub plan: &'a Plan,
}

impl Context<'_> {
    pub(crate) fn block_len(&self) -> u64 {
        match &self.plan.cut {
            Cut::FixedInput { block_len } => u64::from(*block_len),
            Cut::FixedOutput(cut) => u64::from(cut.block_len),
        }
    }

    pub(crate) fn open(&self, node: NodeId) -> Result<Box<dyn ContentReader + '_>> {
        match self.tree.node(node).kind {
            NodeKind::File { content, .. } => self.contents.open(content),
            _ => Err(Error::failed("internal: only files have contents")),
        }
    }

    pub(crate) fn len(&self, node: NodeId) -> u64 {
        match self.tree.node(node).kind {
            NodeKind::File { len, .. } => len,
            _ => 0,
        }
    }

    pub(crate) fn node(&self, job: u32) -> NodeId {
        self.plan.files[job as usize].node
    }

    /// Length of the part of a file that goes into a shared block; 0: none.
    pub(crate) fn shared_tail_len(&self, job: u32) -> u64 {
        let job = self.plan.files[job as usize];
        match job.tail {
            Tail::Own | Tail::Inline => 0,
            Tail::Shared => self.len(job.node) % self.block_len(),
            Tail::SharedWhole => self.len(job.node),
        }
    }
}

/// A tail that is to go into a shared block.
pub(crate) struct TailBytes {
    pub bytes: Box<[u8]>,
    pub hash: u128,
}

/// What became of one [`Piece`].
#[derive(Default)]
pub(crate) struct CutPiece {
    pub blocks: Vec<StoredBlock>,
    /// How many of the piece's bytes are holes.
    pub hole_len: u64,
    /// Its stored blocks are the next so many bytes of the span's.
    pub stored_len: usize,
    pub tail: Option<TailBytes>,
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
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Result<Self> {
        let plan = context.plan;
        let shared =
            (plan.shared_codec != plan.block_codec).then(|| encoder(&plan.shared_codec)).transpose()?;
        let raw = vec![0; context.block_len() as usize];
        Ok(Cutter { context, block: encoder(&plan.block_codec)?, shared, raw })
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
                cut.blocks.push(store(self.block.as_deref_mut(), raw, stored)?);
            }
            offset += len;
        }
        if tail_len > 0 {
            let mut bytes = vec![0; tail_len as usize].into_boxed_slice();
            reader.read_exact_at(blocks_end, &mut bytes)?;
            let hash = xxhash_rust::xxh3::xxh3_128(&bytes);
            cut.tail = Some(TailBytes { bytes, hash });
        }
        Ok(cut)
    }

    /// Compresses a shared block.
    pub(crate) fn compress_shared(&mut self, raw: &[u8]) -> Result<(StoredBlock, Vec<u8>)> {
        let encoder = match &mut self.shared {
            Some(own) => own.as_deref_mut(),
            None => self.block.as_deref_mut(),
        };
        let mut stored = Vec::new();
        let block = store(encoder, raw, &mut stored)?;
        Ok((block, stored))
    }
}

fn encoder(settings: &Option<CodecSettings>) -> Result<Option<Box<dyn Encoder>>> {
    settings.as_ref().map(|settings| packfs_codec::encoder(settings).map_err(Error::usage)).transpose()
}

/// Appends `raw` to `out`, compressed if that makes it shorter.
fn store(encoder: Option<&mut (dyn Encoder + '_)>, raw: &[u8], out: &mut Vec<u8>) -> Result<StoredBlock> {
    let start = out.len();
    if let Some(encoder) = encoder {
        out.resize(start + raw.len() - 1, 0);
        if let Some(len) = encoder.compress(raw, &mut out[start..]).map_err(Error::failed)? {
            out.truncate(start + len);
            return Ok(StoredBlock { stored_len: len as u32, compressed: true });
        }
        out.truncate(start);
    }
    out.extend_from_slice(raw);
    Ok(StoredBlock { stored_len: raw.len() as u32, compressed: false })
}

/// Whether all bytes are zero; looks at the first few before it looks at all.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (head, rest) = bytes.split_at(bytes.len().min(16));
    head.iter().all(|&b| b == 0)
        && rest.chunks(4096).all(|chunk| chunk.iter().fold(0, |acc, &b| acc | b) == 0)
}
