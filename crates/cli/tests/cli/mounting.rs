//! Mounts as their users meet them: by the kernel and through FUSE, as root and without privileges,
//! and how each ends.

use crate::fixture::{Fixture, assert_same_files, words};
use packfs_testkit::{Compare, is_root, odd_tree, skip, snapshot_dir, write_dir};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory that something may be mounted on; nothing is when this is dropped.
pub struct Place(PathBuf);

impl Place {
    pub fn new(fixture: &Fixture, name: &str) -> Self {
        let path = fixture.path(name);
        fs::create_dir_all(&path).unwrap();
        Place(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The lines of the table of mounts for what is mounted here.
    pub fn table(&self) -> Vec<String> {
        let at = format!(" {} ", self.0.display());
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.lines().filter(|line| line.contains(&at)).map(str::to_owned).collect()
    }

    pub fn is_mounted(&self) -> bool {
        !self.table().is_empty()
    }

    /// Waits until nothing is mounted here any more.
    pub fn wait_until_gone(&self) {
        wait_for("the mount to go away", || !self.is_mounted());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        while self.is_mounted() {
            let done = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status().unwrap();
            if !done.success() {
                let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.0).status();
                return;
            }
        }
    }
}

pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < end, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if root can mount through FUSE here; reports a skip if not.
pub fn can_mount() -> bool {
    if !is_root() {
        skip("these mounts need root");
        return false;
    }
    if File::options().read(true).write(true).open("/dev/fuse").is_err() {
        skip("there is no /dev/fuse");
        return false;
    }
    true
}

/// The process that serves a mount.
pub fn server_pid(fixture: &Fixture, place: &Place) -> Pid {
    let pid = listed(fixture, place)["pid"].as_i64().expect("the mount is listed with its server");
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Returns the entry of `packfs mount --list` for a mount point; null if there is none.
fn listed(fixture: &Fixture, place: &Place) -> serde_json::Value {
    let list = fixture.run(["mount", "--list", "--json"]).json();
    let at = place.path().to_str().unwrap();
    list.as_array().unwrap().iter().find(|row| row["mount_point"] == at).cloned().unwrap_or_default()
}

/// A folder with an odd tree in `odd` and images of it.
fn odd_fixture() -> Fixture {
    let fixture = Fixture::new();
    let (tree, contents) = odd_tree(4096, true);
    fs::create_dir(fixture.path("odd")).unwrap();
    write_dir(&tree, &contents, &fixture.path("odd"));
    for image in ["odd.sqfs", "odd.erofs"] {
        assert_eq!(fixture.run(["pack", "odd", image, "-q", "--lossy"]).code, Some(0), "{image}");
    }
    fixture
}

pub const AS_MOUNTED: Compare = Compare {
    nanos: false,
    xattrs: true,
    owners: true,
    dir_links: false,
    hard_links: true,
    symlink_times: true,
    root: true,
};

#[test]
fn fuse_and_the_kernel_show_the_same_tree() {
    if !can_mount() {
        return;
    }
    let fixture = odd_fixture();
    for image in ["odd.sqfs", "odd.erofs"] {
        let (ours, kernel) = (Place::new(&fixture, "ours"), Place::new(&fixture, "kernel"));
        fixture.run(["mount", "--fuse", image, "ours"]).done();
        fixture.run(["mount", "--kernel", image, "kernel"]).done();
        assert!(ours.table()[0].contains(" - fuse.packfs "), "{:?}", ours.table());
        let format = if image == "odd.sqfs" { "squashfs" } else { "erofs" };
        assert!(kernel.table()[0].contains(&format!(" - {format} ")), "{:?}", kernel.table());
        let compare = Compare { nanos: true, ..AS_MOUNTED };
        snapshot_dir(ours.path()).assert_same(&snapshot_dir(kernel.path()), compare, image);
        for place in [&ours, &kernel] {
            fixture.run(["umount", place.path().to_str().unwrap()]).done();
            assert!(!place.is_mounted());
        }
    }
}

/// Runs a script as user 65534, who may enter the folder of the fixture.
fn as_nobody(fixture: &Fixture, script: &str) -> Output {
    fs::set_permissions(fixture.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(fixture.path("")).uid(65534).gid(65534).output().unwrap()
}

/// No privileges from an image, and nothing for others, unless an option asks for it: as libfuse.
#[test]
fn fuse_mounts_of_root_give_nobody_more_than_was_asked_for() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tree")).unwrap();
    fs::copy("/usr/bin/id", fixture.path("tree/id")).unwrap();
    fs::set_permissions(fixture.path("tree/id"), PermissionsExt::from_mode(0o4755)).unwrap();
    let null = fixture.path("tree/null");
    let device = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(rustix::fs::CWD, &null, rustix::fs::FileType::CharacterDevice, 0o666.into(), device)
        .unwrap();
    fs::set_permissions(&null, PermissionsExt::from_mode(0o666)).unwrap();
    fixture.run(["pack", "tree", "a.sqfs", "-q", "--lossy"]);
    let place = Place::new(&fixture, "at");
    let names = ["mount --fuse", "as squashfuse", "as squashfuse_ll", "as snapfuse", "as erofsfuse"];
    for name in names {
        let mounted = |options: &str| {
            let line = format!("{name} {options} a.sqfs at");
            fixture.run(line.split_whitespace()).done();
            let table = place.table();
            let tried = as_nobody(&fixture, "at/id -u; echo x > at/null && echo opened");
            fixture.run(["umount", "at"]).done();
            assert!(!place.is_mounted(), "{line}");
            (table[0].clone(), String::from_utf8(tried.stdout).unwrap())
        };
        let (table, tried) = mounted("");
        assert!(table.contains("nosuid,nodev") && !table.contains("allow_other"), "{name}: {table}");
        assert_eq!(tried, "", "{name}: others see nothing");
        let tool = name.strip_prefix("as ");
        let shown = tool.map_or(" - fuse.packfs /".to_owned(), |tool| format!(" - fuse.{tool} {tool} "));
        assert!(table.contains(&shown), "{name}: {table}");
        let (_, tried) = mounted("-o allow_other");
        assert_eq!(tried, "65534\n", "{name}: neither set-id bits nor devices count");
        let (table, tried) = mounted("-o allow_other,suid,dev,fsname=x,subtype=y");
        assert_eq!(tried, "0\nopened\n", "{name}: {table}");
        assert!(table.contains(" - fuse.y x "), "{name}: {table}");
    }
    fixture.run(["mount", "--kernel", "a.sqfs", "at"]).done();
    assert!(!place.table()[0].contains("nosuid"), "as mount(8) makes it: {:?}", place.table());
}

#[test]
fn holes_are_found_where_there_are_some() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("tree")).unwrap();
    let sparse = File::create(fixture.path("tree/sparse")).unwrap();
    for offset in [1 << 20, 70 << 20, 140 << 20] {
        sparse.write_all_at(&words(200_000), offset).unwrap();
    }
    sparse.set_len(150 << 20).unwrap();
    // Clusters of EROFS hold zeros as they hold other bytes.
    for (image, data_len_max) in [("x.sqfs", 2_000_000), ("x.erofs", 150 << 20)] {
        fixture.run(["pack", "tree", image, "-q"]).done();
        let place = Place::new(&fixture, "at");
        fixture.run(["mount", "--fuse", image, "at"]).done();
        let mounted = File::open(place.path().join("sparse")).unwrap();
        let mut at = 0;
        let mut data_len = 0;
        while let Ok(start) = rustix::fs::seek(&mounted, rustix::fs::SeekFrom::Data(at)) {
            at = rustix::fs::seek(&mounted, rustix::fs::SeekFrom::Hole(start)).unwrap();
            assert!(start < at && at <= 150 << 20, "{image} {start} {at}");
            data_len += at - start;
        }
        assert!((600_000..=data_len_max).contains(&data_len), "{image}: {data_len} bytes of data");
        let seek = |offset| rustix::fs::seek(&mounted, rustix::fs::SeekFrom::Data(offset));
        assert_eq!(seek(150 << 20), Err(Errno::NXIO));
        if image == "x.sqfs" {
            assert_eq!(seek(149 << 20), Err(Errno::NXIO));
        }
        drop(mounted);
        fixture.run(["umount", "at"]).done();
    }
}

