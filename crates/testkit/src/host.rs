//! Hierarchies on the host: written from a tree, read back as a snapshot.

use crate::reach::reach;
use crate::snapshot::{Row, Snapshot, hash};
use packfs_core::{Contents, DeviceNumber, FileType, NodeKind, Timestamp, Tree, Xattrs};
use rustix::fs::{
    AtFlags, CWD, FileType as HostType, Gid, Mode, SeekFrom, Timespec, Timestamps, Uid, XattrFlags,
};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The snapshot of a directory, symbolic links not followed. Panics where it cannot be read.
pub fn snapshot_dir(root: &Path) -> Snapshot {
    let mut rows = BTreeMap::new();
    let mut known = Known::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let host = reach(root, &path);
        let row = row(&host, &mut known);
        if row.file_type == FileType::Directory {
            let entries = fs::read_dir(&host).unwrap_or_else(|e| panic!("{:?}: {e}", &*host));
            for entry in entries {
                let name = entry.unwrap().file_name().into_vec();
                let separator = if path.is_empty() { &b""[..] } else { b"/" };
                open.push([&path, separator, &name].concat());
            }
        }
        rows.insert(path, row);
    }
    let mut first: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for (path, row) in &mut rows {
        // Until here the name is device and inode number.
        row.first_name = first.entry(row.first_name.clone()).or_insert_with(|| path.clone()).clone();
    }
    Snapshot(rows)
}

/// Contents and attributes of files with several names, by device and inode number: read once.
type Known = HashMap<(u64, u64), (Vec<u8>, Xattrs)>;

fn row(host: &Path, known: &mut Known) -> Row {
    let stat = fs::symlink_metadata(host).unwrap_or_else(|e| panic!("{host:?}: {e}"));
    let file_type = FileType::from_mode_bits(stat.mode()).unwrap();
    let identity = (stat.dev(), stat.ino());
    let (content, xattrs) = match known.get(&identity) {
        Some(known) => known.clone(),
        None => (content(host, file_type, &stat), xattrs(host)),
    };
    if stat.nlink() > 1 && file_type != FileType::Directory {
        known.entry(identity).or_insert_with(|| (content.clone(), xattrs.clone()));
    }
    let is_device = matches!(file_type, FileType::BlockDevice | FileType::CharDevice);
    let number =
        DeviceNumber { major: rustix::fs::major(stat.rdev()), minor: rustix::fs::minor(stat.rdev()) };
    Row {
        file_type,
        mode: stat.mode() & 0o7777,
        owner: (stat.uid(), stat.gid()),
        mtime: Timestamp { seconds: stat.mtime(), nanos: stat.mtime_nsec() as u32 },
        links: stat.nlink(),
        len: stat.len(),
        content,
        device: is_device.then_some(number),
        xattrs,
        first_name: format!("{}:{}", stat.dev(), stat.ino()).into_bytes(),
        stored_len: Some(stored_len(host, file_type, &stat)),
    }
}

/// Shorter files are not asked for their holes: those are hardly worth a name.
const HOLES_LEN_MIN: u64 = 1 << 20;

/// Bytes that a file takes, or that it says are data: some file systems tell holes in one way, some
/// in the other.
fn stored_len(host: &Path, file_type: FileType, stat: &fs::Metadata) -> u64 {
    let taken = stat.blocks() * 512;
    if file_type != FileType::File || stat.len() < HOLES_LEN_MIN || taken < stat.len() / 2 {
        return taken;
    }
    let file = fs::File::open(host).unwrap_or_else(|e| panic!("{host:?}: {e}"));
    let (mut data_len, mut at) = (0, 0);
    while let Ok(start) = rustix::fs::seek(&file, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).unwrap_or(stat.len());
        data_len += end - start;
        at = end;
    }
    taken.min(data_len)
}

fn content(host: &Path, file_type: FileType, stat: &fs::Metadata) -> Vec<u8> {
    match file_type {
        FileType::File => {
            let file = fs::File::open(host).unwrap_or_else(|e| panic!("{host:?}: {e}"));
            hash(stat.len(), |offset, buf| {
                file.read_exact_at(buf, offset).unwrap_or_else(|e| panic!("{host:?}: {e}"))
            })
        }
        FileType::Symlink => fs::read_link(host).unwrap().into_os_string().into_vec(),
        _ => Vec::new(),
    }
}

