//! Converts an image to another format, and compares the files of both.
//!
//! `cargo run --example convert -- root.sqfs root.erofs`

use std::io::{Write, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, target] = &words[..] else { return Err("usage: convert IMAGE IMAGE".into()) };
    // The extension selects the format; `Pack::format` overrides it.
    let report = packfs::pack(source, target).run()?;
    let (before, after) = (packfs::open(source)?, packfs::open(target)?);
    let (from, to) = (before.format().name(), after.format().name());
    writeln!(stdout(), "{from} to {to}: {} bytes", report.image_len)?;
    for entry in before.walk() {
        let entry = entry?;
        let is_file = matches!(entry.inode.kind, packfs::InodeKind::File { .. });
        if is_file && before.read(&entry.path)? != after.read(&entry.path)? {
            return Err(format!("{} differs", entry.path).into());
        }
    }
    Ok(())
}