#[test]
fn the_kernel_mounts_parts_of_files_and_parts_of_images() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    for image in ["root.sqfs", "root.erofs"] {
        let mut bytes = vec![0x55; 8192];
        bytes.extend(fixture.bytes(image));
        fixture.write("disk", bytes);
        for how in ["--kernel", "--fuse"] {
            let place = Place::new(&fixture, "at");
            fixture.run(["mount", how, "--offset", "8K", "--subdir", "usr", "disk", "at"]).done();
            assert_same_files(&fixture.path("rootfs/usr"), place.path());
            let listed = fixture.run(["mount", "--list"]);
            assert!(listed.done().text().contains(place.path().to_str().unwrap()), "{}", listed.text());
            fixture.run(["umount", "at"]).done();
            assert!(!place.is_mounted());
        }
        let missing =
            fixture.run(["mount", "--kernel", "--offset", "8192", "--subdir", "usr/none", "disk", "at"]);
        missing.failed(1, &["usr/none"]);
    }
    let loops = Command::new("losetup").args(["-n", "-O", "BACK-FILE"]).output().unwrap();
    let folder = fixture.path("disk").display().to_string();
    assert!(!String::from_utf8_lossy(&loops.stdout).contains(&folder), "a loop device is left");
}

#[test]
fn nothing_can_be_written() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--fuse", "root.sqfs", "at"]).done();
    let file = place.path().join("etc/os-release");
    let code = |error: std::io::Error| Errno::from_io_error(&error);
    assert_eq!(File::options().write(true).open(&file).map_err(code).unwrap_err(), Some(Errno::ROFS));
    assert_eq!(fs::create_dir(place.path().join("new")).map_err(code), Err(Some(Errno::ROFS)));
    assert_eq!(fs::remove_file(&file).map_err(code), Err(Some(Errno::ROFS)));
    assert_eq!(
        fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).map_err(code),
        Err(Some(Errno::ROFS))
    );
    let statistics = rustix::fs::statvfs(place.path()).unwrap();
    assert_eq!((statistics.f_bavail, statistics.f_namemax), (0, 255));
    assert!(statistics.f_blocks > 0 && statistics.f_files > 5);
}

