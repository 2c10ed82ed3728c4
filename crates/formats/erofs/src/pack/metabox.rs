//! Compressed metadata: the contents of the metabox inode, split into clusters and compressed on
//! the fly.

use super::file_map::{FileMap, Form, Piece};
use super::stream::{Sink, Stream};
use packfs_codec::CodecSettings;
use packfs_codec::Encoder;
use packfs_core::{Error, Result};

/// Receives metadata at positions in the metabox. Clusters are appended to another stream without
/// gaps.
pub(super) struct Metabox<'s, 'a> {
    out: &'s mut Stream<'a>,
    encoder: Box<dyn Encoder>,
    cluster_len: usize,
    raw: Vec<u8>,
    stored: Vec<u8>,
    map: FileMap,
}

impl<'s, 'a> Metabox<'s, 'a> {
    pub(super) fn new(
        out: &'s mut Stream<'a>,
        codec: &CodecSettings,
        algorithm: u8,
        cluster_len: u32,
    ) -> Result<Self> {
        Ok(Metabox {
            out,
            encoder: packfs_codec::encoder(codec).map_err(Error::usage)?,
            cluster_len: cluster_len as usize,
            raw: Vec::new(),
            stored: Vec::new(),
            map: FileMap { algorithms: [algorithm; 2], ..FileMap::default() },
        })
    }

    fn add(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.cluster_len - self.raw.len()));
            self.raw.extend_from_slice(now);
            bytes = later;
            if self.raw.len() == self.cluster_len {
                self.finish_cluster()?;
            }
        }
        Ok(())
    }

    fn finish_cluster(&mut self) -> Result<()> {
        self.stored.resize(self.raw.len() - 1, 0);
        let stored_len = self.encoder.compress(&self.raw, &mut self.stored).map_err(Error::failed)?;
        let (bytes, form) = match stored_len {
            Some(len) => (&self.stored[..len], Form::Compressed),
            None => (&self.raw[..], Form::Plain),
        };
        let offset = self.out.end();
        self.out.write_at(offset, bytes)?;
        let (start, len) = (self.map.size, self.raw.len() as u64);
        let stored_len = bytes.len() as u32;
        self.map.pieces.push(Piece { start, len, offset, stored_len, form, second: false });
        self.map.size += len;
        self.raw.clear();
        Ok(())
    }

    /// Compresses the rest; returns the map of the metabox inode, whose length is `size`.
    pub(super) fn finish(mut self, size: u64) -> Result<FileMap> {
        self.write_at(size, &[])?;
        if !self.raw.is_empty() {
            self.finish_cluster()?;
        }
        Ok(self.map)
    }
}

impl Sink for Metabox<'_, '_> {
    fn end(&self) -> u64 {
        self.map.size + self.raw.len() as u64
    }

    fn append(&mut self, zeros: usize, bytes: &[u8]) -> Result<()> {
        self.add(&vec![0; zeros])?;
        self.add(bytes)
    }
}
