//! Stored form of data, which is not decoded: clusters, chunks, runs, and tails.

use super::ClusterMap;
use crate::codec;
use crate::corruption::Place;
use crate::disk::EROFS_FEATURE_INCOMPAT_LZ4_0PADDING;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use packfs_core::{Error, FileType, Result, len_of, u32_of};
use packfs_format::{
    Cluster, ClusterForm, Clusters, FileForm, FilePlace, InlineTail, InodeId, StoredClusters, TailPlace,
    units::*,
};
use std::ops::Range;
use zerocopy::IntoBytes;

/// Limit of clusters of a file: that of the pack engine.
const CLUSTERS_MAX: usize = 1 << 26;
/// Longest plain cluster: adjacent blocks are joined.
const PLAIN_LEN_MAX: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) logical: Range<u64>,
    pub(super) from: PieceFrom,
    pub(super) form: PieceForm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PieceFrom {
    Stored(Range<u64>),
    Inline(Range<u64>),
    /// Offset in the packed inode, which determines the form.
    Packed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceForm {
    Hole,
    Plain { rotated: bool },
    Compressed { algorithm: u8, partial: bool },
}

impl StoredClusters for Reader {
    fn block_len(&self) -> u32 {
        u32_of(self.geometry.block_len())
    }

    fn file(&self, id: InodeId, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>> {
        let raw = self.raw_inode(id.0)?;
        if raw.file_type != FileType::File {
            return Err(Error::failed(format!("is a {}, not a file", raw.file_type.word())));
        }
        self.stored_content(&raw, clusters)
    }

    fn packed(&self, clusters: &mut Vec<Cluster>) -> Result<Option<(FilePlace<Clusters>, u64)>> {
        let Some(packed) = &self.packed else { return Ok(None) };
        Ok(Some((self.stored_content(packed, clusters)?, packed.size)))
    }

    fn identity(&self) -> Vec<u8> {
        self.geometry.super_block.as_bytes().to_vec()
    }
}

impl Reader {
    fn stored_content(&self, raw: &RawInode, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>> {
        if raw.size == 0 {
            return Ok(FilePlace::default());
        }
        match raw.layout {
            Layout::FlatPlain | Layout::FlatInline => self.stored_flat(raw, clusters),
            Layout::ChunkBased => self.stored_chunks(raw, clusters),
            _ if !self.geometry.has(EROFS_FEATURE_INCOMPAT_LZ4_0PADDING) => {
                Err(Error::unsupported("merge", "compressed data as before Linux 5.3, padded at its end")
                    .hint("packfs repack compresses it anew"))
            }
            Layout::CompressedFull | Layout::CompressedCompact => self.stored_clusters(raw, clusters),
        }
    }

    fn stored_flat(&self, raw: &RawInode, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>> {
        let Some(start_block) = raw.start_block else {
            clusters.push(hole(raw.size));
            let form = in_chunks(self.geometry.block_bits);
            return Ok(FilePlace { count: 1, form, ..FilePlace::default() });
        };
        let blocks_len = self.flat_blocks_len(raw);
        let mut place = FilePlace { form: FileForm::Flat, ..FilePlace::default() };
        if blocks_len > 0 {
            let address = self.geometry.bytes_of(start_block).unwrap_or(u64::MAX);
            place.start = self.joined.locate(&self.geometry, 0, address, blocks_len, raw.place)?;
        }
        if blocks_len < raw.size {
            let len = raw.size.minus(blocks_len);
            self.check_inline(raw.place, raw.tail_at(), len)?;
            let tail = InlineTail { id: raw.tail_at(), stored_len: u32_of(len), compressed: false };
            place.tail = Some(TailPlace::Inline(tail));
        }
        Ok(place)
    }

    fn stored_chunks(&self, raw: &RawInode, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>> {
        let first = clusters.len();
        let chunk_bits = self.chunk_map(raw)?.chunk_bits;
        self.each_chunk(raw, &mut |len, at| {
            let row = at.map_or_else(|| hole(len), |offset| plain(offset, len));
            push(clusters, first, row, 1 << chunk_bits, raw.place)
        })?;
        let count = u32_of(clusters.len().minus(first) as u64);
        Ok(FilePlace { count, form: in_chunks(chunk_bits), ..FilePlace::default() })
    }

    fn stored_clusters(&self, raw: &RawInode, clusters: &mut Vec<Cluster>) -> Result<FilePlace<Clusters>> {
        let first = clusters.len();
        let mut file = CompressedFile {
            reader: self,
            raw,
            clusters,
            first,
            algorithms: [None; 2],
            inline_algorithm: None,
            tail: None,
        };
        match self.cluster_map(raw)? {
            ClusterMap::Packed(at) => file.take_packed(&(0..raw.size), at)?,
            ClusterMap::Index(index) => self.index_pieces(raw, &index, &mut |piece| file.take(&piece))?,
            ClusterMap::Encoded(records) => {
                self.encoded_pieces(raw, &records, &mut |piece| file.take(&piece))?;
            }
        }
        file.finish()
    }
}

struct CompressedFile<'a> {
    reader: &'a Reader,
    raw: &'a RawInode,
    clusters: &'a mut Vec<Cluster>,
    first: usize,
    /// Algorithms in the order of their first use.
    algorithms: [Option<u8>; 2],
    inline_algorithm: Option<u8>,
    tail: Option<TailPlace>,
}

impl CompressedFile<'_> {
    fn take(&mut self, piece: &Piece) -> Result<()> {
        let len = len_of(&piece.logical);
        match &piece.from {
            PieceFrom::Packed(at) => return self.take_packed(&piece.logical, *at),
            PieceFrom::Inline(stored) => return self.take_inline(piece, stored),
            PieceFrom::Stored(stored) => {
                let row = match piece.form {
                    PieceForm::Hole => hole(len),
                    PieceForm::Plain { rotated } => {
                        let form = if rotated { ClusterForm::Rotated } else { ClusterForm::Plain };
                        Cluster { form, ..plain(stored.start, len) }
                    }
                    PieceForm::Compressed { algorithm, partial } => {
                        let place = self.raw.place;
                        self.reader.cluster_block(place, algorithm, stored.clone(), len, partial)?;
                        Cluster {
                            offset: stored.start,
                            len,
                            stored_len: u32_of(len_of(stored)),
                            form: if partial { ClusterForm::CompressedPart } else { ClusterForm::Compressed },
                            second: self.is_second(algorithm)?,
                        }
                    }
                };
                let block_len = self.reader.geometry.block_len();
                push(self.clusters, self.first, row, block_len, self.raw.place)?;
            }
        }
        Ok(())
    }

    fn take_packed(&mut self, logical: &Range<u64>, offset: u64) -> Result<()> {
        self.reader.check_packed(self.raw, offset, len_of(logical))?;
        self.tail = Some(TailPlace::Packed { offset });
        Ok(())
    }

    fn take_inline(&mut self, piece: &Piece, stored: &Range<u64>) -> Result<()> {
        let compressed = match piece.form {
            PieceForm::Compressed { partial: true, .. } => {
                return Err(Error::unsupported("merge", "a part of a cluster beside its inode"));
            }
            PieceForm::Compressed { algorithm, partial: false } => {
                let len = len_of(&piece.logical);
                self.reader.cluster_block(self.raw.place, algorithm, stored.clone(), len, false)?;
                self.inline_algorithm = Some(algorithm);
                true
            }
            PieceForm::Plain { .. } | PieceForm::Hole => false,
        };
        let tail = InlineTail { id: stored.start, stored_len: u32_of(len_of(stored)), compressed };
        self.tail = Some(TailPlace::Inline(tail));
        Ok(())
    }

    /// True for the second algorithm of the file.
    ///
    /// Errors: `Unsupported` for a third one.
    fn is_second(&mut self, algorithm: u8) -> Result<bool> {
        for (index, known) in self.algorithms.iter_mut().enumerate() {
            if *known.get_or_insert(algorithm) == algorithm {
                return Ok(index > 0);
            }
        }
        Err(Error::unsupported("merge", "a file with clusters of three codecs, at most two allowed"))
    }

    fn finish(mut self) -> Result<FilePlace<Clusters>> {
        // An inline tail has the first algorithm.
        if let Some(algorithm) = self.inline_algorithm
            && self.is_second(algorithm)?
        {
            self.algorithms.reverse();
            for row in self.clusters.within_mut(self.first..) {
                row.second =
                    !row.second && matches!(row.form, ClusterForm::Compressed | ClusterForm::CompressedPart);
            }
        }
        let [first, second] = self.algorithms;
        let first_number = first.unwrap_or(0);
        let recipe = codec::recipe_of(first_number, second.unwrap_or(first_number));
        Ok(FilePlace {
            count: u32_of(self.clusters.len().minus(self.first) as u64),
            form: FileForm::Clusters { recipe },
            tail: self.tail,
            ..FilePlace::default()
        })
    }
}

/// `chunk_bits` is below 64.
fn in_chunks(chunk_bits: u32) -> FileForm {
    let [chunk_bits, ..] = chunk_bits.to_le_bytes();
    FileForm::Chunks { chunk_bits }
}

fn hole(len: u64) -> Cluster {
    Cluster { offset: 0, len, stored_len: 0, form: ClusterForm::Hole, second: false }
}

fn plain(offset: u64, len: u64) -> Cluster {
    Cluster { offset, len, stored_len: u32_of(len), form: ClusterForm::Plain, second: false }
}

/// Appends a cluster to those of a file, which start at `first`; joins adjacent plain ones of whole
/// units.
///
/// Errors: `Unsupported` for more than a file may have.
fn push(clusters: &mut Vec<Cluster>, first: usize, row: Cluster, unit: u64, place: Place) -> Result<()> {
    if let Some(last) = clusters.get_mut(first..).and_then(<[Cluster]>::last_mut)
        && last.form == row.form
        && last.len & unit.minus(1) == 0
    {
        let len = last.len.plus(row.len);
        let continues = match row.form {
            ClusterForm::Hole => true,
            ClusterForm::Plain => {
                last.offset.checked_add(last.len) == Some(row.offset) && len <= PLAIN_LEN_MAX
            }
            _ => false,
        };
        if continues {
            last.len = len;
            last.stored_len = if row.form == ClusterForm::Plain { u32_of(len) } else { 0 };
            return Ok(());
        }
    }
    if clusters.len().minus(first) >= CLUSTERS_MAX {
        let what = format!("{place}: more than {CLUSTERS_MAX} clusters of one file");
        return Err(Error::unsupported("merge", what));
    }
    clusters.push(row);
    Ok(())
}
