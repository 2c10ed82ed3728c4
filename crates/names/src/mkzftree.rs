//! mkzftree of zisofs-tools 1.0: copies a tree, compressing or decompressing its files.

use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse};
use crate::common::usage;
use packfs::zisofs::{self, Coder};
use packfs::{Error, ErrorKind, Result, ResultExt};
use packfs_terminal::{Outcome, report};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS: &[Row] = &[
    acts("-f --force", Takes::Nothing),
    acts("-z --level", Takes::One),
    acts("-u --uncompress", Takes::Nothing),
    acts("-p --parallelism", Takes::One),
    acts("-x --one-filesystem", Takes::Nothing),
    acts("-X --strict-one-filesystem", Takes::Nothing),
    acts("-C --crib-tree --crib-path", Takes::One),
    acts("-l --local", Takes::Nothing),
    acts("-L --strict-local", Takes::Nothing),
    acts("-F --file", Takes::Nothing),
    acts("-s --sloppy", Takes::Nothing),
    acts("-v --verbose", Takes::Nothing),
    acts("-V --verbosity", Takes::One),
    acts("-q --quiet", Takes::Nothing),
    ignored("-a --algorithm", Takes::One),
    acts("-h --help", Takes::Nothing),
    acts("-w --version", Takes::Nothing),
];

/// `sysexits.h`.
const USAGE: u8 = 64;
const DATA: u8 = 65;
const NO_INPUT: u8 = 66;
const CANNOT_CREATE: u8 = 73;

/// Verbosity that lists each file, and files copied from an older tree.
const NAMES: u32 = 4;

const DEPTH_MAX: usize = 4096;

pub fn run(args: &[OsString]) -> Outcome {
    let given = match parse(&[ROWS], Style::Getopt, args) {
        Ok(given) => given,
        Err(error) => return Ok(failed(&error, USAGE, false)),
    };
    if given.has("-w") {
        report::line(concat!("zisofs-tools 1.0.8 (packfs ", env!("CARGO_PKG_VERSION"), ")"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        report::aside(format_args!("Usage: mkzftree [options] intree outtree\n\n{}", usage::table(&[ROWS])));
        return Ok(ExitCode::SUCCESS);
    }
    let is_quiet = given.has("-q") || given.text("-V")? == Some("0");
    Ok(match copied(&given) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => failed(&error, code, is_quiet),
    })
}

fn failed(error: &Error, code: u8, is_quiet: bool) -> ExitCode {
    if !is_quiet {
        report::failure_of("mkzftree", error);
    }
    ExitCode::from(code)
}

type Coded<T> = std::result::Result<T, (u8, Error)>;

trait Code<T> {
    fn code(self, code: u8) -> Coded<T>;
}

impl<T> Code<T> for Result<T> {
    fn code(self, code: u8) -> Coded<T> {
        self.map_err(|error| (code, error))
    }
}

fn copied(given: &Given) -> Coded<()> {
    let [source, target] = &given.operands[..] else {
        return Err((USAGE, Error::usage("Usage: mkzftree [options] intree outtree")));
    };
    let settings = Settings::of(given).code(USAGE)?;
    let (source, target) = (Path::new(source), Path::new(target));
    let cannot = || format!("cannot read {source:?}");
    let top = if given.has("-F") {
        source.symlink_metadata().or_io(cannot).code(NO_INPUT)?
    } else {
        // The top may be a symbolic link.
        source.metadata().or_io(cannot).code(NO_INPUT)?
    };
    if !given.has("-F") && !top.is_dir() {
        return Err((DATA, Error::failed(format!("{}: Not a directory", source.display()))));
    }
    let mut tree = Tree { settings: &settings, files: Vec::new(), dirs: Vec::new(), links: HashMap::new() };
    let crib = given.last("-C").map(PathBuf::from);
    tree.take(Place { from: source.into(), to: target.into(), crib }, top, 0)?;
    code_files(&settings, &tree.files)?;
    for (to, found) in tree.later_links() {
        std::fs::hard_link(&found, &to).or_io(|| format!("cannot create {to:?}")).code(CANNOT_CREATE)?;
    }
    // Times of directories change with every file created in them.
    tree.dirs.iter().rev().try_for_each(|(path, found)| settings.describe(path, found))
}

struct Settings {
    level: u8,
    jobs: usize,
    force: bool,
    decodes: bool,
    /// Stays on a filesystem; stays in a directory.
    one_filesystem: bool,
    is_flat: bool,
    /// Creates empty directories in place of those not entered.
    has_stubs: bool,
    is_sloppy: bool,
    verbosity: u32,
}

impl Settings {
    fn of(given: &Given) -> Result<Self> {
        let level: u8 = given.number("-z")?.unwrap_or(9);
        if !(1..=9).contains(&level) {
            return Err(Error::usage(format!("invalid compression level: {level}")));
        }
        let last = given.options.iter().rev().find(|(name, _)| ["-x", "-l", "-X", "-L"].contains(name));
        let louder = given.all("-v").count();
        Ok(Settings {
            level,
            jobs: given.number::<u16>("-p")?.map_or(0, usize::from),
            force: given.has("-f"),
            decodes: given.has("-u"),
            one_filesystem: given.has("-x") || given.has("-X"),
            is_flat: given.has("-l") || given.has("-L"),
            has_stubs: last.is_none_or(|(name, _)| ["-x", "-l"].contains(name)),
            is_sloppy: given.has("-s"),
            verbosity: given.number("-V")?.unwrap_or(1) + u32::try_from(louder).unwrap_or(0),
        })
    }

    fn tell(&self, text: std::fmt::Arguments<'_>) {
        if self.verbosity >= NAMES {
            report::note(text);
        }
    }

    fn describe(&self, path: &Path, found: &Metadata) -> Coded<()> {
        let owned = rustix::fs::chownat(
            CWD,
            path,
            Some(Uid::from_raw(found.uid())),
            Some(Gid::from_raw(found.gid())),
            AtFlags::SYMLINK_NOFOLLOW,
        );
        // An ordinary user owns the copies.
        let is_foreign = owned.is_err() && packfs::mount::is_root();
        let described = match (is_foreign, found.file_type().is_symlink()) {
            (true, _) => owned.map_err(std::io::Error::from),
            (false, true) => set_times(path, found),
            (false, false) => {
                std::fs::set_permissions(path, PermissionsExt::from_mode(found.mode() & 0o7777))
                    .and_then(|()| set_times(path, found))
            }
        };
        match described {
            Err(_) if self.is_sloppy => Ok(()),
            result => result.or_io(|| format!("cannot describe {path:?}")).code(CANNOT_CREATE),
        }
    }
}

fn set_times(path: &Path, found: &Metadata) -> std::io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: found.atime(), tv_nsec: found.atime_nsec() },
        last_modification: Timespec { tv_sec: found.mtime(), tv_nsec: found.mtime_nsec() },
    };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Source, copy, and possible older copy.
