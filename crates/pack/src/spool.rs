//! Bytes kept until they have a place: in memory up to a limit, then in an unnamed file beside the
//! output.

use crate::destination::nameless_file;
use packfs_core::{Result, ResultExt};
use packfs_format::{InlineTail, InlineTails};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes gathered before they are written to the file.
const BUFFER_LEN: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    output: PathBuf,
    memory_max: usize,
    file: Option<File>,
    file_len: u64,
    memory: Vec<u8>,
}

impl Spool {
    /// Bytes beyond `memory_max` go to a file beside `output`.
    pub(crate) fn new(output: &Path, memory_max: usize) -> Self {
        Spool { output: output.into(), memory_max, file: None, file_len: 0, memory: Vec::new() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.file_len + self.memory.len() as u64
    }

    /// Returns the start of `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let start = self.len();
        self.memory.extend_from_slice(bytes);
        let most = if self.file.is_some() { BUFFER_LEN } else { self.memory_max };
        if self.memory.len() > most {
            self.flush()?;
        }
        Ok(start)
    }

    fn flush(&mut self) -> Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => nameless_file(&self.output)?,
        };
        file.write_all_at(&self.memory, self.file_len)
            .or_io(|| format!("cannot write a temporary file in the directory of {:?}", self.output))?;
        self.file = Some(file);
        self.file_len += self.memory.len() as u64;
        self.memory = Vec::new();
        Ok(())
    }

    pub(crate) fn read(&self, start: u64, buf: &mut [u8]) -> Result<()> {
        let in_file = self.file_len.saturating_sub(start).min(buf.len() as u64) as usize;
        let (front, back) = buf.split_at_mut(in_file);
        let failed = || format!("cannot read a temporary file in the directory of {:?}", self.output);
        if let (Some(file), false) = (&self.file, front.is_empty()) {
            file.read_exact_at(front, start).or_io(failed)?;
        }
        let start = start.saturating_sub(self.file_len) as usize;
        self.memory.get(start..).unwrap_or_default().read_exact(back).or_io(|| "cannot read kept data")
    }
}

/// [`InlineTail::id`] is the start of the tail.
impl InlineTails for Spool {
    fn read(&self, tail: InlineTail, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + tail.stored_len as usize, 0);
        Spool::read(self, tail.id, &mut out[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_it_keeps_in_memory_and_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for memory_max in [0, 1, 100, 10_000, 1 << 30] {
            let mut spool = Spool::new(&folder.path().join("a.img"), memory_max);
            let parts: Vec<Vec<u8>> = (0..500).map(|i| vec![i as u8; i * 17]).collect();
            let starts: Vec<u64> = parts.iter().map(|part| spool.append(part).unwrap()).collect();
            for (part, start) in parts.iter().zip(starts) {
                let tail = InlineTail { id: start, stored_len: part.len() as u32, compressed: false };
                let mut out = vec![1, 2];
                InlineTails::read(&spool, tail, &mut out).unwrap();
                assert_eq!(out[..2], [1, 2]);
                assert_eq!(out[2..], part[..], "{memory_max} at {start}");
            }
            assert!(spool.read(spool.len(), &mut [0]).is_err());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
