//! A node in the image: its size, and then its bytes.
//!
//! Both are computed from the same facts, once before anything is placed and once after.

use super::chunks::ChunkMap;
use super::dirs;
use super::features::Features;
use super::file_map::FileMap;
use super::index::{Choice, Index};
use super::inodes::{self, COMPACT_LEN, DataWords, EXTENDED_LEN, InodeFacts};
use super::plan::knows_chunks;
use super::room;
use super::times::Times;
use super::xattrs::{XattrTables, icount};
use crate::codec;
use crate::disk;
use crate::options::{IndexForm, Options};
use packfs_core::{Error, FileType, Meta, NodeId, NodeKind, Result, Tree};
use packfs_format::{
    Cluster, ClusterForm, Clusters, FileForm, FilePlace, InlineTail, Placed, Plan, Recipe, TailPlace,
    units::*,
};
use std::borrow::Cow;

/// Input for the bytes of nodes, except positions.
pub(super) struct Nodes<'a> {
    pub options: &'a Options,
    pub tree: &'a Tree,
    pub placed: &'a Placed<Clusters>,
    pub first_used: &'a [NodeId],
    pub xattrs: &'a XattrTables,
    pub times: Times,
    recipes: &'a [Recipe],
    block_bits: u32,
    /// Start of the data's device in the address space, in bytes; 0 without one.
    pub data_base: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Length of inode, xattrs, and map.
    pub head_len: u64,
    /// Length of inline data, which must be in the same block.
    pub inline_len: u64,
    /// Separate blocks in the metadata.
    pub own_blocks: u64,
    extended: bool,
}

enum Data<'a> {
    None {
        word: u64,
    },
    /// In data blocks, with an inline tail.
    Flat {
        start_block: u64,
        tail: Option<InlineTail>,
    },
    /// In separate metadata blocks, with an inline tail.
    Owned(Cow<'a, [u8]>),
    /// The same for a directory, whose bytes are computed once every inode is placed.
    Dir,
    Chunks(ChunkMap),
    /// Chunks, the last of which is in the metadata.
    SpilledChunks {
        blocks: Vec<Option<u64>>,
        tail: InlineTail,
    },
    Clusters {
        map: FileMap,
        spilled: Option<InlineTail>,
    },
}

enum Mapped {
    Flat { start_block: u64 },
    Chunks(ChunkMap),
    Clusters(FileMap),
}

