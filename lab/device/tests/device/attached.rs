//! Simulated devices as root has them: mounted by the kernel, written, taken away, and their
//! process killed.
#![allow(clippy::print_stdout, reason = "the parent reads it")]

use packfs_device::{Backing, DeviceSpec, Simulated, builtin};
use packfs_testkit::{Mount, Snapshot, is_root, peer, skip, snapshot_dir};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Has the test that it is in play the child that is killed.
const CHILD: &str = "PACKFS_DEVICE_CHILD";

/// A device without measurable delay.
fn fast() -> DeviceSpec {
    let text = "name = \"fast\"\ntitle = \"for tests\"\n[medium]\ncapacity_mib = 4096\nblock_bytes = 512\n[queue]\ndepth = 8\n\
                channels = 8\nread_ahead_kib = 512\nmax_request_kib = 1024\n[bus]\nmb_per_s = 100000\n[read]\nlatency_us = 1\n\
                mb_per_s = 100000\n[write]\nlatency_us = 1\nmb_per_s = 100000\n";
    DeviceSpec::parse(text, "fast").unwrap()
}

fn can_attach() -> bool {
    let can = is_root() && Path::new("/dev/fuse").exists() && Path::new("/dev/loop-control").exists();
    if !can {
        skip("simulated devices need root, /dev/fuse and loop devices");
    }
    can
}

/// The file behind a loop device. Its number says too little: another may have it once the device
/// is gone.
struct Bound {
    folder: PathBuf,
    sequence: Option<String>,
}

impl Bound {
    #[track_caller]
    fn of(device: &Path) -> Bound {
        let folder = Path::new("/sys/block").join(device.file_name().unwrap());
        let bound = Bound { sequence: fs::read_to_string(folder.join("diskseq")).ok(), folder };
        assert!(bound.is_still(), "{device:?} has nothing behind it");
        bound
    }

    fn is_still(&self) -> bool {
        let is_bound = self.folder.join("loop/backing_file").exists();
        // Read last: it changes with what is behind the device.
        is_bound && fs::read_to_string(self.folder.join("diskseq")).ok() == self.sequence
    }
}

fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("deep/er")).unwrap();
    for index in 0_u32..200 {
        let line = format!("line {index} of a file that is compressed\n");
        fs::write(root.join(format!("deep/{index}")), line.repeat(index as usize * 10)).unwrap();
    }
    let noise: Vec<u8> =
        (0_u64..3 << 20).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    fs::write(root.join("deep/er/noise"), noise).unwrap();
}

#[test]
fn an_image_is_mounted_by_the_kernel_and_nothing_is_left() {
    let Some(mksquashfs) = peer("mksquashfs") else { return };
    if !can_attach() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (tree, image) = (folder.path().join("tree"), folder.path().join("image.sqfs"));
    make_tree(&tree);
    mksquashfs.run(&[&tree, &image, &"-quiet", &"-no-progress", &"-comp", &"gzip"]);
    for spec in [fast(), builtin("emmc").unwrap()] {
        let device = Simulated::attach(&spec, Backing::Image(&image)).unwrap();
        assert!(device.is_in_memory());
        assert_eq!(device.refused_attributes(), [] as [String; 0]);
        let path = device.path().to_owned();
        let bound = Bound::of(&path);
        {
            let mount = Mount::block_device(&path, "squashfs").unwrap();
            let (found, expected): (Snapshot, Snapshot) = (snapshot_dir(&mount.path()), snapshot_dir(&tree));
            found.assert_same(&expected, Default::default(), "the mount of a simulated device");
            // What is mounted from the device is to be seen; the mount that serves it is not.
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(mounts.contains(path.to_str().unwrap()), "{mounts}");
            assert!(!mounts.contains(&format!("packfs-{}", spec.name)), "{mounts}");
        }
        let statistics = device.detach().unwrap();
        assert!(statistics.reads > 10 && statistics.writes == 0, "{statistics:?}");
        assert!(statistics.read_bytes >= fs::metadata(&image).unwrap().len() / 2, "{statistics:?}");
        assert!(!bound.is_still());
    }
}

#[test]
fn what_is_written_is_read_and_stays_in_the_file() {
    if !can_attach() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
    let device = Simulated::attach(&fast(), Backing::File(&file)).unwrap();
    assert_eq!(device.len(), 8 << 20);
    let written: Vec<u8> = (0_u32..3 << 20).map(|index| (index >> 7) as u8 ^ index as u8).collect();
    let open = OpenOptions::new().read(true).write(true).open(device.path()).unwrap();
    open.write_all_at(&written, 5 << 20).unwrap();
    open.sync_all().unwrap();
    let mut read = vec![0; written.len()];
    open.read_exact_at(&mut read, 5 << 20).unwrap();
    assert!(read == written);
    // Data that is not synchronized reaches the file when the device goes.
    open.write_all_at(b"the last words", 0).unwrap();
    drop(open);
    assert!(device.statistics().writes >= 3 && device.statistics().flushes >= 1, "{:?}", device.statistics());
    device.detach().unwrap();
    let kept = fs::read(&file).unwrap();
    assert!(kept[5 << 20..] == written[..]);
    assert_eq!(&kept[..14], b"the last words");
}

