//! Contents of members, read from the archive or its spool file.

use super::sparse::SparseMap;
use packfs_core::{ContentId, ContentReader, Contents, Error, Result};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Positions of files' data.
#[derive(Default)]
pub(super) struct Stored {
    rows: Vec<Row>,
    maps: Vec<SparseMap>,
}

struct Row {
    offset: u64,
    len: u64,
    /// Index of its map, if it is sparse.
    map: Option<u32>,
}

impl Stored {
    /// Adds a file with `len` bytes at `offset`.
    pub(super) fn add(&mut self, offset: u64, len: u64) -> ContentId {
        self.rows.push(Row { offset, len, map: None });
        ContentId(self.rows.len() as u64 - 1)
    }

    /// Adds a file whose stored bytes start at `offset`.
    pub(super) fn add_sparse(&mut self, offset: u64, map: SparseMap) -> ContentId {
        self.rows.push(Row { offset, len: map.len, map: Some(self.maps.len() as u32) });
        self.maps.push(map);
        ContentId(self.rows.len() as u64 - 1)
    }
}

/// Contents of an archive's files.
pub(super) struct TarContents {
    pub file: File,
    pub name: String,
    pub stored: Stored,
    /// True if the file is the archive, and no spool file.
    pub in_place: bool,
}

impl Contents for TarContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let row = usize::try_from(id.0).ok().and_then(|index| self.stored.rows.get(index));
        let row = row.ok_or_else(|| Error::failed(format!("no member with id {}", id.0)))?;
        Ok(Box::new(TarReader { contents: self, row }))
    }

    fn stored_at(&self, id: ContentId) -> Option<u64> {
        let row = usize::try_from(id.0).ok().and_then(|index| self.stored.rows.get(index))?;
        (self.in_place && row.map.is_none()).then_some(row.offset)
    }
}

struct TarReader<'a> {
    contents: &'a TarContents,
    row: &'a Row,
}

impl TarReader<'_> {
    fn map(&self) -> Option<&SparseMap> {
        self.row.map.and_then(|index| self.contents.stored.maps.get(index as usize))
    }

    fn read_stored(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.contents.file.read_exact_at(buf, self.row.offset + at).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::failed(format!("cannot pack {}: it became shorter during packing", self.contents.name))
            }
            _ => Error::io(format!("cannot read {}", self.contents.name), error),
        })
    }
}

impl ContentReader for TarReader<'_> {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.row.len {
            return Err(Error::failed(format!(
                "wanted {} bytes at {offset} of a file of {}",
                buf.len(),
                self.row.len
            )));
        }
        let Some(map) = self.map() else { return self.read_stored(offset, buf) };
        buf.fill(0);
        let mut at = offset;
        while at < end
            && let Some(run) = map.run_behind(at).filter(|run| run.file.start < end)
        {
            let (from, to) = (run.file.start.max(at), run.file.end.min(end));
            let part = &mut buf[(from - offset) as usize..(to - offset) as usize];
            self.read_stored(run.stored + (from - run.file.start), part)?;
            at = to;
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        match self.map() {
            None => Ok((offset < self.row.len).then_some(offset..self.row.len)),
            Some(map) => Ok(map.run_behind(offset).map(|run| run.file.start.max(offset)..run.file.end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sparse::Run;
    use super::*;
    use std::io::Write;

    #[test]
    fn reads_any_part_of_a_sparse_file() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (1..=100).collect();
        file.write_all(&bytes).unwrap();
        let runs = vec![Run { file: 10..70, stored: 0 }, Run { file: 90..130, stored: 60 }];
        let mut whole = [0; 150];
        whole[10..70].copy_from_slice(&bytes[..60]);
        whole[90..130].copy_from_slice(&bytes[60..]);
        let mut stored = Stored::default();
        let id = stored.add_sparse(0, SparseMap { len: 150, runs });
        let contents = TarContents { file, name: "archive".into(), stored, in_place: true };
        for start in 0..150 {
            for end in start..=150 {
                let mut part = vec![7; end - start];
                contents.open(id).unwrap().read_exact_at(start as u64, &mut part).unwrap();
                assert!(part == whole[start..end], "{start}..{end}");
            }
        }
        assert!(contents.open(id).unwrap().read_exact_at(100, &mut [0; 51]).is_err());
        assert_eq!(contents.stored_at(id), None);
    }
}
