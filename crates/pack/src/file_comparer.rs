//! Compares bytes with those of files that were read earlier, because equal hashes are no proof.

use crate::context::Context;
use packfs_core::{ContentReader, NodeId, Result};
use packfs_format::DataKind;

/// Bytes compared first, and then at a time.
const FIRST_LEN: usize = 4 << 10;
const READ_LEN: usize = 64 << 10;

/// Keeps the file read last open.
pub(crate) struct FileComparer<'a, K: DataKind> {
    context: &'a Context<'a, K>,
    last: Option<(NodeId, Box<dyn ContentReader + 'a>)>,
    buf: Vec<u8>,
}

impl<'a, K: DataKind> FileComparer<'a, K> {
    pub(crate) fn new(context: &'a Context<'a, K>) -> Self {
        FileComparer { context, last: None, buf: Vec::new() }
    }

    pub(crate) fn holds(&mut self, node: NodeId, offset: u64, bytes: &[u8]) -> Result<bool> {
        Ok(self.same_len(node, offset, bytes)? == bytes.len())
    }

    pub(crate) fn same_len(&mut self, node: NodeId, offset: u64, bytes: &[u8]) -> Result<usize> {
        let mut reader = match self.last.take() {
            Some((last, reader)) if last == node => reader,
            _ => self.context.open(node)?,
        };
        let mut same = 0;
        let (first, rest) = bytes.split_at(bytes.len().min(FIRST_LEN));
        for part in std::iter::once(first).chain(rest.chunks(READ_LEN)) {
            self.buf.resize(part.len(), 0);
            reader.read_exact_at(offset + same as u64, &mut self.buf)?;
            let len = common_len(part, &self.buf);
            same += len;
            if len < part.len() {
                break;
            }
        }
        self.last = Some((node, reader));
        Ok(same)
    }
}

fn common_len(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 256;
    let whole = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_difference() {
        let a: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        for at in [0, 1, 255, 256, 257, 999] {
            let mut b = a.clone();
            b[at] ^= 1;
            assert_eq!(common_len(&a, &b), at);
        }
        assert_eq!(common_len(&a, &a), 1000);
        assert_eq!(common_len(&a, &a[..300]), 300);
    }
}
