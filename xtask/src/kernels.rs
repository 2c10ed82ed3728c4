//! `cargo xtask kernels`: kernels of older Debian releases, below `target/kernels`, each with an initramfs of ours.
//!
//! A test boots one in a virtual machine, where it mounts an image and copies what it sees, as a tar, to a second disk:
//! so an old kernel can be asked what it makes of an image. Nothing is installed.

mod cpio;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian::{self, Debootstrap};
use crate::failure::{Failure, Result};
use crate::{args, shell, workspace};
use cpio::Cpio;

pub const HELP: &str = "\
Usage: cargo xtask kernels [--refresh]

  --refresh   fetch again what Debian has today

Makes target/kernels/{5.10,6.1}/{vmlinuz,initramfs} from Debian's bullseye and bookworm, for qemu-system-x86_64.
Needs debootstrap, and installs it by apt-get if it is missing and this runs as root.";

/// The kernels, and the releases that have them.
const KERNELS: [(&str, &str); 2] = [("5.10", "bullseye"), ("6.1", "bookworm")];

/// Debian's smallest kernel for virtual machines, and programs for its first process.
const PACKAGES: [&str; 2] = ["linux-image-cloud-amd64", "busybox-static"];

/// Modules between the kernel and an image on a virtual disk, as far as a kernel has them. The first process loads them
/// round by round until no more can be loaded, so their order does not matter.
const MODULES: [&str; 19] = [
    "virtio",
    "virtio_ring",
    "virtio_pci",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_blk",
    "crc32c_generic",
    "crc32c-intel",
    "libcrc32c",
    "lz4_decompress",
    "lz4_compress",
    "lzo_decompress",
    "xz_dec",
    "zstd_decompress",
    "xxhash",
    "squashfs",
    "erofs",
    "cdrom",
    "isofs",
];

/// The first process: loads what it has, mounts the first disk and writes a tar of it to the second.
const INIT: &str = "\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for round in 1 2 3 4 5; do
    for module in /modules/*.ko; do insmod $module 2>/dev/null; done
done
type=$(sed -n 's/.*packfs.type=\\([a-z0-9]*\\).*/\\1/p' /proc/cmdline)
for wait in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/vdb ] && break; sleep 1; done
if mount -t $type -o ro /dev/vda /mnt && tar -c -f /dev/vdb -C /mnt .; then
    sync
    echo 'packfs: done' > /dev/console
else
    dmesg | tail -n 20 > /dev/console
    echo 'packfs: failed' > /dev/console
fi
poweroff -f
";

pub fn run(mut args: args::Args) -> Result<()> {
    let refresh = args.switch("--refresh");
    args.finish_empty()?;
    for (version, suite) in KERNELS {
        let dir = workspace::kernels().join(version);
        // Moved here when it is complete.
        if refresh || !is_current(&dir) {
            fetch(suite, &dir)?;
        }
        println!("{version}  {}", dir.display());
    }
    Ok(())
}

/// Whether a kernel was fetched, with the module that was added last to the list.
fn is_current(dir: &Path) -> bool {
    let last = format!("modules/{}.ko", MODULES[MODULES.len() - 1]);
    let initramfs = std::fs::read(dir.join("initramfs")).unwrap_or_default();
    initramfs.windows(last.len()).any(|name| name == last.as_bytes())
}

fn fetch(suite: &str, dir: &Path) -> Result<()> {
    let debootstrap = Debootstrap::find()?;
    let download = workspace::kernels().join("download");
    workspace::remove_dir(&download)?;
    workspace::make_dir(&download)?;
    eprintln!("fetching the kernel of Debian {suite} from {}", debootstrap.mirror);
    debootstrap.run(&["--download-only"], &PACKAGES, suite, &download)?;

    let root = download.join("root");
    for (name, archive) in debian::downloaded(&download)? {
        if name.starts_with("linux-image-") || name == "busybox-static" {
            shell::run_quietly(Command::new("dpkg-deb").arg("--extract").arg(&archive.path).arg(&root))?;
        }
    }
    let made = download.join("made");
    workspace::make_dir(&made)?;
    let kernel = one_of(&root.join("boot"), "vmlinuz-")?;
    copy(&kernel, &made.join("vmlinuz"))?;
    let path = made.join("initramfs");
    std::fs::write(&path, initramfs(&root)?).map_err(|error| Failure::io("write", &path, error))?;
    workspace::remove_dir(dir)?;
    std::fs::rename(&made, dir).map_err(|error| Failure::io("move", &made, error))?;
    workspace::remove_dir(&download)
}

fn initramfs(root: &Path) -> Result<Vec<u8>> {
    let mut cpio = Cpio::default();
    for dir in ["bin", "dev", "mnt", "modules", "proc"] {
        cpio.dir(dir);
    }
    cpio.file("init", INIT.as_bytes());
    cpio.file("bin/busybox", &read(&root.join("bin/busybox"))?);
    let mut erofs = false;
    for path in files_below(&root.join("lib/modules"))? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".ko"));
        if let Some(name) = name.filter(|name| MODULES.contains(name)) {
            erofs |= name == "erofs";
            cpio.file(&format!("modules/{name}.ko"), &read(&path)?);
        }
    }
    if !erofs {
        return Err(Failure::new(
            "this kernel has no module erofs.ko: has Debian begun to compress modules?",
        ));
    }
    Ok(cpio.finish())
}

/// The only file in `dir` whose name starts so.
fn one_of(dir: &Path, start: &str) -> Result<PathBuf> {
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    files_below(dir)?
        .into_iter()
        .find(named)
        .ok_or_else(|| Failure::new(format!("{} has no {start}*", dir.display())))
}

fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut open, mut files) = (vec![dir.to_path_buf()], vec![]);
    while let Some(dir) = open.pop() {
        let entries = std::fs::read_dir(&dir).map_err(|error| Failure::io("list", &dir, error))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let list = if path.is_dir() && !path.is_symlink() { &mut open } else { &mut files };
            list.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::io("read", path, error))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| Failure::io("copy", from, error))
}
