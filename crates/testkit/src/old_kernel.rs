//! Kernels of other releases, asked in a virtual machine what they make of an image.

use crate::skip;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Emulated machines are slow, and the host may be busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// A kernel that `cargo xtask kernels` fetched, with a first process that copies what it mounts.
#[derive(Clone, Debug)]
pub struct OldKernel {
    dir: PathBuf,
}

impl OldKernel {
    /// Finds a kernel by its version, such as `5.10`. If it or the emulator is missing the test is
    /// skipped visibly, or fails where `PACKFS_PEERS=required`.
    pub fn find(version: &str) -> Option<Self> {
        let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/kernels")).join(version);
        if !dir.join("initramfs").is_file() {
            skip(&format!("kernel {version} is missing; `cargo xtask kernels` fetches it"));
            return None;
        }
        if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
            skip("qemu-system-x86_64 is missing");
            return None;
        }
        Some(OldKernel { dir })
    }

    /// The same, of a kernel whose module `module` was fetched with it.
    pub fn find_with_module(version: &str, module: &str) -> Option<Self> {
        let kernel = OldKernel::find(version)?;
        let name = format!("modules/{module}.ko");
        let initramfs = std::fs::read(kernel.dir.join("initramfs")).unwrap_or_default();
        if initramfs.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Some(kernel);
        }
        skip(&format!("kernel {version} is without {module}; `cargo xtask kernels` fetches it"));
        None
    }

    /// Has the kernel mount each image, and returns archives in `folder` of what is in them.
    ///
    /// # Panics
    ///
    /// With what the kernel printed, if it could not read one.
    #[track_caller]
    pub fn tars_in(&self, folder: &Path, format: &str, images: &[PathBuf]) -> Vec<PathBuf> {
        let tars: Vec<PathBuf> =
            (0..images.len()).map(|number| folder.join(format!("{number}.tar"))).collect();
        let disks = images.iter().zip(&tars).map(|(image, tar)| Disk { image, devices: &[], tar });
        self.write_tars(format, &disks.collect::<Vec<_>>()).unwrap_or_else(|said| panic!("{format}: {said}"));
        tars
    }

    /// Has the kernel mount images, at most 26 with their devices and archives, and writes what is
    /// in each to its archive, as busybox does: no extended attributes, whole seconds, no sockets.
    ///
    /// The error is what the kernel printed, and the paths of images that it could not read.
    pub fn write_tars(&self, format: &str, disks: &[Disk<'_>]) -> Result<(), String> {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "512"]);
        // Emulated, for not every host that has KVM can run a machine in it.
        qemu.args(["-accel", "tcg", "-cpu", "max"]);
        qemu.arg("-kernel").arg(self.dir.join("vmlinuz")).arg("-initrd").arg(self.dir.join("initramfs"));
        let mut letters = 'a'..='z';
        let mut add = |qemu: &mut Command, path: &Path, more: &str| {
            qemu.arg("-drive").arg(format!("file={},format=raw,if=virtio,{more}", path.display()));
            letters.next().expect("at most 26 disks")
        };
        let mut mounts = Vec::new();
        for disk in disks {
            disk.make_tar().map_err(|e| e.to_string())?;
            let image = add(&mut qemu, disk.image, "readonly=on");
            let mut mount = format!("{image}:{}:", add(&mut qemu, disk.tar, "cache=unsafe"));
            for device in disk.devices {
                mount += &format!(",device=/dev/vd{}", add(&mut qemu, device, "readonly=on"));
            }
            mounts.push((image, mount));
        }
        let rows: Vec<&str> = mounts.iter().map(|(_, mount)| &**mount).collect();
        let append =
            format!("console=ttyS0 quiet panic=-1 packfs.type={format} packfs.mounts={}", rows.join(";"));
        qemu.arg("-append").arg(append);
        let log = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        qemu.stdin(Stdio::null()).stdout(log.reopen().map_err(|e| e.to_string())?).stderr(Stdio::inherit());
        wait(qemu.spawn().map_err(|e| e.to_string())?)?;
        let said =
            String::from_utf8_lossy(&std::fs::read(log.path()).map_err(|e| e.to_string())?).into_owned();
        let is_read = |letter: char| said.contains(&format!("packfs: done {letter}"));
        let unread = mounts.iter().zip(disks).filter(|((letter, _), _)| !is_read(*letter));
        let unread: Vec<String> = unread.map(|(_, disk)| disk.image.display().to_string()).collect();
        if unread.is_empty() { Ok(()) } else { Err(format!("{said}\nnot read: {}", unread.join(", "))) }
    }
}

/// An image for a virtual machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The image itself.
    pub image: &'a Path,
    /// Its further devices.
    pub devices: &'a [&'a Path],
    /// Archive to write.
    pub tar: &'a Path,
}

impl Disk<'_> {
    /// Creates the archive, with space for what is in the image.
    fn make_tar(&self) -> std::io::Result<()> {
        let lens = self.devices.iter().chain([&self.image]).map(|path| Ok(std::fs::metadata(path)?.len()));
        let len: u64 = lens.sum::<std::io::Result<u64>>()?;
        File::create(self.tar)?.set_len(len.saturating_mul(8) + (64 << 20))
    }
}

fn wait(mut machine: Child) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while machine.try_wait().map_err(|e| e.to_string())?.is_none() {
        if Instant::now() > end {
            let _ = machine.kill();
            let _ = machine.wait();
            return Err(format!("the virtual machine had not ended after {PATIENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