#[test]
fn a_mount_outlives_the_name_of_its_image() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--fuse", "root.sqfs", "at"]).done();
    fs::rename(fixture.path("root.sqfs"), fixture.path("moved")).unwrap();
    fs::remove_file(fixture.path("moved")).unwrap();
    assert_same_files(&fixture.path("rootfs"), place.path());
}

#[test]
fn signals_unmount_and_readers_may_finish() {
    if !can_mount() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        let fixture = Fixture::with_image();
        let place = Place::new(&fixture, "at");
        fixture.run(["mount", "--fuse", "root.sqfs", "at"]).done();
        let pid = server_pid(&fixture, &place);
        assert_eq!(listed(&fixture, &place)["ended"], false);
        let open = File::open(place.path().join("usr/bin/tool")).unwrap();
        kill_process(pid, signal).unwrap();
        place.wait_until_gone();
        let mut buf = vec![0; 300_000];
        open.read_exact_at(&mut buf, 0).unwrap();
        assert!(buf == words(300_000));
        drop(open);
        wait_for("the server to end", || rustix::process::test_kill_process(pid).is_err());
        let list = fixture.run(["mount", "--list", "--json"]).json();
        let at = place.path().to_str().unwrap();
        assert!(list.as_array().unwrap().iter().all(|row| row["mount_point"] != at), "{list}");
    }
}

#[test]
fn a_foreground_server_ends_with_its_mount() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    let mut server = fixture.command(["mount", "--foreground", "root.sqfs", "at"]).spawn().unwrap();
    // The server may still be telling of the mount, but it is not in it.
    wait_for("the mount", || place.path().join("etc").exists());
    fixture.run(["umount", "at"]).done();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!place.is_mounted());
}

#[test]
fn what_a_killed_server_leaves_is_cleared() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--fuse", "root.sqfs", "at"]).done();
    let file = File::open(place.path().join("usr/bin/tool")).unwrap();
    kill_process(server_pid(&fixture, &place), Signal::KILL).unwrap();
    wait_for("the kernel to notice", || fs::read_dir(place.path()).is_err());
    fixture
        .run(["mount", "--fuse", "root.sqfs", "at"])
        .failed(1, &["the server of the mount there has ended", "packfs umount"]);
    assert_eq!(listed(&fixture, &place)["ended"], true);
    let line = format!("{}  ", place.path().display());
    let list = fixture.run(["mount", "--list"]);
    let line = list.done().text().lines().find(|found| found.starts_with(&line)).unwrap().to_owned();
    assert!(line.contains("ended") && line.contains("packfs umount"), "{line}");
    fixture.run(["umount", "at"]).failed(1, &["in use", "--lazy"]);
    fixture.run(["umount", "--lazy", "at"]).done();
    assert!(!place.is_mounted());
    drop(file);
    fixture.run(["mount", "--fuse", "root.sqfs", "at"]).done();
    kill_process(server_pid(&fixture, &place), Signal::KILL).unwrap();
    wait_for("the kernel to notice", || fs::read_dir(place.path()).is_err());
    fixture.run(["umount", "at/"]).done();
    assert!(!place.is_mounted());
}