fn xattrs(host: &Path) -> Xattrs {
    // Most have no attributes, or few: 64 KiB of fresh memory for each would be most of the work.
    let mut few = [0; 256];
    let names = match rustix::fs::llistxattr(host, &mut few) {
        Ok(len) => few[..len].to_vec(),
        Err(rustix::io::Errno::RANGE) => {
            let mut many = vec![0; 1 << 16];
            let Ok(len) = rustix::fs::llistxattr(host, &mut many) else { return Xattrs::new() };
            many.truncate(len);
            many
        }
        Err(_) => return Xattrs::new(),
    };
    let mut found = Xattrs::new();
    for name in names.split(|&b| b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 1 << 16];
        let len = match rustix::fs::lgetxattr(host, OsStr::from_bytes(name), &mut value) {
            // squashfuse lists an attribute with an empty value, but then says that it is not
            // there.
            Err(rustix::io::Errno::NODATA) => 0,
            len => len.unwrap_or_else(|e| panic!("{host:?}: {e}")),
        };
        value.truncate(len);
        found.insert(name.to_vec(), value);
    }
    found
}

/// Writes a tree into an empty directory, as the host allows: devices, owners and `trusted`
/// attributes need root.
pub fn write_dir(tree: &Tree, contents: &dyn Contents, root: &Path) {
    let as_root = crate::is_root();
    let mut written: HashMap<packfs_core::NodeId, Vec<u8>> = HashMap::new();
    let mut dirs = Vec::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let host = &*reach(root, path.as_bytes());
        if let Some(first) = written.get(&id) {
            fs::hard_link(&*reach(root, first), host).unwrap_or_else(|e| panic!("{host:?}: {e}"));
            continue;
        }
        let node = tree.node(id);
        match &node.kind {
            NodeKind::Directory if path.is_root() => {}
            NodeKind::Directory => fs::create_dir(host).unwrap(),
            NodeKind::File { len, content } => write_file(host, contents, *content, *len),
            NodeKind::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), host).unwrap(),
            NodeKind::Fifo => make_node(host, HostType::Fifo, DeviceNumber::default()),
            NodeKind::Socket => make_node(host, HostType::Socket, DeviceNumber::default()),
            NodeKind::BlockDevice(number) if as_root => make_node(host, HostType::BlockDevice, *number),
            NodeKind::CharDevice(number) if as_root => make_node(host, HostType::CharacterDevice, *number),
            NodeKind::BlockDevice(_) | NodeKind::CharDevice(_) => continue,
        }
        if as_root {
            let owner = node.meta.owner;
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::chownat(CWD, host, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
        for (name, value) in tree.xattrs(node.xattrs) {
            rustix::fs::lsetxattr(host, OsStr::from_bytes(name), value, XattrFlags::empty())
                .unwrap_or_else(|e| panic!("{host:?} {}: {e}", String::from_utf8_lossy(name)));
        }
        if node.is_dir() {
            dirs.push((path.as_bytes().to_vec(), id));
        } else {
            finish(host, tree, id);
            written.insert(id, path.as_bytes().to_vec());
        }
    }
    for (path, id) in dirs.into_iter().rev() {
        finish(&reach(root, &path), tree, id);
    }
}

fn write_file(host: &Path, contents: &dyn Contents, id: packfs_core::ContentId, len: u64) {
    let file = fs::File::create(host).unwrap_or_else(|e| panic!("{host:?}: {e}"));
    file.set_len(len).unwrap();
    let mut reader = contents.open(id).unwrap();
    let mut offset = 0;
    let mut buf = vec![0; 1 << 16];
    while let Some(data) = reader.next_data(offset).unwrap() {
        offset = data.start;
        while offset < data.end {
            let part = &mut buf[..(data.end - offset).min(1 << 16) as usize];
            reader.read_exact_at(offset, part).unwrap();
            if part.iter().any(|&b| b != 0) {
                file.write_all_at(part, offset).unwrap();
            }
            offset += part.len() as u64;
        }
    }
}

fn make_node(host: &Path, kind: HostType, number: DeviceNumber) {
    let device = rustix::fs::makedev(number.major, number.minor);
    rustix::fs::mknodat(CWD, host, kind, Mode::from_raw_mode(0o600), device)
        .unwrap_or_else(|e| panic!("{host:?}: {e}"));
}

fn finish(host: &Path, tree: &Tree, id: packfs_core::NodeId) {
    let node = tree.node(id);
    if !matches!(node.kind, NodeKind::Symlink(_)) {
        fs::set_permissions(host, fs::Permissions::from_mode(u32::from(node.meta.mode))).unwrap();
    }
    let time = Timespec { tv_sec: node.meta.mtime.seconds, tv_nsec: i64::from(node.meta.mtime.nanos) };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, host, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}
