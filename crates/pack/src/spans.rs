//! Cuts a plan's files into the spans that workers take: one long piece, or many small files.

use crate::context::{Context, Piece};
use packfs_core::FileJob;

/// Input of one span, unless a single piece is longer.
pub(crate) const SPAN_LEN: u64 = 512 << 10;
/// Files in one span.
const SPAN_PIECES: usize = 128;

/// Yields the spans of a plan, in plan order.
pub(crate) struct Spans<'a, O, F, J> {
    context: &'a Context<'a>,
    own_from: O,
    span_len: u64,
    piece_len: F,
    joins: J,
    next_job: u32,
    next_offset: u64,
}

impl<'a, O, F, J> Spans<'a, O, F, J>
where
    O: Fn(&FileJob) -> u64,
    F: Fn(&FileJob) -> u64,
    J: Fn(&[Piece], &Piece) -> bool,
{
    /// Spans of at most `span_len` bytes. What a file has before its `own_from` is left out, files longer than their `piece_len` are cut into pieces of that length. `joins`:
    /// whether a piece may be in one span with those before it.
    pub(crate) fn new(context: &'a Context<'a>, own_from: O, span_len: u64, piece_len: F, joins: J) -> Self {
        Spans { context, own_from, span_len, piece_len, joins, next_job: 0, next_offset: 0 }
    }

    /// The pieces of the next span and their length together.
    pub(crate) fn next(&mut self) -> Option<(Vec<Piece>, u64)> {
        let mut pieces = Vec::new();
        let mut len = 0;
        while let Some(job) = self.context.plan.files.get(self.next_job as usize) {
            let file_len = self.context.len(job.node);
            let start = self.next_offset.max((self.own_from)(job));
            if start >= file_len {
                self.next_job += 1;
                continue;
            }
            let rest = file_len - start;
            if pieces.len() == SPAN_PIECES || (len + rest > self.span_len && !pieces.is_empty()) {
                break;
            }
            let range = start..start + rest.min((self.piece_len)(job));
            let last = range.end == file_len;
            let piece = Piece { job: self.next_job, range, last };
            if !pieces.is_empty() && !(self.joins)(&pieces, &piece) {
                break;
            }
            (self.next_job, self.next_offset) =
                if last { (piece.job + 1, 0) } else { (piece.job, piece.range.end) };
            len += piece.range.end - piece.range.start;
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some((pieces, len))
    }
}
