//! Every file of a tree once, in random order: what `shuf | xargs cat` does, without the shell.

use std::io::Read;
use std::path::Path;

use super::{Done, Load, in_threads, names, open};
use crate::corpus::Random;
use crate::failure::{Failure, Result};

/// What `cat` reads at once.
const BUFFER_LEN: usize = 128 << 10;

/// Readers take every `threads`-th file of one order, so no file is read by two.
pub fn read_all(load: &Load) -> Result<Done> {
    let mut files = names::of_files(&load.names_of)?;
    Random::new(load.seed).shuffle(&mut files);
    in_threads(load.threads, |index| {
        let mut buffer = vec![0; BUFFER_LEN];
        let mut done = Done::default();
        for file in files.iter().skip(index).step_by(load.threads) {
            done.bytes += read(&load.path.join(file), &mut buffer)?;
            done.operations += 1;
        }
        Ok(done)
    })
}

fn read(path: &Path, buffer: &mut [u8]) -> Result<u64> {
    let mut file = open(path)?;
    let mut len = 0;
    loop {
        match file.read(buffer).map_err(|error| Failure::io("read", path, error))? {
            0 => return Ok(len),
            count => len += count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reads_every_file_once_however_many_readers() {
        let dir = std::env::temp_dir().join(format!("xtask-read-all-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for len in 1..=10 {
            std::fs::write(dir.join(format!("{len}")), vec![0; len * 20_000]).unwrap();
        }
        let read = [1, 3].map(|threads| {
            let (path, names_of) = (dir.clone(), dir.clone());
            let load = Load { path, names_of, seed: 7, threads, time_max: Duration::ZERO };
            let done = read_all(&load).unwrap();
            (done.operations, done.bytes)
        });
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(read, [(10, 55 * 20_000); 2]);
    }
}
