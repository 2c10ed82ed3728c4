//! Metadata blocks: read, verified, and kept in a bounded cache.

use crate::corruption::{Corruption, read};
use crate::disk::*;
use crate::kept::{KeptBlock, Run};
use crate::super_block::SECTOR;
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::{FaultPlace, units::*};
use std::mem::offset_of;
use std::sync::Arc;
use zerocopy::big_endian::{U32, U64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Data of a directory, with the hash table of a small one.
    Dir,
    Free,
    /// Hash table or node of a directory or of attributes.
    Tree,
    /// Node or leaf of a tree of extents.
    Map,
}

impl BlockKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            BlockKind::Dir => "directory block",
            BlockKind::Free => "free index block",
            BlockKind::Tree => "hash tree block",
            BlockKind::Map => "extent tree block",
        }
    }

    fn number(self) -> u64 {
        match self {
            BlockKind::Dir => 0,
            BlockKind::Tree => 1,
            BlockKind::Map => 3,
            BlockKind::Free => 4,
        }
    }

    /// Offset of the owner in a version 5 header.
    fn owner_at(self) -> usize {
        match self {
            BlockKind::Dir | BlockKind::Free => offset_of!(Dir3BlkHdr, owner),
            BlockKind::Tree => offset_of!(Da3Blkinfo, owner),
            BlockKind::Map => offset_of!(BtreeLong, bb_owner),
        }
    }

    fn check_magic(self, bytes: &[u8], is_v5: bool, place: FaultPlace) -> Result<()> {
        let (allowed, wanted): (&[u32], _) = match (self, is_v5) {
            (BlockKind::Dir, true) => (&[XFS_DIR3_BLOCK_MAGIC, XFS_DIR3_DATA_MAGIC], "XDB3 or XDD3"),
            (BlockKind::Dir, false) => (&[XFS_DIR2_BLOCK_MAGIC, XFS_DIR2_DATA_MAGIC], "XD2B or XD2D"),
            (BlockKind::Free, true) => (&[XFS_DIR3_FREE_MAGIC], "XDF3"),
            (BlockKind::Free, false) => (&[XFS_DIR2_FREE_MAGIC], "XD2F"),
            (BlockKind::Map, true) => (&[XFS_BMAP_CRC_MAGIC], "BMA3"),
            (BlockKind::Map, false) => (&[XFS_BMAP_MAGIC], "BMAP"),
            (BlockKind::Tree, true) => (&DA3_MAGICS.map(u32::from), "a magic of version 5"),
            (BlockKind::Tree, false) => (&DA_MAGICS.map(u32::from), "a magic of version 4"),
        };
        let found = match self {
            BlockKind::Tree => read::<DaBlkinfo>(bytes, 0, place)?.magic.get().into(),
            _ => read::<U32>(bytes, 0, place)?.get(),
        };
        if allowed.contains(&found) {
            Ok(())
        } else {
            Err(Corruption::BlockMagic { place, found, wanted }.into())
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) place: FaultPlace,
}

impl Block {
    pub(crate) fn tree_magic(&self) -> Result<u16, Corruption> {
        Ok(read::<DaBlkinfo>(&self.bytes, 0, self.place)?.magic.get())
    }

    pub(crate) fn is_node(&self) -> Result<bool, Corruption> {
        Ok(matches!(self.tree_magic()?, XFS_DA_NODE_MAGIC | XFS_DA3_NODE_MAGIC))
    }
}

impl XfsVolume {
    pub(crate) fn node_header_len(&self) -> usize {
        if self.super_block.is_v5() { size_of::<Da3NodeHdr>() } else { size_of::<DaNodeHdr>() }
    }

