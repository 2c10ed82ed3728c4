//! Small files that options name: keys, passwords, signatures.

use packfs::{Result, ResultExt};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A key or a password is shorter.
const TEXT_LEN_MAX: u64 = 64 << 10;

/// Reads a small file as text; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {path:?}");
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(TEXT_LEN_MAX).read_to_string(&mut text).or_io(cannot)?;
    } else {
        File::open(path).or_io(cannot)?.take(TEXT_LEN_MAX).read_to_string(&mut text).or_io(cannot)?;
    }
    Ok(text)
}
