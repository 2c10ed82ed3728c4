//! Reading one file in pieces of 4 KiB, where fio is not here to do it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use packfs::{Error, Result, ResultExt};

use super::draw::shuffled;

/// Bytes of each read.
const PIECE: u64 = 4096;

/// Reads `bytes` of a file, each piece once, from the beginning on or in an order drawn by lot.
/// Returns the seconds that took, and how many bytes were read.
///
/// Errors: `Failed` if the file is shorter than a piece, `Io`.
pub fn read_pieces(path: &Path, is_random: bool, bytes: u64, seed: u64) -> Result<(f64, u64)> {
    let cannot = || format!("cannot read {path:?}");
    let file = File::open(path).or_io(cannot)?;
    let pieces = file.metadata().or_io(cannot)?.len() / PIECE;
    let count = usize::try_from((bytes / PIECE).min(pieces)).unwrap_or(usize::MAX);
    if count == 0 {
        return Err(Error::failed(format!("{path:?} has no piece of 4 KiB to read")));
    }
    let order: Vec<u64> =
        if is_random { shuffled((0..pieces).collect(), seed) } else { (0..pieces).collect() };
    let mut piece = [0; PIECE as usize];
    let start = Instant::now();
    for index in order.iter().take(count) {
        file.read_exact_at(&mut piece, index * PIECE).or_io(cannot)?;
    }
    Ok((start.elapsed().as_secs_f64(), count as u64 * PIECE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_requested_range() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 10 * 4096 + 5]).unwrap();
        assert_eq!(read_pieces(file.path(), true, 5 * 4096, 1).unwrap().1, 5 * 4096);
        assert_eq!(read_pieces(file.path(), false, 1 << 30, 1).unwrap().1, 10 * 4096);
        std::fs::write(file.path(), "short").unwrap();
        assert!(read_pieces(file.path(), false, 4096, 1).is_err());
    }
}
