//! The index of a compressed file: chooses its form, computes its length, and writes it.
//!
//! It follows an inode and its xattrs. Inodes are at multiples of 32 bytes in the metadata, so
//! offsets from the start of the inode determine alignment.

mod compact;
mod extents;
mod heads;

use super::file_map::{FileMap, Form, Piece};
use crate::disk::{self, MapHeader};
use crate::options::IndexForm;
use extents::Extents;
use heads::Heads;
use packfs_core::{Error, Result};
use packfs_format::units::*;
use zerocopy::IntoBytes;

/// Shortest entry of a logical cluster: that of the compact form.
const HEAD_LEN_MIN: u64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub big_clusters: bool,
    pub parts: bool,
    pub inline: bool,
    pub fragments: bool,
    pub extents: bool,
    pub interlaced: bool,
    /// True if the index has clusters of two algorithms.
    pub second: bool,
    /// Maximum blocks of a cluster compressed with each algorithm; 0 without one.
    pub blocks_max: [u32; 2],
}

#[derive(Debug)]
pub(super) struct Index<'a> {
    map: &'a FileMap,
    body: Body,
    start: u64,
    block_bits: u32,
    pub uses: Uses,
    /// Number of stored blocks in `i_u`.
    pub block_count: u64,
}

#[derive(Debug)]
enum Body {
    /// Only a header with the file's offset in the packed inode.
    WholeFragment(u64),
    Full(Heads),
    Compact {
        heads: Heads,
        two_bytes: bool,
    },
    Extents(Extents),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub form: IndexForm,
    /// Permits extents if the form is not fixed.
    pub wide: bool,
    pub byte_aligned: bool,
    /// Rotates plain blocks that start within a block of the file.
    pub interlaced: bool,
    pub block_bits: u32,
    /// Set if stored lengths include the zeros that precede compressed bytes.
    pub exact_lens: bool,
}

impl Body {
    /// Returns the compact form if it is permitted and fits the heads, else the full one.
    fn of_heads(heads: Heads, form: IndexForm, start: u64) -> Self {
        let header_end = start.next_multiple_of(disk::MAP_HEADER_ALIGN) + size_of::<MapHeader>() as u64;
        let two_bytes = (form != IndexForm::Full).then(|| compact::allowed(&heads, header_end)).flatten();
        match two_bytes {
            Some(two_bytes) => Body::Compact { heads, two_bytes },
            None => Body::Full(heads),
        }
    }
}

impl<'a> Index<'a> {
    /// Returns the shortest permitted index for a file whose inode and xattrs take `start` bytes;
    /// at equal length that of logical clusters, which every kernel reads.
    ///
    /// Errors: `TooLarge` for a file that needs extents, such as one beyond 2^32 blocks, where they
    /// are not permitted or cannot describe its tail.
    pub(super) fn choose(map: &'a FileMap, choice: Choice, start: u64) -> Result<Self> {
        let index = |body, uses, block_count| Index {
            map,
            body,
            start,
            block_bits: choice.block_bits,
            uses,
            block_count,
        };
        if let Some(offset) = map.whole_fragment() {
            let uses = Uses { fragments: true, ..Uses::default() };
            return Ok(index(Body::WholeFragment(offset), uses, 0));
        }
        let mut uses = uses(map, choice.block_bits);
        let within_block = (1 << choice.block_bits) - 1;
        let amid = |piece: &Piece| piece.form == Form::Plain && piece.start & within_block != 0;
        uses.interlaced = map.is_rotated || choice.interlaced && map.pieces.iter().any(amid);
        // Copied data keeps its alignment.
        let byte_aligned = choice.byte_aligned || map.is_unaligned(choice.block_bits, choice.exact_lens);
        let may_have_extents = choice.wide
            && (byte_aligned || matches!(choice.form, IndexForm::Auto | IndexForm::Extents))
            && map.inline_len() == 0
            && map.fits_extents()
            && !uses.interlaced;
        let only_extents = byte_aligned || may_have_extents && choice.form == IndexForm::Extents;
        if only_extents && !may_have_extents && !choice.byte_aligned {
            return Err(Error::too_large(
                "cannot index a file: extents that start within a block, and a form without them",
            ));
        }
        let of_extents = (only_extents || may_have_extents).then(|| {
            let extents = Extents::new(map, choice.block_bits, byte_aligned);
            let block_count = extents.stored_len().div_ceil(1 << choice.block_bits);
            index(Body::Extents(extents), Uses { extents: true, second: false, ..uses }, block_count)
        });
        // Files of many blocks have far fewer extents: the other index is not even computed.
        let heads_len_min = map.size.div_ceil(1 << choice.block_bits).times(HEAD_LEN_MIN);
        let is_short = of_extents.as_ref().is_some_and(|extents| extents.len() < heads_len_min);
        let heads = if only_extents || is_short { None } else { Heads::new(map, choice.block_bits) };
        let of_heads = heads.map(|heads| {
            let block_count = heads.block_count();
            index(Body::of_heads(heads, choice.form, start), uses, block_count)
        });
        match (of_heads, of_extents) {
            (Some(of_heads), Some(of_extents)) if of_extents.len() >= of_heads.len() => Ok(of_heads),
            (_, Some(of_extents)) => Ok(of_extents),
            (Some(of_heads), None) => Ok(of_heads),
            (None, None) => Err(Error::too_large(
                "cannot index a file: its clusters need extents, which its tail or the options exclude",
            )),
        }
    }

