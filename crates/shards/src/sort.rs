//! Sorts rows that are more than memory holds: sorted runs in files without names, merged.

use packfs_core::{Error, Result, ResultExt};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Most runs that are merged at once: each has an open file.
const RUNS_MAX: usize = 128;

/// Longest key and value: a path, and the metadata of an entry.
const FIELD_LEN_MAX: usize = 1 << 20;

/// Buffer of each run, in bytes.
const BUFFER_LEN: usize = 256 << 10;

/// Row: what it sorts by, and the rest.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

/// Takes rows in any order.
pub(crate) struct Sorter {
    folder: PathBuf,
    /// Most bytes of rows in memory.
    memory: usize,
    rows: Vec<Row>,
    held: usize,
    runs: Vec<File>,
}

impl Sorter {
    /// Temporary files lie in `folder`.
    pub(crate) fn new(folder: &Path, memory: usize) -> Self {
        Sorter { folder: folder.to_owned(), memory, rows: Vec::new(), held: 0, runs: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Row) -> Result<()> {
        self.held += row.0.len() + row.1.len() + 2 * size_of::<Vec<u8>>() + 32;
        self.rows.push(row);
        if self.held > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        self.held = 0;
        rows.sort_unstable();
        let run = write_run(&self.folder, rows.into_iter().map(Ok))?;
        self.runs.push(run);
        if self.runs.len() >= RUNS_MAX {
            let merged = Merged::new(std::mem::take(&mut self.runs))?;
            self.runs = vec![write_run(&self.folder, merged)?];
        }
        Ok(())
    }

    /// Returns the rows in order.
    pub(crate) fn finish(mut self) -> Result<Box<dyn Iterator<Item = Result<Row>>>> {
        if self.runs.is_empty() {
            self.rows.sort_unstable();
            return Ok(Box::new(self.rows.into_iter().map(Ok)));
        }
        self.spill()?;
        Ok(Box::new(Merged::new(self.runs)?))
    }
}

fn write_run(folder: &Path, rows: impl Iterator<Item = Result<Row>>) -> Result<File> {
    let cannot = || format!("cannot write a temporary file in {folder:?}");
    let mut out = BufWriter::with_capacity(BUFFER_LEN, tempfile::tempfile_in(folder).or_io(cannot)?);
    for row in rows {
        let (key, value) = row?;
        for field in [&key, &value] {
            let len = u32::try_from(field.len()).map_err(|_| Error::failed("a path is too long"))?;
            out.write_all(&len.to_le_bytes()).or_io(cannot)?;
            out.write_all(field).or_io(cannot)?;
        }
    }
    let mut file = out.into_inner().map_err(std::io::IntoInnerError::into_error).or_io(cannot)?;
    file.rewind().or_io(cannot)?;
    Ok(file)
}

/// Runs in one order.
struct Merged {
    runs: Vec<BufReader<File>>,
    next: BinaryHeap<Reverse<(Row, usize)>>,
}

impl Merged {
    fn new(files: Vec<File>) -> Result<Self> {
        let runs = files.into_iter().map(|file| BufReader::with_capacity(BUFFER_LEN, file)).collect();
        let mut merged = Merged { runs, next: BinaryHeap::new() };
        (0..merged.runs.len()).try_for_each(|run| merged.advance(run))?;
        Ok(merged)
    }

    /// Reads the next row of a run.
    fn advance(&mut self, run: usize) -> Result<()> {
        let Some(reader) = self.runs.get_mut(run) else { return Ok(()) };
        if let Some(row) = read_row(reader).or_io(|| "cannot read a temporary file")? {
            self.next.push(Reverse((row, run)));
        }
        Ok(())
    }
}

impl Iterator for Merged {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let Reverse((row, run)) = self.next.pop()?;
        Some(self.advance(run).map(|()| row))
    }
}

fn read_row(reader: &mut BufReader<File>) -> std::io::Result<Option<Row>> {
    let Some(key) = read_field(reader)? else { return Ok(None) };
    let value = read_field(reader)?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    Ok(Some((key, value)))
}

fn read_field(reader: &mut BufReader<File>) -> std::io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    match reader.read_exact(&mut len) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let len = u32::from_le_bytes(len) as usize;
    if len > FIELD_LEN_MAX {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut field = vec![0; len];
    reader.read_exact(&mut field)?;
    Ok(Some(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_order_whatever_fits_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<Row> = (0..5000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761).to_be_bytes().to_vec(), vec![7; 3]))
            .collect();
        let mut expected = rows.clone();
        expected.sort_unstable();
        for memory in [0, 3000, 1 << 20] {
            let mut sorter = Sorter::new(folder.path(), memory);
            let count = if memory == 0 { 700 } else { 5000 };
            rows.iter().take(count).cloned().for_each(|row| sorter.push(row).unwrap());
            let found: Vec<Row> = sorter.finish().unwrap().map(Result::unwrap).collect();
            if memory == 0 {
                assert!(found.is_sorted() && found.len() == 700);
            } else {
                assert_eq!(found, expected);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
