//! `packfs mount`: an image as a part of the file system.

mod daemon;
mod helper;
mod options;

pub use helper::arguments;

use crate::args::NestedArgs;
use crate::out::report::{self, Out};
use crate::out::{Outcome, json, text};
use options::Settings;
use packfs::mount::kernel::KernelMount;
use packfs::mount::record::{self, Record, Server};
use packfs::mount::{self, FuseMount, FuseOptions, TraceFile};
use packfs::source::IdMap;
use packfs::{Error, ImagePath, OpenOptions, Opened, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Mount an image on a directory, read-only: by the kernel as root, else through FUSE
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The image: a file or a block device
    #[arg(value_name = "IMAGE", required_unless_present = "list")]
    image: Option<PathBuf>,

    /// The directory to mount it on
    #[arg(value_name = "DIR", required_unless_present = "list")]
    dir: Option<PathBuf>,

    /// Show what packfs mounted
    #[arg(long, conflicts_with_all = ["image", "fuse", "kernel"])]
    list: bool,

    /// With --list: print an array of JSON objects
    #[arg(long, requires = "list")]
    json: bool,

    /// Where the image begins in the file: 4096, 128K, 1M, 0x1000
    #[arg(long, value_name = "BYTES", value_parser = text::parse_size)]
    offset: Option<u64>,

    /// Show only this directory of the image
    #[arg(long, value_name = "PATH")]
    subdir: Option<OsString>,

    /// A file or block device that holds further data of the image; once for each, in the order in
    /// which it lists them
    #[arg(long, value_name = "FILE")]
    device: Vec<PathBuf>,

    #[command(flatten)]
    nested: NestedArgs,

    /// Serve it through FUSE, also as root
    #[arg(long, conflicts_with = "kernel")]
    fuse: bool,

    /// Let the kernel mount it, or fail
    #[arg(long)]
    kernel: bool,

    /// Serve it (through FUSE) until it is unmounted or a signal comes, instead of in the
    /// background
    #[arg(short, long, conflicts_with = "kernel")]
    foreground: bool,

    /// User of everything (FUSE)
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,

    /// Group of everything (FUSE)
    #[arg(long, value_name = "GID")]
    gid: Option<u32>,

    /// Users and groups that become others: FROM:TO or FIRST-LAST:TO, separated by commas (FUSE)
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    owner_map: Vec<IdMap>,

    /// Unmount when nothing was asked for so long and nobody is in it: 90, 90s, 10m, 2h (FUSE)
    #[arg(long, value_name = "TIME", value_parser = options::parse_duration)]
    idle_timeout: Option<Duration>,

    /// Memory for decoded blocks (FUSE; 64M if not given)
    #[arg(long, value_name = "BYTES", value_parser = text::parse_size)]
    cache_size: Option<u64>,

    /// Threads that serve (FUSE; made for the machine if not given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Write the paths of what is used into a file, in the order of first use, for pack --trace:
    /// files that are read, symbolic links that are followed, directories that are listed (FUSE)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Options as for mount(8), separated by commas: nosuid, nodev, noexec, nosymfollow,
    /// allow_other, default_permissions, and every option above without its dashes
    #[arg(short, value_name = "OPTIONS", value_delimiter = ',')]
    options: Vec<OsString>,

    /// What the process is started with that serves in the background.
    #[arg(long, hide = true)]
    detached: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs mount root.sqfs /mnt              as root by the kernel, else through FUSE
  packfs mount --fuse --subdir usr/share root.erofs ~/share
  packfs mount -o allow_other,noexec --idle-timeout 10m root.sqfs /srv/tree
  packfs mount --list
  packfs umount /mnt
In /etc/fstab, once /sbin/mount.packfs is a link to packfs:
  /srv/root.sqfs  /mnt  packfs  nofail,x-systemd.automount  0 0";

impl Opts {
    /// Mounts, or lists.
    pub fn run(mut self) -> Outcome {
        if self.list {
            return list(self.json);
        }
        let (Some(image), Some(dir)) = (self.image.take(), self.dir.take()) else {
            return Err(Error::usage("an image and a directory are needed"));
        };
        let settings = self.settings()?;
        let request = Request { image, dir, settings, nested: self.nested };
        if self.detached {
            return daemon::serve_detached(|| request.serve());
        }
        if !request.settings.is_fuse && packfs::mount::is_root() && request.by_kernel()? {
            return Ok(ExitCode::SUCCESS);
        }
        if request.settings.is_kernel {
            let error = Error::failed("only root can have the kernel mount an image");
            return Err(error.hint("without --kernel it is served through FUSE, which needs no root"));
        }
        if self.foreground {
            return daemon::serve(|| request.serve());
        }
        daemon::start()
    }

    /// What was asked for, by options of the command line and those behind `-o`.
    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings {
            offset: self.offset.unwrap_or(0),
            subdir: ImagePath::root(),
            devices: self.device.clone(),
            is_fuse: self.fuse || self.foreground,
            is_kernel: self.kernel,
            uid: self.uid,
            gid: self.gid,
            owner_map: self.owner_map.clone(),
            idle_timeout: self.idle_timeout,
            cache_len: self.cache_size,
            threads: self.threads,
            record: self.record.clone(),
            ..Settings::new(mount::is_root())
        };
        if let Some(subdir) = &self.subdir {
            settings.subdir = ImagePath::parse(subdir.as_bytes())?;
        }
        for word in &self.options {
            settings.absorb(word)?;
        }
        settings.decide()?;
        Ok(settings)
    }
}

