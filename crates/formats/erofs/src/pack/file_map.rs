//! Map of a compressed file, in terms of the format rather than of the pack engine.

use packfs_format::{Cluster, ClusterForm, TailPlace, units::*};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Uncompressed.
    Plain,
    /// A whole cluster.
    Compressed,
    /// The start of a decoded cluster.
    Part,
    /// Zeros.
    Hole,
    /// After the inode.
    Inline {
        compressed: bool,
    },
    Fragment(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u64,
    pub len: u64,
    /// Start of its first block in the image, or of its first byte if it is not aligned.
    pub offset: u64,
    /// Length without the zeros that pad a block.
    pub stored_len: u32,
    pub form: Form,
    pub second: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileMap {
    /// Never 0.
    pub size: u64,
    /// In order, without gaps.
    pub pieces: Vec<Piece>,
    /// The second one is used only by pieces with `second`.
    pub algorithms: [u8; 2],
    /// True if plain pieces that start within a block are rotated.
    pub is_rotated: bool,
}

impl FileMap {
    /// `tail` is the rest of the file after `clusters`.
    pub(super) fn new(size: u64, clusters: &[Cluster], tail: Option<TailPlace>, algorithms: [u8; 2]) -> Self {
        let is_rotated = clusters.iter().any(|cluster| cluster.form == ClusterForm::Rotated);
        let mut map =
            FileMap { size, pieces: Vec::with_capacity(clusters.len() + 1), algorithms, is_rotated };
        let mut start = 0;
        for cluster in clusters {
            let form = match cluster.form {
                ClusterForm::Hole => Form::Hole,
                ClusterForm::Plain | ClusterForm::Rotated => Form::Plain,
                ClusterForm::Compressed => Form::Compressed,
                ClusterForm::CompressedPart => Form::Part,
            };
            let Cluster { offset, stored_len, second, .. } = *cluster;
            map.pieces.push(Piece { start, len: cluster.len, offset, stored_len, form, second });
            start += cluster.len;
        }
        debug_assert!(start <= size && (tail.is_some() || start == size), "clusters make up their file");
        debug_assert!(map.pieces.iter().all(|piece| piece.len > 0), "a cluster holds bytes");
        let len = size.minus(start);
        let piece = |stored_len, form| Piece { start, len, offset: 0, stored_len, form, second: false };
        match tail {
            Some(TailPlace::Packed { offset }) => map.pieces.push(piece(0, Form::Fragment(offset))),
            Some(TailPlace::Inline(tail)) => {
                map.pieces.push(piece(tail.stored_len, Form::Inline { compressed: tail.compressed }));
            }
            None => {}
        }
        map.promote_second();
        map
    }

    /// Swaps the algorithms if nothing is compressed with the first.
    fn promote_second(&mut self) {
        let compressed = |piece: &&Piece| {
            matches!(piece.form, Form::Compressed | Form::Part | Form::Inline { compressed: true })
        };
        if self.pieces.iter().filter(compressed).all(|piece| piece.second) {
            self.algorithms.swap(0, 1);
            self.pieces.iter_mut().for_each(|piece| piece.second = false);
        }
    }

    pub(super) fn algorithm_of(&self, piece: &Piece) -> u8 {
        self.algorithms[usize::from(piece.second)]
    }

    /// True if stored bytes start within a block; with `exact_lens` also if compressed ones end
    /// within one, because they are not padded then.
    pub(super) fn is_unaligned(&self, block_bits: u32, exact_lens: bool) -> bool {
        let within = (1 << block_bits) - 1;
        self.pieces.iter().any(|piece| match piece.form {
            Form::Compressed | Form::Part => {
                piece.offset & within != 0 || exact_lens && u64::from(piece.stored_len) & within != 0
            }
            Form::Plain => piece.offset & within != 0,
            _ => false,
        })
    }

    /// True if no cluster takes more bytes than it decodes to, as extents require. Indexes of
    /// logical clusters count whole blocks.
    pub(super) fn fits_extents(&self) -> bool {
        let fits = |piece: &Piece| piece.form != Form::Compressed || u64::from(piece.stored_len) <= piece.len;
        self.pieces.iter().all(fits)
    }

    /// Returns the offset in the packed inode of a file that is entirely there.
    pub(super) fn whole_fragment(&self) -> Option<u64> {
        match self.pieces[..] {
            [Piece { form: Form::Fragment(offset), .. }] => Some(offset),
            _ => None,
        }
    }

    /// Returns the stored length of an inline tail; 0 without one.
    pub(super) fn inline_len(&self) -> u32 {
        match self.pieces.last() {
            Some(Piece { form: Form::Inline { .. }, stored_len, .. }) => *stored_len,
            _ => 0,
        }
    }

    pub(super) fn spill_tail(&mut self, offset: u64, block_len: u32) {
        if let Some(piece) = self.pieces.last_mut()
            && let Form::Inline { compressed } = piece.form
        {
            piece.form = if compressed { Form::Compressed } else { Form::Plain };
            if compressed {
                // Zeros precede the data in the block.
                piece.stored_len = piece.stored_len.next_multiple_of(block_len);
            }
            piece.offset = offset;
        }
    }
}
