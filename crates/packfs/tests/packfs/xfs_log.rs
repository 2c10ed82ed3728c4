//! Logs of XFS with changes that are not on disk: replayed in memory as Linux replays them.

use crate::common::{read_image, run};
use packfs_core::{FileImage, Image, Silent};
use packfs_format::{Opening, Severity, Volume};
use packfs_read::{ReadEngine, ReadOptions};
use packfs_testkit::{
    Compare, LoopDevice, Peer, Snapshot, is_root, peer, skip, snapshot_dir, snapshot_tree, unmount,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// An image with changes in its log.
struct Row {
    what: &'static str,
    /// Options of mkfs.xfs and of mount.
    mkfs: &'static str,
    mount: &'static str,
    /// Records before the changes, each at least as long as the stripe unit of the log.
    records: u32,
}

const ROWS: &[Row] = &[
    Row { what: "records of 256 KiB", mkfs: "-bsize=4096", mount: "logbsize=256k", records: 0 },
    Row {
        what: "blocks of 1 KiB, long directory blocks",
        mkfs: "-bsize=1024 -nsize=8192",
        mount: "rw",
        records: 9,
    },
    Row { what: "old times, no reflink", mkfs: "-mreflink=0,bigtime=0", mount: "logbsize=16k", records: 9 },
    Row { what: "a log around its end", mkfs: "-lsize=64m,su=256k -isize=1024", mount: "rw", records: 300 },
    Row { what: "every change a transaction", mkfs: "-ssize=4096 -mrmapbt=1", mount: "wsync", records: 1 },
];

/// Changes of every kind of metadata.
const CHANGES: &str = r##"
set -e
cd "$1"
mkdir few some many gone attrs links data
touch few/{a,bb,ccc}
seq -f "some/name-%g" 60 | xargs touch
seq -f "many/a name that is rather long, number %g" 900 | xargs -d "\n" touch
seq -f "gone/file with a number %g" 400 | xargs -d "\n" touch
seq -f "gone/file with a number %g" 50 350 | xargs -d "\n" rm
head -c 300000 /dev/urandom > data/solid
for n in $(seq 0 150); do echo "pwrite -q -S $((n + 1)) $((n * 16384)) 3000"; done | xfs_io -f data/striped >/dev/null
xfs_io -f -c "falloc 0 1m" -c "pwrite -q -S 7 300000 5000" data/reserved
xfs_io -f -c "pwrite -q 0 300000" -c "truncate 70001" -c "truncate 200000" -c fsync data/cut
if cp --reflink=always data/solid data/shared 2>/dev/null; then
    cp --reflink=always data/striped data/also
    xfs_io -c "pwrite -q -S 5 100000 70000" -c fsync data/shared
fi
touch attrs/{short,leaf,node,remote}
setfattr -n user.a -v b attrs/short
for n in $(seq 12); do setfattr -n "user.name$n" -v "$(printf %0100d "$n")" attrs/leaf; done
{ for n in $(seq 300); do printf '# file: attrs/node\nuser.a_rather_long_name_of_%d="%0200d"\n\n' "$n" "$n"; done; } | setfattr --restore=-
long=$(head -c 44000 /dev/urandom | base64 -w0 | head -c 58664)
{ for n in 1 2; do printf '# file: attrs/remote\nuser.long%d=0s%s\n\n' "$n" "$long"; done; } | setfattr --restore=-
setfattr -x user.long1 attrs/remote
for n in 1 20 300 1023; do ln -s "$(printf "%0${n}d" 0)" links/$n; done
for n in $(seq 30); do ln data/cut links/hard-$n; done
mknod links/char c 259 300
mkfifo links/fifo
touch -d 1910-01-02T03:04:05.123456789Z links/early
mv "many/a name that is rather long, number 7" few/moved
mv some others; mkdir some; mv others/name-1 some/
rm -r gone; mkdir gone; rm data/striped
chmod 600 few/a; chown 12:34 few/bb
xfs_io -c fsync few/ccc
"##;

/// A mounted image and its copies.
struct Work {
    folder: tempfile::TempDir,
    tools: Peer,
}

impl Work {
    /// Returns the tools, if they and the rights are there.
    fn new() -> Option<Work> {
        let tools = peer("mkfs.xfs").filter(|_| is_root());
        if tools.is_none() || peer("xfs_io").is_none() || peer("setfattr").is_none() {
            skip("mkfs.xfs, xfs_io, setfattr, and root are needed");
            return None;
        }
        Some(Work { folder: tempfile::tempdir().unwrap(), tools: tools? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn make(&self, options: &[&str]) {
        fs::File::create(self.path("image")).unwrap().set_len(400 << 20).unwrap();
        run(self.tools.command(&[&"-q", &"-f"]).args(options).arg(self.path("image")));
    }
}

/// A mounted filesystem; unmounted when dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(image: &Path, options: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        let options = format!("loop,nouuid,{options}");
        run(Command::new("mount").args(["-t", "xfs", "-o", &options]).arg(image).arg(at.path()));
        Mounted(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        assert!(unmount(self.0.path()) || std::thread::panicking());
    }
}

#[track_caller]
fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("--sparse=always").arg(from).arg(to));
}

/// Fills the log with records, and leaves changes in it. Linux writes no more after that, so that a
/// copy is of one moment.
fn change(root: &Path, records: u32) {
    fs::create_dir(root.join("records")).unwrap();
    for index in 0..records {
        let path = root.join(format!("records/{}", index % 97));
        fs::write(&path, index.to_string()).unwrap();
        if index % 5 == 0 {
            fs::create_dir_all(root.join(format!("records/dir-{index}/within"))).unwrap();
        }
        if index % 7 == 6 && index > 40 {
            let _ = fs::remove_dir_all(root.join(format!("records/dir-{}", index - 36)));
        }
        fs::File::open(path).unwrap().sync_all().unwrap();
    }
    run(Command::new("bash").args(["-c", CHANGES, "change"]).arg(root));
    run(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(root));
}

fn device(path: &Path) -> Arc<dyn Image> {
    Arc::new(FileImage::open(path).unwrap())
}

fn engine(path: &Path, opening: Opening) -> Arc<ReadEngine> {
    let format = packfs_formats::by_name("xfs").unwrap();
    let image = device(path);
    let volume = format.open_with(Arc::clone(&image), opening).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let volume: Arc<dyn Volume> = volume.into();
    ReadEngine::new(image, volume, ReadOptions::default())
}

/// Everything in an image; its check finds nothing.
#[track_caller]
fn read(path: &Path, opening: Opening) -> Snapshot {
    let engine = engine(path, opening);
    let warnings = engine.volume().warnings();
    assert!(warnings[0].contains("log replayed in memory"), "{warnings:?}");
    let mut findings = Vec::new();
    engine.volume().check(&mut |finding| findings.push(finding)).unwrap();
    findings.retain(|finding| finding.severity > Severity::Note && !warnings.contains(&finding.fault));
    assert_eq!(findings, [], "{path:?}");
    snapshot_tree(&engine.load_tree(&Silent).unwrap().tree, &*engine)
}

/// Compares the copy with what the kernel shows of it, once it has replayed the log.
#[track_caller]
fn agrees_with_the_kernel(copy: &Path, found: &Snapshot, options: &str, what: &str) {
    let mount = Mounted::new(copy, options);
    found.assert_same(&snapshot_dir(mount.0.path()), Compare::ALL, what);
}

#[test]
fn logs_are_replayed_as_by_the_kernel() {
    let Some(work) = Work::new() else { return };
    let (image, saved) = (work.path("image"), work.path("copy"));
    for Row { what, mkfs, mount, records } in ROWS {
        work.make(&mkfs.split(' ').collect::<Vec<_>>());
        let mounted = Mounted::new(&image, mount);
        change(mounted.0.path(), *records);
        copy(&image, &saved);
        drop(mounted);
        let found = read(&saved, Opening::default());
        assert!(found.0.len() > 1000, "{what}");
        let unread = engine(&saved, Opening { no_journal: true, ..Opening::default() });
        assert!(unread.volume().warnings()[0].contains("the log was not replayed"), "{what}");
        agrees_with_the_kernel(&saved, &found, "rw", what);
        let (clean, findings) = read_image(&saved);
        assert_eq!(findings, [], "{what}");
        clean.assert_same(&found, Compare::ALL, what);
    }
}

#[test]
fn a_log_on_another_device_is_replayed() {
    let Some(work) = Work::new() else { return };
    let [image, log, saved, saved_log] = ["image", "log", "copy", "copy-log"].map(|name| work.path(name));
    fs::File::create(&log).unwrap().set_len(64 << 20).unwrap();
    let (wanted, found) = {
        let looped = LoopDevice::new(&log).unwrap();
        let option = format!("logdev={},size=64m,su=256k", looped.path().display());
        work.make(&["-l", &option]);
        let options = format!("logdev={}", looped.path().display());
        let mounted = Mounted::new(&image, &options);
        change(mounted.0.path(), 260);
        copy(&image, &saved);
        copy(&log, &saved_log);
        let without = engine(&saved, Opening::default()).volume().warnings();
        assert!(without[0].contains("the log is on another device"), "{without:?}");
        let found = read(&saved, Opening { devices: vec![device(&saved_log)], ..Opening::default() });
        drop(mounted);
        let looped = LoopDevice::new(&saved_log).unwrap();
        let mounted = Mounted::new(&saved, &format!("logdev={}", looped.path().display()));
        (snapshot_dir(mounted.0.path()), found)
    };
    found.assert_same(&wanted, Compare::ALL, "a log on another device");
}
