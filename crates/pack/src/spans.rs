//! Cuts a plan's files into spans for workers: one long piece, or many small files.

use crate::context::{Context, Piece};
use packfs_core::{ContentReader, NodeId};
use packfs_format::{DataKind, FileJob};
use std::ops::Range;

/// Input of one span, unless a single piece is longer.
pub(crate) const SPAN_LEN: u64 = 512 << 10;
/// Files in one span.
const SPAN_PIECES: usize = 128;

/// Rules by which files are cut into spans.
pub(crate) trait Rules<K: DataKind> {
    fn span_len(&self) -> u64;

    fn stored_from(&self, job: &FileJob<K>) -> u64;

    fn piece_len(&self, job: &FileJob<K>) -> u64;

    fn hole_max(&self, job: &FileJob<K>) -> u64;

    /// Returns true if a piece may be in one span with those before it.
    fn joins(&self, _pieces: &[Piece], _piece: &Piece) -> bool {
        true
    }
}

pub(crate) struct Spans<'a, K: DataKind> {
    context: &'a Context<'a, K>,
    holes: Holes<'a, K>,
    next_job: u32,
    next_offset: u64,
}

impl<'a, K: DataKind> Spans<'a, K> {
    pub(crate) fn new(context: &'a Context<'a, K>) -> Self {
        Spans { context, holes: Holes { context, file: None }, next_job: 0, next_offset: 0 }
    }

    /// A hole forms a separate span.
    pub(crate) fn next(&mut self, rules: &impl Rules<K>) -> Option<(Vec<Piece>, u64)> {
        let mut pieces = Vec::new();
        let mut len = 0;
        while let Some(job) = self.context.plan.files.get(self.next_job as usize) {
            let file_len = self.context.len(job.node);
            let start = self.next_offset.max(rules.stored_from(job));
            if start >= file_len {
                (self.next_job, self.next_offset) = (self.next_job + 1, 0);
                continue;
            }
            let rest = file_len - start;
            if pieces.len() == SPAN_PIECES || (len + rest > rules.span_len() && !pieces.is_empty()) {
                break;
            }
            let piece_len = rules.piece_len(job);
            let hole_len = if pieces.is_empty() && file_len > piece_len {
                self.holes.len_at(job.node, start, rules.hole_max(job)) / piece_len * piece_len
            } else {
                0
            };
            let is_hole = hole_len > 0;
            let range = start..start + if is_hole { hole_len } else { rest.min(piece_len) };
            let last = range.end == file_len;
            let piece = Piece { job: self.next_job, range, last, is_hole };
            if !pieces.is_empty() && !rules.joins(&pieces, &piece) {
                break;
            }
            (self.next_job, self.next_offset) =
                if last { (piece.job + 1, 0) } else { (piece.job, piece.range.end) };
            len += (piece.range.end - piece.range.start).min(if is_hole { piece_len } else { u64::MAX });
            pieces.push(piece);
            if is_hole {
                break;
            }
        }
        (!pieces.is_empty()).then_some((pieces, len))
    }
}

/// Queries one file after the other.
struct Holes<'a, K: DataKind> {
    context: &'a Context<'a, K>,
    file: Option<Asked<'a>>,
}

struct Asked<'a> {
    node: NodeId,
    reader: Option<Box<dyn ContentReader + 'a>>,
    data: Range<u64>,
}

impl<K: DataKind> Holes<'_, K> {
    /// Length of the hole at `offset`, at most `most`. A file that cannot be read has none; its
    /// reader reports the error.
    fn len_at(&mut self, node: NodeId, offset: u64, most: u64) -> u64 {
        if self.file.as_ref().is_none_or(|file| file.node != node) {
            self.file = Some(Asked { node, reader: self.context.open(node).ok(), data: 0..0 });
        }
        let Some(file) = &mut self.file else { return 0 };
        if file.data.end <= offset {
            file.data = match file.reader.as_mut().map(|reader| reader.next_data(offset)) {
                Some(Ok(Some(found))) => found,
                Some(Ok(None)) => u64::MAX..u64::MAX,
                Some(Err(_)) | None => 0..u64::MAX,
            };
        }
        file.data.start.min(self.context.len(node)).saturating_sub(offset).min(most)
    }
}
