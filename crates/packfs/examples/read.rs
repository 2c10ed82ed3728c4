//! Lists an image of any format, or prints one of its files.
//!
//! `cargo run --example read -- root.sqfs etc/hostname`

use packfs::InodeKind;
use std::io::{Write, copy, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let Some(path) = words.next() else { return Err("usage: read IMAGE [PATH]".into()) };
    let image = packfs::open(path)?;
    let mut out = stdout().lock();
    if let Some(path) = words.next() {
        // A reader implements Read and Seek, and decodes ahead of a caller that reads in order.
        copy(&mut image.open_file(path)?, &mut out)?;
        return Ok(());
    }
    for entry in image.walk() {
        // A damaged directory is an error of its own; the rest of the image is still there.
        let entry = entry?;
        match entry.inode.kind {
            InodeKind::File { len } => writeln!(out, "{:>12} {}", len, entry.path)?,
            _ => writeln!(out, "{:>12} {}", "-", entry.path)?,
        }
    }
    Ok(())
}
