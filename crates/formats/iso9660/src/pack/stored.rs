//! Storage of each file: offset, length, and the header before compressed blocks.

use crate::disk::*;
use crate::options::Options;
use packfs_core::{Error, NodeId, NodeKind, Result, Tree};
use packfs_format::{BlockForm, Blocks, FilePlace, Lead, Placed, Section};
use std::collections::HashSet;
use zerocopy::IntoBytes;

/// Maximum length of one extent of a file: whole sectors within the field of a record.
pub(super) const EXTENT_LEN_MAX: u64 = (1 << 32) - SECTOR_LEN;

const MARK_LEN: u8 = 16;

/// Returns the space for header and block pointers before the blocks of a compressed file: a
/// pointer for each block, and one more.
pub(super) fn lead(version: u8) -> Lead {
    match version {
        1 => Lead { fixed_len: (size_of::<ZisofsHeader1>() + 4) as u32, per_block_len: 4 },
        _ => Lead { fixed_len: (size_of::<ZisofsHeader2>() + 8) as u32, per_block_len: 8 },
    }
}

/// The data of a tree, placed or not.
pub(super) struct Store<'a> {
    pub tree: &'a Tree,
    /// `None` while space is reserved for the metadata before the data: everything then has its
    /// maximum length.
    pub placed: Option<&'a Placed<Blocks>>,
    /// Start of data, after everything else.
    pub data_start: u64,
    pub lead: Option<Lead>,
    /// Version of zisofs.
    pub version: Option<u8>,
    pub options: &'a Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Offset in the image, a multiple of the sector.
    pub start: u64,
    pub len: u64,
    /// Decoded length, if it is compressed.
    pub decoded_len: Option<u64>,
}

