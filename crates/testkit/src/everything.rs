//! A tree of everything that a file system of Linux can hold, each fact in a directory of its own,
//! and what is to be compared of it: the rows of a table that tells what survives where.

use crate::Random;
use packfs_core::{
    ContentId, ContentReader, Contents, DeviceNumber, Error, ImagePath, Meta, NodeKind, Owner, Result,
    Timestamp, Tree, TreeBuilder, Xattrs,
};
use std::ops::Range;

/// A compared property of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// That it is there, and its type.
    Type,
    /// Permissions.
    Mode,
    /// User and group.
    Owner,
    /// The time, without fractions.
    Seconds,
    /// Fractions of it.
    Fraction,
    /// Length and contents, or the target.
    Content,
    /// The device number.
    Device,
    /// Extended attributes.
    Xattrs,
    /// Names that are one file, and their number.
    Links,
    /// That holes take no space.
    Holes,
}

impl Field {
    /// All of them.
    pub const ALL: [Field; 10] = [
        Field::Type,
        Field::Mode,
        Field::Owner,
        Field::Seconds,
        Field::Fraction,
        Field::Content,
        Field::Device,
        Field::Xattrs,
        Field::Links,
        Field::Holes,
    ];
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Its name.
    pub name: &'static str,
    /// It is what is below this directory.
    pub under: &'static str,
    /// The property compared there.
    pub field: Field,
    /// Words that the packer says of it, where it cannot be held.
    pub loss: Option<&'static str>,
}

const fn fact(name: &'static str, under: &'static str, field: Field) -> Fact {
    Fact { name, under, field, loss: None }
}

const fn lossy(name: &'static str, under: &'static str, field: Field, loss: &'static str) -> Fact {
    Fact { name, under, field, loss: Some(loss) }
}

const FACTS: &[Fact] = &[
    lossy("all seven types, each linked to again", "types", Field::Type, "sockets"),
    fact("device numbers of 12 and 20 bits", "devices", Field::Device),
    fact("set-id and sticky bits, permissions", "modes", Field::Mode),
    fact("users and groups up to 4294967294", "ids", Field::Owner),
    fact("times from 1970 to 2106", "times/whole", Field::Seconds),
    lossy("times before 1970", "times/before-1970", Field::Seconds, "before 1970"),
    lossy("times after 2106", "times/after-2106", Field::Seconds, "after 2106"),
    lossy("fractions of a second", "times/fractions", Field::Fraction, "fractions"),
    fact("lengths around every boundary: text, noise, duplicates", "sizes", Field::Content),
    fact("contents around holes", "holes", Field::Content),
    fact("holes take no space", "holes", Field::Holes),
    fact("a file of 100 GB with 16 islands of data", "huge", Field::Content),
    fact("which takes no more space than these", "huge", Field::Holes),
    fact("xattrs: user, trusted, security; empty, binary", "xattrs/plain", Field::Xattrs),
    fact("xattrs on every type", "xattrs/types", Field::Xattrs),
    fact("300 xattrs of one file, names of 255 bytes", "xattrs/many", Field::Xattrs),
    fact("xattr of 65,535 bytes", "xattrs/65535", Field::Xattrs),
    lossy("xattr of 65,536 bytes", "xattrs/65536", Field::Xattrs, "more than 65,535 bytes"),
    fact("capabilities", "xattrs/capability", Field::Xattrs),
    lossy("access ACLs and default ACLs", "xattrs/acl", Field::Xattrs, "ACLs"),
    fact("1,000 names of one file; links to all other types", "links", Field::Links),
    fact("names: every byte, 255 bytes, not UTF-8, controls", "names", Field::Type),
    fact("100,000 names in a directory", "many", Field::Links),
    fact("targets up to 4,095 bytes", "targets", Field::Content),
    fact("paths beyond PATH_MAX, 1,000 levels", "deep", Field::Content),
    fact("the root's own mode, owner and xattrs", "", Field::Xattrs),
];

/// Files of few bytes among holes, however long.
#[derive(Default)]
pub struct SparseFiles(Vec<Sparse>);

struct Sparse {
    len: u64,
    runs: Vec<(u64, Vec<u8>)>,
}