/// What is to be mounted where, and how.
struct Request {
    image: PathBuf,
    dir: PathBuf,
    settings: Settings,
    nested: NestedArgs,
}

impl Request {
    fn open(&self) -> Result<Opened> {
        let settings = &self.settings;
        let options =
            OpenOptions::new().offset(settings.offset).cache_bytes(settings.cache_bytes()).kept_by_readers();
        let options = self.nested.apply(options);
        settings.devices.iter().fold(options, OpenOptions::device).open(&self.image)
    }

    /// Whether the kernel has mounted it. If it does not, that is an error only where the kernel
    /// was insisted on.
    fn by_kernel(&self) -> Result<bool> {
        let opened = self.open()?;
        let format = opened.format().name();
        let settings = &self.settings;
        let is_inner = !opened.layers().is_empty() || !opened.volume().inner_images()?.is_empty();
        let is_whole = !is_inner && !self.nested.is_changed();
        if !is_whole && !settings.is_kernel {
            return Ok(false);
        }
        if !is_whole {
            let error =
                Error::unsupported("kernel mount", "the image lies in another, which the kernel cannot open");
            return Err(error.hint("without --kernel it is served through FUSE"));
        }
        let Some(driver) = opened.format().info().driver else {
            if !settings.is_kernel {
                return Ok(false);
            }
            let error = Error::unsupported("kernel mount", format!("Linux has no driver for {format}"));
            return Err(error.hint("without --kernel it is served through FUSE"));
        };
        let mount = KernelMount {
            driver,
            image: self.image.clone(),
            offset: settings.offset,
            devices: settings.devices.clone(),
            subdir: settings.subdir.clone(),
            flags: settings.flags,
        };
        check_place(&self.dir)?;
        let (at, image) = (absolute(&self.dir), absolute(&self.image));
        match mount.mount(&self.dir) {
            Ok(()) => {
                self.record(at, image, format, Server::Kernel);
                Ok(true)
            }
            Err(error) if settings.is_kernel => Err(error),
            Err(error) => {
                report::warning(&format!("{error}; serving it through FUSE"));
                Ok(false)
            }
        }
    }

