//! A tree after a small change, for packing with an earlier image as the base.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// One of this many files is changed.
const SHARE: usize = 100;

/// Copies a tree. In 1 % of the files, changes a byte in the middle and appends a line.
pub fn make(from: &Path, dir: &Path) -> Result<()> {
    shell::run_quietly(Command::new("cp").arg("-a").arg(from).arg(dir))?;
    let files = workspace::files_below(dir)?;
    let files: Vec<_> = files.iter().filter(|path| path.is_file() && !path.is_symlink()).collect();
    files.iter().step_by(SHARE).try_for_each(|path| change(path))
}

fn change(path: &Path) -> Result<()> {
    let mut bytes = fs::read(path).map_err(|error| Failure::io("read", path, error))?;
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 0x55;
    }
    bytes.extend_from_slice(b"\nchanged\n");
    fs::write(path, bytes).map_err(|error| Failure::io("write", path, error))
}
