//! Options of `pack` that leave out, rename or change what is packed.

use crate::out::text;
use packfs::source::{Additions, FileContexts, IdMap, ModeChange, Shape, Whiteouts};
use packfs::{Error, ImagePath, MadeAt, Result, ResultExt, Timestamp};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Long help of `--add`, whose lines are kept.
const ADD: &str = "\
Add an entry, such as 'd /proc 0755 0 0'

ENTRY is a line of a manifest, or one of these:
  d PATH MODE UID GID                directory
  f PATH MODE UID GID HOSTFILE       file
  l PATH 0777 UID GID TARGET         symbolic link
  h PATH TARGET                      hard link
  c|b PATH MODE UID GID MAJOR MINOR  character or block device
  p|s PATH MODE UID GID              fifo or socket
  m PATH MODE UID GID                new mode and owner of an entry

PATH is a path in the image, which --exclude, --prefix and similar options do not change. An \
existing entry is replaced; a directory keeps its contents. Attributes in the entry override \
--owner, --mode, --mtime and similar options. Needs no root, applies to any SOURCE, and may be \
given several times; the last entry for a path counts.";

/// Options that filter and change the source.
#[derive(clap::Args)]
pub struct Shaping {
    /// Exclude paths matching GLOB
    ///
    /// Globs are those of .gitignore. A directory is excluded with its contents. May be given
    /// several times.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Include only paths matching GLOB
    ///
    /// A directory is included with its contents; directories above are kept. May be given several
    /// times.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Exclude paths matching the globs in FILE
    ///
    /// One glob a line; # starts a comment. Globs are those of .gitignore.
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,

    /// Read globs to exclude from files named NAME
    ///
    /// Such as .gitignore. The globs apply to the directory of the file.
    #[arg(long, value_name = "NAME")]
    ignore_file: Vec<String>,

    /// Remove N leading directories from every path
    ///
    /// Paths with fewer directories are left out.
    #[arg(long, value_name = "N", default_value_t = 0)]
    strip_components: usize,

    /// Pack only the tree below PATH, as the root
    #[arg(long, value_name = "PATH")]
    strip_prefix: Option<OsString>,

    /// Place everything below PATH in the image
    #[arg(long, value_name = "PATH")]
    prefix: Option<OsString>,

    /// Add an entry, such as 'd /proc 0755 0 0'
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true, long_help = ADD)]
    add: Vec<OsString>,

    /// Add the entries in FILE, one a line as for --add
    ///
    /// A FILE of - is standard input. A manifest header is optional. Host files in it are relative
    /// to the folder of FILE. Entries of --add come after these.
    #[arg(long, value_name = "FILE")]
    add_manifest: Vec<PathBuf>,

    /// Set the user of everything, and with :GID the group
    ///
    /// Numbers, such as 0:0, because names differ between machines. UID alone keeps the group.
    #[arg(long, value_name = "UID[:GID]", value_parser = parse_owner, conflicts_with_all = ["uid", "gid"])]
    owner: Option<(u32, Option<u32>)>,

    /// Set the user of everything
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,

    /// Set the group of everything
    #[arg(long, value_name = "GID")]
    gid: Option<u32>,

    /// Set user 0 and group 0 for everything
    ///
    /// The same as --owner 0:0.
    #[arg(long, conflicts_with_all = ["owner", "uid", "gid"])]
    root_owned: bool,

    /// Map users: FROM:TO or FIRST-LAST:TO
    ///
    /// FIRST-LAST:TO maps FIRST to TO, FIRST+1 to TO+1, and so on. Separate several maps by commas.
    /// Has no effect with --uid or --owner.
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    uid_map: Vec<IdMap>,

    /// Map groups: FROM:TO or FIRST-LAST:TO
    ///
    /// As --uid-map. Has no effect with --gid or with a group in --owner.
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    gid_map: Vec<IdMap>,

    /// Set permissions of everything but symlinks
    ///
    /// Octal, or symbolic as for chmod: u=rwX,go=rX.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeChange>,

    /// Set permissions of all but directories and symlinks
    ///
    /// MODE as for --mode, which it overrides.
    #[arg(long, value_name = "MODE")]
    file_mode: Option<ModeChange>,

    /// Set permissions of directories
    ///
    /// MODE as for --mode, which it overrides.
    #[arg(long, value_name = "MODE")]
    dir_mode: Option<ModeChange>,

    /// Set the modification time of everything
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    mtime: Option<Timestamp>,

    /// Limit modification times to at most TIME
    ///
    /// The default is SOURCE_DATE_EPOCH, unless --mtime is given.
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    clamp_mtime: Option<Timestamp>,

    /// Keep extended attributes (default)
    ///
    /// Overrides an earlier --no-xattrs.
    #[arg(long, overrides_with = "no_xattrs")]
    xattrs: bool,

    /// Drop extended attributes
    #[arg(long)]
    no_xattrs: bool,

    /// Keep only extended attributes matching GLOB
    ///
    /// Such as 'user.*'.
    #[arg(long, value_name = "GLOB")]
    xattr_include: Vec<String>,

    /// Drop extended attributes matching GLOB
    #[arg(long, value_name = "GLOB")]
    xattr_exclude: Vec<String>,

    /// Set SELinux labels from a file_contexts file
    ///
    /// Paths are those in the image. The labels replace those of the source.
    #[arg(long, value_name = "FILE")]
    file_contexts: Option<PathBuf>,

    /// Set the mount point that file_contexts applies to
    ///
    /// The mount point of the image in the running system, such as /vendor: policies name paths
    /// from the root of the system.
    #[arg(long, value_name = "PATH", requires = "file_contexts")]
    file_contexts_at: Option<OsString>,

    /// Convert whiteouts to overlayfs or aufs form, or keep them
    ///
    /// Whiteouts mark deleted files in layers of containers. overlayfs writes character devices 0:0
    /// and trusted.overlay.opaque; aufs writes .wh.NAME. The source may have either form. keep
    /// changes nothing; the default is the same, with a warning about names like .wh.NAME.
    #[arg(long, value_name = "STYLE")]
    whiteouts: Option<Whiteouts>,

    /// Stay on the filesystem of SOURCE
    ///
    /// Mount points become empty directories.
    #[arg(short = 'x', long)]
    one_file_system: bool,

    /// Replace symbolic links by their targets
    #[arg(short = 'L', long)]
    follow_symlinks: bool,
}

