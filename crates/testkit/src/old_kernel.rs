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

    /// Has the kernel mount `image` and writes what is in it to `tar`, as busybox does: no extended
    /// attributes, whole seconds, no sockets.
    ///
    /// The error is what the kernel printed.
    pub fn tar_of(&self, image: &Path, format: &str, tar: &Path) -> Result<(), String> {
        self.tar_with_devices(image, &[], format, tar)
    }

    /// The same with further devices of the image.
    ///
    /// The error is what the kernel printed.
    pub fn tar_with_devices(
        &self,
        image: &Path,
        devices: &[&Path],
        format: &str,
        tar: &Path,
    ) -> Result<(), String> {
        let lens = devices.iter().chain([&image]).map(|path| Ok(std::fs::metadata(path)?.len()));
        let len: u64 = lens.sum::<std::io::Result<u64>>().map_err(|e| e.to_string())?;
        let disk_len = len.saturating_mul(8) + (64 << 20);
        File::create(tar).and_then(|file| file.set_len(disk_len)).map_err(|e| e.to_string())?;
        let disk = |path: &Path, more: &str| format!("file={},format=raw,if=virtio{more}", path.display());
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "512"]);
        // Emulated, for not every host that has KVM can run a machine in it.
        qemu.args(["-accel", "tcg", "-cpu", "max"]);
        qemu.arg("-kernel").arg(self.dir.join("vmlinuz")).arg("-initrd").arg(self.dir.join("initramfs"));
        // The first disk is the image, the second one the archive.
        let options: String = (b'c'..)
            .zip(devices)
            .map(|(letter, _)| format!(",device=/dev/vd{}", char::from(letter)))
            .collect();
        let append = format!("console=ttyS0 quiet panic=-1 packfs.type={format} packfs.options={options}");
        qemu.arg("-append").arg(append);
        qemu.arg("-drive").arg(disk(image, ",readonly=on")).arg("-drive").arg(disk(tar, ",cache=unsafe"));
        for device in devices {
            qemu.arg("-drive").arg(disk(device, ",readonly=on"));
        }
        let log = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        qemu.stdin(Stdio::null()).stdout(log.reopen().map_err(|e| e.to_string())?).stderr(Stdio::inherit());
        wait(qemu.spawn().map_err(|e| e.to_string())?)?;
        let said =
            String::from_utf8_lossy(&std::fs::read(log.path()).map_err(|e| e.to_string())?).into_owned();
        if said.contains("packfs: done") { Ok(()) } else { Err(said) }
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
