//! Contents of members, read from the archive or its spool file.

use super::sparse::SparseMap;
use packfs_core::{ContentId, ContentReader, Contents, Error, Result};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Alignment and least length of zeros that count as a hole: shorter files are not searched.
const UNIT_LEN: u64 = 64 << 10;
/// Bytes that are examined first.
const PROBE_LEN: usize = 512;
/// Longest run of data that is found at once, in files of fewer runs than [`RUNS_MIN`].
const RUN_LEN_MAX: u64 = 8 << 20;
/// Fewest runs that a long file is searched in.
const RUNS_MIN: u64 = 64;

#[derive(Default)]
pub(crate) struct Stored {
    rows: Vec<Row>,
    maps: Vec<SparseMap>,
}

struct Row {
    offset: u64,
    len: u64,
    /// Index of its map, if sparse.
    map: Option<u32>,
}

impl Stored {
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn add(&mut self, offset: u64, len: u64) -> ContentId {
        self.rows.push(Row { offset, len, map: None });
        ContentId(self.rows.len() as u64 - 1)
    }

    pub(crate) fn add_sparse(&mut self, offset: u64, map: SparseMap) -> ContentId {
        self.rows.push(Row { offset, len: map.len, map: Some(self.maps.len() as u32) });
        self.maps.push(map);
        ContentId(self.rows.len() as u64 - 1)
    }
}

pub(crate) struct ArchiveContents {
    /// The archive itself, if files are read in place, and the number of these files, which come
    /// first.
    pub place: Option<(File, usize)>,
    pub spool: Option<File>,
    pub name: String,
    pub stored: Stored,
}

impl ArchiveContents {
    fn row(&self, id: ContentId) -> Option<(usize, &Row)> {
        let index = usize::try_from(id.0).ok()?;
        Some((index, self.stored.rows.get(index)?))
    }

    fn archive(&self, index: usize) -> Option<&File> {
        self.place.as_ref().filter(|(_, rows)| index < *rows).map(|(file, _)| file)
    }
}

impl Contents for ArchiveContents {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let missing = || Error::failed(format!("no member with id {}", id.0));
        let (index, row) = self.row(id).ok_or_else(missing)?;
        let file = self.archive(index).or(self.spool.as_ref()).ok_or_else(missing)?;
        Ok(Box::new(ArchiveReader { contents: self, file, row, data: 0..0, unit: Vec::new() }))
    }

    fn stored_at(&self, id: ContentId) -> Option<u64> {
        let (index, row) = self.row(id)?;
        (self.archive(index).is_some() && row.map.is_none()).then_some(row.offset)
    }
}

struct ArchiveReader<'a> {
    contents: &'a ArchiveContents,
    file: &'a File,
    row: &'a Row,
    data: Range<u64>,
    unit: Vec<u8>,
}

impl ArchiveReader<'_> {
    fn map(&self) -> Option<&SparseMap> {
        self.row.map.and_then(|index| self.contents.stored.maps.get(index as usize))
    }

    fn read_stored(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, self.row.offset + at).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::failed(format!("cannot pack {}: it became shorter during packing", self.contents.name))
            }
            _ => Error::io(format!("cannot read {}", self.contents.name), error),
        })
    }

    /// Units of zeros are holes. A long run ends early, so that little is read before it is wanted.
    fn data_behind(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let len = self.row.len;
        if len < UNIT_LEN {
            return Ok((offset < len).then_some(offset..len));
        }
        if self.data.contains(&offset) {
            return Ok(Some(offset..self.data.end));
        }
        let mut start = offset;
        while start < len && self.is_zero_at(start)? {
            start = behind_unit(start);
        }
        let most = start.saturating_add(RUN_LEN_MAX.max(len / RUNS_MIN));
        let mut end = start;
        while end < len.min(most) && !self.is_zero_at(end)? {
            end = behind_unit(end);
        }
        self.data = start..end.min(len);
        Ok((start < len).then(|| self.data.clone()))
    }

    fn is_zero_at(&mut self, offset: u64) -> Result<bool> {
        let start = offset / UNIT_LEN * UNIT_LEN;
        let len = (self.row.len - start).min(UNIT_LEN) as usize;
        let mut unit = std::mem::take(&mut self.unit);
        let is_zero = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum | byte) == 0;
        // Most units begin with data.
        unit.resize(len.min(PROBE_LEN), 0);
        self.read_stored(start, &mut unit)?;
        let mut found = is_zero(&unit);
        if found {
            unit.resize(len, 0);
            self.read_stored(start, &mut unit)?;
            found = is_zero(&unit);
        }
        self.unit = unit;
        Ok(found)
    }
}

fn behind_unit(offset: u64) -> u64 {
    (offset / UNIT_LEN + 1) * UNIT_LEN
}

impl ContentReader for ArchiveReader<'_> {
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
            None => self.data_behind(offset),
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
        let contents =
            ArchiveContents { place: Some((file, 1)), spool: None, name: "archive".into(), stored };
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
