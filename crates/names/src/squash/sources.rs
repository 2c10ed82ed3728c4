//! Sources of mksquashfs: directories, files, lists, archives, and files with their metadata.

use super::options::Metadata;
use crate::common::trees::{self, Part, load_one};
use packfs::source::{ArchiveKind, Loaded, OF_LOWER_LAYER, Selection, Shape, stack};
use packfs::{
    Error, ImagePath, Implied, Limits, Meta, Name, NodeKind, Owner, Progress, Result, ResultExt, Source,
    Timestamp,
};
use packfs_terminal::report;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

pub struct Sources<'a> {
    /// `-` is no path.
    pub paths: &'a [PathBuf],
    /// Archives: a tar archive on standard input, or zip archives by path.
    pub archive: Option<ArchiveKind>,
    pub is_tarstyle: bool,
    /// Separator of a list on standard input.
    pub list_end: Option<u8>,
    pub keeps_directory: bool,
}

impl Sources<'_> {
    /// The flag is true if the source does not describe the root, so that its time is unknown.
    ///
    /// Errors: `Usage` for an invalid combination of sources; those of the sources.
    pub fn load(
        &self,
        shape: &Shape,
        metadata: &Metadata,
        progress: &dyn Progress,
    ) -> Result<(Loaded, bool)> {
        if self.archive.is_some() {
            return Ok((self.archives(shape, metadata, progress)?, true));
        }
        if let Some(end) = self.list_end {
            return self.list(end, shape, progress);
        }
        match self.paths {
            _ if !self.has_root() => Ok((trees::empty(own_root())?, true)),
            paths if self.is_tarstyle => self.placed(paths, shape, progress, false),
            [only] if self.is_root(only) => {
                Ok((Source::Directory(only.clone()).load(shape, progress)?, false))
            }
            [only] => Ok((with_root(load_one(only, shape, progress)?, own_root())?, true)),
            paths => {
                Ok((with_root(Source::Entries(paths.to_vec()).load(shape, progress)?, own_root())?, true))
            }
        }
    }

    fn is_root(&self, only: &Path) -> bool {
        // A link is no directory, unless a slash follows it.
        let is_dir = only.symlink_metadata().is_ok_and(|found| found.is_dir());
        is_dir && !self.keeps_directory && !self.is_tarstyle
    }

    /// True for a directory on another filesystem than its source.
    pub fn is_mount_point(&self, path: &ImagePath) -> bool {
        let device = |path: &Path| path.symlink_metadata().ok().map(|found| found.dev());
        self.paths.iter().any(|source| {
            let place: PathBuf = match self.paths {
                [only] if self.is_root(only) => PathBuf::new(),
                _ if self.is_tarstyle => {
                    source.components().filter(|part| matches!(part, Component::Normal(_))).collect()
                }
                _ => source.file_name().unwrap_or_default().into(),
            };
            let below = Path::new(OsStr::from_bytes(path.as_bytes())).strip_prefix(place);
            let there = below.ok().and_then(|below| device(&source.join(below)));
            matches!((device(source), there), (Some(one), Some(other)) if one != other)
        })
    }

    fn is_stdin(&self) -> bool {
        self.paths.first().is_some_and(|path| path.as_os_str() == "-")
    }

    /// False if there are only definitions.
    pub fn has_root(&self) -> bool {
        self.archive.is_some() || self.list_end.is_some() || !self.is_stdin()
    }

    /// Errors: `Usage` for `-` without an option for standard input, and vice versa.
    pub fn check(&self, makes_root: bool, has_pseudo_stdin: bool) -> Result<()> {
        let is_tar = self.archive == Some(ArchiveKind::Tar);
        let readers = [self.archive.is_some(), self.list_end.is_some(), has_pseudo_stdin];
        if readers.into_iter().filter(|reads| *reads).count() > 1 {
            let fault =
                "only one of archives, a list of names, and a pseudo file from standard input is read";
            return Err(Error::usage(fault));
        }
        if (is_tar || self.list_end.is_some()) && !self.is_stdin() {
            return Err(Error::usage("the source has to be - with -tar, -cpiostyle, and -cpiostyle0")
                .hint("mksquashfs - IMAGE -tar"));
        }
        if !self.has_root() && !makes_root && !self.is_tarstyle {
            return Err(Error::usage("the source is -, and no pseudo definition makes \"/\"")
                .hint("-tar reads an archive, and -cpiostyle names of files, from standard input"));
        }
        for ignored in self.paths.iter().skip(1).filter(|path| self.is_stdin() && path.as_os_str() != "-") {
            report::note(format_args!("source {ignored:?} behind - is ignored"));
        }
        Ok(())
    }

    fn archives(&self, shape: &Shape, metadata: &Metadata, progress: &dyn Progress) -> Result<Loaded> {
        let root = own_root();
        let implied = metadata.implied(root.owner, Metadata::UNKNOWN);
        let loaded = match self.archive {
            Some(ArchiveKind::Zip) => {
                let Implied { mode, owner, .. } = implied;
                self.zips(shape, Meta { mode, owner, mtime: Metadata::UNKNOWN }, progress)?
            }
            _ => Source::TarStdin.load(&Shape { implied, ..shape.clone() }, progress)?,
        };
        trees::edited(loaded, true, |path, node, edit| {
            if path.is_root() {
                // Whatever the archive contains.
                edit.meta = root;
            } else if matches!(node.kind, NodeKind::Symlink(_)) {
                edit.meta.mode = 0o777;
            }
            Ok(true)
        })
    }

    /// Stacks zip archives: the last file of a path wins, with a warning.
    fn zips(&self, shape: &Shape, implied: Meta, progress: &dyn Progress) -> Result<Loaded> {
        let Meta { mode, owner, mtime } = OF_LOWER_LAYER;
        let shape = Shape { implied: Implied { mode, owner, mtime: Some(mtime) }, ..shape.clone() };
        let mut layers: Vec<Loaded> = Vec::with_capacity(self.paths.len());
        for path in self.paths {
            let loaded = Source::Tar(path.clone()).load(&shape, progress)?;
            let mut walk = loaded.tree.walk();
            while let Some((place, id)) = walk.next() {
                let is_dir = loaded.tree.node(id).is_dir();
                let is_there = |below: &Loaded| {
                    below.tree.find(place).is_some_and(|id| !(is_dir && below.tree.node(id).is_dir()))
                };
                if layers.iter().any(is_there) {
                    progress.warn(&format!("/{place} of {path:?} replaces that of an archive before"));
                }
            }
            layers.push(loaded);
        }
        stack(layers, implied, Limits::default())
    }

    fn list(&self, end: u8, shape: &Shape, progress: &dyn Progress) -> Result<(Loaded, bool)> {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).or_io(|| "cannot read standard input")?;
        let names = text.split(|&byte| byte == end).filter(|name| !name.is_empty());
        let paths: Vec<PathBuf> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        self.placed(&paths, shape, progress, true)
    }

    /// Keeps the path of each source; of a list, without contents of directories.
    fn placed(
        &self,
        paths: &[PathBuf],
        shape: &Shape,
        progress: &dyn Progress,
        is_list: bool,
    ) -> Result<(Loaded, bool)> {
        let (mut parts, mut seen) = (Vec::new(), HashSet::new());
        let bare = |prefix: ImagePath, depth: usize| {
            let select = Some(Selection::new(move |path| path.names().count() > depth));
            Shape { prefix, select, ..shape.clone() }
        };
        if let Some(path) = paths.first() {
            let host = PathBuf::from(if path.is_absolute() { "/" } else { "." });
            let loaded = Source::Directory(host.clone()).load(&bare(ImagePath::root(), 0), progress)?;
            parts.push(Part { loaded, place: ImagePath::root(), host });
        }
        for path in paths {
            let (mut parent, mut host) = (ImagePath::root(), PathBuf::new());
            for component in path.components() {
                host.push(component);
                let Component::Normal(name) = component else {
                    if parent.is_root() {
                        continue;
                    }
                    return Err(Error::usage(format!("source path {path:?} can't have '.' or '..' in it")));
                };
                let place = parent.join(Name::new(name.as_bytes()).map_err(Error::usage)?);
                let is_whole = !is_list && host == *path;
                if seen.insert(place.clone()) || is_whole {
                    let shape =
                        if is_whole { Shape { prefix: parent, ..shape.clone() } } else { bare(parent, 1) };
                    let loaded = load_one(&host, &shape, progress)?;
                    parts.push(Part { loaded, place: place.clone(), host: host.clone() });
                }
                parent = place;
            }
        }
        Ok((trees::joined(own_root(), parts)?, paths.is_empty()))
    }
}

