//! Places the ends of files: beside the inode, in the packed stream, or in a short block of their
//! own.

use super::cutter::CutTail;
use super::placer::{Desk, Placer, hand_out};
use super::stored::rotated;
use crate::context::Piece;
use crate::seen::TailBytes;
use packfs_core::Result;
use packfs_format::{Cluster, ClusterForm, InlineTail, TailPlace};

/// A flat file's last block may waste this part of the file, before its tail goes to the packed
/// stream.
const FLAT_WASTE_SHARE: u64 = 64;

impl<'a> Placer<'a> {
    /// Returns the place of what is not among a piece's clusters, if it has one of its own.
    pub(super) fn take_tail(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        tail: Option<CutTail>,
    ) -> Result<Option<TailPlace>> {
        Ok(match tail {
            None => None,
            Some(CutTail::Kept(offset)) => Some(TailPlace::Packed { offset }),
            Some(CutTail::Inline { bytes, compressed }) => Some(self.keep_inline(&bytes, compressed)?),
            Some(CutTail::Stream(bytes)) => {
                Some(TailPlace::Packed { offset: self.append_packed(desk, &bytes) })
            }
            Some(CutTail::Plain(bytes)) if self.is_flat_so_far(desk) => {
                Some(self.keep_inline(&bytes, false)?)
            }
            Some(CutTail::Plain(bytes)) => self.write_short_block(desk, piece, &bytes)?,
            Some(CutTail::Packed(tail)) => self.take_shared_tail(desk, piece, &tail)?,
        })
    }

    fn keep_inline(&mut self, bytes: &[u8], compressed: bool) -> Result<TailPlace> {
        let id = self.inline.append(bytes)?;
        Ok(TailPlace::Inline(InlineTail { id, stored_len: bytes.len() as u32, compressed }))
    }

    /// Finds the same tail in the packed stream, or puts this one there. A long file that does not
    /// shrink is to stay flat, as that reads best.
    fn take_shared_tail(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        tail: &TailBytes,
    ) -> Result<Option<TailPlace>> {
        let file = *self.context.job(piece);
        if tail.bytes.len() < self.cut.block_len as usize
            && !self.rows.is_empty()
            && self.is_flat_so_far(desk)
        {
            if tail.bytes.len() <= self.cut.inline_flat_max as usize {
                return self.keep_inline(&tail.bytes, false).map(Some);
            }
            let wasted = u64::from(self.cut.block_len) - tail.bytes.len() as u64;
            if wasted <= piece.range.end / FLAT_WASTE_SHARE {
                return self.write_short_block(desk, piece, &tail.bytes);
            }
        }
        if self.cut.share_tails
            && let Some(earlier) = self.seen.find(tail)?
        {
            if piece.range.start == 0 && self.rows.is_empty() {
                desk.placed.duplicate_files += 1;
                desk.placed.duplicate_bytes += tail.bytes.len() as u64;
            }
            return Ok(Some(TailPlace::Packed { offset: self.tail_offsets[earlier as usize] }));
        }
        self.seen.add(file.node, piece.range.end, tail);
        let offset = self.append_packed(desk, &tail.bytes);
        self.tail_offsets.push(offset);
        Ok(Some(TailPlace::Packed { offset }))
    }

    /// Whether the file in work is one run of plain blocks up to here, or nothing.
    fn is_flat_so_far(&self, desk: &Desk<'_, 'a>) -> bool {
        self.rows.is_empty() || self.rows.flat_end(self.cut.block_len) == Some(desk.out.position())
    }

    /// Writes the last bytes of a file as a block of its own.
    fn write_short_block(
        &mut self,
        desk: &mut Desk<'_, 'a>,
        piece: &Piece,
        bytes: &[u8],
    ) -> Result<Option<TailPlace>> {
        let (offset, len) = (desk.out.position(), bytes.len() as u32);
        let row =
            Cluster { offset, len: len.into(), stored_len: len, form: ClusterForm::Plain, second: false };
        self.rows.push(row, self.cut.block_len);
        let block_len = u64::from(self.cut.block_len);
        match (piece.range.end - bytes.len() as u64) % block_len {
            phase if self.cut.interlaced && phase > 0 => {
                self.write(desk, &rotated(bytes, block_len as usize, phase as usize))?;
            }
            _ => self.write(desk, bytes)?,
        }
        self.align(desk)?;
        Ok(None)
    }

    fn append_packed(&mut self, desk: &mut Desk<'_, 'a>, bytes: &[u8]) -> u64 {
        let mut segments = Vec::new();
        let offset = self.packed.append(bytes, |segment| segments.push(segment));
        for segment in segments {
            hand_out(desk, segment);
        }
        offset
    }
}
