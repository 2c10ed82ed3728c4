//! Groups made by LVM2 itself, in partitions and on several devices.

use packfs::{ErrorKind, OpenOptions};
use packfs_testkit::{LoopDevice, Peer, Random, is_root, peer, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Tools of LVM2, without the kernel's driver: volumes are made, not activated.
struct Lvm {
    tools: Vec<Peer>,
    folder: tempfile::TempDir,
}

/// LVM2 locks its files, not the devices of others.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Lvm {
    fn new() -> Option<Lvm> {
        let tools = ["pvcreate", "vgcreate", "lvcreate"].map(peer).into_iter().collect::<Option<_>>()?;
        if !is_root() {
            skip("root is needed for loop devices");
            return None;
        }
        Some(Lvm { tools, folder: tempfile::tempdir().unwrap() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An empty file of some MiB.
    fn file(&self, name: &str, mib: u64) -> PathBuf {
        fs::File::create(self.path(name)).unwrap().set_len(mib << 20).unwrap();
        self.path(name)
    }

    /// A group on loop devices of these files, with volumes as `lvcreate` takes them. False if LVM2
    /// does not work here.
    fn group(&self, files: &[&Path], volumes: &[&[&str]]) -> bool {
        let loops: Vec<_> = files.iter().map_while(|path| LoopDevice::new(path).ok()).collect();
        if loops.len() < files.len() {
            skip("no loop devices");
            return false;
        }
        let devices: Vec<String> = loops.iter().map(|it| it.path().display().to_string()).collect();
        let filter: String = devices.iter().map(|path| format!("\"a|^{path}$|\",")).collect();
        let (lib, _guard) = (self.path("lvm"), ONE_AT_A_TIME.lock().unwrap());
        let lib = lib.display();
        let config = format!(
            "devices {{ filter=[{filter}\"r|.*|\"] use_devicesfile=0 }} \
             activation {{ udev_sync=0 udev_rules=0 monitoring=0 }} backup {{ backup=0 archive=0 }} \
             global {{ activation=0 system_id_source=\"none\" locking_dir=\"{lib}\" use_lvmpolld=0 event_activation=0 }}"
        );
        let run = |tool: usize, words: &[&str]| {
            let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|word| word as _).collect();
            let done = self.tools[tool].command(&words).args(["--config", &config]).output().unwrap();
            if !done.status.success() {
                skip(&format!("LVM2 does not work here: {}", String::from_utf8_lossy(&done.stderr)));
            }
            done.status.success()
        };
        let name = format!("packfs{}", std::process::id());
        let with = |words: &[&str], more: &[&str]| -> Vec<String> {
            words.iter().chain(more).map(|word| (*word).to_owned()).collect()
        };
        let all: Vec<&str> = devices.iter().map(String::as_str).collect();
        let mut commands = vec![(0, with(&["-y", "--pvmetadatacopies", "2"], &all))];
        commands.push((1, with(&["-s", "1m", &name], &all)));
        for volume in volumes {
            let volume: Vec<&str> = volume
                .iter()
                .map(|word| match *word {
                    "FIRST" => all[0],
                    "GROUP" => &name,
                    word => word,
                })
                .collect();
            commands.push((2, with(&["-an", "-Zn", "-Wn"], &volume)));
        }
        commands.iter().all(|(tool, words)| run(*tool, &words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Writes bytes to a volume, at the places that packfs tells of it.
    fn fill(&self, files: &[&Path], volume: &str, bytes: &[u8]) {
        let further = files[1..].iter().fold(OpenOptions::new().outermost(), OpenOptions::device);
        let opened = further.open(files[0]).unwrap();
        let id = opened.find(volume).unwrap();
        let mut image: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
        let mut places = Vec::new();
        opened
            .volume()
            .extents(id, 0..bytes.len() as u64, &mut |extent| {
                let packfs_format::ExtentFrom::Stored(at) = extent.from else { panic!("{extent:?}") };
                places.push((extent.offset as usize, extent.len as usize, at as usize));
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        for (offset, len, mut at) in places {
            let file = image.iter().position(|file| {
                let is_within = at < file.len();
                at -= if is_within { 0 } else { file.len() };
                is_within
            });
            image[file.unwrap()][at..at + len].copy_from_slice(&bytes[offset..offset + len]);
        }
        files.iter().zip(image).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
}

/// An image of a tree with one file, which mkfs makes of it if there is such a tool.
fn filesystem(folder: &Path, kind: &str, text: &[u8]) -> Option<Vec<u8>> {
    let tree = folder.join("tree");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("text"), text).unwrap();
    let image = folder.join(kind);
    match kind {
        "erofs" => drop(packfs::pack(&tree, &image).format(kind).codec("none").run().unwrap()),
        "ext4" => {
            fs::File::create(&image).unwrap().set_len(20 << 20).unwrap();
            peer("mke2fs")?.run(&[&"-q", &"-t", &"ext4", &"-d", &tree, &image]);
        }
        _ => {
            fs::File::create(&image).unwrap().set_len(120 << 20).unwrap();
            peer("mkfs.btrfs")?.run(&[&"-q", &"-r", &tree, &image]);
        }
    }
    Some(fs::read(image).unwrap())
}

#[test]
fn volumes_on_two_devices_are_read() {
    let Some(lvm) = Lvm::new() else { return };
    let text = Random::new(1).text(3 << 20);
    for kind in ["erofs", "ext4", "btrfs"] {
        let Some(image) = filesystem(lvm.folder.path(), kind, &text) else { continue };
        let mib = image.len().div_ceil(1 << 20) as u64;
        let (a, b) = (lvm.file("a", mib / 2 + 12), lvm.file("b", mib / 2 + 12));
        // Neither device has room for the last volume alone.
        let extents = (mib + 12).to_string();
        let volumes: [&[&str]; 3] = [
            &["-l", "5", "-n", "small", "GROUP", "FIRST"],
            &["-l", "2", "-i", "2", "-n", "wide", "GROUP"],
            &["-l", &extents, "-n", "root", "GROUP"],
        ];
        if !lvm.group(&[&a, &b], &volumes) {
            return;
        }
        lvm.fill(&[&a, &b], "root", &image);
        // Either device may come first. The other one is not handed to the filesystem.
        for (first, second) in [(&a, &b), (&b, &a)] {
            let opened = OpenOptions::new().part("root").device(second).open(first).unwrap();
            assert_eq!(opened.format().name(), kind);
            assert!(opened.read("text").unwrap() == text, "{kind}");
        }
        let alone = OpenOptions::new().outermost().open(&a).unwrap().read("root").map(drop);
        let alone = alone.unwrap_err();
        assert!(alone.hints().iter().any(|hint| hint.contains("--device FILE")), "{kind}: {alone}");
        let wide = OpenOptions::new().part("wide").device(&b).open(&a).err().unwrap();
        assert_eq!(wide.kind(), ErrorKind::Unsupported, "{wide}");
        assert!(wide.to_string().contains("striped over 2 volumes"), "{wide}");
        let outer = OpenOptions::new().outermost().open(&a).unwrap();
        outer.volume().check(&mut |it| assert_eq!(it.severity, packfs::Severity::Note, "{it:?}")).unwrap();
        assert_eq!(outer.warnings(), [""; 0]);
        let volume = fs::read(&a).unwrap();
        let blob = packfs::MemoryImage::new("blob", [&[0xff; 999][..], &volume, &[1; 999]].concat());
        let found = packfs::scan(Arc::new(blob), packfs::ScanOptions::new(), &packfs::Silent).unwrap();
        let rows: Vec<_> = found.iter().map(|it| (it.format.name(), it.offset, it.len)).collect();
        assert_eq!(rows, [("lvm", 999, Some(volume.len() as u64))]);
        // A damaged text is told; the other copy of it counts.
        let mut bytes = fs::read(&a).unwrap();
        let texts = bytes.windows(10).position(|bytes| bytes == b" LVM2 x[5A").unwrap();
        bytes[texts + 30] ^= 1;
        let opened = OpenOptions::new().outermost().open_bytes(bytes).unwrap();
        assert!(opened.warnings()[0].contains("another copy is used"), "{:?}", opened.warnings());
    }
}

#[test]
fn a_volume_in_a_partition_is_chosen_by_its_path() {
    let Some(lvm) = Lvm::new() else { return };
    let text = Random::new(2).text(300_000);
    let Some(image) = filesystem(lvm.folder.path(), "erofs", &text) else { return };
    let (a, b) = (lvm.file("a", 16), lvm.file("b", 16));
    let volumes: [&[&str]; 3] = [
        &["-l", "2", "-n", "vm2", "GROUP"],
        &["-l", "2", "-n", "2", "GROUP"],
        &["-l", "16", "-n", "root", "GROUP"],
    ];
    if !lvm.group(&[&a, &b], &volumes) {
        return;
    }
    for volume in ["vm2", "2", "root"] {
        lvm.fill(&[&a, &b], volume, &image);
    }
    // Two disks with a boot partition, which holds nothing that is known, and a physical volume.
    for path in [&a, &b] {
        let mut disk = vec![0; 1 << 20];
        for (row, (first, count)) in [(8_u32, 8_u32), (2048, 16 << 11)].into_iter().enumerate() {
            let entry = &mut disk[446 + 16 * row..][..16];
            entry[4] = 0x83;
            entry[8..12].copy_from_slice(&first.to_le_bytes());
            entry[12..].copy_from_slice(&count.to_le_bytes());
        }
        disk[8 * 512..8 * 512 + 6].copy_from_slice(b"LUKS\xba\xbe");
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        fs::write(path, [disk, fs::read(path).unwrap()].concat()).unwrap();
    }
    let opening = OpenOptions::new().device(&b);
    let group = opening.open(&a).unwrap();
    assert_eq!(group.format().name(), "lvm");
    let warning = group.choice().unwrap().to_string();
    assert!(warning.contains("2 (erofs)") && warning.contains("--part p2/NAME chooses one"), "{warning}");
    for (part, name) in [("p2/root", "root"), ("2/2", "2"), ("p2/vm2", "vm2")] {
        let opened = opening.clone().part(part).open(&a).unwrap();
        assert!(opened.read("text").unwrap() == text, "{part}");
        assert_eq!(opened.layers().last().unwrap().file, name);
    }
    let error = opening.clone().part("p2/other").open(&a).err().unwrap();
    assert!(error.hints()[0].contains("vm2, 2, root"), "{error} {:?}", error.hints());
    // What is encrypted is named, and stops nothing else.
    let error = opening.clone().part("p1").open(&a).err().unwrap();
    assert!(error.to_string().contains("an encrypted disk (LUKS)"), "{error}");
    let disk = OpenOptions::new().outermost().open(&a).unwrap();
    assert_eq!(disk.format().name(), "partitions");
}
