//! `packfs mount`: an image as a part of the file system.

mod daemon;
mod helper;
mod notify;
mod options;

pub use helper::arguments;

use crate::args::{Opening, Texts};
use crate::out::report::{self, Out};
use crate::out::{Outcome, json, text};
use options::Settings;
use packfs::mount::kernel::KernelMount;
use packfs::mount::record::{self, Record, Server};
use packfs::mount::{self, Channel, FuseMount, FuseOptions, TraceFile};
use packfs::source::IdMap;
use packfs::{Error, ImagePath, OpenOptions, Opened, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Mount an image read-only: by the kernel as root, else by FUSE
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to mount: a file or a block device
    #[arg(value_name = "IMAGE", required_unless_present = "list")]
    image: Option<PathBuf>,

    /// Directory to mount it on
    #[arg(value_name = "DIR", required_unless_present = "list")]
    dir: Option<PathBuf>,

    /// List the mounts of packfs
    #[arg(long, conflicts_with_all = ["image", "fuse", "kernel"])]
    list: bool,

    /// With --list: print an array of JSON objects
    #[arg(long, requires = "list")]
    json: bool,

    /// Mount only this directory of the image
    #[arg(long, value_name = "PATH")]
    subdir: Option<OsString>,

    #[command(flatten)]
    opening: Texts<Opening>,

    /// Mount through FUSE, also as root
    #[arg(long, conflicts_with = "kernel")]
    fuse: bool,

    /// Mount by the kernel, or fail
    #[arg(long)]
    kernel: bool,

    /// Serve through FUSE in the foreground
    ///
    /// Ends when the mount is unmounted, or on a signal.
    #[arg(short, long, conflicts_with = "kernel")]
    foreground: bool,

    /// Set the user of everything (FUSE)
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,

    /// Set the group of everything (FUSE)
    #[arg(long, value_name = "GID")]
    gid: Option<u32>,

    /// Map users and groups: FROM:TO or FIRST-LAST:TO (FUSE)
    ///
    /// Several maps are separated by commas.
    #[arg(long, value_name = "MAP", value_delimiter = ',')]
    owner_map: Vec<IdMap>,

    /// Unmount after DURATION without use: 90s, 10m, 2h (FUSE)
    #[arg(long, value_name = "DURATION", value_parser = options::parse_duration)]
    idle_timeout: Option<Duration>,

    /// Set the size of the block cache (FUSE; default: 64M)
    #[arg(long, value_name = "SIZE", value_parser = text::parse_size)]
    cache_size: Option<u64>,

    /// Serve with N threads (FUSE)
    ///
    /// The default is twice the number of processors, from 4 to 64; with io_uring, four times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Exchange requests by CHANNEL (FUSE; default: auto)
    ///
    /// classic is /dev/fuse. uring is io_uring, which is faster; it needs Linux 6.14, and Y in
    /// /sys/module/fuse/parameters/enable_uring. auto takes uring if it is available, otherwise
    /// classic. `packfs mount --list` prints the channel in use.
    #[arg(long, value_name = "CHANNEL", hide_possible_values = true)]
    channel: Option<Channel>,

    /// Record the order of first use to FILE (FUSE)
    ///
    /// For `packfs pack --trace`. FILE lists files that are read, symbolic links that are followed,
    /// and directories that are listed.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Set mount options, separated by commas
    ///
    /// As for mount(8): nosuid, nodev, noexec, nosymfollow and their opposites. As for libfuse:
    /// allow_other, default_permissions, fsname=, subtype=. As the options above: fuse, kernel,
    /// subdir=, uid=, gid=, owner-map=, idle-timeout=, cache-size=, threads=, channel=, record=,
    /// and all that open images, such as offset=, device= and part=.
    #[arg(short, value_name = "OPTIONS", value_delimiter = ',')]
    options: Vec<OsString>,

    /// Write `s` to this named pipe once the mount answers, or `f` if it fails
    #[arg(long, value_name = "FILE", hide = true)]
    notify: Option<PathBuf>,

    /// Serve as the background process of a mount
    #[arg(long, hide = true)]
    detached: bool,
}

