//! Reads many files of an image into memory on all threads, in disk order, and prints the time.
//!
//! `cargo run --release --example read_many -- root.sqfs < PATHS`, one path a line. It is measured
//! beside Python by `python/benches/reading.py`, in two rounds: only the first waits for memory.

use packfs::read::FileRange;
use packfs::{ImagePath, Limits, OpenOptions, Result, ResultExt, Silent};
use std::io::{Write, stdout};
use std::sync::Mutex;
use std::time::Instant;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: read_many IMAGE [ROUNDS] < PATHS";
    let mut args = std::env::args().skip(1);
    let image = args.next().ok_or(usage)?;
    let rounds: usize = args.next().map_or(Ok(1), |rounds| rounds.parse())?;
    let lines: Vec<String> = std::io::stdin().lines().collect::<std::io::Result<_>>()?;
    for _ in 0..rounds {
        read(&image, &lines)?;
    }
    Ok(())
}

/// Opens the image and reads the files, then prints the time without that of opening.
fn read(path: &str, lines: &[String]) -> Result<()> {
    let image = OpenOptions::new().limits(Limits::none()).open(path)?;
    let start = Instant::now();
    let paths = lines.iter().map(|line| ImagePath::parse(line.as_bytes())).collect::<Result<Vec<_>>>()?;
    let files = image.files_at(&paths, &Silent)?.into_iter().collect::<Result<Vec<_>>>()?;
    let ranges: Vec<FileRange> = files.iter().map(|&file| FileRange::new(file, 0..file.len)).collect();
    let mut contents: Vec<_> = files.iter().map(|file| vec![0; file.len as usize]).collect();
    let targets: Vec<_> = contents.iter_mut().map(|file| Mutex::new(&mut file[..])).collect();
    if let Some((index, error)) = image.read_ranges(&ranges, &targets, &Silent)?.into_iter().next() {
        return Err(error.at(&lines[index]));
    }
    let bytes: u64 = files.iter().map(|file| file.len).sum();
    let (count, ms) = (files.len(), start.elapsed().as_secs_f64() * 1e3);
    writeln!(stdout(), "{count} files, {bytes} bytes, {ms:.1} ms").or_io(|| "cannot write the figures")
}