    pub(super) fn layout(&self) -> u16 {
        match self.body {
            Body::Compact { .. } => disk::EROFS_INODE_COMPRESSED_COMPACT,
            _ => disk::EROFS_INODE_COMPRESSED_FULL,
        }
    }

    fn header_at(&self) -> u64 {
        self.start.next_multiple_of(disk::MAP_HEADER_ALIGN)
    }

    fn header_end(&self) -> u64 {
        self.header_at() + size_of::<MapHeader>() as u64
    }

    pub(super) fn len(&self) -> u64 {
        let end = match &self.body {
            Body::WholeFragment(_) => self.header_end(),
            Body::Full(heads) => {
                let entry_len = size_of::<disk::LclusterIndex>() as u64;
                self.header_end() + disk::FULL_INDEX_GAP + heads.slot_count() * entry_len
            }
            Body::Compact { heads, two_bytes } => {
                self.header_end() + compact::len(self.header_end(), heads.slot_count(), *two_bytes)
            }
            Body::Extents(extents) => extents.end(self.header_end()),
        };
        end - self.start
    }

    /// Appends the index, with padding, to an inode with its xattrs.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let base = out.len() as u64 - self.start;
        let pad = |out: &mut Vec<u8>, at: u64| out.resize((base + at) as usize, 0);
        pad(out, self.header_at());
        match &self.body {
            Body::WholeFragment(offset) => {
                let bit = 1 << (56 + u32::from(disk::Z_EROFS_FRAGMENT_INODE_BIT));
                out.extend_from_slice(&(offset | bit).to_le_bytes());
            }
            Body::Full(heads) => {
                let big_second = if self.uses.second { disk::Z_EROFS_ADVISE_BIG_PCLUSTER_2 } else { 0 };
                let advise = self.advise(heads, disk::Z_EROFS_ADVISE_BIG_PCLUSTER_1 | big_second);
                out.extend_from_slice(self.header(advise).as_bytes());
                pad(out, self.header_end() + disk::FULL_INDEX_GAP);
                heads.write_full(out);
            }
            Body::Compact { heads, two_bytes } => {
                let big = disk::Z_EROFS_ADVISE_BIG_PCLUSTER_1 | disk::Z_EROFS_ADVISE_BIG_PCLUSTER_2;
                let two = if *two_bytes { disk::Z_EROFS_ADVISE_COMPACTED_2B } else { 0 };
                out.extend_from_slice(self.header(self.advise(heads, big) | two).as_bytes());
                compact::write(out, heads, self.header_end(), *two_bytes);
            }
            Body::Extents(extents) => {
                out.extend_from_slice(extents.header(self.block_bits).as_bytes());
                pad(out, extents.records_at(self.header_end()));
                extents.write(out);
            }
        }
        debug_assert_eq!(out.len() as u64, base + self.start + self.len());
    }

    fn advise(&self, heads: &Heads, big: u16) -> u16 {
        (if heads.big { big } else { 0 })
            | (if self.uses.interlaced { disk::Z_EROFS_ADVISE_INTERLACED_PCLUSTER } else { 0 })
            | (if self.uses.inline { disk::Z_EROFS_ADVISE_INLINE_PCLUSTER } else { 0 })
            | (if self.uses.fragments { disk::Z_EROFS_ADVISE_FRAGMENT_PCLUSTER } else { 0 })
    }

    /// Header of an index with logical clusters of one block.
    fn header(&self, advise: u16) -> MapHeader {
        let h_u = match self.map.pieces.last().map(|piece| piece.form) {
            // The upper half is in the tail's entry.
            Some(Form::Fragment(offset)) => offset as u32,
            Some(Form::Inline { .. }) => self.map.inline_len() << 16,
            _ => 0,
        };
        MapHeader {
            h_u: h_u.into(),
            h_advise: advise.into(),
            h_algorithmtype: match self.uses.blocks_max {
                [0, _] => 0,
                [_, 0] => self.map.algorithms[0],
                _ => self.map.algorithms[0] | self.map.algorithms[1] << 4,
            },
            h_clusterbits: 0,
        }
    }
}

fn uses(map: &FileMap, block_bits: u32) -> Uses {
    let mut uses = Uses::default();
    for piece in &map.pieces {
        let blocks = piece.stored_len.div_ceil(1 << block_bits);
        match piece.form {
            Form::Compressed | Form::Part => {
                uses.parts |= piece.form == Form::Part;
                let blocks_max = &mut uses.blocks_max[usize::from(piece.second)];
                *blocks_max = blocks.max(1).max(*blocks_max);
            }
            Form::Inline { compressed } => {
                uses.inline = true;
                uses.blocks_max[0] = uses.blocks_max[0].max(u32::from(compressed));
            }
            Form::Fragment(_) => uses.fragments = true,
            Form::Plain | Form::Hole => {}
        }
    }
    uses.big_clusters = uses.blocks_max.iter().any(|&blocks| blocks > 1);
    uses.second = uses.blocks_max[1] > 0;
    uses
}