const EXAMPLES: &str = "\
Examples:
  packfs mount root.sqfs /mnt              root: by the kernel, else by FUSE
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
        let notify = self.notify.take().map(|pipe| std::path::absolute(&pipe).unwrap_or(pipe));
        let settings = self.settings()?;
        let request = Request { image, dir, settings };
        if self.detached {
            return notify::told(notify.as_deref(), |ready| {
                daemon::serve_detached(|| request.serve().inspect(|_| ready()))
            });
        }
        if !request.settings.is_fuse && packfs::mount::is_root() && request.by_kernel()? {
            return Ok(ExitCode::SUCCESS);
        }
        if request.settings.is_kernel {
            let error = Error::failed("cannot mount by the kernel: not root");
            return Err(error.hint("omit --kernel to mount through FUSE, which needs no root"));
        }
        if self.foreground {
            return notify::told(notify.as_deref(), |ready| {
                daemon::serve(|| request.serve().inspect(|_| ready()))
            });
        }
        daemon::start()
    }

    /// Collects the options of the command line and those of `-o`.
    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings {
            opening: OpenOptions::of_texts(self.opening.iter())?,
            subdir: ImagePath::root(),
            is_fuse: self.fuse || self.foreground,
            is_kernel: self.kernel,
            uid: self.uid,
            gid: self.gid,
            owner_map: self.owner_map.clone(),
            idle_timeout: self.idle_timeout,
            cache_len: self.cache_size,
            threads: self.threads,
            channel: self.channel,
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

/// A mount to make.
struct Request {
    image: PathBuf,
    dir: PathBuf,
    settings: Settings,
}

impl Request {
    fn open(&self) -> Result<Opened> {
        let options = self.settings.opening.clone().cache_bytes(self.settings.cache_bytes());
        options.kept_by_readers().open(&self.image)
    }

    /// Mounts by the kernel; returns false if that is impossible, which is an error only with
    /// `--kernel`.
    fn by_kernel(&self) -> Result<bool> {
        if packfs::is_reference(&self.image) || self.image.is_dir() {
            if !self.settings.is_kernel {
                return Ok(false);
            }
            let error = Error::unsupported("kernel mount", "the kernel cannot open a URL or an OCI image");
            return Err(error.hint("omit --kernel to mount through FUSE"));
        }
        if self.settings.opening.is_checked() {
            if !self.settings.is_kernel {
                return Ok(false);
            }
            let error =
                Error::unsupported("kernel mount", "the kernel checks a root hash below dm-verity only");
            return Err(error.hint("omit --kernel, or mount what veritysetup open makes"));
        }
        let opened = self.open()?;
        let format = opened.format().name();
        let settings = &self.settings;
        let is_inner = !opened.layers().is_empty() || !opened.volume().inner_images()?.is_empty();
        let is_whole = !is_inner && !settings.opening.is_altered();
        if !is_whole && !settings.is_kernel {
            return Ok(false);
        }
        if !is_whole {
            let error = Error::unsupported(
                "kernel mount",
                "the image lies in a container, which the kernel cannot open",
            );
            return Err(error.hint("omit --kernel to mount through FUSE"));
        }
        let Some(driver) = opened.format().info().driver else {
            if !settings.is_kernel {
                return Ok(false);
            }
            let error = Error::unsupported("kernel mount", format!("Linux has no driver for {format}"));
            return Err(error.hint("omit --kernel to mount through FUSE"));
        };
        let mount = KernelMount {
            driver,
            image: self.image.clone(),
            offset: settings.opening.image_offset(),
            devices: settings.opening.devices().to_vec(),
            subdir: settings.subdir.clone(),
            flags: settings.kernel_flags(),
        };
        check_place(&self.dir)?;
        let (at, image) = (absolute(&self.dir), absolute(&self.image));
        match mount.mount(&self.dir) {
            Ok(()) => {
                self.record(at, image, format, Server::Kernel, None);
                Ok(true)
            }
            Err(error) if settings.is_kernel => Err(error),
            Err(error) => {
                report::warning(&format!("{error}; mounting through FUSE{}", self.settings.audience()));
                Ok(false)
            }
        }
    }

    /// Mounts it through FUSE; it answers when this returns.
    fn serve(&self) -> Result<(FuseMount, Option<record::Written>)> {
        check_place(&self.dir)?;
        let opened = self.open()?;
        report::opened(&opened);
        let flags = self.settings.fuse_flags();
        if !mount::is_root() && (!flags.nosuid || !flags.nodev) {
            report::warning("-o suid and -o dev have no effect: only root may ask for them");
        }
        let root = mount::find_subdir(opened.engine(), &self.settings.subdir)?;
        let image = absolute(&self.image);
        let settings = &self.settings;
        let mut options = FuseOptions {
            flags,
            allow_other: settings.allow_other,
            default_permissions: settings.default_permissions,
            owners: settings.owners(),
            idle_timeout: settings.idle_timeout,
            threads: settings.threads.map_or(0, usize::from),
            channel: settings.channel.unwrap_or_default(),
            trace: settings.record.clone().map(|file| TraceFile { file, above: settings.subdir.clone() }),
            ..FuseOptions::new(root, settings.source.as_ref().unwrap_or(&image))
        };
        if let Some(subtype) = &settings.subtype {
            options.subtype.clone_from(subtype);
        }
        let mounted = FuseMount::new(std::sync::Arc::clone(opened.engine()), &self.dir, &options)?;
        let server = Server::Fuse { pid: std::process::id() };
        let channel = Some(mounted.channel());
        let written = self.record(mounted.at().into(), image, opened.format().name(), server, channel);
        Ok((mounted, written))
    }

    /// A mount works without its record, too. Both paths are absolute: nothing is looked up that
    /// might lead into the mount.
    fn record(
        &self,
        at: PathBuf,
        image: PathBuf,
        format: &str,
        server: Server,
        channel: Option<Channel>,
    ) -> Option<record::Written> {
        let record = Record {
            at,
            image,
            offset: self.settings.opening.image_offset(),
            format: Some(format.into()),
            server: Some(server),
            channel,
            since: None,
        };
        record::write(&record).ok()
    }
}

/// The path without links, or as it is if it leads nowhere; a URL without its secrets.
fn absolute(path: &Path) -> PathBuf {
    if packfs::is_reference(path) {
        return packfs::without_secrets(path).into_owned();
    }
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// A directory whose server is gone answers nothing that a user could make sense of.
fn check_place(dir: &Path) -> Result<()> {
    if mount::is_stale(dir) {
        let error =
            Error::failed(format!("cannot mount on {dir:?}: the server of the mount there has ended"));
        return Err(error.hint(format!("packfs umount {dir:?} removes that mount")));
    }
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::usage(format!("cannot mount on {dir:?}: not a directory"))),
        Err(error) => {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = Error::io(format!("cannot mount on {dir:?}"), error);
            Err(if missing { error.hint(format!("mkdir -p {dir:?} creates it")) } else { error })
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
            Some(Server::Fuse { pid }) => match record.channel {
                Some(Channel::Uring) => format!("fuse, process {pid}, io_uring"),
                _ => format!("fuse, process {pid}"),
            },
            None => "fuse".to_owned(),
        };
        let format = record.format.as_deref().unwrap_or("unknown");
        let ended = if record.has_ended() { ", ended: packfs umount removes the mount" } else { "" };
        out.line(format_args!("{at}  {image}  {format}  {server}{ended}"))?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Entry of `mount --list --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document<'a> {
    #[serde(flatten)]
    mount_point: json::Bytes<'a, MountPoint>,
    #[serde(flatten)]
    image: json::Bytes<'a, json::Image>,
    /// Offset of the image in its file.
    offset: u64,
    /// Name of the format; null if only the mount table knows the mount.
    format: Option<&'a str>,
    /// `kernel` or `fuse`.
    server: &'static str,
    /// Process that serves through FUSE.
    pid: Option<u32>,
    /// Channel of requests through FUSE: `classic` (`/dev/fuse`) or `uring` (io_uring).
    channel: Option<&'static str>,
    /// Time of mounting, in seconds since 1970.
    since: Option<u64>,
    /// True if the server has ended: the mount fails with `Transport endpoint is not connected`,
    /// and `packfs umount` removes it.
    ended: bool,
}

json::byte_key!(MountPoint, "mount_point", "Directory that the image is mounted on.");

impl<'a> From<&'a Record> for Document<'a> {
    fn from(record: &'a Record) -> Self {
        let (server, pid) = match record.server {
            Some(Server::Kernel) => ("kernel", None),
            Some(Server::Fuse { pid }) => ("fuse", Some(pid)),
            None => ("fuse", None),
        };
        Document {
            mount_point: json::Bytes::from(&record.at),
            image: json::Bytes::from(&record.image),
            offset: record.offset,
            format: record.format.as_deref(),
            server,
            pid,
            channel: record.channel.map(Channel::word),
            since: record.since,
            ended: record.has_ended(),
        }
    }
}