#[derive(Clone, Debug)]
struct Place {
    from: PathBuf,
    to: PathBuf,
    crib: Option<PathBuf>,
}

impl Place {
    fn join(&self, name: &OsString) -> Place {
        Place {
            from: self.from.join(name),
            to: self.to.join(name),
            crib: self.crib.as_ref().map(|crib| crib.join(name)),
        }
    }
}

/// Regular files are coded later, in parallel.
struct Tree<'a> {
    settings: &'a Settings,
    files: Vec<(Place, Metadata)>,
    dirs: Vec<(PathBuf, Metadata)>,
    /// Key: device and inode. Value: the copy and its further names.
    links: HashMap<(u64, u64), (PathBuf, Vec<PathBuf>)>,
}

impl Tree<'_> {
    fn take(&mut self, place: Place, found: Metadata, depth: usize) -> Coded<()> {
        self.settings.tell(format_args!("{} -> {}", place.from.display(), place.to.display()));
        let cannot = || format!("cannot create {:?}", place.to);
        if found.is_dir() {
            return self.directory(&place, found, depth);
        }
        if found.nlink() > 1 && !found.is_symlink() {
            if let Some((_, names)) = self.links.get_mut(&(found.dev(), found.ino())) {
                names.push(place.to);
                return Ok(());
            }
            self.links.insert((found.dev(), found.ino()), (place.to.clone(), Vec::new()));
        }
        if found.is_file() {
            self.files.push((place, found));
            return Ok(());
        }
        if found.is_symlink() {
            let target = std::fs::read_link(&place.from).or_io(|| format!("cannot read {:?}", place.from));
            std::os::unix::fs::symlink(target.code(NO_INPUT)?, &place.to)
                .or_io(cannot)
                .code(CANNOT_CREATE)?;
        } else {
            let file_type = FileType::from_raw_mode(found.mode());
            let mode = Mode::from_raw_mode(found.mode());
            let made = rustix::fs::mknodat(CWD, &place.to, file_type, mode, found.rdev());
            made.map_err(std::io::Error::from).or_io(cannot).code(CANNOT_CREATE)?;
        }
        self.settings.describe(&place.to, &found)
    }

    fn directory(&mut self, place: &Place, found: Metadata, depth: usize) -> Coded<()> {
        if depth > DEPTH_MAX {
            return Err((DATA, Error::failed(format!("{:?} is too deep", place.from))));
        }
        let cannot = || format!("cannot read {:?}", place.from);
        let device = found.dev();
        std::fs::create_dir(&place.to)
            .or_io(|| format!("cannot create {:?}", place.to))
            .code(CANNOT_CREATE)?;
        self.dirs.push((place.to.clone(), found));
        let entries = std::fs::read_dir(&place.from).or_io(cannot).code(NO_INPUT)?;
        let mut names: Vec<OsString> = Vec::new();
        for entry in entries {
            names.push(entry.or_io(cannot).code(NO_INPUT)?.file_name());
        }
        names.sort();
        for name in names {
            let below = place.join(&name);
            let found = below.from.symlink_metadata();
            let found = found.or_io(|| format!("cannot read {:?}", below.from)).code(NO_INPUT)?;
            let settings = self.settings;
            let is_entered = !settings.is_flat && (!settings.one_filesystem || found.dev() == device);
            match (found.is_dir() && !is_entered, settings.has_stubs) {
                (false, _) => self.take(below, found, depth + 1)?,
                (true, false) => {}
                (true, true) => {
                    std::fs::create_dir(&below.to)
                        .or_io(|| format!("cannot create {:?}", below.to))
                        .code(CANNOT_CREATE)?;
                    self.dirs.push((below.to, found));
                }
            }
        }
        Ok(())
    }

    fn later_links(&self) -> Vec<(PathBuf, PathBuf)> {
        let named = self.links.values();
        named.flat_map(|(first, names)| names.iter().map(|name| (name.clone(), first.clone()))).collect()
    }
}