#[test]
fn a_mount_in_use_stays_without_lazy() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    for (image, how) in [("root.sqfs", "--fuse"), ("root.erofs", "--kernel")] {
        let place = Place::new(&fixture, "at");
        fixture.run(["mount", how, image, "at"]).done();
        let open = File::open(place.path().join("etc/os-release")).unwrap();
        fixture.run(["umount", "at"]).failed(1, &["in use"]);
        assert!(place.is_mounted());
        fixture.run(["umount", "-l", "at"]).done();
        assert!(!place.is_mounted());
        let mut buf = [0; 4];
        open.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"NAME");
    }
    fixture.run(["umount", "at"]).failed(1, &["nothing is mounted"]);
    fixture.run(["umount", "/proc"]).failed(1, &["not made by packfs"]);
}

#[test]
fn an_idle_mount_goes_away_and_one_in_use_stays() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--idle-timeout", "1s", "root.sqfs", "at"]).done();
    let open = File::open(place.path().join("etc/os-release")).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(place.is_mounted());
    drop(open);
    place.wait_until_gone();
}

#[test]
fn owners_can_be_others() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--owner-map", "0-99:100000", "--gid", "7", "root.sqfs", "at"]).done();
    let found = fs::metadata(place.path().join("etc/os-release")).unwrap();
    assert_eq!((found.uid(), found.gid()), (100_000, 7));
    let root = fs::metadata(place.path()).unwrap();
    assert_eq!((root.uid(), root.gid()), (100_000, 7));
}

#[test]
fn the_helper_of_mount_understands_fstab() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_packfs"), fixture.path("mount.packfs")).unwrap();
    for (options, seen) in [("rw,nofail,noexec", "squashfs"), ("rw,fuse,noexec,subdir=/", "fuse.packfs")] {
        let mut helper = Command::new(fixture.path("mount.packfs"));
        helper.arg(fixture.path("root.sqfs")).arg(place.path()).args(["-s", "-o", options, "-t", "packfs"]);
        assert!(helper.status().unwrap().success());
        let table = place.table();
        assert!(
            table[0].contains(seen) && table[0].contains("noexec") && table[0].contains(" ro,"),
            "{table:?}"
        );
        assert_same_files(&fixture.path("rootfs"), place.path());
        fixture.run(["umount", "at"]).done();
    }
    let mut helper = Command::new(fixture.path("mount.packfs"));
    helper.arg(fixture.path("root.sqfs")).arg(place.path()).args(["-o", "noexce"]);
    assert_eq!(helper.output().unwrap().status.code(), Some(2));
}

#[test]
fn a_failed_mount_reports_the_cause_and_leaves_nothing() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.write("junk", words(10_000));
    let mut cut = fixture.bytes("root.sqfs");
    cut.truncate(200);
    fixture.write("cut", cut);
    fixture.run(["mount", "--fuse", "junk", "at"]).failed(4, &["no known format"]);
    fixture.run(["mount", "--fuse", "cut", "at"]).failed(3, &["corrupt"]);
    fixture.run(["mount", "--fuse", "none", "at"]).failed(1, &["none"]);
    fixture.run(["mount", "--fuse", "root.sqfs", "nowhere"]).failed(1, &["nowhere", "mkdir"]);
    fixture.run(["mount", "--fuse", "root.sqfs", "junk"]).failed(2, &["not a directory"]);
    fixture
        .run(["mount", "--fuse", "--subdir", "etc/os-release", "root.sqfs", "at"])
        .failed(1, &["not a directory"]);
    assert_eq!(fixture.run(["mount", "--fuse", "root.sqfs"]).code, Some(2));
    assert_eq!(fixture.run(["mount", "--kernel", "--uid", "5", "root.sqfs", "at"]).code, Some(2));
    assert!(!place.is_mounted());
}

