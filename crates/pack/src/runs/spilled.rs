//! Samples that exceed memory: sorted, in an unnamed file beside the output, and searched by page.

use crate::destination::nameless_file;
use packfs_core::{Result, ResultExt};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const ROW_LEN: usize = 16;
/// Samples in a page; the hash of the first one stays in memory.
const PAGE_ROWS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample {
    pub hash: u64,
    pub file: u32,
    pub block: u32,
}

pub(super) struct Spilled {
    file: File,
    rows: usize,
    /// First hash of each page.
    fences: Vec<u64>,
}

impl Spilled {
    pub(super) fn write(rows: &[Sample], output: &Path) -> Result<Self> {
        let file = nameless_file(output)?;
        let mut at = 0;
        for page in rows.chunks(PAGE_ROWS * 256) {
            let mut bytes = Vec::with_capacity(page.len() * ROW_LEN);
            for row in page {
                bytes.extend(row.hash.to_le_bytes());
                bytes.extend(row.file.to_le_bytes());
                bytes.extend(row.block.to_le_bytes());
            }
            file.write_all_at(&bytes, at)
                .or_io(|| format!("cannot write a temporary file in the directory of {output:?}"))?;
            at += bytes.len() as u64;
        }
        let fences = rows.chunks(PAGE_ROWS).map(|page| page[0].hash).collect();
        Ok(Spilled { file, rows: rows.len(), fences })
    }

    /// Stops once `found` contains `most` samples.
    pub(super) fn find(&self, hash: u64, most: usize, found: &mut Vec<Sample>) -> Result<()> {
        // The page before the first match may end with the hash.
        let first = self.fences.partition_point(|&fence| fence < hash).saturating_sub(1);
        for page in first..self.fences.len() {
            if self.fences[page] > hash {
                break;
            }
            for row in self.page(page)?.into_iter().filter(|row| row.hash == hash) {
                if found.len() >= most {
                    return Ok(());
                }
                found.push(row);
            }
        }
        Ok(())
    }

    fn page(&self, page: usize) -> Result<Vec<Sample>> {
        let start = page * PAGE_ROWS;
        let mut bytes = vec![0; (self.rows - start).min(PAGE_ROWS) * ROW_LEN];
        let cannot = || "cannot read a temporary file with samples of blocks";
        self.file.read_exact_at(&mut bytes, (start * ROW_LEN) as u64).or_io(cannot)?;
        let (rows, _) = bytes.as_chunks::<ROW_LEN>();
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let row = |row: &[u8; ROW_LEN]| Sample {
            hash: number(&row[..8]),
            file: number(&row[8..12]) as u32,
            block: number(&row[12..]) as u32,
        };
        Ok(rows.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_memory_would_have_found() {
        let folder = tempfile::tempdir().unwrap();
        // Every hash several times: one fills pages, some are missing.
        let mut rows: Vec<Sample> = (0..3000_u32)
            .map(|index| Sample { hash: u64::from(index % 500) * 3, file: index / 7, block: index })
            .chain((0..1000).map(|block| Sample { hash: 700, file: 9999, block }))
            .collect();
        rows.sort_unstable();
        let spilled = Spilled::write(&rows, &folder.path().join("image")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for hash in (0..1600).chain([u64::MAX]) {
            for most in [1, 5, 300, usize::MAX] {
                let wanted: Vec<_> = rows.iter().filter(|row| row.hash == hash).take(most).copied().collect();
                let mut found = Vec::new();
                spilled.find(hash, most, &mut found).unwrap();
                assert_eq!(found, wanted, "{hash} {most}");
            }
        }
    }
}
