//! Trees of odd things: what real trees rarely hold, and what tools of this kind get wrong.

use crate::Random;
use packfs_core::{
    ContentId, DeviceNumber, Held, ImagePath, Meta, NodeKind, Owner, Timestamp, Tree, TreeBuilder, Xattrs,
};

struct Builder {
    tree: TreeBuilder,
    contents: Held,
    random: Random,
    /// Counts entries, so that each has another owner, mode and time.
    count: u32,
    /// Added to every mode: others than root must be able to read what they made.
    mode_min: u16,
}

impl Builder {
    fn new() -> Self {
        let meta = Meta { mode: 0o755, mtime: Timestamp::from_seconds(1_600_000_000), ..Meta::default() };
        let tree = TreeBuilder::new(meta);
        Builder { tree, contents: Held::default(), random: Random::new(1), count: 0, mode_min: 0 }
    }

    fn add(&mut self, path: impl AsRef<[u8]>, kind: NodeKind, xattrs: Xattrs) {
        self.count += 1;
        let meta = Meta {
            mode: [0o644, 0o755, 0o600, 0o4755, 0o2755, 0o1777, 0o000, 0o7777][self.count as usize % 8]
                | self.mode_min,
            owner: Owner { uid: self.count % 5 * 1000, gid: self.count % 3 * 100 },
            mtime: Timestamp::from_seconds(1_500_000_000 + i64::from(self.count) * 1001),
        };
        self.tree.add(&ImagePath::parse(path.as_ref()).unwrap(), kind, meta, xattrs).unwrap();
    }

    fn file(&mut self, path: impl AsRef<[u8]>, bytes: Vec<u8>) {
        let kind = self.content(bytes);
        self.add(path, kind, Xattrs::new());
    }

    fn content(&mut self, bytes: Vec<u8>) -> NodeKind {
        NodeKind::File { len: bytes.len() as u64, content: self.contents.push(bytes) }
    }

    fn link(&mut self, path: &str, target: &str) {
        let parse = |text: &str| ImagePath::parse(text.as_bytes()).unwrap();
        self.tree.link(&parse(path), parse(target)).unwrap();
    }
}

/// A small tree with little that is odd: a few directories, files below and above any block size,
/// one with a hole, a symlink.
pub fn plain_tree() -> (Tree, Held) {
    let mut b = Builder::new();
    for dir in 0..3 {
        for file in 0..20 {
            let bytes = b.random.text(100 + file * 777);
            b.file(format!("dir{dir}/file{file}"), bytes);
        }
    }
    let (text, noise) = (b.random.text(1_500_000), b.random.noise(300_000));
    let sparse = [&text[..200_000], &vec![0; 300_000], &text[..100_001]].concat();
    b.file("sparse.txt", sparse);
    b.file("large.txt", text);
    b.file("noise.bin", noise);
    b.add("link", NodeKind::Symlink(b"dir0/file1".as_slice().into()), Xattrs::new());
    (b.tree.finish().unwrap(), b.contents)
}

/// A tree of odd things around blocks of `block_len` bytes. `devices_and_trusted` adds what only
/// root can create on a host.
pub fn odd_tree(block_len: usize, devices_and_trusted: bool) -> (Tree, Held) {
    let mut b = Builder::new();
    b.mode_min = if devices_and_trusted { 0 } else { 0o500 };
    sizes(&mut b, block_len);
    holes(&mut b, block_len);
    names(&mut b);
    links(&mut b, block_len);
    xattrs(&mut b, devices_and_trusted);
    b.add("fifo", NodeKind::Fifo, Xattrs::new());
    b.add("socket", NodeKind::Socket, Xattrs::new());
    if devices_and_trusted {
        for (major, minor) in [(1, 3), (8, 255), (8, 256), (259, 0xf_ffff), (0, 0), (0xfff, 1)] {
            let number = DeviceNumber { major, minor };
            b.add(format!("dev/block-{major}-{minor}"), NodeKind::BlockDevice(number), Xattrs::new());
            b.add(format!("dev/char-{major}-{minor}"), NodeKind::CharDevice(number), Xattrs::new());
        }
    }
    b.add("empty-dir", NodeKind::Directory, Xattrs::new());
    (b.tree.finish().unwrap(), b.contents)
}

/// Lengths around every boundary, of text and of noise, and the same ones again as duplicates.
fn sizes(b: &mut Builder, block_len: usize) {
    let lens = [0, 1, 2, 3, 511, 512, 4095, 4096, 4097, block_len - 1, block_len, block_len + 1];
    let more = [2 * block_len - 1, 2 * block_len, 3 * block_len + 17];
    for len in lens.into_iter().chain(more) {
        let (text, noise) = (b.random.text(len), b.random.noise(len));
        b.file(format!("sizes/text-{len}"), text.clone());
        b.file(format!("sizes/noise-{len}"), noise);
        b.file(format!("sizes/again-{len}"), text.clone());
        // The same beginning, another end: no duplicate.
        if let Some((last, rest)) = text.split_last() {
            b.file(format!("sizes/nearly-{len}"), [rest, &[last ^ 1]].concat());
        }
    }
}