    /// Mounts it through FUSE; it answers when this returns.
    fn serve(&self) -> Result<(FuseMount, Option<record::Written>)> {
        check_place(&self.dir)?;
        let opened = self.open()?;
        report::choice(&opened);
        let root = mount::find_subdir(opened.engine(), &self.settings.subdir)?;
        let image = absolute(&self.image);
        let settings = &self.settings;
        let options = FuseOptions {
            flags: settings.flags,
            allow_other: settings.allow_other,
            default_permissions: settings.default_permissions,
            owners: settings.owners(),
            idle_timeout: settings.idle_timeout,
            threads: settings.threads.map_or(0, usize::from),
            trace: settings.record.clone().map(|file| TraceFile { file, above: settings.subdir.clone() }),
            ..FuseOptions::new(root, &image)
        };
        let mounted = FuseMount::new(std::sync::Arc::clone(opened.engine()), &self.dir, &options)?;
        let server = Server::Fuse { pid: std::process::id() };
        let written = self.record(mounted.at().into(), image, opened.format().name(), server);
        Ok((mounted, written))
    }

    /// A mount works without its record, too. Both paths are absolute: nothing is looked up that
    /// might lead into the mount.
    fn record(&self, at: PathBuf, image: PathBuf, format: &str, server: Server) -> Option<record::Written> {
        let record = Record {
            at,
            image,
            offset: self.settings.offset,
            format: Some(format.into()),
            server: Some(server),
            since: None,
        };
        record::write(&record).ok()
    }
}

/// The path without links, or as it is if it leads nowhere.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// A directory whose server is gone answers nothing that a user could make sense of.
fn check_place(dir: &Path) -> Result<()> {
    if mount::is_stale(dir) {
        let error = Error::failed(format!("something is mounted on {dir:?} whose server is gone"));
        return Err(error.hint(format!("packfs umount {dir:?} clears it")));
    }
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::usage(format!("{dir:?} is no directory"))),
        Err(error) => {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = Error::io(format!("cannot mount on {dir:?}"), error);
            Err(if missing { error.hint(format!("mkdir -p {dir:?} makes it")) } else { error })
        }
    }
}

fn list(as_json: bool) -> Outcome {
    let records = record::list()?;
    if as_json {
        let mut array = json::Array::document();
        for record in &records {
            array.push(&Document::from(record))?;
        }
        array.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Out::stdout();
    for record in &records {
        let at = packfs::escaped(record.at.as_os_str().as_bytes()).to_string();
        let image = packfs::escaped(record.image.as_os_str().as_bytes()).to_string();
        let server = match record.server {
            Some(Server::Kernel) => "kernel".to_owned(),
            Some(Server::Fuse { pid }) => format!("fuse, process {pid}"),
            None => "fuse".to_owned(),
        };
        let format = record.format.as_deref().unwrap_or("unknown");
        out.line(format_args!("{at}  {image}  {format}  {server}"))?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Entry of `mount --list --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    at: At<'a>,
    #[serde(flatten)]
    image: json::Image<'a>,
    /// Offset of the image in its file.
    offset: u64,
    /// Name of the format; null if only the mount table knows the mount.
    format: Option<&'a str>,
    /// `kernel` or `fuse`.
    server: &'static str,
    /// Process that serves through FUSE.
    pid: Option<u32>,
    /// Time of mounting, in seconds since 1970.
    since: Option<u64>,
}

json::byte_key!(At, "at", "Directory that the image is mounted on.");

impl<'a> From<&'a Record> for Document<'a> {
    fn from(record: &'a Record) -> Self {
        let (server, pid) = match record.server {
            Some(Server::Kernel) => ("kernel", None),
            Some(Server::Fuse { pid }) => ("fuse", Some(pid)),
            None => ("fuse", None),
        };
        Document {
            at: At::from(&record.at),
            image: json::Image::from(&record.image),
            offset: record.offset,
            format: record.format.as_deref(),
            server,
            pid,
            since: record.since,
        }
    }
}
