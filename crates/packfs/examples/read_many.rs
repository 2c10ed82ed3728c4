//! Reads many files of an image into memory in one pass in disk order, and prints the time.
//!
//! `cargo run --release --example read_many -- root.sqfs < PATHS`, one path a line. It is measured
//! beside Python by `python/benches/reading.py`.

use packfs::read::{PieceSink, Wanted};
use packfs::{InodeKind, Limits, OpenOptions, Result, Silent};
use std::sync::Mutex;
use std::time::Instant;

/// Contents of the files, filled by all threads.
struct Sink<'a>(&'a [Mutex<Vec<u8>>]);

impl PieceSink for Sink<'_> {
    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        // Lengths were read from the image, and the engine keeps to them.
        if let Ok(mut file) = self.0[file_index].lock() {
            file[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let Some(path) = std::env::args().nth(1) else { return Err("usage: read_many IMAGE < PATHS".into()) };
    let paths: Vec<String> = std::io::stdin().lines().collect::<std::io::Result<_>>()?;
    let image = OpenOptions::new().limits(Limits::none()).open(path)?;
    let start = Instant::now();
    let mut files = Vec::new();
    for path in &paths {
        let id = image.resolve(path)?;
        if let InodeKind::File { len } = image.volume().inode(id)?.kind {
            files.push(Wanted { id, len });
        }
    }
    let contents: Vec<_> = files.iter().map(|file| Mutex::new(vec![0; file.len as usize])).collect();
    image.engine().in_disk_order(&files, &Silent, &|| Ok(Sink(&contents)))?;
    let bytes: u64 = files.iter().map(|file| file.len).sum();
    println!("{} files, {bytes} bytes, {:.1} ms", files.len(), start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