#[test]
fn what_does_not_fit_is_refused() {
    if !can_attach() {
        return;
    }
    let cd = builtin("cdrom-48x").unwrap();
    let said = |backing| Simulated::attach(&cd, backing).err().unwrap().to_string();
    assert!(said(Backing::Blank(1 << 30)).contains("holds 737280000"), "{}", said(Backing::Blank(1 << 30)));
    assert!(said(Backing::File(Path::new("/etc/passwd"))).contains("cannot be written"));
    assert!(said(Backing::Image(Path::new("/etc"))).contains("neither a file nor a block device"));
    assert!(said(Backing::Image(Path::new("/nowhere"))).contains("cannot open"));
}

#[test]
fn a_device_in_use_gives_errors_and_goes_with_its_last_user() {
    if !can_attach() {
        return;
    }
    let device = Simulated::attach(&fast(), Backing::Blank(4 << 20)).unwrap();
    let path = device.path().to_owned();
    let bound = Bound::of(&path);
    let user = fs::File::open(&path).unwrap();
    let error = device.detach().unwrap_err();
    assert!(error.to_string().contains("while it was in use"), "{error}");
    let mut bytes = [0; 4096];
    assert!(user.read_exact_at(&mut bytes, 1 << 20).is_err());
    drop(user);
    wait_until_unbound(&bound);
}

#[test]
fn what_waits_for_a_slow_device_does_not_keep_it() {
    if !can_attach() {
        return;
    }
    let mut slow = fast();
    // Ten hours a request.
    slow.read.latency = 36_000_000_000_000;
    let device = Simulated::attach(&slow, Backing::Blank(4 << 20)).unwrap();
    let path = device.path().to_owned();
    let before = device.statistics().reads;
    let reader = std::thread::spawn(move || fs::File::open(&path).unwrap().read_exact(&mut [0; 4096]));
    while device.statistics().reads == before {
        std::thread::sleep(Duration::from_millis(1));
    }
    device.detach().unwrap();
    reader.join().unwrap().unwrap();
}

#[test]
fn devices_that_come_and_go_at_once_do_not_take_each_other_for_their_own() {
    if !can_attach() {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let device = Simulated::attach(&fast(), Backing::Blank(1 << 20)).unwrap();
                    let bound = Bound::of(device.path());
                    device.detach().unwrap();
                    assert!(!bound.is_still());
                }
            });
        }
    });
}

#[test]
fn reports_a_dev_without_new_devices_and_leaves_nothing() {
    if !can_attach() {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        let error = Simulated::attach(&fast(), Backing::Blank(1 << 20)).err().unwrap();
        println!("error: {error} (hint: {})", error.hints().join("; "));
        return;
    }
    let dev = tempfile::tempdir().unwrap();
    let script = "cp -a /dev/fuse /dev/loop-control /dev/null \"$1\" && mount --bind \"$1\" /dev && exec \"$2\" --exact \
                  attached::reports_a_dev_without_new_devices_and_leaves_nothing --nocapture";
    let mut child = Command::new("unshare");
    child.args(["--mount", "sh", "-c", script, "sh"]).arg(dev.path()).arg(std::env::current_exe().unwrap());
    let output = child.env(CHILD, "1").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("does not appear") && told.contains("mount devtmpfs"), "{told}");
    let number = told.split_once("/dev/loop").unwrap().1.split_once('"').unwrap().0;
    let folder = PathBuf::from(format!("/sys/block/loop{number}"));
    // Another device may have this number by now, and then something is behind it.
    for _ in 0..100 {
        if !folder.exists() || folder.join("loop/backing_file").exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{folder:?} was left");
}

#[test]
fn a_process_that_is_killed_leaves_nothing() {
    if !can_attach() {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        return be_killed();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "attached::a_process_that_is_killed_leaves_nothing", "--nocapture"])
        .env(CHILD, "1");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stdout.take().unwrap()).lines();
    let path =
        told.map_while(Result::ok).find_map(|line| Some(PathBuf::from(line.split_once("device at ")?.1)));
    let path = path.expect("the child attaches a device");
    let bound = Bound::of(&path);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_unbound(&bound);
}

/// Attaches a device, leaves a dirty page in the page cache, and waits for the device's end.
fn be_killed() {
    let device = Simulated::attach(&fast(), Backing::Blank(64 << 20)).unwrap();
    let mut open = OpenOptions::new().write(true).open(device.path()).unwrap();
    open.write_all(&vec![7; 1 << 20]).unwrap();
    // Not closed: closing is what the kernel does for those that are killed.
    println!("device at {}", device.path().display());
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// The kernel lets go of a device in its own time.
#[track_caller]
fn wait_until_unbound(bound: &Bound) {
    for _ in 0..600 {
        if !bound.is_still() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{:?} is bound still", bound.folder);
}
