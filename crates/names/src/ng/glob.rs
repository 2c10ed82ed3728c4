//! Lines of gensquashfs that include a part of a directory: `glob PATH MODE UID GID [OPTIONS]
//! DIRECTORY`.

use super::words::{self, trimmed, word};
use crate::common::globs::matches_path;
use crate::squash::pseudo::{self, Defaults, host_entry};
use packfs::{Error, ImagePath, Meta, Name, Result, ResultExt, Timestamp, Xattrs};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

const DEPTH_MAX: usize = 512;

/// Directories of earlier lines.
#[derive(Default)]
pub struct Directories(BTreeSet<ImagePath>);

impl Directories {
    /// Returns the lines of new directories, which have default metadata.
    pub fn add_parents(&mut self, path: &ImagePath, defaults: Meta) -> Vec<Vec<u8>> {
        let (mut at, mut lines) = (path.clone(), Vec::new());
        while at.pop() && !at.is_root() && self.0.insert(at.clone()) {
            lines.push(pseudo::line("dir", &at, defaults));
        }
        lines.reverse();
        lines
    }

    pub fn add(&mut self, path: &ImagePath) {
        self.0.insert(path.clone());
    }
}

/// Unset metadata is that of the file.
#[derive(Default)]
struct Line {
    place: ImagePath,
    mode: Option<u16>,
    uid: Option<u32>,
    gid: Option<u32>,
    /// Empty for all.
    types: Vec<u8>,
    pattern: Option<Vec<u8>>,
    /// Matches paths of the image instead of names.
    is_of_paths: bool,
    is_flat: bool,
    keeps_time: bool,
    mtime: Timestamp,
    is_bound: bool,
    device: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Take,
    /// Excludes a directory, but not its contents.
    Enter,
    Skip,
}

/// The directory of a line is relative to `base`. Adds directories to `made`.
pub fn entries(
    typed: &words::Line<'_>,
    base: &Path,
    made: &mut Directories,
    defaults: Meta,
) -> Result<Vec<Vec<u8>>> {
    let mut line = Line {
        place: typed.path.clone(),
        mode: typed.mode,
        uid: typed.uid,
        gid: typed.gid,
        mtime: defaults.mtime,
        ..Line::default()
    };
    let directory = line.options(typed.extra)?;
    let directory = base.join(OsStr::from_bytes(directory));
    line.device = directory.metadata().ok().filter(|_| line.is_bound).map(|found| found.dev());
    let mut found = Vec::new();
    if made.0.insert(line.place.clone()) && !line.place.is_root() {
        found.extend(made.add_parents(&line.place, defaults));
        found.push(pseudo::line("dir", &line.place, defaults));
    }
    line.below(&directory, &line.place, &mut found, made)?;
    Ok(found)
}

/// Quotes of either kind, without escapes.
fn pattern(text: &[u8]) -> (&[u8], &[u8]) {
    match text {
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let end = rest.iter().position(|byte| byte == quote);
            end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + 1..]))
        }
        _ => word(text),
    }
}

fn letter(word: &[u8]) -> Result<u8> {
    match word {
        [letter @ (b'b' | b'c' | b'd' | b'p' | b'f' | b'l' | b's')] => Ok(*letter),
        other => Err(Error::usage(format!("glob has no type \"{}\"", packfs::escaped(other)))
            .hint("types are b, c, d, p, f, l, and s")),
    }
}

impl Line {
    /// Returns the directory after the options.
    fn options<'t>(&mut self, mut rest: &'t [u8]) -> Result<&'t [u8]> {
        loop {
            let (option, behind) = word(rest);
            if !option.starts_with(b"-") {
                return Ok(rest);
            }
            let behind = trimmed(behind);
            rest = match option {
                b"-type" => {
                    let (typed, rest) = word(behind);
                    self.types.push(letter(typed)?);
                    trimmed(rest)
                }
                b"-name" | b"-path" => {
                    let (pattern, rest) = pattern(behind);
                    (self.pattern, self.is_of_paths) =
                        (Some(pattern.to_vec()), self.is_of_paths || option == b"-path");
                    trimmed(rest)
                }
                b"--" => return Ok(behind),
                _ => {
                    match option {
                        b"-nonrecursive" => self.is_flat = true,
                        b"-keeptime" => self.keeps_time = true,
                        b"-xdev" | b"-mount" => self.is_bound = true,
                        _ => {
                            let option = packfs::escaped(option);
                            return Err(Error::usage(format!("glob has no option \"{option}\"")));
                        }
                    }
                    behind
                }
            }
        }
    }

    fn below(
        &self,
        directory: &Path,
        place: &ImagePath,
        found: &mut Vec<Vec<u8>>,
        made: &mut Directories,
    ) -> Result<()> {
        let cannot = || format!("cannot read {directory:?}");
        let read = std::fs::read_dir(directory).or_io(cannot)?;
        let mut entries = read.collect::<std::io::Result<Vec<_>>>().or_io(cannot)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let host = entry.path();
            let (mut path, name) = (place.clone(), entry.file_name());
            path.push(Name::new(name.as_bytes()).map_err(Error::usage)?);
            let stat = host.symlink_metadata().or_io(|| format!("cannot read {host:?}"))?;
            if self.device.is_some_and(|device| device != stat.dev()) {
                continue;
            }
            let choice = self.choice(&path, name.as_bytes(), stat.file_type(), made);
            if choice == Choice::Take {
                if stat.is_dir() {
                    made.add(&path);
                }
                found.push(self.entry(&path, &host)?);
            }
            let enters = choice != Choice::Skip && stat.is_dir() && !self.is_flat;
            if enters && path.names().count() < DEPTH_MAX {
                self.below(&host, &path, found, made)?;
            }
        }
        Ok(())
    }

    /// Directories of excluded types are entered if the image has them; the pattern does not apply
    /// to them.
    fn choice(
        &self,
        path: &ImagePath,
        name: &[u8],
        file_type: std::fs::FileType,
        made: &Directories,
    ) -> Choice {
        let letter = if file_type.is_dir() {
            b'd'
        } else if file_type.is_file() {
            b'f'
        } else if file_type.is_symlink() {
            b'l'
        } else if file_type.is_fifo() {
            b'p'
        } else if file_type.is_socket() {
            b's'
        } else if file_type.is_block_device() {
            b'b'
        } else {
            b'c'
        };
        if !self.types.is_empty() && !self.types.contains(&letter) {
            return if made.0.contains(path) { Choice::Enter } else { Choice::Skip };
        }
        let text = if self.is_of_paths { path.as_bytes() } else { name };
        if self.pattern.as_ref().is_none_or(|glob| matches_path(glob, text)) {
            Choice::Take
        } else {
            Choice::Skip
        }
    }

    fn entry(&self, path: &ImagePath, host: &Path) -> Result<Vec<u8>> {
        let meta = |meta: Meta, _| {
            let mut meta = meta;
            meta.mode = self.mode.unwrap_or(meta.mode);
            meta.owner.uid = self.uid.unwrap_or(meta.owner.uid);
            meta.owner.gid = self.gid.unwrap_or(meta.owner.gid);
            meta.mtime = if self.keeps_time { meta.mtime } else { self.mtime };
            meta
        };
        host_entry(path, host, &Defaults { now: 0, meta: &meta, xattrs: &|_| Xattrs::new() })
    }
}
