//! Lists the files of an image of any format, or prints one of them.
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
        // The reader implements `Read` and `Seek`, and decodes sequential reads ahead.
        copy(&mut image.open_file(path)?, &mut out)?;
        return Ok(());
    }
    for entry in image.walk() {
        // A damaged directory is one error; the walk can continue with the rest of the image.
        let entry = entry?;
        match entry.inode.kind {
            InodeKind::File { len } => writeln!(out, "{:>12} {}", len, entry.path)?,
            _ => writeln!(out, "{:>12} {}", "-", entry.path)?,
        }
    }
    Ok(())
}
