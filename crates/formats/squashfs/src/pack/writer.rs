//! Streams of metadata in compressed blocks of 8 KiB.

use crate::endian::Endian;
use crate::place::InodeRef;
use crate::stored::{HeaderForm, SQUASHFS_METADATA_SIZE};
use packfs_codec::CodecSettings;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};

const WAITING_MAX: usize = 256;

/// Compresses metadata; one for all tables of an image.
pub(crate) struct MetadataCodec {
    settings: CodecSettings,
    encoders: Vec<Box<dyn Encoder>>,
    threads: usize,
    form: HeaderForm,
}

impl MetadataCodec {
    /// Errors: `Usage` for settings that the codec does not have.
    pub(crate) fn new(settings: &CodecSettings, endian: Endian, jobs: usize) -> Result<Self> {
        let form = HeaderForm { endian, marked: false };
        let threads = packfs_core::thread_count(jobs);
        let mut codec = MetadataCodec { settings: settings.clone(), encoders: Vec::new(), threads, form };
        codec.need(1)?;
        Ok(codec)
    }

    pub(super) fn endian(&self) -> Endian {
        self.form.endian
    }

    fn need(&mut self, count: usize) -> Result<()> {
        while self.encoders.len() < count {
            self.encoders.push(packfs_codec::encoder(&self.settings).map_err(Error::usage)?);
        }
        Ok(())
    }

    /// Returns the stored form of each block, with its header.
    fn store(&mut self, blocks: &[impl AsRef<[u8]> + Sync], compressed: bool) -> Result<Vec<Vec<u8>>> {
        let threads = self.threads.min(blocks.len()).max(1);
        self.need(threads)?;
        let encoders = &mut self.encoders[..threads];
        let store = |encoder: &mut Box<dyn Encoder>, raw: &_| {
            stored_block(&mut **encoder, compressed, self.form, AsRef::<[u8]>::as_ref(raw))
        };
        packfs_core::in_parallel(encoders, blocks, store).into_iter().collect()
    }
}

fn stored_block(
    encoder: &mut dyn Encoder,
    compressed: bool,
    form: HeaderForm,
    raw: &[u8],
) -> Result<Vec<u8>> {
    let start = form.header_len();
    let mut out = vec![0; start + raw.len()];
    let room = &mut out[start..];
    let last = raw.len() - 1;
    let len =
        if compressed { encoder.compress(raw, &mut room[..last]).map_err(Error::failed)? } else { None };
    if len.is_none() {
        room.copy_from_slice(raw);
    }
    let stored_len = len.unwrap_or(raw.len());
    out.truncate(start + stored_len);
    out[..start].copy_from_slice(&form.word(stored_len as u16, len.is_some()));
    Ok(out)
}

/// Position in a stream of metadata, before the offsets of compressed blocks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamRef(u64);

impl StreamRef {
    // An `Option` would cost 8 bytes a node.
    pub(super) const NONE: Self = StreamRef(u64::MAX);
}

/// A stream of metadata: inode table, directory table, or attributes.
/// Full blocks wait until the offset of a later one is needed, to be compressed on all threads.
pub(crate) struct MetadataWriter {
    compressed: bool,
    out: Vec<u8>,
    starts: Vec<u64>,
    waiting: Vec<Vec<u8>>,
    /// The current block.
    raw: Vec<u8>,
}

impl MetadataWriter {
    pub(crate) fn new(compressed: bool) -> Self {
        let (starts, waiting) = (Vec::new(), Vec::new());
        let raw = Vec::with_capacity(SQUASHFS_METADATA_SIZE);
        MetadataWriter { compressed, out: Vec::new(), starts, waiting, raw }
    }

    pub(crate) fn position(&self) -> StreamRef {
        StreamRef(self.stream_len())
    }

    /// Bytes written, before compression.
    pub(crate) fn stream_len(&self) -> u64 {
        let blocks = self.starts.len() + self.waiting.len();
        (blocks * SQUASHFS_METADATA_SIZE + self.raw.len()) as u64
    }

    pub(crate) fn reference(&mut self, codec: &mut MetadataCodec, at: StreamRef) -> Result<InodeRef> {
        let index = (at.0 / SQUASHFS_METADATA_SIZE as u64) as usize;
        if index > self.starts.len() {
            self.store(codec)?;
        }
        let block = self.starts.get(index).copied().unwrap_or(self.out.len() as u64);
        Ok(InodeRef { block, offset: (at.0 % SQUASHFS_METADATA_SIZE as u64) as u16 })
    }

    /// Appends a record, which may span blocks.
    pub(crate) fn append(&mut self, codec: &mut MetadataCodec, mut record: &[u8]) -> Result<()> {
        while !record.is_empty() {
            let room = SQUASHFS_METADATA_SIZE - self.raw.len();
            let (now, later) = record.split_at(room.min(record.len()));
            self.raw.extend_from_slice(now);
            record = later;
            if self.raw.len() == SQUASHFS_METADATA_SIZE {
                let next = Vec::with_capacity(SQUASHFS_METADATA_SIZE);
                self.waiting.push(std::mem::replace(&mut self.raw, next));
                if self.waiting.len() == WAITING_MAX {
                    self.store(codec)?;
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, codec: &mut MetadataCodec) -> Result<()> {
        for stored in codec.store(&self.waiting, self.compressed)? {
            self.starts.push(self.out.len() as u64);
            self.out.extend_from_slice(&stored);
        }
        self.waiting.clear();
        Ok(())
    }

    /// Finishes the last block, but not the use of references.
    pub(crate) fn finish(&mut self, codec: &mut MetadataCodec) -> Result<()> {
        if !self.raw.is_empty() {
            self.waiting.push(std::mem::take(&mut self.raw));
        }
        self.store(codec)
    }

    pub(crate) fn into_table(self) -> Vec<u8> {
        self.out
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
    let blocks: Vec<&[u8]> = records.chunks(SQUASHFS_METADATA_SIZE).collect();
    for stored in codec.store(&blocks, compressed)? {
        let at = list.len();
        list.resize(at + position_len, 0);
        let bits = position_len as u32 * 8;
        codec.form.endian.put(&mut list[at..], 0, bits, offset + bytes.len() as u64);
        bytes.extend_from_slice(&stored);
    }
    let list_start = bytes.len() as u64;
    bytes.extend_from_slice(&list);
    Ok(LookupTable { bytes, list_start })
}