fn holes(b: &mut Builder, block_len: usize) {
    let data = b.random.text(block_len);
    let zeros = vec![0; block_len];
    b.file("holes/all", vec![0; 3 * block_len]);
    b.file("holes/all-and-a-bit", vec![0; 3 * block_len + 5]);
    b.file("holes/small-zeros", vec![0; 100]);
    b.file("holes/middle", [&data[..], &zeros, &zeros, &data].concat());
    b.file("holes/start", [&zeros[..], &data].concat());
    b.file("holes/end", [&data[..], &zeros, &zeros[..7]].concat());
}

fn names(b: &mut Builder) {
    for byte in (1..=255).filter(|byte| *byte != b'/' && *byte != b'.') {
        b.file([b"names/".as_slice(), &[byte]].concat(), vec![byte]);
    }
    b.file([b"names/".as_slice(), &[b'n'; 255]].concat(), b"long name".to_vec());
    b.file("names/new\nline \x1b[31m", b"control".to_vec());
    b.file(b"names/not-utf8-\xff\xfe", b"bytes".to_vec());
    // Large enough for a directory index with several entries and for more than one metadata block
    // of inodes.
    for index in 0..3000 {
        b.file(format!("many/a-rather-long-name-to-fill-blocks-{index:05}"), format!("{index}").into_bytes());
    }
    for depth in 1..40 {
        b.file(format!("deep{}/file", "/d".repeat(depth)), vec![depth as u8]);
    }
    for len in [1, 100, 4000, 4095] {
        b.add(format!("symlinks/{len}"), NodeKind::Symlink(vec![b'x'; len].into()), Xattrs::new());
    }
    b.add("symlinks/up", NodeKind::Symlink(b"../../../etc/passwd".as_slice().into()), Xattrs::new());
}

fn links(b: &mut Builder, block_len: usize) {
    let bytes = b.random.text(block_len + 100);
    b.file("links/z-target", bytes);
    for index in 0..300 {
        b.link(&format!("links/{index:03}"), "links/z-target");
    }
    b.add("links/fifo", NodeKind::Fifo, Xattrs::new());
    b.link("links/same-fifo", "links/fifo");
    b.add("links/symlink", NodeKind::Symlink(b"fifo".as_slice().into()), Xattrs::new());
    b.link("links/same-symlink", "links/symlink");
    b.link("names/link-to-elsewhere", "links/z-target");
}

fn xattrs(b: &mut Builder, trusted: bool) {
    // `user` attributes are for files and directories; others can stand on anything.
    let prefix = if trusted { "trusted" } else { "user" };
    let set = |pairs: &[(&str, Vec<u8>)]| -> Xattrs {
        pairs.iter().map(|(name, value)| (format!("{prefix}.{name}").into_bytes(), value.clone())).collect()
    };
    let long = b.random.noise(3000);
    let kind = b.content(b"x".to_vec());
    b.add(
        "xattrs/several",
        kind,
        set(&[("a", b"1".to_vec()), ("empty", vec![]), ("binary", vec![0, 10, 255])]),
    );
    for index in 0..5 {
        let kind = b.content(vec![index; 3]);
        b.add(format!("xattrs/shared-{index}"), kind, set(&[("label", b"the same for all".to_vec())]));
        let kind = b.content(vec![index; 4]);
        let own = format!("own-{index}").into_bytes();
        b.add(format!("xattrs/long-value-{index}"), kind, set(&[("long", long.clone()), ("own", own)]));
    }
    b.add("xattrs/dir", NodeKind::Directory, set(&[("on", b"a directory".to_vec())]));
    if trusted {
        b.add(
            "xattrs/symlink",
            NodeKind::Symlink(b"dir".as_slice().into()),
            set(&[("on", b"a symlink".to_vec())]),
        );
        b.add("xattrs/fifo", NodeKind::Fifo, set(&[("on", b"a fifo".to_vec())]));
        let device = NodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 });
        b.add("xattrs/device", device, set(&[("on", b"a device".to_vec())]));
        b.add("xattrs/socket", NodeKind::Socket, set(&[("on", b"a socket".to_vec())]));
        let kind = b.content(b"capable".to_vec());
        // cap_net_raw+ep, revision 2, as the kernel stores it.
        let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
        b.add("xattrs/capability", kind, Xattrs::from([(b"security.capability".to_vec(), capability)]));
    }
    let many = (0..40).map(|index| (format!("{prefix}.n{index}").into_bytes(), vec![b'v'; index])).collect();
    let kind = NodeKind::File { len: 0, content: ContentId(0) };
    b.add("xattrs/many", kind, many);
}