fn code_files(settings: &Settings, files: &[(Place, Metadata)]) -> Coded<()> {
    let jobs = if settings.jobs == 0 { packfs::processor_count() } else { settings.jobs };
    let (next, fault) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || -> Coded<()> {
        let mut coder = Coder::new(settings.level).code(USAGE)?;
        while let Some((place, found)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            code_file(settings, &mut coder, place, found)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(files.len()) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    // The other threads end after their current file.
                    next.store(files.len(), Ordering::Relaxed);
                    fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                }
            });
        }
    });
    let fault = fault.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    fault.map_or(Ok(()), Err)
}

fn code_file(settings: &Settings, coder: &mut Coder, place: &Place, found: &Metadata) -> Coded<()> {
    if let Some(crib) = place.crib.as_deref().filter(|crib| is_older_copy(crib, found)) {
        // Coded again if on another filesystem.
        if std::fs::hard_link(crib, &place.to).is_ok() {
            settings.tell(format_args!("crib: {} -> {}", crib.display(), place.to.display()));
            return Ok(());
        }
    }
    let mut from =
        File::open(&place.from).or_io(|| format!("cannot open {:?}", place.from)).code(NO_INPUT)?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let mut to =
        options.open(&place.to).or_io(|| format!("cannot create {:?}", place.to)).code(CANNOT_CREATE)?;
    let coded = if settings.decodes {
        coder.decode(&mut from, &mut to)
    } else {
        coder.encode(&mut from, &mut to, settings.force)
    };
    coded.map_err(|error| {
        let code = if error.kind() == ErrorKind::Corrupt { DATA } else { CANNOT_CREATE };
        (code, error.at(format!("{:?}", place.from)))
    })?;
    settings.describe(&place.to, found)
}

/// Judged by metadata.
fn is_older_copy(crib: &Path, found: &Metadata) -> bool {
    let (Ok(old), Ok(file)) = (crib.metadata(), File::open(crib)) else { return false };
    let of = |found: &Metadata| (found.mode(), found.uid(), found.gid(), found.mtime());
    let len = zisofs::decoded_len(&file).ok().flatten().unwrap_or(old.len());
    old.is_file() && of(&old) == of(found) && len == found.len()
}