/// Through the set-user-id program `fusermount3`: no privilege is needed, and no other user
/// sees anything.
#[test]
fn an_unprivileged_user_mounts_and_unmounts() {
    if !can_mount() {
        return;
    }
    if Command::new("fusermount3").arg("-V").output().is_err() {
        return skip("fusermount3 is missing; it comes with the package fuse3");
    }
    if fs::metadata("/dev/fuse").unwrap().mode() & 0o006 != 0o006 {
        return skip("only root may open /dev/fuse; elsewhere udev gives it mode 0666");
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    rustix::fs::chown(
        place.path(),
        Some(rustix::fs::Uid::from_raw(65534)),
        Some(rustix::fs::Gid::from_raw(65534)),
    )
    .unwrap();
    fixture.run_as_nobody(["mount", "root.sqfs", "at"]).done();
    let table = place.table();
    assert!(table[0].contains(" - fuse.packfs ") && table[0].contains("nosuid"), "{table:?}");
    // Not even root may look into it, but who mounted it reads everything.
    assert!(fs::read_dir(place.path()).is_err());
    let mut cat = Command::new("cat");
    cat.arg(place.path().join("etc/os-release")).uid(65534).gid(65534);
    assert_eq!(cat.output().unwrap().stdout, b"NAME=example\n");
    let listed = fixture.run_as_nobody(["mount", "--list"]);
    assert!(listed.done().text().contains("root.sqfs"), "{}", listed.text());
    fixture.run_as_nobody(["umount", "at"]).done();
    assert!(!place.is_mounted());
    assert_eq!(fixture.run_as_nobody(["mount", "--kernel", "root.sqfs", "at"]).code, Some(1));
}

/// A step towards mounting in a user namespace, and what this machine does not allow if it fails.
const NAMESPACE_NEEDS: [(&str, &str); 3] = [
    ("true", "user 65534 can make no user namespace here"),
    ("mount -t tmpfs none at", "the root of a user namespace may not mount here"),
    ("exec 3<>/dev/fuse", "only root may open /dev/fuse; elsewhere udev gives it mode 0666"),
];

/// Runs a script in the fixture as the root of a user namespace that user 65534 makes, with a
/// program as `$0`.
fn in_namespace(fixture: &Fixture, script: &str, program: &Path) -> Output {
    let mut unshare = Command::new("unshare");
    unshare.args(["-Urm", "sh", "-c", script]).arg(program).current_dir(fixture.path(""));
    // Folders of the user who runs the tests are not this one's, nor is what another namespace's
    // root left in /tmp.
    unshare.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", fixture.path(""));
    unshare.stdin(Stdio::null()).uid(65534).gid(65534).output().unwrap()
}

/// The root of a user namespace of its own may mount FUSE by itself, and has a place for records
/// though not root's.
#[test]
fn the_root_of_a_user_namespace_mounts() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    let program = fixture.program_for_all();
    if Command::new("unshare").arg("--version").output().is_err() {
        return skip("unshare is missing; it comes with util-linux");
    }
    for (script, why) in NAMESPACE_NEEDS {
        if !in_namespace(&fixture, script, &program).status.success() {
            return skip(why);
        }
    }
    let script = "\"$0\" mount root.sqfs at && grep -c fuse.packfs /proc/self/mountinfo && \
                  \"$0\" mount --list | grep -c process && cat at/etc/os-release && \"$0\" umount at && ls at";
    let output = in_namespace(&fixture, script, &program);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("NAME=example\n"), "{text}");
    assert!(!place.is_mounted());
}

#[test]
fn what_a_mount_recorded_is_packed_in_front() {
    if !can_mount() {
        return;
    }
    let fixture = Fixture::with_image();
    let place = Place::new(&fixture, "at");
    fixture.run(["mount", "--record", "trace", "root.sqfs", "at"]).done();
    assert!(place.table()[0].contains(" - fuse.packfs "), "recording is done through FUSE");
    for path in ["usr/share/doc/README", "bin/tool", "etc/os-release", "bin/tool"] {
        fs::read(place.path().join(path)).unwrap();
    }
    fs::symlink_metadata(place.path().join("usr/release")).unwrap();
    fs::read_dir(place.path().join("empty")).unwrap().for_each(drop);
    fixture.run(["umount", "at"]).done();
    place.wait_until_gone();
    let trace = String::from_utf8(fixture.bytes("trace")).unwrap();
    let expected = ["usr/share/doc/README", "bin", "usr/bin/tool", "etc/os-release", "empty"];
    assert_eq!(trace.lines().collect::<Vec<_>>(), expected);

    for image in ["traced.sqfs", "traced.erofs"] {
        fixture.run(["pack", "rootfs", image, "--trace", "trace"]).done();
        fixture.run(["diff", "rootfs", image]).done();
    }
    fixture.write("lost", "etc/os-release\ngone\n");
    let run = fixture.run(["pack", "rootfs", "lost.sqfs", "--trace", "lost"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr.contains("the trace names paths that are not packed") && run.stderr.contains("gone"),
        "{}",
        run.stderr
    );
    fixture.run(["pack", "rootfs", "no.sqfs", "--trace", "nowhere"]).failed(1, &["nowhere"]);
    fixture.run(["mount", "--kernel", "--record", "trace", "root.sqfs", "at"]).failed(2, &["--record"]);
}
