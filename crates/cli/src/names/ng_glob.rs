//! Lines of gensquashfs that take a part of a directory:
//! `glob PATH MODE UID GID [OPTIONS] DIRECTORY`.

use super::globs::matches_path;
use super::pseudo::{Defaults, host_entry, quoted};
use packfs::source::ModeChange;
use packfs::{Error, ImagePath, Meta, Name, Result, ResultExt, Timestamp, Xattrs};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Deepest directory.
const DEPTH_MAX: usize = 512;

/// Directories of the image that the lines above made.
#[derive(Default)]
pub struct Directories(BTreeSet<ImagePath>);

impl Directories {
    /// Adds the directories above an entry.
    pub fn add_parents(&mut self, path: &ImagePath) {
        let mut at = path.clone();
        while at.pop() && self.0.insert(at.clone()) {}
    }

    /// Adds a directory, and those above it.
    pub fn add(&mut self, path: &ImagePath) {
        self.0.insert(path.clone());
        self.add_parents(path);
    }
}

/// A line as it is typed; unset metadata is that of the file.
#[derive(Default)]
struct Line {
    place: ImagePath,
    mode: Option<ModeChange>,
    uid: Option<u32>,
    gid: Option<u32>,
    /// Letters of the types that are taken; empty for all.
    types: Vec<u8>,
    pattern: Option<Vec<u8>>,
    /// Matches the pattern with paths of the image instead of names.
    is_of_paths: bool,
    is_flat: bool,
    keeps_time: bool,
    device: Option<u64>,
}

/// Treatment of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Take,
    /// Leaves a directory out, and takes what is below it.
    Enter,
    Skip,
}

/// Returns the entries of a line; its directory is below `base`. Adds their directories to `made`.
///
/// Errors: `Usage`; `Io` for the directory.
pub fn entries(words: &[Vec<u8>], base: &Path, made: &mut Directories) -> Result<Vec<Vec<u8>>> {
    let wrong = || Error::usage("glob PATH MODE UID GID [OPTIONS] [DIRECTORY] is allowed");
    let [_, place, mode, uid, gid, rest @ ..] = words else { return Err(wrong()) };
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    let id = |word: &Vec<u8>| match &word[..] {
        b"*" => Ok(None),
        _ => text(word).parse().map(Some).map_err(|_| wrong()),
    };
    let mode = if mode == b"*" { None } else { Some(text(mode).parse()?) };
    let mut line =
        Line { place: ImagePath::parse(place)?, mode, uid: id(uid)?, gid: id(gid)?, ..Line::default() };
    let (mut words, mut directory, mut is_bound) = (rest.iter(), None, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or_else(wrong);
        match &word[..] {
            b"-type" => line.types.push(letter(&value()?)?),
            b"-name" => line.pattern = Some(value()?),
            b"-path" => (line.pattern, line.is_of_paths) = (Some(value()?), true),
            b"-nonrecursive" => line.is_flat = true,
            b"-keeptime" => line.keeps_time = true,
            b"-xdev" | b"-mount" => is_bound = true,
            b"--" => {
                directory = Some(value()?);
                break;
            }
            other if other.starts_with(b"-") => {
                return Err(Error::usage(format!("glob has no option \"{}\"", packfs::escaped(other))));
            }
            _ => {
                directory = Some(word.clone());
                break;
            }
        }
    }
    if words.next().is_some() {
        return Err(wrong());
    }
    let directory = base.join(OsStr::from_bytes(&directory.unwrap_or_default()));
    line.device = directory.metadata().ok().filter(|_| is_bound).map(|found| found.dev());
    let mut found = Vec::new();
    if !line.place.is_root() {
        made.add(&line.place);
        found.push([&b"dir "[..], &quoted(line.place.as_bytes())].concat());
    }
    line.below(&directory, &line.place, &mut found, made)?;
    Ok(found)
}

/// Returns the letter of a type.
fn letter(word: &[u8]) -> Result<u8> {
    match word {
        [letter @ (b'b' | b'c' | b'd' | b'p' | b'f' | b'l' | b's')] => Ok(*letter),
        other => Err(Error::usage(format!("glob has no type \"{}\"", packfs::escaped(other)))
            .hint("types are b, c, d, p, f, l, and s")),
    }
}

impl Line {
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

    /// Directories that the types leave out are entered if the image has them; the pattern is not
    /// for them.
    fn choice(
        &self,
        path: &ImagePath,
        name: &[u8],
        file_type: std::fs::FileType,
        made: &Directories,
    ) -> Choice {
        let letter = match () {
            () if file_type.is_dir() => b'd',
            () if file_type.is_file() => b'f',
            () if file_type.is_symlink() => b'l',
            () if file_type.is_fifo() => b'p',
            () if file_type.is_socket() => b's',
            () if file_type.is_block_device() => b'b',
            () => b'c',
        };
        if !self.types.is_empty() && !self.types.contains(&letter) {
            return if made.0.contains(path) { Choice::Enter } else { Choice::Skip };
        }
        let text = if self.is_of_paths { path.as_bytes() } else { name };
        match self.pattern.as_ref().is_none_or(|glob| matches_path(glob, text)) {
            true => Choice::Take,
            false => Choice::Skip,
        }
    }

    fn entry(&self, path: &ImagePath, host: &Path) -> Result<Vec<u8>> {
        let meta = |meta: Meta, is_dir: bool| {
            let mut meta = meta;
            meta.mode = self.mode.as_ref().map_or(meta.mode, |change| change.apply(meta.mode, is_dir));
            meta.owner.uid = self.uid.unwrap_or(meta.owner.uid);
            meta.owner.gid = self.gid.unwrap_or(meta.owner.gid);
            meta.mtime = if self.keeps_time { meta.mtime } else { Timestamp::from_seconds(0) };
            meta
        };
        host_entry(path, host, &Defaults { now: 0, meta: &meta, xattrs: &|_| Xattrs::new() })
    }
}
