//! A tree after a small change, for packing with an earlier image as the base.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::shell;

/// One of this many files is changed.
const SHARE: usize = 100;

/// Copies a tree. In 1 % of the files, changes a byte in the middle and appends a line.
pub fn make(from: &Path, dir: &Path) -> Result<()> {
    shell::run_quietly(Command::new("cp").arg("-a").arg(from).arg(dir))?;
    let mut files = vec![];
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).map_err(|error| Failure::io("list", &dir, error))?;
        for entry in entries {
            let path = entry.map_err(|error| Failure::io("list", &dir, error))?.path();
            let found = path.symlink_metadata().map_err(|error| Failure::io("look at", &path, error))?;
            if found.is_dir() {
                open.push(path);
            } else if found.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
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
