//! XFS as mkfs.xfs makes it and Linux fills it: equal walks, equal contents, equal holes.

use crate::common::{open_image, read_image, run};
use packfs_format::{DirCursor, DirEntry};
use packfs_testkit::{
    Compare, Mount, Peer, Snapshot, is_root, odd_tree, peer, skip, snapshot_dir, write_dir,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

/// One filesystem: its name, and what mkfs.xfs is asked for.
type Row = (&'static str, &'static [&'static str]);

const SETS: &[Row] = &[
    ("plain", &[]),
    ("1K blocks", &["-bsize=1024"]),
    ("1K blocks, long directory blocks", &["-bsize=1024", "-nsize=8192"]),
    ("2K blocks, long inodes", &["-bsize=2048", "-isize=1024"]),
    ("directory blocks of 64K, 2K inodes", &["-nsize=65536", "-isize=2048"]),
    ("64K blocks", &["-bsize=65536"]),
    ("16K blocks, 1K inodes", &["-bsize=16384", "-isize=1024"]),
    ("sectors of 4K", &["-ssize=4096"]),
    ("64-bit extent counts", &["-inrext64=1"]),
    ("reverse mapping", &["-mrmapbt=1"]),
    ("no reflink, no bigtime", &["-mreflink=0,bigtime=0,inobtcount=0"]),
    ("no sparse inodes, no free inode tree", &["-isparse=0", "-mfinobt=0,reflink=0,rmapbt=0,inobtcount=0"]),
    ("two groups", &["-dagcount=2"]),
];

/// Fills a mounted filesystem with what only its driver makes.
const FILL: &str = r##"
set -e
cd "$1"
# Directories in every form: short, one block, leaf, node; with gaps after deletions.
mkdir few some many holes
touch few/a few/bb
seq -f "some/name-%g" 60 | xargs touch
seq -f "many/a name that is rather long, number %g" "$2" | xargs -d "\n" touch
seq -f "holes/file with a number %g" 2000 | xargs -d "\n" touch
seq -f "holes/file with a number %g" 200 1800 | xargs -d "\n" rm
# Extents: a tree of them, unwritten ones, holes at the end, shared ones.
mkdir data
dd if=/dev/urandom of=data/solid bs=64k count=20 status=none
for n in $(seq 0 700); do echo "pwrite -q -S $((n % 250 + 1)) $((n * 16384)) 3000"; done | xfs_io -f data/striped >/dev/null
xfs_io -f -c "falloc 0 1m" -c "pwrite -q -S 7 300000 5000" -c "pwrite -q -S 9 900000 1" data/reserved
xfs_io -f -c "falloc -k 0 1m" -c "pwrite -q 0 10" data/beyond
xfs_io -f -c "truncate 10m" data/hole
xfs_io -f -c "pwrite -q 0 300000" -c "truncate 70001" -c "truncate 200000" data/cut
if cp --reflink=always data/solid data/shared 2>/dev/null; then
    cp --reflink=always data/striped data/also-striped
    xfs_io -c "pwrite -q -S 5 100000 70000" data/shared
    sync
    xfs_io -c "pwrite -q -S 6 400 70000" data/solid
fi
# Attributes in every form: short, leaf, node, values in blocks of their own.
mkdir attrs
touch attrs/short attrs/leaf attrs/node attrs/remote attrs/gone
setfattr -n user.a -v b attrs/short
for n in $(seq 12); do setfattr -n "user.name$n" -v "$(printf %0100d "$n")" attrs/leaf; done
{ for n in $(seq 600); do printf '# file: attrs/node\nuser.a_rather_long_name_of_%d="%0200d"\n\n' "$n" "$n"; done; } | setfattr --restore=-
long=$(head -c 44000 /dev/urandom | base64 -w0 | head -c 58664)
{ for n in 1 2 3; do printf '# file: attrs/remote\nuser.long%d=0s%s\n\n' "$n" "$long"; done; } | setfattr --restore=-
{ printf '# file: attrs\ntrusted.long=0s%s\n\n' "$long"; } | setfattr --restore=-
for n in $(seq 90); do setfattr -n "user.x$n" -v "$(printf %0300d "$n")" attrs/gone; done
for n in $(seq 90); do setfattr -x "user.x$n" attrs/gone; done
if command -v setfacl >/dev/null; then
    mkdir attrs/acl
    setfacl -m u:1000:rwx,g:7:r,d:u:5:x,d:g:8:rw attrs/acl
    touch attrs/acl/inherits
    seq -f "u:%g:r" 2000 2040 | setfacl -M - attrs/acl/inherits
fi
# Links, devices, dates.
mkdir links
for n in 1 20 300 1000 1023; do ln -s "$(printf "%0${n}d" 0)" links/$n; done
for n in $(seq 30); do ln data/cut links/hard-$n; done
for n in 20 300 1000; do setfattr -h -n trusted.link -v "$(printf "%0300d" 0)" links/$n; done
mknod links/char c 259 300
mknod links/block b 511 262143
mknod links/whiteout c 0 0
mkfifo links/fifo
touch -d 1910-01-02T03:04:05.123456789Z links/early
touch -d 2200-05-06T07:08:09.987654321Z links/late
touch -d 1960-05-06T07:08:09.987654321Z links/before
sync
"##;

/// Makes a filesystem, and fills it.
fn make(mkfs: &Peer, image: &Path, (what, options): &Row, odd: &Path, names: u32) {
    std::fs::File::create(image).unwrap().set_len(400 << 20).unwrap();
    let mut command = mkfs.command(&[]);
    run(command.arg("-qf").args(*options).arg(image));
    let mount = Mount::writable(image, "xfs").unwrap_or_else(|e| panic!("{what}: {e}"));
    // One of its devices has a minor number that XFS cannot store.
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(odd).arg(mount.path().join("odd")).output().unwrap();
    run(Command::new("bash").args(["-c", FILL, "fill"]).arg(mount.path()).arg(names.to_string()));
}

/// Returns what the kernel shows; it lists each ACL in the form of XFS, too.
fn kernel_walk(image: &Path, what: &str) -> Snapshot {
    let mount = Mount::new(image, "xfs").unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut snapshot = snapshot_dir(&mount.path());
    for row in snapshot.0.values_mut() {
        row.xattrs.retain(|name, _| !name.starts_with(b"trusted.SGI_ACL_"));
    }
    snapshot
}

#[track_caller]
fn agrees_with_the_kernel(image: &Path, what: &str) -> Snapshot {
    let (found, findings) = read_image(image);
    assert_eq!(findings, [], "{what}");
    found.assert_same(&kernel_walk(image, what), Compare::ALL, what);
    found
}

fn tools() -> Option<Peer> {
    let mkfs = peer("mkfs.xfs").filter(|_| is_root());
    if mkfs.is_none() || peer("xfs_io").is_none() || peer("setfattr").is_none() {
        skip("mkfs.xfs, xfs_io, setfattr, and root are needed");
        return None;
    }
    mkfs
}

fn agrees_on(rows: &[Row], names: u32) {
    let Some(mkfs) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, odd) = (folder.path().join("image"), folder.path().join("odd"));
    std::fs::create_dir(&odd).unwrap();
    let (tree, contents) = odd_tree(4096, true);
    write_dir(&tree, &contents, &odd);
    for row in rows {
        make(&mkfs, &image, row, &odd, names);
        let found = agrees_with_the_kernel(&image, row.0);
        assert!(found.0.len() > names as usize + 700, "{}", row.0);
    }
}

#[test]
fn agrees_with_the_kernel_on_the_first_half_of_feature_sets() {
    agrees_on(&SETS[..SETS.len() / 2], 2000);
}

#[test]
fn agrees_with_the_kernel_on_the_second_half_of_feature_sets() {
    agrees_on(&SETS[SETS.len() / 2..], 2000);
}

#[test]
fn a_hundred_thousand_names_are_listed_and_found() {
    let Some(mkfs) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
    run(mkfs.command(&[&"-q", &"-f"]).arg(&image));
    let mount = Mount::writable(&image, "xfs").unwrap();
    let many = mount.path().join("many");
    std::fs::create_dir(&many).unwrap();
    let name = |index: u32| format!("a name, number {index}");
    std::fs::write(many.join(name(0)), b"content").unwrap();
    for index in 1..100_000 {
        std::fs::hard_link(many.join(name(0)), many.join(name(index))).unwrap();
    }
    for index in (1..100_000).step_by(3) {
        std::fs::remove_file(many.join(name(index))).unwrap();
    }
    drop(mount);
    let engine = open_image(&image);
    let volume = engine.volume();
    let mut findings = Vec::new();
    volume.check(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
    let dir = volume.lookup(volume.root(), b"many").unwrap().unwrap();
    let file = volume.lookup(dir, name(0).as_bytes()).unwrap();
    let mut listed = 0;
    let mut visit = |entry: DirEntry, _| {
        assert_eq!(Some(entry.id), file);
        listed += 1;
        ControlFlow::Continue(())
    };
    volume.read_dir(dir, DirCursor(0), &mut visit).unwrap();
    assert_eq!(listed, 66_667);
    for index in 0..100_000 {
        let found = volume.lookup(dir, name(index).as_bytes()).unwrap();
        assert_eq!(found, file.filter(|_| index % 3 != 1), "{index}");
    }
}
