//! Placement of the ends of files: inline, in the packed stream, or in a short block.

use super::cutter::CutTail;
use super::placer::{Placement, Placer, hand_out};
use super::stored::rotated;
use crate::context::Piece;
use crate::seen::{TailBytes, TailId};
use packfs_core::Result;
use packfs_format::{Cluster, ClusterForm, InlineTail, TailPlace};

/// A flat file's last block may waste this part of the file before its tail goes to the packed
/// stream.
const FLAT_WASTE_SHARE: u64 = 64;

impl<'a> Placer<'a> {
    /// `None` if the tail is not stored by itself.
    pub(super) fn take_tail(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        tail: Option<CutTail>,
    ) -> Result<Option<TailPlace>> {
        Ok(match tail {
            None => None,
            Some(CutTail::Kept(offset)) => Some(TailPlace::Packed { offset }),
            Some(CutTail::Inline { bytes, compressed }) => Some(self.keep_inline(&bytes, compressed)?),
            Some(CutTail::Stream(bytes)) => {
                Some(TailPlace::Packed { offset: self.append_packed(placement, &bytes) })
            }
            Some(CutTail::Plain(bytes)) if self.is_flat_so_far(placement) => {
                Some(self.keep_inline(&bytes, false)?)
            }
            Some(CutTail::Plain(bytes)) => self.write_short_block(placement, piece, &bytes)?,
            Some(CutTail::Packed(tail)) => self.take_shared_tail(placement, piece, &tail)?,
        })
    }

    fn keep_inline(&mut self, bytes: &[u8], compressed: bool) -> Result<TailPlace> {
        let id = self.inline.append(bytes)?;
        Ok(TailPlace::Inline(InlineTail { id, stored_len: bytes.len() as u32, compressed }))
    }

    /// A long file that does not shrink stays flat, because that reads fastest.
    fn take_shared_tail(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        tail: &TailBytes,
    ) -> Result<Option<TailPlace>> {
        let file = *self.context.job(piece);
        if tail.bytes.len() < self.cut.block_len as usize
            && !self.rows.is_empty()
            && self.is_flat_so_far(placement)
        {
            if tail.bytes.len() <= self.cut.inline_flat_max as usize {
                return self.keep_inline(&tail.bytes, false).map(Some);
            }
            let wasted = u64::from(self.cut.block_len) - tail.bytes.len() as u64;
            if wasted <= piece.range.end / FLAT_WASTE_SHARE {
                return self.write_short_block(placement, piece, &tail.bytes);
            }
        }
        if self.cut.share_tails
            && let Some(earlier) = self.seen.find(tail)?
            && let Some(place) = self.place_of(placement, earlier)
        {
            if piece.range.start == 0 && self.rows.is_empty() {
                placement.placed.duplicate_files += 1;
                placement.placed.duplicate_bytes += tail.bytes.len() as u64;
            }
            return Ok(Some(place));
        }
        self.seen.add(file.node, tail);
        let offset = self.append_packed(placement, &tail.bytes);
        Ok(Some(TailPlace::Packed { offset }))
    }

    fn place_of(&self, placement: &Placement<'_, 'a>, earlier: TailId) -> Option<TailPlace> {
        let kept = self.kept_tails.get(earlier as usize).map(|&offset| TailPlace::Packed { offset });
        kept.or(placement.placed.files[self.seen.node(earlier).index()].tail)
    }

    fn is_flat_so_far(&self, placement: &Placement<'_, 'a>) -> bool {
        self.rows.is_empty() || self.rows.flat_end(self.cut.block_len) == Some(placement.out.position())
    }

    fn write_short_block(
        &mut self,
        placement: &mut Placement<'_, 'a>,
        piece: &Piece,
        bytes: &[u8],
    ) -> Result<Option<TailPlace>> {
        let (offset, len) = (placement.out.position(), bytes.len() as u32);
        let row =
            Cluster { offset, len: len.into(), stored_len: len, form: ClusterForm::Plain, second: false };
        self.rows.push(row, self.cut.block_len);
        let block_len = u64::from(self.cut.block_len);
        match (piece.range.end - bytes.len() as u64) % block_len {
            phase if self.cut.interlaced && phase > 0 => {
                self.write(placement, &rotated(bytes, block_len as usize, phase as usize))?;
            }
            _ => self.write(placement, bytes)?,
        }
        self.align(placement)?;
        Ok(None)
    }

    pub(super) fn append_packed(&mut self, placement: &mut Placement<'_, 'a>, bytes: &[u8]) -> u64 {
        let mut segments = Vec::new();
        let offset = self.packed.append(bytes, |segment| segments.push(segment));
        for segment in segments {
            hand_out(placement, segment);
        }
        offset
    }
}
