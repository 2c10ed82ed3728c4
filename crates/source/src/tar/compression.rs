//! Compressed archives: recognised by their first bytes, decoded on a thread of their own.

use std::io::{self, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, one or more members.
    Gzip,
    /// One or more `.xz` streams.
    Xz,
    /// One or more Zstandard frames.
    Zstd,
    /// One or more bzip2 streams.
    Bzip2,
}

/// Recognises a compressed file by its first bytes.
pub fn compression_of(beginning: &[u8]) -> Option<Compression> {
    match beginning {
        [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Compression::Bzip2),
        _ => None,
    }
}

/// Bytes handed from the decoding thread at a time.
const PART_LEN: usize = 256 << 10;
/// Parts that may wait.
const PARTS_MAX: usize = 4;

/// Decodes `reader`, running ahead on another thread.
pub(super) fn decoded(
    reader: Box<dyn Read + Send>,
    compression: Compression,
) -> io::Result<Box<dyn Read + Send>> {
    let decoder: Box<dyn Read + Send> = match compression {
        Compression::Gzip => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(PART_LEN, reader)))
        }
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(1 << 30, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(
                BufReader::with_capacity(PART_LEN, reader),
                stream,
            ))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(reader)?),
        Compression::Bzip2 => {
            Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(PART_LEN, reader)))
        }
    };
    let (parts, received) = sync_channel(PARTS_MAX);
    std::thread::spawn(move || hand_over(decoder, &parts));
    Ok(Box::new(Parts { received, part: Vec::new(), read: 0, ended: false }))
}

fn hand_over(mut decoder: Box<dyn Read + Send>, parts: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut part = Vec::with_capacity(PART_LEN);
        let outcome = decoder.by_ref().take(PART_LEN as u64).read_to_end(&mut part);
        let end = outcome.is_err() || part.is_empty();
        // What was decoded before an error is handed over first.
        if !part.is_empty() && parts.send(Ok(part)).is_err() {
            return;
        }
        if let Err(error) = outcome {
            let _ = parts.send(Err(error));
        }
        if end {
            return;
        }
    }
}

struct Parts {
    received: Receiver<io::Result<Vec<u8>>>,
    part: Vec<u8>,
    read: usize,
    ended: bool,
}

impl Read for Parts {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.read == self.part.len() && !self.ended {
            match self.received.recv() {
                Ok(part) => (self.part, self.read) = (part?, 0),
                Err(_) => self.ended = true,
            }
        }
        let len = buf.len().min(self.part.len() - self.read);
        buf[..len].copy_from_slice(&self.part[self.read..self.read + len]);
        self.read += len;
        Ok(len)
    }
}