/// Resolved options.
pub struct Resolved {
    /// For the library.
    pub shape: Shape,
    /// Creation time of the image by the environment.
    pub made_at: Option<MadeAt>,
}

impl Shaping {
    /// Reads the files and the environment that the options refer to.
    pub fn resolve(&self) -> Result<Resolved> {
        let epoch = source_date_epoch()?;
        let mut exclude = self.exclude.clone();
        for path in &self.exclude_from {
            exclude.extend(globs_of(path)?);
        }
        let mut xattr_exclude = self.xattr_exclude.clone();
        if self.no_xattrs && !self.xattrs {
            xattr_exclude.push("*".into());
        }
        let (uid, gid) = match (self.root_owned, self.owner) {
            (true, _) => (Some(0), Some(0)),
            (false, Some((uid, gid))) => (Some(uid), gid),
            (false, None) => (self.uid, self.gid),
        };
        let clamp_by_environment = epoch.filter(|_| self.mtime.is_none()).map(Timestamp::from_seconds);
        let shape = Shape {
            exclude,
            include: self.include.clone(),
            ignore_files: self.ignore_file.clone(),
            strip_components: self.strip_components,
            strip_prefix: image_path(self.strip_prefix.as_ref())?,
            prefix: image_path(self.prefix.as_ref())?,
            uid,
            gid,
            uid_map: self.uid_map.clone(),
            gid_map: self.gid_map.clone(),
            file_mode: self.file_mode.clone().or(self.mode.clone()),
            dir_mode: self.dir_mode.clone().or(self.mode.clone()),
            mtime: self.mtime,
            mtime_max: self.clamp_mtime.or(clamp_by_environment),
            xattr_exclude,
            xattr_include: self.xattr_include.clone(),
            whiteouts: self.whiteouts,
            additions: self.additions()?,
            file_contexts: self.file_contexts()?.map(Arc::new),
            one_file_system: self.one_file_system,
            follow_symlinks: self.follow_symlinks,
            ..Shape::default()
        };
        Ok(Resolved { shape, made_at: epoch.map(MadeAt::Seconds) })
    }

    /// True if entries come from standard input.
    pub fn reads_stdin(&self) -> bool {
        self.add_manifest.iter().any(|path| path == Path::new("-"))
    }

    fn additions(&self) -> Result<Additions> {
        let mut additions = Additions::default();
        let mut stdin = Some(std::io::stdin());
        for path in &self.add_manifest {
            if path != Path::new("-") {
                additions.add_file(path)?;
                continue;
            }
            let stdin = stdin.take().ok_or_else(|| {
                Error::usage("cannot read standard input twice: --add-manifest - is given twice")
            })?;
            additions.add_text(&mut stdin.lock(), "standard input")?;
        }
        let entries: Vec<&[u8]> = self.add.iter().map(|entry| entry.as_bytes()).collect();
        additions.add(&entries, "--add")?;
        Ok(additions)
    }

    fn file_contexts(&self) -> Result<Option<FileContexts>> {
        let Some(path) = &self.file_contexts else { return Ok(None) };
        let at = image_path(self.file_contexts_at.as_ref())?;
        Ok(Some(FileContexts::read(path)?.mounted_at(at)))
    }
}

fn image_path(typed: Option<&OsString>) -> Result<ImagePath> {
    typed.map_or(Ok(ImagePath::root()), |path| ImagePath::parse(path.as_bytes()))
}

fn parse_owner(text: &str) -> Result<(u32, Option<u32>), String> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| "not an id; use numbers such as 0:0 (names differ between machines)".to_owned())
    };
    match text.split_once(':') {
        Some((uid, gid)) => Ok((number(uid)?, Some(number(gid)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Returns the lines of a file. Blank lines and comments are ignored when globs are compiled.
fn globs_of(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).or_io(|| format!("cannot read {path:?}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Source: <https://reproducible-builds.org/specs/source-date-epoch>.
pub fn source_date_epoch() -> Result<Option<i64>> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    let wrong = || {
        Error::usage(format!("invalid SOURCE_DATE_EPOCH={}: not seconds since 1970", value.to_string_lossy()))
    };
    seconds.map(Some).ok_or_else(wrong)
}
