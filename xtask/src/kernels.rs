//! `cargo xtask kernels`: kernels of older Debian releases below `target/kernels`, each with an
//! initramfs by this tool.
//!
//! Tests boot a kernel in a virtual machine. It mounts an image and writes the tree as a tar
//! archive to a second disk, so a test can compare the kernel's view of an image. Nothing is
//! installed.

mod cpio;
mod extra;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian::{self, Debootstrap};
use crate::failure::{Failure, Result};
use crate::workspace;
use cpio::Cpio;

/// Fetch kernels of older Debian releases
///
/// Writes target/kernels/{5.10,6.1,6.12}/{vmlinuz,initramfs} from Debian's bullseye, bookworm, and
/// trixie for qemu-system-x86_64. For 6.1, builds the modules cramfs and romfs, which Debian leaves
/// out. Needs debootstrap, make, gcc, and xz; as root, installs missing ones with apt-get.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Fetch the current packages of Debian again
    #[arg(long)]
    refresh: bool,
}

/// A kernel of Debian.
struct Kernel {
    version: &'static str,
    /// Release of Debian with this kernel.
    suite: &'static str,
    extra: &'static [extra::Module],
}

const KERNELS: [Kernel; 3] = [
    Kernel { version: "5.10", suite: "bullseye", extra: &[] },
    Kernel { version: "6.1", suite: "bookworm", extra: &[extra::CRAMFS, extra::ROMFS] },
    Kernel { version: "6.12", suite: "trixie", extra: &[] },
];

/// Name of the note beside a kernel with the recipe of its initramfs.
const STAMP: &str = "recipe";

/// Packages: Debian's smallest kernel for virtual machines, and programs for init.
const PACKAGES: [&str; 2] = ["linux-image-cloud-amd64", "busybox-static"];

/// Modules for mounting an image on a virtual disk, if the kernel has them. Init repeats loading
/// them until no more can be loaded, so their order does not matter.
const MODULES: [&str; 21] = [
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
    "crc-itu-t",
    "udf",
];

