//! Owners of an image's bytes.
//!
//! Maps structures to ranges of the first file; structures on further devices or in the metabox
//! have no bytes there. Invariant: the owners are in order, do not overlap, and add up to the
//! file's length.

use crate::data::{ClusterMap, RunFrom};
use crate::disk::*;
use crate::raw::{Layout, RawInode};
use crate::reader::Reader;
use crate::space_map::{Claims, Sharing};
use packfs_core::{ErrorKind, FileType, Result, range_at};
use packfs_format::{SpaceOwner, units::*};
use std::ops::{ControlFlow, Range};

impl Reader {
    /// See [`packfs_format::Space::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let mut claims = self.fixed_claims();
        for raw in self.special_inodes() {
            self.claim_inode(raw, &mut claims)?;
        }
        self.each_inode(|raw| self.claim_inode(raw, &mut claims))?;
        claims.sort();
        Ok(claims.owners(self.geometry.image_len))
    }

    /// Inodes without a name: the packed inode and the metabox.
    pub(crate) fn special_inodes(&self) -> impl Iterator<Item = &RawInode> {
        self.packed.iter().chain(self.metabox.iter().map(|metabox| &metabox.inode))
    }

    pub(crate) fn fixed_claims(&self) -> Claims {
        let geometry = &self.geometry;
        let mut claims = Claims::default();
        let super_block_end = EROFS_SUPER_OFFSET.plus(geometry.super_block_len);
        claims.add(0..EROFS_SUPER_OFFSET, Sharing::Alone, "boot area");
        claims.add(EROFS_SUPER_OFFSET..super_block_end, Sharing::Alone, "superblock");
        claims.add(super_block_end..geometry.settings.end, Sharing::Alone, "codec settings");
        let (devices_at, count) = (geometry.devices_at, geometry.devices.len() as u64);
        let devices_end = nth_at(devices_at, count, size_of::<DeviceSlot>() as u64);
        claims.add(devices_at..devices_end, Sharing::Alone, "device table");
        if let Some(range) = self.plain_prefixes() {
            claims.add(range, Sharing::Alone, "xattr prefixes");
        }
        claims
    }

    /// Adds the claims of an inode. Unreadable data claims nothing.
    pub(crate) fn claim_inode(&self, raw: &RawInode, claims: &mut Claims) -> Result<()> {
        for range in [raw.at..raw.tail_at(), self.map_range(raw)?] {
            self.claim(range, Sharing::Alone, "inodes", claims);
        }
        if raw.xattr_len > 0 {
            for id in self.xattrs_of(raw)?.1.shared {
                let (at, len) = self.shared_xattr(id)?;
                self.claim(range_at(at, len), Sharing::Whole, "shared xattrs", claims);
            }
        }
        let is_special = |special: Option<&RawInode>| special.is_some_and(|special| special.nid == raw.nid);
        let owner = match raw.file_type {
            _ if is_special(self.packed.as_ref()) => "packed tails",
            _ if is_special(self.metabox.as_ref().map(|metabox| &metabox.inode)) => "metabox",
            FileType::File => "file data",
            FileType::Directory => "directories",
            FileType::Symlink => "link targets",
            _ => return Ok(()),
        };
        match self.claim_content(raw, owner, claims) {
            // Without its devices, only the data in the image is reported.
            Err(error) if error.kind() == ErrorKind::Failed => Ok(()),
            claimed => claimed,
        }
    }

    fn claim_content(&self, raw: &RawInode, owner: &'static str, claims: &mut Claims) -> Result<()> {
        let block_len = self.geometry.block_len();
        let inline_at = self.inline_at(raw)?;
        self.runs(raw, 0..raw.size, &mut |run| {
            let (range, sharing) = match run.from {
                RunFrom::Hole | RunFrom::Packed(_) => return ControlFlow::Continue(()),
                RunFrom::Stored(at) => (range_at(at, run.len), Sharing::Contents),
                RunFrom::Block(block, _) => {
                    (range_at(block.offset, u64::from(block.stored_len)), Sharing::Contents)
                }
            };
            if inline_at == Some(range.start) {
                self.claim(range, Sharing::Alone, "inline data", claims);
            } else if raw.is_compressed() {
                self.claim(range, sharing, owner, claims);
            } else {
                // Flat files and chunks do not share their last block.
                let end = range.end.checked_next_multiple_of(block_len).unwrap_or(range.end);
                self.claim(range.start..end, sharing, owner, claims);
            }
            ControlFlow::Continue(())
        })
    }

    fn inline_at(&self, raw: &RawInode) -> Result<Option<u64>> {
        Ok(match raw.layout {
            Layout::FlatInline => Some(raw.tail_at()),
            Layout::CompressedFull | Layout::CompressedCompact if raw.size > 0 => {
                match self.cluster_map(raw)? {
                    ClusterMap::Index(index) if index.inline_len.is_some() => Some(index.end()),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    fn claim(&self, range: Range<u64>, sharing: Sharing, owner: &'static str, claims: &mut Claims) {
        if range.start < self.geometry.image_len {
            claims.add(range.start..range.end.min(self.geometry.image_len), sharing, owner);
        }
    }

    /// Range of the map of an inode's data: an index, records, or rows of chunks.
    fn map_range(&self, raw: &RawInode) -> Result<Range<u64>> {
        let tail = raw.tail_at();
        if raw.size == 0 || !matches!(raw.file_type, FileType::File | FileType::Directory | FileType::Symlink)
        {
            return Ok(tail..tail);
        }
        Ok(match raw.layout {
            Layout::FlatPlain | Layout::FlatInline => tail..tail,
            Layout::ChunkBased => {
                let map = self.chunk_map(raw)?;
                let len = map.row_count(raw.size).times(map.row_len);
                range_at(map.at, len)
            }
            Layout::CompressedFull | Layout::CompressedCompact => {
                let start = tail.next_multiple_of(MAP_HEADER_ALIGN);
                let end = match self.cluster_map(raw)? {
                    ClusterMap::Packed(_) => start.plus(size_of::<MapHeader>() as u64),
                    ClusterMap::Index(index) => index.end(),
                    ClusterMap::Encoded(head) => head.end(),
                };
                start..end
            }
        })
    }
}