impl Store<'_> {
    /// Returns the stored data of a node; empty unless it is a file.
    pub(super) fn stored(&self, id: NodeId) -> Stored {
        // Empty files need an offset after the continuation areas of their records, or libarchive
        // refuses those.
        let nothing = Stored { start: self.data_start, len: 0, decoded_len: None };
        let NodeKind::File { len, .. } = self.tree.node(id).kind else { return nothing };
        if len == 0 {
            return nothing;
        }
        let Some(placed) = self.placed else {
            return Stored { len: self.longest(len), ..nothing };
        };
        if placed.failed.binary_search(&id).is_ok() {
            return nothing;
        }
        let place = &placed.files[id.index()];
        match self.encoded_len(placed, place) {
            Some(stored_len) => Stored { start: place.start, len: stored_len, decoded_len: Some(len) },
            None => Stored { start: place.start, len, decoded_len: None },
        }
    }

    /// Returns an upper bound of a file's stored length.
    fn longest(&self, len: u64) -> u64 {
        // Deflate expands noise by less than one part in a thousand.
        let lead = self.lead.map(|lead| lead.len(len.div_ceil(self.options.block_len.into())) + len / 512);
        len + lead.unwrap_or(0)
    }

    /// Length of a compressed file including its header.
    fn encoded_len(&self, placed: &Placed<Blocks>, place: &FilePlace<Blocks>) -> Option<u64> {
        let lead = self.lead.filter(|_| place.form == BlockForm::Blocks && place.count > 0)?;
        let blocks = placed.blocks_of(place).iter().map(|block| u64::from(block.stored_len));
        Some(lead.len(place.count.into()) + blocks.sum::<u64>())
    }

    /// Writes the headers and block pointers of all compressed files.
    pub(super) fn leads(&self, put: &mut dyn FnMut(Section) -> Result<()>) -> Result<()> {
        let (Some(lead), Some(version), Some(placed)) = (self.lead, self.version, self.placed) else {
            return Ok(());
        };
        let mut done = HashSet::new();
        for (id, _) in self.tree.nodes() {
            let stored = self.stored(id);
            let Some(decoded_len) = stored.decoded_len.filter(|_| done.insert(stored.start)) else {
                continue;
            };
            let place = &placed.files[id.index()];
            let mut bytes = self.header(version, decoded_len);
            let mut position = lead.len(place.count.into());
            let mut pointer = |position: u64| -> Result<()> {
                if version == 1 {
                    let short = u32::try_from(position).map_err(|_| {
                        let path = self.tree.path(id);
                        Error::failed(format!("{path:?} is longer than 4 GiB when it is compressed"))
                            .hint("-O zisofs=2 holds it")
                    })?;
                    bytes.extend_from_slice(&short.to_le_bytes());
                } else {
                    bytes.extend_from_slice(&position.to_le_bytes());
                }
                Ok(())
            };
            pointer(position)?;
            for block in placed.blocks_of(place) {
                position += u64::from(block.stored_len);
                pointer(position)?;
            }
            put(Section { owner: "file data", offset: stored.start, bytes })?;
        }
        Ok(())
    }

    fn header(&self, version: u8, decoded_len: u64) -> Vec<u8> {
        let block_log = self.block_log();
        match version {
            1 => ZisofsHeader1 {
                magic: ZISOFS_MAGIC_1,
                len: (decoded_len as u32).into(),
                header_words: header_words(version),
                block_log,
                reserved: [0; 2],
            }
            .as_bytes()
            .to_vec(),
            _ => ZisofsHeader2 {
                magic: ZISOFS_MAGIC_2,
                version: 0,
                header_words: header_words(version),
                algorithm: ZISOFS_ZLIB,
                block_log,
                len: decoded_len.into(),
                reserved: [0; 4],
            }
            .as_bytes()
            .to_vec(),
        }
    }

    fn block_log(&self) -> u8 {
        self.options.block_len.trailing_zeros() as u8
    }

    /// Returns the entry that marks a compressed file in its record (ZF). If files may be
    /// compressed, an uncompressed one gets padding (PD) instead, because the metadata before the
    /// data is laid out before compression.
    pub(super) fn mark(&self, id: NodeId, stored: &Stored) -> Option<Vec<u8>> {
        let version = self.version.filter(|_| super::file_len(&self.tree.node(id).kind) > 0)?;
        let Some(decoded_len) = stored.decoded_len else {
            return Some([&[b'P', b'D', MARK_LEN, 1][..], &[0; MARK_LEN as usize - 4]].concat());
        };
        let algorithm = if version == 1 { *b"pz" } else { *b"PZ" };
        let mut entry = vec![b'Z', b'F', MARK_LEN, version];
        entry.extend_from_slice(&algorithm);
        entry.extend_from_slice(&[header_words(version), self.block_log()]);
        match version {
            1 => entry.extend_from_slice(Both32::new(decoded_len as u32).as_bytes()),
            _ => entry.extend_from_slice(&decoded_len.to_le_bytes()),
        }
        Some(entry)
    }
}

fn header_words(version: u8) -> u8 {
    let len = if version == 1 { size_of::<ZisofsHeader1>() } else { size_of::<ZisofsHeader2>() };
    (len / 4) as u8
}

impl Stored {
    /// Returns the extents for records: first sector, and length in bytes.
    pub(super) fn extents(&self) -> impl Iterator<Item = Result<(u32, u32)>> {
        let (start, len) = (self.start, self.len);
        let count = len.div_ceil(EXTENT_LEN_MAX).max(1);
        (0..count).map(move |index| {
            let offset = index * EXTENT_LEN_MAX;
            let extent_len = (len - offset).min(EXTENT_LEN_MAX) as u32;
            Ok((sector(start + offset)?, extent_len))
        })
    }
}

/// Returns the number of the sector that starts at an offset.
///
/// Errors: `Failed` if it does not fit.
pub(super) fn sector(at: u64) -> Result<u32> {
    u32::try_from(at / SECTOR_LEN)
        .map_err(|_| Error::failed("this tree is more than iso9660 can hold: 8 TiB are"))
}
