//! Options of `pack` that leave out, rename or change what is packed.

use crate::out::text;
use packfs::source::{Additions, FileContexts, IdMap, ModeChange, Shape, Whiteouts};
use packfs::{Error, ImagePath, MadeAt, Result, ResultExt, Timestamp};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// As typed.
#[derive(clap::Args)]
#[command(next_help_heading = "Shaping")]
pub struct Shaping {
    /// Leave out what matches, with all below it; globs as in .gitignore, may be given several
    /// times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Keep only what matches, with all below it and the directories above
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// As --exclude, one glob a line, # begins a comment
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,

    /// Files of this name in the source hold globs to leave out of their directory, such as
    /// .gitignore
    #[arg(long, value_name = "NAME")]
    ignore_file: Vec<String>,

    /// Cut this many leading directories off every path; what has no more is left out
    #[arg(long, value_name = "N", default_value_t = 0)]
    strip_components: usize,

    /// Keep only what is below this directory of the source, and cut it off
    #[arg(long, value_name = "PATH")]
    strip_prefix: Option<OsString>,

    /// Put everything into this directory of the image
    #[arg(long, value_name = "PATH")]
    prefix: Option<OsString>,

    /// Add a device, link, file or directory: 'c /dev/console 0600 0 0 5 1'
    ///
    /// Needs no root, and goes over any SOURCE: c and b are devices (MAJOR MINOR), 'd PATH MODE UID
    /// GID' a directory, 'l PATH 0777 0 0 TARGET' a symbolic link, 'h PATH TARGET' a hard link, 'f
    /// PATH MODE UID GID HOSTFILE' a file, p a fifo, s a socket, 'm PATH MODE UID GID' whatever is
    /// there with another mode and owner; any line of a manifest will do. PATH is that in the
    /// image, which --exclude, --prefix and their like do not change. What is there is replaced; a
    /// directory keeps what lies in it. What the entry says beats --owner, --mode, --mtime and
    /// their like. May be given several times; the last entry for a path counts
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true)]
    add: Vec<OsString>,

    /// Add what FILE lists, one entry a line as for --add; - is standard input
    ///
    /// It may begin as a manifest does, and need not. Host files in it are found from its folder
    /// on. Entries of --add come after all of these
    #[arg(long, value_name = "FILE")]
    add_manifest: Vec<PathBuf>,

    /// User and group of everything, as numbers
    #[arg(long, value_name = "UID[:GID]", value_parser = parse_owner, conflicts_with_all = ["uid", "gid"])]
    owner: Option<(u32, Option<u32>)>,

    /// User of everything
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,

    /// Group of everything
    #[arg(long, value_name = "GID")]
    gid: Option<u32>,

    /// All belongs to user 0 and group 0; the same as --owner 0:0
    #[arg(long, conflicts_with_all = ["owner", "uid", "gid"])]
    root_owned: bool,

    /// Users that become others: FROM:TO or FIRST-LAST:TO, separated by commas
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    uid_map: Vec<IdMap>,

    /// Groups that become others, as --uid-map
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    gid_map: Vec<IdMap>,

    /// Permissions of everything but symlinks: octal, or as for chmod, such as u=rwX,go=rX
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeChange>,

    /// Permissions of everything but directories and symlinks
    #[arg(long, value_name = "MODE")]
    file_mode: Option<ModeChange>,

    /// Permissions of directories
    #[arg(long, value_name = "MODE")]
    dir_mode: Option<ModeChange>,

    /// Time of everything: seconds since 1970, or a date such as 2026-11-20 or 2026-11-20T13:05:00Z
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    mtime: Option<Timestamp>,

    /// Latest time: later ones become this one; without it SOURCE_DATE_EPOCH, unless --mtime is
    /// given
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    clamp_mtime: Option<Timestamp>,

    /// Keep extended attributes; this is so unless --no-xattrs is given before
    #[arg(long, overrides_with = "no_xattrs")]
    xattrs: bool,

    /// Leave extended attributes out
    #[arg(long)]
    no_xattrs: bool,

    /// Keep only extended attributes with names like this, such as 'user.*'
    #[arg(long, value_name = "GLOB")]
    xattr_include: Vec<String>,

    /// Leave out extended attributes with names like this
    #[arg(long, value_name = "GLOB")]
    xattr_exclude: Vec<String>,

    /// SELinux labels by path in the image, from a policy's file_contexts; they replace those of
    /// the source
    #[arg(long, value_name = "FILE")]
    file_contexts: Option<PathBuf>,

    /// Where the image will be mounted, as the policy names paths from the root of the system
    #[arg(long, value_name = "PATH", requires = "file_contexts")]
    file_contexts_at: Option<OsString>,

    /// Spell marks of what a layer hides as overlayfs (devices 0/0, trusted.overlay.opaque) or aufs
    /// (.wh.NAME, as in container layers) does, from whichever of the two the source has
    #[arg(long, value_name = "overlayfs|aufs|keep")]
    whiteouts: Option<Whiteouts>,

    /// Leave out what lies on other file systems than SOURCE; their mount points stay, empty
    #[arg(short = 'x', long)]
    one_file_system: bool,

    /// Replace symbolic links by what they lead to
    #[arg(short = 'L', long)]
    follow_symlinks: bool,
}

/// As meant.
pub struct Resolved {
    /// For the library.
    pub shape: Shape,
    /// What the environment says of the time the image was made.
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
                Error::usage("--add-manifest - is given twice: standard input can be read once")
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
        text.parse::<u32>().map_err(|_| {
            format!("{text:?} is no id; write numbers such as 0:0 (names differ between machines)")
        })
    };
    match text.split_once(':') {
        Some((uid, gid)) => Ok((number(uid)?, Some(number(gid)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Lines of a file; blank ones and comments mean nothing to whoever compiles the globs.
fn globs_of(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).or_io(|| format!("cannot read {path:?}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Source: <https://reproducible-builds.org/specs/source-date-epoch>.
fn source_date_epoch() -> Result<Option<i64>> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    let wrong = || {
        Error::usage(format!("SOURCE_DATE_EPOCH={}: seconds since 1970 are allowed", value.to_string_lossy()))
    };
    seconds.map(Some).ok_or_else(wrong)
}
