//! LUKS2 below a file system. Its key is made up when it is first needed and never leaves memory.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use packfs::{Error, Result, ResultExt};

use super::failed;
use crate::process::{self, Invocation};
use crate::programs::Wanted;
use crate::results::{Missing, Program};
use crate::subject::drivers::has_module;
use crate::undo::Undo;

/// Length of the key, in bytes.
const KEY_LEN: usize = 64;

/// Why there is no LUKS here; none if there is.
pub(super) fn missing() -> Option<Missing> {
    let why = |why: &str| Some(Missing { what: "luks".into(), why: why.into() });
    if !packfs::mount::is_root() {
        return why("only root opens LUKS devices; run this with sudo");
    }
    if !has_device_mapper() {
        return why("this kernel has no device mapper (dm-crypt), which LUKS needs");
    }
    find().err().map(|missing| Missing { what: "luks".into(), why: missing.why })
}

fn find() -> Result<Program, Missing> {
    let from = "Debian package cryptsetup-bin";
    Wanted { name: "cryptsetup", version_option: "--version", from }.find()
}

/// Loaded, or a module that the kernel can load.
fn has_device_mapper() -> bool {
    let devices = std::fs::read_to_string("/proc/devices").unwrap_or_default();
    if devices.lines().any(|line| line.ends_with(" device-mapper")) {
        return true;
    }
    has_module("dm-mod") && has_module("dm-crypt")
}

fn key_file() -> Result<PathBuf> {
    static KEY: OnceLock<File> = OnceLock::new();
    let file = match KEY.get() {
        Some(file) => file,
        None => {
            let made = make_key()?;
            KEY.get_or_init(|| made)
        }
    };
    Ok(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into())
}

fn make_key() -> Result<File> {
    let mut key = [0; KEY_LEN];
    let cannot = || "cannot make a key";
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).or_io(cannot)?;
    let file = rustix::fs::memfd_create("packfs-lab-key", rustix::fs::MemfdFlags::CLOEXEC).or_io(cannot)?;
    let mut file = File::from(file);
    file.write_all(&key).or_io(cannot)?;
    Ok(file)
}

fn cryptsetup(verb: &str) -> Result<Invocation> {
    if let Some(missing) = missing() {
        return Err(failed(missing));
    }
    Ok(find().map_err(failed)?.invocation().arg(verb))
}

/// Makes a device one of LUKS2. The key is derived as fast as possible, because passphrases are not
/// measured.
pub(super) fn format(device: &Path) -> Result<()> {
    let command = cryptsetup("luksFormat")?.args(["--batch-mode", "--type", "luks2", "--pbkdf", "pbkdf2"]);
    let command = command.args(["--pbkdf-force-iterations", "1000"]).arg("--key-file").arg(key_file()?);
    process::capture(&command.arg(device), false).map(drop)
}

/// An opened device; closed when dropped.
pub(super) struct Opened {
    device: PathBuf,
    undo: Undo,
}

impl Opened {
    /// Opens a device that [`format()`] made.
    pub(super) fn new(device: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Left-over ones are known by the name of their session's folder.
        let name = format!("packfs-lab-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let command = cryptsetup("open")?.args(["--type", "luks2"]).arg("--key-file").arg(key_file()?);
        process::capture(&command.arg(device).arg(&name), false)?;
        let close = cryptsetup("close")?.arg(&name);
        let undo = Undo::new(format!("close {name}"), move || process::capture(&close, false).map(drop));
        let device = Path::new("/dev/mapper").join(&name);
        if !device.exists() {
            return Err(Error::failed(format!("{device:?} is not there after LUKS was opened")));
        }
        Ok(Self { device, undo })
    }

    pub(super) fn device(&self) -> &Path {
        &self.device
    }

    pub(super) fn close(self) -> Result<()> {
        self.undo.now()
    }

    pub(super) fn into_undo(self) -> Undo {
        self.undo
    }
}