impl SparseFiles {
    /// Keeps a file of zeros with these bytes in it, each run with where it starts, in rising
    /// order; returns its id.
    pub fn push(&mut self, len: u64, runs: Vec<(u64, Vec<u8>)>) -> ContentId {
        self.0.push(Sparse { len, runs });
        ContentId(self.0.len() as u64 - 1)
    }
}

impl Contents for SparseFiles {
    fn open(&self, id: ContentId) -> Result<Box<dyn ContentReader + '_>> {
        let file = self.0.get(id.0 as usize).ok_or_else(|| Error::failed("no such contents"))?;
        Ok(Box::new(file))
    }
}

impl ContentReader for &Sparse {
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset + buf.len() as u64 > self.len {
            return Err(Error::failed("contents end early"));
        }
        buf.fill(0);
        for (start, bytes) in &self.runs {
            let from = offset.max(*start);
            let until = (offset + buf.len() as u64).min(start + bytes.len() as u64);
            if from < until {
                let part = &bytes[(from - start) as usize..(until - start) as usize];
                buf[(from - offset) as usize..(until - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn next_data(&mut self, offset: u64) -> Result<Option<Range<u64>>> {
        let ends = self.runs.iter().map(|(start, bytes)| *start..start + bytes.len() as u64);
        Ok(ends.filter(|run| run.end > offset).map(|run| run.start.max(offset)..run.end).next())
    }
}

struct Builder {
    tree: TreeBuilder,
    files: SparseFiles,
    random: Random,
}

const TIME: Timestamp = Timestamp { seconds: 1_500_000_000, nanos: 0 };
const META: Meta = Meta { mode: 0o644, owner: Owner { uid: 0, gid: 0 }, mtime: TIME };
const DIR_META: Meta = Meta { mode: 0o755, ..META };

fn path(bytes: impl AsRef<[u8]>) -> ImagePath {
    ImagePath::parse(bytes.as_ref()).unwrap()
}

impl Builder {
    fn add(&mut self, at: impl AsRef<[u8]>, kind: NodeKind, meta: Meta, xattrs: Xattrs) {
        self.tree.add(&path(at), kind, meta, xattrs).unwrap();
    }

    fn dir(&mut self, at: impl AsRef<[u8]>) {
        self.add(at, NodeKind::Directory, DIR_META, Xattrs::new());
    }

    fn content(&mut self, len: u64, runs: Vec<(u64, Vec<u8>)>) -> NodeKind {
        NodeKind::File { len, content: self.files.push(len, runs) }
    }

    fn file(&mut self, at: impl AsRef<[u8]>, bytes: Vec<u8>, meta: Meta, xattrs: Xattrs) {
        let runs = if bytes.is_empty() { Vec::new() } else { vec![(0, bytes.clone())] };
        let kind = self.content(bytes.len() as u64, runs);
        self.add(at, kind, meta, xattrs);
    }

    fn plain(&mut self, at: impl AsRef<[u8]>, bytes: Vec<u8>) {
        self.file(at, bytes, META, Xattrs::new());
    }

    fn link(&mut self, at: impl AsRef<[u8]>, target: impl AsRef<[u8]>) {
        self.tree.link(&path(at), path(target)).unwrap();
    }

    /// One of each type but directories and files.
    fn special(&mut self, dir: &str, xattrs: &Xattrs) {
        let number = DeviceNumber { major: 7, minor: 9 };
        for (name, kind) in [
            ("symlink", NodeKind::Symlink(b"nowhere".as_slice().into())),
            ("fifo", NodeKind::Fifo),
            ("socket", NodeKind::Socket),
            ("block", NodeKind::BlockDevice(number)),
            ("char", NodeKind::CharDevice(number)),
        ] {
            self.add(format!("{dir}/{name}"), kind, META, xattrs.clone());
        }
    }
}

/// A tree of everything, its contents, and what there is to tell of it. Only root can make a host's
/// directory of it.
pub fn everything() -> (Tree, SparseFiles, &'static [Fact]) {
    let root = Meta { mode: 0o2751, owner: Owner { uid: 77, gid: 88 }, mtime: TIME };
    let mut builder =
        Builder { tree: TreeBuilder::new(root), files: SparseFiles::default(), random: Random::new(1970) };
    let b = &mut builder;
    b.add("", NodeKind::Directory, root, Xattrs::from([(b"user.root".to_vec(), b"of it all".to_vec())]));
    types(b);
    metadata(b);
    contents(b);
    attributes(b);
    names(b);
    (builder.tree.finish().unwrap(), builder.files, FACTS)
}

fn types(b: &mut Builder) {
    for dir in ["types", "types/directory", "devices", "links"] {
        b.dir(dir);
    }
    b.plain("types/file", b"file".to_vec());
    b.special("types", &Xattrs::new());
    for (major, minor) in [(0, 0), (1, 3), (8, 255), (8, 256), (259, 0xf_ffff), (0xfff, 1)] {
        let number = DeviceNumber { major, minor };
        b.add(format!("devices/b{major}-{minor}"), NodeKind::BlockDevice(number), META, Xattrs::new());
        b.add(format!("devices/c{major}-{minor}"), NodeKind::CharDevice(number), META, Xattrs::new());
    }
    let text = b.random.text(5000);
    b.plain("links/0000", text);
    for index in 1..1000 {
        b.link(format!("links/{index:04}"), "links/0000");
    }
    b.special("links", &Xattrs::new());
    for name in ["symlink", "fifo", "block", "char"] {
        b.link(format!("links/same-{name}"), format!("links/{name}"));
    }
}

fn metadata(b: &mut Builder) {
    for dir in
        ["modes", "ids", "times", "times/whole", "times/before-1970", "times/after-2106", "times/fractions"]
    {
        b.dir(dir);
    }
    for special in 0..8 {
        for permissions in [0, 0o7, 0o70, 0o111, 0o444, 0o700, 0o755, 0o777] {
            let mode = special << 9 | permissions;
            b.file(format!("modes/{mode:04o}"), Vec::new(), Meta { mode, ..META }, Xattrs::new());
            let meta = Meta { mode, ..META };
            b.add(format!("modes/dir-{mode:04o}"), NodeKind::Directory, meta, Xattrs::new());
        }
    }
    let ids = [0, 1, 65_534, 65_535, 65_536, i32::MAX as u32, 1 << 31, u32::MAX - 1];
    for (index, uid) in ids.into_iter().enumerate() {
        let owner = Owner { uid, gid: ids[ids.len() - 1 - index] };
        b.file(format!("ids/{uid}"), Vec::new(), Meta { owner, ..META }, Xattrs::new());
    }
    let last = i64::from(u32::MAX);
    for (dir, seconds) in [
        ("whole", [0, 1, i64::from(i32::MAX), 1 << 31, last].as_slice()),
        ("before-1970", &[-1, -(1 << 31), -10_000_000_000]),
        ("after-2106", &[last + 1, 1 << 34, 100_000_000_000]),
    ] {
        for &seconds in seconds {
            let meta = Meta { mtime: Timestamp::from_seconds(seconds), ..META };
            b.file(format!("times/{dir}/{seconds}"), Vec::new(), meta, Xattrs::new());
        }
    }
    for nanos in [1, 500_000_000, 999_999_999] {
        let meta = Meta { mtime: Timestamp { nanos, ..TIME }, ..META };
        b.file(format!("times/fractions/{nanos}"), Vec::new(), meta, Xattrs::new());
    }
}

fn contents(b: &mut Builder) {
    for dir in ["sizes", "holes", "huge"] {
        b.dir(dir);
    }
    for unit in [512, 4096, 65_536, 131_072, 1 << 20] {
        for len in [unit - 1, unit, unit + 1, 2 * unit + 17] {
            let (text, noise) = (b.random.text(len), b.random.noise(len));
            b.plain(format!("sizes/again-{len}"), text.clone());
            b.plain(format!("sizes/text-{len}"), text);
            b.plain(format!("sizes/noise-{len}"), noise);
        }
    }
    for len in [0, 1, 2, 3] {
        b.plain(format!("sizes/{len}"), vec![b'x'; len]);
    }
    // Longer than anything that is stored without looking for holes.
    const HOLE: u64 = 3 << 20;
    let data = b.random.text(100_000);
    let len = data.len() as u64;
    for (name, file_len, starts) in [
        ("all", HOLE, vec![]),
        ("all-and-a-bit", HOLE + 5, vec![]),
        ("start", HOLE + len, vec![HOLE]),
        ("end", HOLE, vec![0]),
        ("middle", HOLE + len, vec![0, HOLE]),
        ("odd-places", 3 * HOLE + 1, vec![4097, HOLE - 1, 2 * HOLE + 12_345]),
    ] {
        let kind = b.content(file_len, starts.into_iter().map(|start| (start, data.clone())).collect());
        b.add(format!("holes/{name}"), kind, META, Xattrs::new());
    }
    // Where a snapshot takes its samples, and beside that.
    let len: u64 = 100_000_000_000;
    let step = (len - (1 << 16)) / 15;
    let island = |index: u64| (index * step + if index % 3 == 1 { 70_001 } else { 0 }, b.random.text(3000));
    let runs = (0..16).map(island).map(|(start, bytes)| (start.min(len - 3000), bytes)).collect();
    let kind = b.content(len, runs);
    b.add("huge/100-gb", kind, META, Xattrs::new());
}

fn attributes(b: &mut Builder) {
    for dir in ["", "/plain", "/types", "/many", "/65535", "/65536", "/capability", "/acl"] {
        b.dir(format!("xattrs{dir}"));
    }
    let one = |name: &str, value: Vec<u8>| Xattrs::from([(name.as_bytes().to_vec(), value)]);
    for (index, prefix) in ["user", "trusted", "security"].into_iter().enumerate() {
        for (name, value) in [("empty", vec![]), ("text", b"value".to_vec()), ("binary", vec![0, 255, 10, 0])]
        {
            let name = format!("{prefix}.{name}");
            b.file(format!("xattrs/plain/{name}"), vec![index as u8; 9], META, one(&name, value));
        }
    }
    b.special("xattrs/types", &one("trusted.on", b"anything".to_vec()));
    b.add(
        "xattrs/types/directory",
        NodeKind::Directory,
        DIR_META,
        one("trusted.on", b"a directory".to_vec()),
    );
    let many = (0..300).map(|index| (format!("user.n{index}").into_bytes(), vec![b'v'; index % 90]));
    b.file("xattrs/many/300", b"300".to_vec(), META, many.collect());
    let long = format!("user.{}", "n".repeat(250));
    b.file("xattrs/many/long-name", b"long".to_vec(), META, one(&long, b"1".to_vec()));
    for len in [65_535, 65_536] {
        let value = b.random.noise(len);
        b.file(format!("xattrs/{len}/file"), b"x".to_vec(), META, one("user.long", value));
    }
    // cap_net_raw+ep, revision 2, as the kernel stores it.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
    b.file("xattrs/capability/file", b"capable".to_vec(), DIR_META, one("security.capability", capability));
    let acl =
        acl(&[(1, 6, u32::MAX), (2, 4, 1000), (4, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 4, u32::MAX)]);
    let meta = Meta { mode: 0o664, ..META };
    b.file("xattrs/acl/access", b"acl".to_vec(), meta, one("system.posix_acl_access", acl.clone()));
    b.add("xattrs/acl/default", NodeKind::Directory, DIR_META, one("system.posix_acl_default", acl));
}

/// An ACL as attributes hold it: tags, permissions and ids after the version.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

fn names(b: &mut Builder) {
    for dir in ["names", "many", "targets", "deep"] {
        b.dir(dir);
    }
    for byte in (1..=255).filter(|byte| *byte != b'/' && *byte != b'.') {
        b.plain([b"names/".as_slice(), &[byte]].concat(), vec![byte]);
    }
    for name in
        [&[b'n'; 255][..], b"new\nline \x1b[31m", b"not-utf8-\xff\xfe", b"...", b" ", "\u{202e}".as_bytes()]
    {
        if name.len() > 1 {
            b.plain([b"names/".as_slice(), name].concat(), b"named".to_vec());
        }
    }
    for index in 0..100_000 {
        let name = format!("many/{index:05}-of-a-hundred-thousand");
        match index % 1000 {
            0 => b.plain(name, format!("{index}").into_bytes()),
            _ => b.link(name, format!("many/{:05}-of-a-hundred-thousand", index / 1000 * 1000)),
        }
    }
    for len in [1, 60, 255, 256, 4000, 4095] {
        let target = NodeKind::Symlink(vec![b't'; len].into());
        b.add(format!("targets/{len}"), target, META, Xattrs::new());
    }
    for (part, levels) in [("d".repeat(250), 40), ("d".to_owned(), 1000)] {
        let mut at = format!("deep/{levels}");
        b.dir(&at);
        for _ in 0..levels {
            at = format!("{at}/{part}");
            b.dir(&at);
        }
        b.plain(format!("{at}/file"), at.into_bytes());
    }
}