#[derive(Clone, Copy)]
pub(super) struct Spot<'n> {
    /// Start of its separate blocks in the image, in bytes.
    pub own_at: u64,
    /// Returns the node id of an inode.
    pub nid: &'n dyn Fn(NodeId) -> u64,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(
        options: &'a Options,
        tree: &'a Tree,
        (plan, placed): (&'a Plan<Clusters>, &'a Placed<Clusters>),
        xattrs: &'a XattrTables,
        times: Times,
    ) -> Self {
        Nodes {
            options,
            tree,
            placed,
            first_used: &plan.first_used,
            xattrs,
            times,
            recipes: &plan.data.recipes,
            block_bits: options.block_len.trailing_zeros(),
            data_base: 0,
        }
    }

    fn block_len(&self) -> u64 {
        self.options.block_len.into()
    }

    fn facts(&self, id: NodeId, len: u64) -> InodeFacts {
        let node = self.tree.node(id);
        InodeFacts {
            file_type: node.kind.file_type(),
            meta: node.meta,
            links: node.links,
            size: len,
            number: id.0 + 1,
            xattr_icount: icount(self.xattrs.body(node.xattrs)),
            dot_omitted: node.is_dir() && self.options.dot_omitted,
        }
    }

    pub(super) fn special_facts(&self, size: u64, number: u32) -> InodeFacts {
        let mtime = packfs_core::Timestamp { seconds: self.times.epoch, nanos: self.times.nanos };
        InodeFacts {
            file_type: FileType::File,
            meta: Meta { mtime, ..Meta::default() },
            links: 1,
            size,
            number,
            xattr_icount: 0,
            dot_omitted: false,
        }
    }

    fn data(&self, id: NodeId) -> Result<(u64, Data<'a>)> {
        let node = self.tree.node(id);
        Ok(match &node.kind {
            NodeKind::Directory => {
                let len = dirs::len(&dirs::names(self.tree, id, self.options.dot_omitted), self.block_len());
                (len.total(self.block_len()), Data::Dir)
            }
            NodeKind::Symlink(target) => (target.len() as u64, Data::Owned(Cow::Borrowed(target))),
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                (0, Data::None { word: inodes::device_word(*number) })
            }
            NodeKind::Fifo | NodeKind::Socket => (0, Data::None { word: 0 }),
            NodeKind::File { len, .. } => {
                let failed = self.placed.failed.binary_search(&id).is_ok();
                let len = if failed { 0 } else { *len };
                let place = self.placed.files[id.index()];
                let head_len = EXTENDED_LEN + self.xattrs.body(node.xattrs).len() as u64;
                (len, self.file_data(len, &place, head_len)?)
            }
        })
    }

    /// Only the remainder of `head_len` by 32 is valid.
    fn file_data(&self, len: u64, place: &FilePlace<Clusters>, head_len: u64) -> Result<Data<'a>> {
        if len == 0 {
            return Ok(Data::None { word: 0 });
        }
        match (self.mapped(len, place)?, place.tail) {
            (Mapped::Flat { start_block }, Some(TailPlace::Inline(tail))) if !tail.compressed => {
                self.flat_data(len, start_block, tail, head_len)
            }
            (Mapped::Flat { start_block }, None) => Ok(Data::Flat { start_block, tail: None }),
            (Mapped::Chunks(map), None) => Ok(Data::Chunks(map)),
            (Mapped::Clusters(map), tail) => Ok(self.clusters_data(map, tail)),
            _ => Err(Error::failed("a file without an index cannot have such a tail")),
        }
    }

    fn mapped(&self, len: u64, place: &FilePlace<Clusters>) -> Result<Mapped> {
        let clusters = &*self.clusters_of(place);
        if clusters.is_empty() && matches!(place.tail, Some(TailPlace::Packed { .. })) {
            return Ok(Mapped::Clusters(FileMap::new(len, &[], place.tail, [0; 2])));
        }
        Ok(match place.form {
            FileForm::Flat => Mapped::Flat { start_block: (self.data_base + place.start) >> self.block_bits },
            FileForm::Chunks { chunk_bits } => {
                if self.options.wide && clusters.iter().all(|cluster| cluster.form == ClusterForm::Hole) {
                    return Ok(Mapped::Flat { start_block: disk::EROFS_NULL_ADDR_48 });
                }
                let indexes = self.options.typed.chunk_indexes;
                Mapped::Chunks(ChunkMap::new(clusters, len, 1 << chunk_bits, self.block_bits, indexes)?)
            }
            FileForm::Clusters { recipe } => {
                let algorithms = self.algorithms(&self.recipes[usize::from(recipe)], clusters)?;
                Mapped::Clusters(FileMap::new(len, clusters, place.tail, algorithms))
            }
        })
    }

    /// Returns the numbers of a recipe's first and second codec; files of other recipes have only
    /// plain clusters.
    fn algorithms(&self, recipe: &Recipe, clusters: &[Cluster]) -> Result<[u8; 2]> {
        let is_plain = |cluster: &Cluster| {
            matches!(cluster.form, ClusterForm::Plain | ClusterForm::Rotated | ClusterForm::Hole)
        };
        let recipe = match recipe {
            Recipe::Clusters(recipe) => recipe,
            _ if clusters.iter().all(is_plain) => return Ok([0; 2]),
            _ => return Err(Error::failed("compressed clusters of a recipe without a codec")),
        };
        let first = codec::number(recipe.codec.algorithm())?;
        let second = recipe.second.as_ref().map(|codec| codec::number(codec.algorithm()));
        Ok([first, second.transpose()?.unwrap_or(first)])
    }

    /// Returns the clusters of a file with addresses in the whole space.
    fn clusters_of(&self, place: &FilePlace<Clusters>) -> Cow<'a, [Cluster]> {
        let clusters = self.placed.clusters_of(place);
        if self.data_base == 0 {
            return Cow::Borrowed(clusters);
        }
        let moved = |cluster: &Cluster| match cluster.form {
            ClusterForm::Hole => *cluster,
            _ => Cluster { offset: self.data_base + cluster.offset, ..*cluster },
        };
        Cow::Owned(clusters.iter().map(moved).collect())
    }

    fn flat_data(&self, len: u64, start_block: u64, tail: InlineTail, head_len: u64) -> Result<Data<'a>> {
        if room::fits(self.block_len(), head_len, tail.stored_len.into()) {
            return Ok(Data::Flat { start_block, tail: Some(tail) });
        }
        let full_blocks = (len - u64::from(tail.stored_len)) >> self.block_bits;
        if full_blocks == 0 {
            let mut bytes = Vec::new();
            self.placed.data.tails.read(tail, &mut bytes)?;
            return Ok(Data::Owned(Cow::Owned(bytes)));
        }
        if !knows_chunks(self.options) {
            return Err(Error::failed("cannot store the tail of a file: it does not fit after its inode")
                .hint("-O kernel=5.15 allows chunks, whose tails need not follow the inode"));
        }
        let blocks = (start_block..start_block + full_blocks).map(Some).collect();
        Ok(Data::SpilledChunks { blocks, tail })
    }

    fn clusters_data(&self, map: FileMap, tail: Option<TailPlace>) -> Data<'a> {
        let spilled = match tail {
            // The worst case: an index ends at a multiple of 8 bytes.
            Some(TailPlace::Inline(tail)) if !room::fits(self.block_len(), 24, tail.stored_len.into()) => {
                Some(tail)
            }
            _ => None,
        };
        Data::Clusters { map, spilled }
    }

    fn choice(&self, spilled: bool) -> Choice {
        Choice {
            // The position of a spilled tail is unknown when its index is measured.
            form: if spilled { IndexForm::Full } else { self.options.index },
            wide: self.options.wide,
            byte_aligned: self.options.typed.byte_aligned,
            interlaced: self.options.typed.interlaced,
            block_bits: self.block_bits,
            exact_lens: self.options.merged.is_some(),
        }
    }

    /// Returns the length of the inline tail: the remainder after full blocks, if it fits after the
    /// inode.
    fn inline_part(&self, len: u64, head_len: u64) -> u64 {
        let part = len % self.block_len();
        if room::fits(self.block_len(), head_len, part) { part } else { 0 }
    }

    pub(super) fn measure(&self, id: NodeId, far: bool, features: &mut Features) -> Result<Shape> {
        let (len, data) = self.data(id)?;
        let facts = self.facts(id, len);
        let body_len = self.xattrs.body(self.tree.node(id).xattrs).len() as u64;
        let word = match &data {
            Data::Flat { start_block, .. } => *start_block,
            Data::Owned(_) | Data::Dir if far => u64::MAX,
            _ => 0,
        };
        let extended = inodes::is_extended(&facts, &self.times, word);
        let start = if extended { EXTENDED_LEN } else { COMPACT_LEN } + body_len;
        let shape = Shape { head_len: start, inline_len: 0, own_blocks: 0, extended };
        Ok(match data {
            Data::None { .. } => shape,
            Data::Flat { tail, .. } => {
                Shape { inline_len: tail.map_or(0, |tail| tail.stored_len.into()), ..shape }
            }
            Data::Owned(bytes) => self.owned_shape(shape, bytes.len() as u64),
            Data::Dir => self.owned_shape(shape, len),
            Data::Chunks(map) => {
                features.chunks = true;
                features.wide |= map.is_wide();
                Shape { head_len: start + map.len(start), ..shape }
            }
            Data::SpilledChunks { mut blocks, .. } => {
                features.chunks = true;
                blocks.push(None);
                Shape { head_len: start + ChunkMap::of_blocks(blocks, 0).len(start), own_blocks: 1, ..shape }
            }
            Data::Clusters { mut map, spilled } => {
                if spilled.is_some() {
                    map.spill_tail(0, self.options.block_len);
                }
                let index = Index::choose(&map, self.choice(spilled.is_some()), start)?;
                features.add(&index.uses, map.algorithms);
                Shape {
                    head_len: start + index.len(),
                    inline_len: map.inline_len().into(),
                    own_blocks: u64::from(spilled.is_some()),
                    ..shape
                }
            }
        })
    }

    fn owned_shape(&self, shape: Shape, len: u64) -> Shape {
        let inline_len = self.inline_part(len, shape.head_len);
        Shape { inline_len, own_blocks: (len - inline_len).div_ceil(self.block_len()), ..shape }
    }

    /// Appends inode, xattrs, map, and inline data.
    pub(super) fn write_inode(
        &self,
        id: NodeId,
        shape: &Shape,
        spot: Spot<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (len, data) = self.data(id)?;
        let facts = self.facts(id, len);
        let own_block = spot.own_at >> self.block_bits;
        let body = self.xattrs.body(self.tree.node(id).xattrs);
        let start = if shape.extended { EXTENDED_LEN } else { COMPACT_LEN } + body.len() as u64;
        let inline = shape.inline_len > 0;
        let flat_layout = if inline { disk::EROFS_INODE_FLAT_INLINE } else { disk::EROFS_INODE_FLAT_PLAIN };
        let head = |layout: u16, word: u64, out: &mut Vec<u8>| {
            inodes::write(out, &facts, &self.times, DataWords { layout, word }, shape.extended);
            out.extend_from_slice(body);
        };
        match data {
            Data::None { word } => head(disk::EROFS_INODE_FLAT_PLAIN, word, out),
            Data::Flat { start_block, tail } => {
                head(flat_layout, start_block, out);
                if let Some(tail) = tail {
                    self.placed.data.tails.read(tail, out)?;
                }
            }
            Data::Owned(bytes) => {
                head(flat_layout, own_block, out);
                out.extend_from_slice(&bytes[bytes.len() - shape.inline_len as usize..]);
            }
            Data::Dir => {
                head(flat_layout, own_block, out);
                if inline {
                    self.write_dir(id, spot, |is_last, block| {
                        if is_last {
                            out.extend_from_slice(block);
                        }
                    });
                }
            }
            Data::Chunks(map) => {
                head(disk::EROFS_INODE_CHUNK_BASED, map.format(), out);
                map.write(out, start);
            }
            Data::SpilledChunks { mut blocks, .. } => {
                blocks.push(Some(own_block));
                let map = ChunkMap::of_blocks(blocks, 0);
                head(disk::EROFS_INODE_CHUNK_BASED, map.format(), out);
                map.write(out, start);
            }
            Data::Clusters { mut map, spilled } => {
                if spilled.is_some() {
                    map.spill_tail(spot.own_at, self.options.block_len);
                }
                let index = Index::choose(&map, self.choice(spilled.is_some()), start)?;
                head(index.layout(), index.block_count.min(u32::MAX.into()), out);
                index.write(out);
                if let (None, true, Some(TailPlace::Inline(tail))) =
                    (spilled, inline, self.placed.files[id.index()].tail)
                {
                    self.placed.data.tails.read(tail, out)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn write_blocks(
        &self,
        id: NodeId,
        shape: &Shape,
        spot: Spot<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (_, data) = self.data(id)?;
        let start = out.len();
        let own_len = (shape.own_blocks * self.block_len()) as usize;
        match data {
            Data::Owned(bytes) => out.extend_from_slice(&bytes[..bytes.len() - shape.inline_len as usize]),
            Data::Dir => self.write_dir(id, spot, |is_last, block| {
                if !is_last || shape.inline_len == 0 {
                    out.extend_from_slice(block);
                }
            }),
            Data::SpilledChunks { tail, .. } => self.placed.data.tails.read(tail, out)?,
            Data::Clusters { spilled: Some(tail), .. } => {
                // Zeros precede compressed data, and follow uncompressed data.
                if tail.compressed {
                    out.resize(start + own_len - tail.stored_len as usize, 0);
                }
                self.placed.data.tails.read(tail, out)?;
            }
            _ => {}
        }
        out.resize(start + own_len, 0);
        Ok(())
    }

    /// Calls `put` for each block of a directory, with true for the last.
    fn write_dir(&self, id: NodeId, spot: Spot<'_>, mut put: impl FnMut(bool, &[u8])) {
        let names = dirs::names(self.tree, id, self.options.dot_omitted);
        let mut full_blocks = dirs::len(&names, self.block_len()).full_blocks;
        let inode = |node| ((spot.nid)(node), self.tree.node(node).kind.file_type());
        dirs::write(&names, self.block_len(), inode, |block| {
            put(full_blocks == 0, block);
            full_blocks = left(full_blocks, 1);
        });
    }

    /// Returns the inode of the packed stream with its map.
    pub(super) fn packed(&self, number: u32, features: &mut Features) -> Result<Option<Vec<u8>>> {
        let Some((place, len)) = self.placed.data.packed.filter(|&(_, len)| len > 0) else { return Ok(None) };
        let facts = self.special_facts(len, number);
        let mut out = Vec::new();
        debug_assert!(place.tail.is_none(), "the packed stream has no tail of its own");
        match self.mapped(len, &place)? {
            Mapped::Flat { start_block } => {
                let extended = inodes::is_extended(&facts, &self.times, start_block);
                let words = DataWords { layout: disk::EROFS_INODE_FLAT_PLAIN, word: start_block };
                inodes::write(&mut out, &facts, &self.times, words, extended);
            }
            Mapped::Chunks(map) => {
                features.chunks = true;
                let extended = inodes::is_extended(&facts, &self.times, 0);
                let words = DataWords { layout: disk::EROFS_INODE_CHUNK_BASED, word: map.format() };
                inodes::write(&mut out, &facts, &self.times, words, extended);
                let start = out.len() as u64;
                map.write(&mut out, start);
            }
            Mapped::Clusters(map) => {
                let exact_lens = self.options.merged.is_some();
                self.write_special(&mut out, &facts, (&map, exact_lens), features)?;
            }
        }
        Ok(Some(out))
    }

    /// Appends a special inode with compressed data, and its map. Clusters of metadata start
    /// anywhere, without leading zeros (`exact_lens`).
    pub(super) fn write_special(
        &self,
        out: &mut Vec<u8>,
        facts: &InodeFacts,
        (map, exact_lens): (&FileMap, bool),
        features: &mut Features,
    ) -> Result<()> {
        let extended = inodes::is_extended(facts, &self.times, 0);
        let start = if extended { EXTENDED_LEN } else { COMPACT_LEN };
        let choice = Choice { exact_lens, ..self.choice(false) };
        let aligned = !map.is_unaligned(self.block_bits, exact_lens);
        let choice = Choice {
            byte_aligned: choice.byte_aligned || !aligned,
            form: if aligned { choice.form } else { IndexForm::Extents },
            ..choice
        };
        let index = Index::choose(map, choice, start)?;
        features.add(&index.uses, map.algorithms);
        let words = DataWords { layout: index.layout(), word: index.block_count.min(u32::MAX.into()) };
        inodes::write(out, facts, &self.times, words, extended);
        index.write(out);
        Ok(())
    }
}

/// Adds the path of a node to an error.
pub(super) fn at_node(tree: &Tree, id: NodeId) -> impl Fn(Error) -> Error + '_ {
    move |error| error.at(format_args!("{:?}", tree.path(id)))
}
