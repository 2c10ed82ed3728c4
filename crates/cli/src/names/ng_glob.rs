//! Lines of gensquashfs that take a part of a directory:
//! `glob PATH MODE UID GID [OPTIONS] DIRECTORY`.

use super::globs::matches_all;
use super::pseudo::{Defaults, host_entry, quoted};
use packfs::source::ModeChange;
use packfs::{Error, ImagePath, Meta, Name, Result, ResultExt, Timestamp};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Deepest directory.
const DEPTH_MAX: usize = 512;

/// A line as it is typed; unset metadata is that of the file.
#[derive(Default)]
struct Line {
    place: ImagePath,
    mode: Option<ModeChange>,
    uid: Option<u32>,
    gid: Option<u32>,
    /// Letters of the types that are taken; empty for all.
    types: Vec<u8>,
    name: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    is_flat: bool,
    keeps_time: bool,
    device: Option<u64>,
}

/// Returns the entries of a line; its directory is below `base`.
///
/// Errors: `Usage`; `Io` for the directory.
pub fn entries(words: &[Vec<u8>], base: &Path) -> Result<Vec<Vec<u8>>> {
    let wrong = || Error::usage("glob PATH MODE UID GID [OPTIONS] DIRECTORY is allowed");
    let [_, place, mode, uid, gid, options @ .., directory] = words else { return Err(wrong()) };
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    let id = |word: &Vec<u8>| match &word[..] {
        b"*" => Ok(None),
        _ => text(word).parse().map(Some).map_err(|_| wrong()),
    };
    let mode = if mode == b"*" { None } else { Some(text(mode).parse()?) };
    let mut line =
        Line { place: ImagePath::parse(place)?, mode, uid: id(uid)?, gid: id(gid)?, ..Line::default() };
    let directory = base.join(OsStr::from_bytes(directory));
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().cloned().ok_or_else(wrong);
        match &option[..] {
            b"-type" => line.types.extend(value()?.first()),
            b"-name" => line.name = Some(value()?),
            b"-path" => line.path = Some(value()?),
            b"-nonrecursive" => line.is_flat = true,
            b"-keeptime" => line.keeps_time = true,
            b"-xdev" | b"-mount" => line.device = directory.metadata().ok().map(|found| found.dev()),
            b"--" => {}
            other => {
                return Err(Error::usage(format!("glob has no option \"{}\"", packfs::escaped(other))));
            }
        }
    }
    let mut found = Vec::new();
    if !line.place.is_root() {
        found.push([&b"dir "[..], &quoted(line.place.as_bytes())].concat());
    }
    line.below(&directory, &ImagePath::root(), &mut found)?;
    Ok(found)
}

impl Line {
    fn below(&self, directory: &Path, relative: &ImagePath, found: &mut Vec<Vec<u8>>) -> Result<()> {
        let cannot = || format!("cannot read {directory:?}");
        let read = std::fs::read_dir(directory).or_io(cannot)?;
        let mut entries = read.collect::<std::io::Result<Vec<_>>>().or_io(cannot)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let host = entry.path();
            let (mut path, name) = (relative.clone(), entry.file_name());
            path.push(Name::new(name.as_bytes()).map_err(Error::usage)?);
            let stat = host.symlink_metadata().or_io(|| format!("cannot read {host:?}"))?;
            if self.device.is_some_and(|device| device != stat.dev()) {
                continue;
            }
            // What is below a directory that is left out is, too.
            if !self.takes(&path, name.as_bytes(), stat.file_type()) {
                continue;
            }
            found.push(self.entry(&path, &host)?);
            if stat.is_dir() && !self.is_flat && path.names().count() < DEPTH_MAX {
                self.below(&host, &path, found)?;
            }
        }
        Ok(())
    }

    fn takes(&self, path: &ImagePath, name: &[u8], file_type: std::fs::FileType) -> bool {
        let letter = match () {
            () if file_type.is_dir() => b'd',
            () if file_type.is_file() => b'f',
            () if file_type.is_symlink() => b'l',
            () if file_type.is_fifo() => b'p',
            () if file_type.is_socket() => b's',
            () if file_type.is_block_device() => b'b',
            () => b'c',
        };
        (self.types.is_empty() || self.types.contains(&letter))
            && self.name.as_ref().is_none_or(|glob| matches_all(glob, name))
            && self.path.as_ref().is_none_or(|glob| matches_all(glob, path.as_bytes()))
    }

    fn entry(&self, path: &ImagePath, host: &Path) -> Result<Vec<u8>> {
        let mut place = self.place.clone();
        path.names().for_each(|name| place.push(name));
        let meta = |meta: Meta, is_dir: bool, _| {
            let mut meta = meta;
            meta.mode = self.mode.as_ref().map_or(meta.mode, |change| change.apply(meta.mode, is_dir));
            meta.owner.uid = self.uid.unwrap_or(meta.owner.uid);
            meta.owner.gid = self.gid.unwrap_or(meta.owner.gid);
            meta.mtime = if self.keeps_time { meta.mtime } else { Timestamp::from_seconds(0) };
            meta
        };
        host_entry(&place, host, &Defaults { now: 0, meta: &meta })
    }
}