/// Init: loads the modules, mounts disks, and writes a tar archive of each to another disk. The
/// command line has the letter of each, of its archive, and options with its further devices.
const INIT: &str = "\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for round in 1 2 3 4 5; do
    for module in /modules/*.ko; do insmod $module 2>/dev/null; done
done
type=$(sed -n 's/.*packfs.type=\\([a-z0-9]*\\).*/\\1/p' /proc/cmdline)
mounts=$(sed -n 's/.*packfs.mounts=\\([a-z0-9=,:;\\/]*\\).*/\\1/p' /proc/cmdline)
IFS=';'
for row in $mounts; do
    image=${row%%:*}
    rest=${row#*:}
    archive=${rest%%:*}
    for wait in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/vd$archive ] && break; sleep 1; done
    if mount -t $type -o ro${rest#*:} /dev/vd$image /mnt && tar -c -f /dev/vd$archive -C /mnt .; then
        umount /mnt
        echo \"packfs: done $image\" > /dev/console
    else
        dmesg | tail -n 20 > /dev/console
        echo \"packfs: failed $image\" > /dev/console
    fi
done
sync
poweroff -f
";

pub fn run(Options { refresh }: Options) -> Result<()> {
    for kernel in &KERNELS {
        let dir = workspace::kernels().join(kernel.version);
        // Renamed when it is complete.
        if refresh || !kernel.is_current(&dir) {
            kernel.fetch(&dir)?;
        }
        println!("{}  {}", kernel.version, dir.display());
    }
    Ok(())
}

impl Kernel {
    /// Returns the recipe of an initramfs, as a text that changes with it.
    fn recipe(&self) -> String {
        let built: Vec<String> = self.extra.iter().map(extra::Module::recipe).collect();
        format!("{}\n{}\n{}", MODULES.join(" "), built.join("\n"), INIT)
    }

    /// Returns true if the initramfs was made by the current recipe.
    fn is_current(&self, dir: &Path) -> bool {
        std::fs::read_to_string(dir.join(STAMP)).is_ok_and(|text| text == self.recipe())
    }

    fn fetch(&self, dir: &Path) -> Result<()> {
        let debootstrap = Debootstrap::find()?;
        let download = workspace::kernels().join("download");
        workspace::remove_dir(&download)?;
        workspace::make_dir(&download)?;
        eprintln!("fetching the kernel of Debian {} from {}", self.suite, debootstrap.mirror);
        let source = extra::source_package(self.version);
        let mut packages = PACKAGES.to_vec();
        if !self.extra.is_empty() {
            extra::need_tools()?;
            packages.extend([extra::HEADERS, &source]);
        }
        debootstrap.run(&["--download-only"], &packages, self.suite, &download)?;

        let root = download.join("root");
        let archives = debian::downloaded(&download)?;
        for (name, archive) in &archives {
            if name.starts_with("linux-image-") || name == "busybox-static" {
                debian::extract(archive, &root)?;
            }
        }
        let mut modules = found_modules(&root)?;
        if !self.extra.is_empty() {
            let build = extra::Build::prepare(&archives, &source, &download.join("build"))?;
            for module in self.extra {
                eprintln!("building the module {} for {}", module.name, self.version);
                modules.push((module.name.to_owned(), build.module(module)?));
            }
        }
        let made = download.join("made");
        workspace::make_dir(&made)?;
        copy(&one_of(&root.join("boot"), "vmlinuz-")?, &made.join("vmlinuz"))?;
        let busybox = read(&in_root_or_usr(&root, "bin/busybox"))?;
        write(&made.join("initramfs"), &initramfs(&busybox, &modules))?;
        write(&made.join(STAMP), self.recipe().as_bytes())?;
        workspace::remove_dir(dir)?;
        std::fs::rename(&made, dir).map_err(|error| Failure::io("move", &made, error))?;
        workspace::remove_dir(&download)
    }
}

/// Returns a path of a root: packages have it in `usr` from trixie on.
fn in_root_or_usr(root: &Path, path: &str) -> PathBuf {
    let in_usr = root.join("usr").join(path);
    if in_usr.exists() { in_usr } else { root.join(path) }
}

/// Returns the modules of [`MODULES`] that a kernel has, by name and contents.
fn found_modules(root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = vec![];
    for path in workspace::files_below(&in_root_or_usr(root, "lib/modules"))? {
        let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let (name, is_xz) = match file_name.strip_suffix(".ko.xz") {
            Some(name) => (Some(name), true),
            None => (file_name.strip_suffix(".ko"), false),
        };
        if let Some(name) = name.filter(|name| MODULES.contains(name)) {
            found.push((name.to_owned(), if is_xz { decoded(&path)? } else { read(&path)? }));
        }
    }
    if !found.iter().any(|(name, _)| name == "erofs") {
        return Err(Failure::new("this kernel has no module erofs.ko or erofs.ko.xz"));
    }
    Ok(found)
}

fn decoded(path: &Path) -> Result<Vec<u8>> {
    debian::need(&["xz"])?;
    let output = Command::new("xz").args(["--decompress", "--stdout"]).arg(path).output();
    let output = output.map_err(|error| Failure::io("run xz on", path, error))?;
    if !output.status.success() {
        return Err(Failure::new(format!("xz cannot decode {}", path.display())));
    }
    Ok(output.stdout)
}

fn initramfs(busybox: &[u8], modules: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut cpio = Cpio::default();
    for dir in ["bin", "dev", "mnt", "modules", "proc"] {
        cpio.dir(dir);
    }
    cpio.file("init", INIT.as_bytes());
    cpio.file("bin/busybox", busybox);
    for (name, bytes) in modules {
        cpio.file(&format!("modules/{name}.ko"), bytes);
    }
    cpio.finish()
}

/// Returns the only file in `dir` whose name begins with `start`.
fn one_of(dir: &Path, start: &str) -> Result<PathBuf> {
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    workspace::files_below(dir)?
        .into_iter()
        .find(named)
        .ok_or_else(|| Failure::new(format!("{} has no {start}*", dir.display())))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::io("read", path, error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|error| Failure::io("write", path, error))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| Failure::io("copy", from, error))
}