    /// Reads the block stored in `runs`, and verifies its magic, checksum, address, identifier, and
    /// owner.
    pub(crate) fn block(&self, kind: BlockKind, runs: &[Run], owner: u64) -> Result<Block> {
        let (start, count) = runs.first().copied().unwrap_or_default();
        let Some(at) = self.super_block.blocks_at(start, 1) else {
            return Err(Corruption::ExtentPlace { ino: owner, offset: 0, start, count }.into());
        };
        let place = FaultPlace::at(kind.word(), at);
        // Offsets are multiples of 512, so the low bits are free for the kind.
        let is_same = |kept: &KeptBlock| kept.runs == runs;
        let kept = self.blocks.get_or_if(at | kind.number(), is_same, || {
            let bytes = self.read_runs(runs, owner)?;
            let is_part = runs.iter().any(|run| self.has_changed_part(*run));
            self.verify(kind, &bytes, place, is_part)?;
            let len = bytes.len();
            Ok((KeptBlock { runs: runs.to_vec(), bytes: Arc::new(bytes) }, len))
        })?;
        let bytes = Arc::clone(&kept.bytes);
        if self.super_block.is_v5() {
            let found = read::<U64>(&bytes, kind.owner_at(), place)?.get();
            let is_moved = kind == BlockKind::Map && self.notes.new_owners.contains(&owner);
            if found != owner && !is_moved {
                return Err(Corruption::BlockOwner { place, found, wanted: owner }.into());
            }
        }
        Ok(Block { bytes, place })
    }

    pub(crate) fn read_runs(&self, runs: &[Run], owner: u64) -> Result<Vec<u8>> {
        let block_len = self.super_block.block_len;
        let mut bytes = Vec::new();
        for &(start, count) in runs {
            let Some(at) = self.super_block.blocks_at(start, count) else {
                return Err(Corruption::ExtentPlace { ino: owner, offset: 0, start, count }.into());
            };
            let len = usize_of(count.times(block_len));
            let done = bytes.len();
            bytes.resize(done.plus(len), 0);
            self.image.read_exact_at(at, bytes.within_mut(done..))?;
        }
        Ok(bytes)
    }

    /// True if the log changed only a part of the directory block in this run.
    fn has_changed_part(&self, (start, count): Run) -> bool {
        let mut blocks = start..start.plus(count);
        blocks.any(|block| self.super_block.blocks_at(block, 1).is_some_and(|at| self.notes.has_part(at)))
    }

    /// Verifies a block; skips the checksum if `is_part` is set.
    fn verify(&self, kind: BlockKind, bytes: &[u8], place: FaultPlace, is_part: bool) -> Result<()> {
        let is_v5 = self.super_block.is_v5();
        kind.check_magic(bytes, is_v5, place)?;
        if is_v5 { self.verify_stamp(bytes, place, is_part) } else { Ok(()) }
    }

    /// Verifies the checksum (unless `is_part` is set), the address, and the identifier of a
    /// version 5 structure.
    pub(crate) fn verify_stamp(&self, bytes: &[u8], place: FaultPlace, is_part: bool) -> Result<()> {
        let stamp = Stamp::of(bytes).ok_or(Corruption::Cut { place, at: 0 })?;
        let sum = Checksum::of(bytes, stamp.crc);
        if !sum.is_right() && !is_part {
            return Err(Corruption::Checksum { place, sum }.into());
        }
        if let Some(at) = stamp.blkno {
            let found = read::<U64>(bytes, at, place)?.get();
            let wanted = place.at / SECTOR;
            if found != wanted {
                return Err(Corruption::BlockPlace { place, found, wanted }.into());
            }
        }
        if read::<[u8; 16]>(bytes, stamp.uuid, place)? != self.super_block.meta_uuid {
            return Err(Corruption::BlockUuid { place }.into());
        }
        Ok(())
    }

    /// Verifies a version 5 block with a part of a link target or of an attribute value, of which
    /// `done` bytes were read, and returns its data.
    pub(crate) fn remote_part<'a>(
        &self,
        (what, magic, wanted): (&'static str, u32, &'static str),
        ino: u64,
        (bytes, start): (&'a [u8], u64),
        done: usize,
    ) -> Result<&'a [u8]> {
        let place = FaultPlace::at(what, self.super_block.blocks_at(start, 1).unwrap_or(0));
        let head: RmtHdr = read(bytes, 0, place)?;
        let found = head.rm_magic.get();
        if found != magic {
            return Err(Corruption::BlockMagic { place, found, wanted }.into());
        }
        self.verify_stamp(bytes, place, false)?;
        let (found, wanted) = (head.rm_owner.get(), ino);
        if found != wanted {
            return Err(Corruption::BlockOwner { place, found, wanted }.into());
        }
        let [offset, len] = [head.rm_offset, head.rm_bytes].map(|figure| u64::from(figure.get()));
        match part(bytes, size_of::<RmtHdr>(), usize_of(len)).filter(|_| offset == done as u64 && len > 0) {
            Some(part) => Ok(part),
            None => Err(Corruption::AttrPart { place, offset, len }.into()),
        }
    }
}
