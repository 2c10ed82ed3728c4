//! Streams of metadata in compressed blocks of 8 KiB.

use crate::endian::Endian;
use crate::place::InodeRef;
use crate::stored::{HeaderForm, SQUASHFS_METADATA_SIZE};
use packfs_codec::CodecSettings;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};

/// Compresses metadata; one for all tables of an image.
pub(crate) struct MetadataCodec {
    encoder: Box<dyn Encoder>,
    form: HeaderForm,
}

impl MetadataCodec {
    /// Errors: `Usage` for settings that the codec does not have.
    pub(crate) fn new(settings: &CodecSettings, endian: Endian) -> Result<Self> {
        let form = HeaderForm { endian, marked: false };
        Ok(MetadataCodec { encoder: packfs_codec::encoder(settings).map_err(Error::usage)?, form })
    }

    pub(super) fn endian(&self) -> Endian {
        self.form.endian
    }

    fn append_block(&mut self, raw: &[u8], compressed: bool, out: &mut Vec<u8>) -> Result<()> {
        let header_at = out.len();
        let start = header_at + self.form.header_len();
        out.resize(start + raw.len(), 0);
        let room = &mut out[start..];
        let last = raw.len() - 1;
        let len = if compressed {
            self.encoder.compress(raw, &mut room[..last]).map_err(Error::failed)?
        } else {
            None
        };
        if len.is_none() {
            room.copy_from_slice(raw);
        }
        let stored_len = len.unwrap_or(raw.len());
        out.truncate(start + stored_len);
        out[header_at..start].copy_from_slice(&self.form.word(stored_len as u16, len.is_some()));
        Ok(())
    }
}

/// A stream of metadata: inode table, directory table, or attributes.
pub(crate) struct MetadataWriter {
    compressed: bool,
    out: Vec<u8>,
    /// The current block.
    raw: Vec<u8>,
    block_count: u64,
}

impl MetadataWriter {
    pub(crate) fn new(compressed: bool) -> Self {
        let raw = Vec::with_capacity(SQUASHFS_METADATA_SIZE);
        MetadataWriter { compressed, out: Vec::new(), raw, block_count: 0 }
    }

    /// Reference of the next record.
    pub(crate) fn position(&self) -> InodeRef {
        InodeRef { block: self.out.len() as u64, offset: self.raw.len() as u16 }
    }

    /// Bytes written, before compression.
    pub(crate) fn stream_len(&self) -> u64 {
        self.block_count * SQUASHFS_METADATA_SIZE as u64 + self.raw.len() as u64
    }

    /// Appends a record, which may span blocks.
    pub(crate) fn append(&mut self, codec: &mut MetadataCodec, mut record: &[u8]) -> Result<()> {
        while !record.is_empty() {
            let room = SQUASHFS_METADATA_SIZE - self.raw.len();
            let (now, later) = record.split_at(room.min(record.len()));
            self.raw.extend_from_slice(now);
            record = later;
            if self.raw.len() == SQUASHFS_METADATA_SIZE {
                self.finish_block(codec)?;
            }
        }
        Ok(())
    }

    fn finish_block(&mut self, codec: &mut MetadataCodec) -> Result<()> {
        codec.append_block(&self.raw, self.compressed, &mut self.out)?;
        self.raw.clear();
        self.block_count += 1;
        Ok(())
    }

    /// Finishes the last block and returns the table.
    pub(crate) fn finish(mut self, codec: &mut MetadataCodec) -> Result<Vec<u8>> {
        if !self.raw.is_empty() {
            self.finish_block(codec)?;
        }
        Ok(self.out)
    }
}

/// A lookup table: metadata blocks, then the list of their positions.
pub(crate) struct LookupTable {
    pub(crate) bytes: Vec<u8>,
    pub(crate) list_start: u64,
}

/// Encodes a lookup table for `offset` in the image; its list starts with `list_header`, and
/// positions take `position_len` bytes, 4 or 8.
pub(crate) fn lookup_table(
    codec: &mut MetadataCodec,
    records: &[u8],
    compressed: bool,
    offset: u64,
    list_header: &[u8],
    position_len: usize,
) -> Result<LookupTable> {
    let mut bytes = Vec::new();
    let mut list = list_header.to_vec();
    for raw in records.chunks(SQUASHFS_METADATA_SIZE) {
        let at = list.len();
        list.resize(at + position_len, 0);
        let bits = position_len as u32 * 8;
        codec.form.endian.put(&mut list[at..], 0, bits, offset + bytes.len() as u64);
        codec.append_block(raw, compressed, &mut bytes)?;
    }
    let list_start = bytes.len() as u64;
    bytes.extend_from_slice(&list);
    Ok(LookupTable { bytes, list_start })
}
