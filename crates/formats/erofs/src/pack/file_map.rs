//! Where the bytes of one compressed file lie, in the words of the format rather than of the pack
//! engine.

use packfs_core::{Error, Result};
use packfs_format::{Cluster, ClusterForm, TailPlace};

/// What a stretch of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Stored as it is, block behind block.
    Plain,
    /// All that a cluster decodes to.
    Compressed,
    /// The beginning of what a cluster decodes to.
    Part,
    /// Zeros.
    Hole,
    /// Beside the inode.
    Inline { compressed: bool },
    /// In the packed inode, from this byte on.
    Fragment(u64),
}

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it starts in the file.
    pub start: u64,
    /// How long it is there.
    pub len: u64,
    /// Where its first block starts in the image, or its first byte where they are not aligned.
    pub offset: u64,
    /// Bytes stored, without the zeros that fill up a block.
    pub stored_len: u32,
    pub form: Form,
    /// Whether it is compressed with the second of the algorithms.
    pub second: bool,
}

/// A compressed file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileMap {
    /// Length of the file; never 0.
    pub size: u64,
    /// From the start to the end, without gap.
    pub pieces: Vec<Piece>,
    /// Numbers of the algorithms; the second one is only there for pieces that say so.
    pub algorithms: [u8; 2],
}

impl FileMap {
    /// The map of a file of `size` bytes. What `clusters` leave is its tail.
    ///
    /// Errors: `Failed` if they do not add up.
    pub(super) fn new(
        size: u64,
        clusters: &[Cluster],
        tail: Option<TailPlace>,
        algorithms: [u8; 2],
    ) -> Result<Self> {
        let mut map = FileMap { size, pieces: Vec::with_capacity(clusters.len() + 1), algorithms };
        let mut start = 0;
        for cluster in clusters {
            let form = match cluster.form {
                ClusterForm::Hole => Form::Hole,
                ClusterForm::Plain => Form::Plain,
                ClusterForm::Compressed => Form::Compressed,
                ClusterForm::CompressedPart => Form::Part,
            };
            let Cluster { offset, stored_len, second, .. } = *cluster;
            map.pieces.push(Piece { start, len: cluster.len, offset, stored_len, form, second });
            start += cluster.len;
        }
        let tail_len =
            size.checked_sub(start).ok_or_else(|| internal("clusters hold more than their file"))?;
        let piece =
            |stored_len, form| Piece { start, len: tail_len, offset: 0, stored_len, form, second: false };
        match tail {
            Some(TailPlace::Packed { offset }) => map.pieces.push(piece(0, Form::Fragment(offset))),
            Some(TailPlace::Inline(tail)) => {
                map.pieces.push(piece(tail.stored_len, Form::Inline { compressed: tail.compressed }));
            }
            None if tail_len > 0 => return Err(internal("clusters hold less than their file")),
            None => {}
        }
        if map.pieces.iter().any(|piece| piece.len == 0) {
            return Err(internal("a cluster without bytes"));
        }
        map.promote_second();
        Ok(map)
    }

    /// Where nothing is compressed with the first algorithm the second becomes the first.
    fn promote_second(&mut self) {
        let compressed = |piece: &&Piece| {
            matches!(piece.form, Form::Compressed | Form::Part | Form::Inline { compressed: true })
        };
        if self.pieces.iter().filter(compressed).all(|piece| piece.second) {
            self.algorithms.swap(0, 1);
            self.pieces.iter_mut().for_each(|piece| piece.second = false);
        }
    }

    /// Which of the algorithms a piece is compressed with.
    pub(super) fn algorithm_of(&self, piece: &Piece) -> u8 {
        self.algorithms[usize::from(piece.second)]
    }

    /// Where in the packed inode the file lies, if all of it does.
    pub(super) fn whole_fragment(&self) -> Option<u64> {
        match self.pieces[..] {
            [Piece { form: Form::Fragment(offset), .. }] => Some(offset),
            _ => None,
        }
    }

    /// Whether part of it lies beside the inode.
    pub(super) fn inline_len(&self) -> u32 {
        match self.pieces.last() {
            Some(Piece { form: Form::Inline { .. }, stored_len, .. }) => *stored_len,
            _ => 0,
        }
    }

    /// Gives the tail that was to lie beside the inode a block of its own.
    pub(super) fn spill_tail(&mut self, offset: u64) {
        if let Some(piece) = self.pieces.last_mut()
            && let Form::Inline { compressed } = piece.form
        {
            piece.form = if compressed { Form::Compressed } else { Form::Plain };
            piece.offset = offset;
        }
    }
}

/// What the pack engine must not do.
pub(super) fn internal(what: &str) -> Error {
    Error::failed(format!("internal: {what}"))
}