/// Writable by all, owned by this user, modified now.
fn own_root() -> Meta {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let owner = Owner { uid: rustix::process::getuid().as_raw(), gid: rustix::process::getgid().as_raw() };
    Meta { mode: 0o777, owner, mtime: Timestamp::from_seconds(i64::try_from(now).unwrap_or(0)) }
}

fn with_root(loaded: Loaded, meta: Meta) -> Result<Loaded> {
    trees::edited(loaded, true, |path, _, edit| {
        if path.is_root() {
            edit.meta = meta;
        }
        Ok(true)
    })
}

/// Device and inode of a path of an exclude list: on this machine, or below the sources.
pub fn identities(sources: &[PathBuf], path: &Path) -> Vec<(u64, u64)> {
    let is_absolute =
        [&b"/"[..], b"./", b"../"].iter().any(|start| path.as_os_str().as_bytes().starts_with(start));
    let candidates: Vec<PathBuf> = if is_absolute {
        vec![path.into()]
    } else {
        sources.iter().map(|source| source.join(path)).collect()
    };
    let found = candidates.iter().filter_map(|path| path.symlink_metadata().ok());
    found.map(|found| (found.dev(), found.ino())).collect()
}

/// Lines are paths of the image with priorities.
pub fn sort_lines(file: &Path, sources: &[PathBuf], lines: &mut Vec<(ImagePath, i16)>) -> Result<()> {
    let text = std::fs::read(file).or_io(|| format!("cannot open sort file {file:?}"))?;
    for line in text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let wrong =
            || Error::usage(format!("sort file {file:?}: invalid entry \"{}\"", packfs::escaped(line)));
        let space = line.iter().rposition(u8::is_ascii_whitespace).ok_or_else(wrong)?;
        let priority = std::str::from_utf8(&line[space + 1..]).ok().and_then(|text| text.parse().ok());
        let priority: i16 = priority.ok_or_else(wrong)?;
        let path: Vec<u8> =
            line[..space].trim_ascii_end().split(|&byte| byte == b'\\').collect::<Vec<_>>().concat();
        let path = path.strip_suffix(b"/*").unwrap_or(&path);
        lines.extend(in_image(sources, Path::new(OsStr::from_bytes(path))).map(|path| (path, priority)));
    }
    Ok(())
}

/// Path in the image of a single directory.
fn in_image(sources: &[PathBuf], path: &Path) -> Option<ImagePath> {
    let source = sources.first()?;
    let is_host =
        [&b"/"[..], b"./", b"../"].iter().any(|start| path.as_os_str().as_bytes().starts_with(start));
    let below = source.join(path);
    let path = if is_host {
        path.canonicalize().ok()?.strip_prefix(source.canonicalize().ok()?).ok()?.to_owned()
    } else if below.symlink_metadata().is_ok() {
        path.to_owned()
    } else {
        // Relative to the working directory, as in mkisofs.
        path.strip_prefix(source).unwrap_or(path).to_owned()
    };
    ImagePath::parse(path.as_os_str().as_bytes()).ok()
}
