//! Packs a directory, a tar archive, a manifest, or another image into an image.
//!
//! `cargo run --example pack -- rootfs root.sqfs zstd:19`

use packfs::{Progress, Stage};
use std::io::{Write, stderr, stdout};

/// Progress display that prints each stage and warning on a line.
struct Lines;

impl Progress for Lines {
    fn begin(&self, stage: Stage, files_total: u64, _bytes_total: u64) {
        // The work goes on without a reader.
        let _ = writeln!(stderr(), "{stage:?}: {files_total} files");
    }

    fn warn(&self, message: &str) {
        let _ = writeln!(stderr(), "warning: {message}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(source), Some(image)) = (words.next(), words.next()) else {
        return Err("usage: pack SOURCE IMAGE [CODEC]".into());
    };
    let mut pack = packfs::pack(source, &image).progress(Lines);
    if let Some(codec) = words.next() {
        pack = pack.codec(codec);
    }
    let report = pack.run()?;
    writeln!(stdout(), "{image}: {} bytes became {}", report.bytes_in, report.image_len)?;
    Ok(())
}
