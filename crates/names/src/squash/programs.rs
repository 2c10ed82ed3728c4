//! Tests of mksquashfs's actions that run programs, or read files of this machine.

use super::expressions::Figure;
use packfs::{Error, FileType, ImagePath, Result, ResultExt};
use regex::bytes::Regex;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Matches the description of the program `file`.
pub fn file(host: &Path, regex: &Regex) -> Result<bool> {
    let run = Command::new("file").arg("-b").arg("--").arg(host).stdin(Stdio::null()).output();
    let run = run.or_io(|| "cannot run file, which the test \"file\" needs")?;
    if run.status.success() {
        Ok(regex.is_match(&run.stdout))
    } else {
        Err(Error::failed(format!("file -b {host:?} failed: {}", run.status)))
    }
}

/// The names of the file are in the command's environment.
pub fn succeeds(command: &str, path: &ImagePath, host: &Path) -> Result<bool> {
    let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).into_owned();
    let place = format!("/{}", String::from_utf8_lossy(path.as_bytes()));
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).env("NAME", name).env("PATHNAME", place);
    shell.env("SOURCE_PATHNAME", host).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(shell.status().or_io(|| format!("cannot run {command}"))?.success())
}

pub fn file_type(found: &Metadata) -> FileType {
    let file_type = found.file_type();
    if file_type.is_dir() {
        FileType::Directory
    } else if file_type.is_symlink() {
        FileType::Symlink
    } else if file_type.is_block_device() {
        FileType::BlockDevice
    } else if file_type.is_char_device() {
        FileType::CharDevice
    } else if file_type.is_fifo() {
        FileType::Fifo
    } else if file_type.is_socket() {
        FileType::Socket
    } else {
        FileType::File
    }
}

/// `depth` is that of its name.
pub fn figure(figure: Figure, found: &Metadata, depth: usize) -> Option<u64> {
    let (is_file, is_dir) = (found.is_file(), found.is_dir());
    Some(match figure {
        Figure::FileSize | Figure::FileBlocks | Figure::TailSize if !is_file => return None,
        Figure::DirSize | Figure::DirBlocks | Figure::Entries if !is_dir => return None,
        Figure::FileSize | Figure::DirSize | Figure::Size => found.size(),
        Figure::TailSize => found.size() % (128 << 10),
        Figure::FileBlocks | Figure::DirBlocks | Figure::Blocks => found.blocks(),
        Figure::Inode => found.ino(),
        Figure::Links => found.nlink(),
        Figure::Uid => found.uid().into(),
        Figure::Gid => found.gid().into(),
        Figure::Depth => depth as u64,
        // A directory of this machine may have other names than in the image.
        Figure::Entries => return None,
    })
}
