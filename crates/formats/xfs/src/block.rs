//! Blocks of metadata: read, verified, and kept in a bounded cache.

use crate::corruption::Corruption;
use crate::disk::{Checksum, be16, be32, be64, uuid};
use crate::kept::{KeptBlock, Run};
use crate::super_block::SECTOR;
use crate::volume::XfsVolume;
use packfs_core::{Result, usize_of};
use packfs_format::FaultPlace;
use std::sync::Arc;

/// Kinds of blocks with one header each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Data of a directory, with the hash table of a small one.
    Dir,
    /// Free index of a directory.
    Free,
    /// Hash table or node of a directory or of attributes.
    Tree,
    /// Node or leaf of a tree of extents.
    Map,
}

/// Offsets in the header of a block of version 5.
struct Header {
    checksum: usize,
    place: usize,
    uuid: usize,
    owner: usize,
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

    fn header(self) -> Header {
        match self {
            BlockKind::Dir | BlockKind::Free => Header { checksum: 4, place: 8, uuid: 24, owner: 40 },
            BlockKind::Tree => Header { checksum: 12, place: 16, uuid: 32, owner: 48 },
            BlockKind::Map => Header { checksum: 64, place: 24, uuid: 40, owner: 56 },
        }
    }

    /// Fails for a block whose magic is not of the kind and version.
    fn check_magic(self, bytes: &[u8], is_v5: bool, place: FaultPlace) -> Result<()> {
        let (found, allowed, wanted): (u32, &[u32], _) = match (self, is_v5) {
            (BlockKind::Dir, true) => (be32(bytes, 0), &[0x5844_4233, 0x5844_4433], "XDB3 or XDD3"),
            (BlockKind::Dir, false) => (be32(bytes, 0), &[0x5844_3242, 0x5844_3244], "XD2B or XD2D"),
            (BlockKind::Free, true) => (be32(bytes, 0), &[0x5844_4633], "XDF3"),
            (BlockKind::Free, false) => (be32(bytes, 0), &[0x5844_3246], "XD2F"),
            (BlockKind::Map, true) => (be32(bytes, 0), &[0x424d_4133], "BMA3"),
            (BlockKind::Map, false) => (be32(bytes, 0), &[0x424d_4150], "BMAP"),
            (BlockKind::Tree, true) => {
                (be16(bytes, 8).into(), &[0x3df1, 0x3dff, 0x3ebe, 0x3bee], "a magic of version 5")
            }
            (BlockKind::Tree, false) => {
                (be16(bytes, 8).into(), &[0xd2f1, 0xd2ff, 0xfebe, 0xfbee], "a magic of version 4")
            }
        };
        match allowed.contains(&found) {
            true => Ok(()),
            false => Err(Corruption::BlockMagic { place, found, wanted }.into()),
        }
    }
}

/// Block of metadata that was verified.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) place: FaultPlace,
}

impl XfsVolume {
    /// Reads the block of metadata that lies in `runs`, and verifies it: magic, checksum, place,
    /// identifier, and owner.
    pub(crate) fn block(&self, kind: BlockKind, runs: &[Run], owner: u64) -> Result<Block> {
        let (start, count) = runs.first().copied().unwrap_or_default();
        let Some(at) = self.super_block.blocks_at(start, 1) else {
            return Err(Corruption::ExtentPlace { ino: owner, offset: 0, start, count }.into());
        };
        let place = FaultPlace::at(kind.word(), at);
        // Offsets of blocks are multiples of 512.
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
            let found = be64(&bytes, kind.header().owner);
            let is_moved = kind == BlockKind::Map && self.notes.new_owners.contains(&owner);
            if found != owner && !is_moved {
                return Err(Corruption::BlockOwner { place, found, wanted: owner }.into());
            }
        }
        Ok(Block { bytes, place })
    }

    /// Reads runs of blocks, which belong to an inode.
    pub(crate) fn read_runs(&self, runs: &[Run], owner: u64) -> Result<Vec<u8>> {
        let block_len = self.super_block.block_len;
        let mut bytes = Vec::new();
        for &(start, count) in runs {
            let Some(at) = self.super_block.blocks_at(start, count) else {
                return Err(Corruption::ExtentPlace { ino: owner, offset: 0, start, count }.into());
            };
            let len = usize_of(count.saturating_mul(block_len));
            let done = bytes.len();
            bytes.resize(done.saturating_add(len), 0);
            self.image.read_exact_at(at, bytes.get_mut(done..).unwrap_or_default())?;
        }
        Ok(bytes)
    }

    /// Returns true if the log changed a part of a directory block there.
    fn has_changed_part(&self, (start, count): Run) -> bool {
        let mut blocks = start..start.saturating_add(count);
        blocks.any(|block| self.super_block.blocks_at(block, 1).is_some_and(|at| self.notes.has_part(at)))
    }

    /// Verifies a block, the checksum only if `is_part` is not set.
    fn verify(&self, kind: BlockKind, bytes: &[u8], place: FaultPlace, is_part: bool) -> Result<()> {
        let is_v5 = self.super_block.is_v5();
        kind.check_magic(bytes, is_v5, place)?;
        if !is_v5 {
            return Ok(());
        }
        let header = kind.header();
        let sum = Checksum::of(bytes, header.checksum);
        if !sum.is_right() && !is_part {
            return Err(Corruption::Checksum { place, sum }.into());
        }
        self.verify_place(bytes, header.place, header.uuid, place)
    }

    /// Verifies the place and the identifier that a header of version 5 holds at these offsets.
    pub(crate) fn verify_place(
        &self,
        bytes: &[u8],
        place_at: usize,
        uuid_at: usize,
        place: FaultPlace,
    ) -> Result<()> {
        let (found, wanted) = (be64(bytes, place_at), place.at / SECTOR);
        if found != wanted {
            return Err(Corruption::BlockPlace { place, found, wanted }.into());
        }
        if uuid(bytes, uuid_at) != self.super_block.meta_uuid {
            return Err(Corruption::BlockUuid { place }.into());
        }
        Ok(())
    }
}
