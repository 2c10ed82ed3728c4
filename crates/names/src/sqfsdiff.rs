//! sqfsdiff of squashfs-tools-ng 1.3.

use crate::common::parse::{Given, Row, Style, Takes, acts, parse};
use crate::common::teller::{Form, Teller};
use crate::gensquashfs::answered;
use crate::rdsquashfs::open_at;
use packfs::check::{self, Change, DiffOptions, Side};
use packfs::read::LoadedVolume;
use packfs::{Error, ImagePath, NodeId, NodeKind, Opened, Result, ResultExt};
use packfs_terminal::{Outcome, report};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("--old -a", Takes::One),
    acts("--new -b", Takes::One),
    acts("--no-contents -C", Takes::Nothing),
    acts("--no-owner -O", Takes::Nothing),
    acts("--no-permissions -P", Takes::Nothing),
    acts("--timestamps -T", Takes::Nothing),
    acts("--inode-num -I", Takes::Nothing),
    acts("--super -S", Takes::Nothing),
    acts("--extract -e", Takes::One),
    acts("--help -h", Takes::Nothing),
    acts("--version -V", Takes::Nothing),
];

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if answered("sqfsdiff", &given, &[ROWS])? {
        return Ok(ExitCode::SUCCESS);
    }
    let (Some(old), Some(new)) = (given.last("--old"), given.last("--new")) else {
        return Err(Error::usage("missing argument: --old and --new name the two images"));
    };
    let teller = Teller::new(Form::Silent);
    let sides = [("old", old), ("new", new)];
    let [old, new] = sides.map(|(name, image)| {
        let opened = open_at(image)?;
        let loaded = opened.load(&teller)?;
        Ok::<_, Error>(Of { name, opened, loaded })
    });
    let (old, new) = (old?, new?);
    let mut comparison = Comparison { given: &given, old, new, changed: HashSet::new(), text: Vec::new() };
    comparison.changed = comparison.changed_files(&teller)?;
    let mut differs = comparison.trees()?;
    if !differs && given.has("--super") {
        differs = comparison.superblocks()?;
    }
    report::stdout_bytes()?.write_all(&comparison.text).or_io(report::cannot_write)?;
    Ok(ExitCode::from(u8::from(differs)))
}

struct Of {
    name: &'static str,
    opened: Opened,
    loaded: LoadedVolume,
}

impl Of {
    fn names(&self, id: NodeId) -> BTreeSet<Vec<u8>> {
        self.loaded.tree.entries(id).map(|entry| entry.name.to_vec()).collect()
    }

    fn number(&self, id: NodeId) -> Result<u64> {
        let inode = self.loaded.inodes.get(id.index()).copied();
        let inode = inode.ok_or_else(|| Error::failed("a file without an inode"))?;
        Ok(self.opened.volume().inode(inode)?.number)
    }

    /// True if the inode stores attributes or a link count.
    fn is_extended(&self, id: NodeId) -> bool {
        let node = self.loaded.tree.node(id);
        !self.loaded.tree.xattrs(node.xattrs).is_empty()
            || matches!(node.kind, NodeKind::File { .. }) && node.links > 1
    }
}

struct Comparison<'a> {
    given: &'a Given,
    old: Of,
    new: Of,
    changed: HashSet<ImagePath>,
    text: Vec<u8>,
}

impl Comparison<'_> {
    fn changed_files(&self, teller: &Teller) -> Result<HashSet<ImagePath>> {
        let options = DiffOptions {
            contents: !self.given.has("--no-contents"),
            owners: false,
            modes: false,
            times: false,
            nanos: false,
            xattrs: false,
            links: false,
            jobs: 0,
        };
        let [old, new] =
            [&self.old, &self.new].map(|of| Side { tree: &of.loaded.tree, contents: &**of.opened.engine() });
        let mut changed = HashSet::new();
        check::diff(old, new, options, teller, &mut |difference| {
            if matches!(difference.change, Change::Len(..) | Change::Contents(_)) {
                changed.insert(difference.path.clone());
            }
        })?;
        Ok(changed)
    }

    fn line(&mut self, parts: &[&[u8]]) {
        self.text.extend(parts.concat());
        self.text.push(b'\n');
    }

    /// Directories come first; returns true if something differs.
    fn trees(&mut self) -> Result<bool> {
        let mut open = vec![(ImagePath::root(), NodeId::ROOT, NodeId::ROOT)];
        let mut differs = false;
        while let Some((path, old, new)) = open.pop() {
            differs |= self.nodes(&path, old, new)?;
            let are_dirs = self.old.loaded.tree.node(old).is_dir() && self.new.loaded.tree.node(new).is_dir();
            if !are_dirs {
                continue;
            }
            let (olds, news) = (self.old.names(old), self.new.names(new));
            for name in olds.union(&news).filter(|name| !(olds.contains(*name) && news.contains(*name))) {
                differs = true;
                self.omitted(&joined(&path, name)?, olds.contains(name))?;
            }
            let both: Vec<&Vec<u8>> = olds.intersection(&news).collect();
            for name in both.into_iter().rev() {
                let path = joined(&path, name)?;
                let found = (self.old.loaded.tree.find(&path), self.new.loaded.tree.find(&path));
                if let (Some(old), Some(new)) = found {
                    open.push((path, old, new));
                }
            }
        }
        Ok(differs)
    }

    /// Includes everything below.
    fn omitted(&mut self, top: &ImagePath, is_old: bool) -> Result<()> {
        let of = if is_old { &self.old } else { &self.new };
        let tree = &of.loaded.tree;
        let (mut walk, mut found) = (tree.walk(), Vec::new());
        while let Some((path, id)) = walk.next() {
            if path.starts_with(top) {
                found.push((path.clone(), matches!(tree.node(id).kind, NodeKind::File { .. })));
            }
        }
        for (path, is_file) in found {
            self.line(&[if is_old { b"< " } else { b"> " }, path.as_bytes()]);
            if is_file {
                self.extract(&path, is_old, !is_old)?;
            }
        }
        Ok(())
    }

    fn nodes(&mut self, path: &ImagePath, old: NodeId, new: NodeId) -> Result<bool> {
        let (a, b) = (self.old.loaded.tree.node(old), self.new.loaded.tree.node(new));
        let mut found: Vec<&str> = Vec::new();
        if a.kind.file_type() != b.kind.file_type() {
            self.line(&[b"/", path.as_bytes(), b" has a different type"]);
            return Ok(true);
        }
        match (self.old.is_extended(old), self.new.is_extended(new)) {
            (false, true) => found.push("has an extended type"),
            (true, false) => found.push("has a basic type"),
            _ => {}
        }
        if a.meta.mode != b.meta.mode && !self.given.has("--no-permissions") {
            found.push("has different permissions");
        }
        if a.meta.owner != b.meta.owner && !self.given.has("--no-owner") {
            found.push("has different ownership");
        }
        if a.meta.mtime != b.meta.mtime && self.given.has("--timestamps") {
            found.push("has a different timestamp");
        }
        if self.given.has("--inode-num") && self.old.number(old)? != self.new.number(new)? {
            found.push("has a different inode number");
        }
        match (&a.kind, &b.kind) {
            (NodeKind::Symlink(a), NodeKind::Symlink(b)) if a != b => {
                found.push("has a different link target");
            }
            (NodeKind::BlockDevice(a), NodeKind::BlockDevice(b))
            | (NodeKind::CharDevice(a), NodeKind::CharDevice(b))
                if a != b =>
            {
                found.push("has different device number");
            }
            _ => {}
        }
        let is_changed = self.changed.contains(path);
        let differs = is_changed || !found.is_empty();
        for words in found {
            self.line(&[b"/", path.as_bytes(), b" ", words.as_bytes()]);
        }
        if is_changed {
            self.extract(path, true, true)?;
            self.line(&[b"regular file /", path.as_bytes(), b" differs"]);
        }
        Ok(differs)
    }

    fn extract(&self, path: &ImagePath, of_old: bool, of_new: bool) -> Result<()> {
        let Some(folder) = self.given.last("--extract").map(Path::new) else { return Ok(()) };
        for (of, is_wanted) in [(&self.old, of_old), (&self.new, of_new)] {
            if !is_wanted {
                continue;
            }
            // Names are valid: none is `..` or contains a slash.
            let file = folder.join(of.name).join(std::ffi::OsStr::from_bytes(path.as_bytes()));
            let cannot = || format!("cannot write {file:?}");
            if let Some(above) = file.parent() {
                std::fs::create_dir_all(above).or_io(cannot)?;
            }
            let mut out = std::fs::File::create(&file).or_io(cannot)?;
            of.opened.copy_file(path, &mut out)?;
        }
        Ok(())
    }

    /// Returns true if they differ.
    fn superblocks(&mut self) -> Result<bool> {
        let (mut old, mut new) = ([0; 96], [0; 96]);
        self.old.opened.image().read_exact_at(0, &mut old)?;
        self.new.opened.image().read_exact_at(0, &mut new)?;
        if old == new {
            return Ok(false);
        }
        self.text.extend(superblock_lines(&old, &new).bytes());
        Ok(true)
    }
}

fn joined(path: &ImagePath, name: &[u8]) -> Result<ImagePath> {
    let mut path = path.clone();
    path.push(packfs::Name::new(name).map_err(Error::usage)?);
    Ok(path)
}

/// Fields of `squashfs_fs.h`: name, offset, length.
const FIGURES: [(&str, usize, usize); 6] = [
    ("inode count", 4, 4),
    ("modification time", 8, 4),
    ("block size", 12, 4),
    ("block log", 22, 2),
    ("fragment table entries", 16, 4),
    ("ID table entries", 26, 2),
];
const LOCATIONS: [(&str, usize); 7] = [
    ("root inode", 32),
    ("ID table", 48),
    ("xattr ID table", 56),
    ("inode table", 64),
    ("directory table", 72),
    ("fragment table", 80),
    ("export table", 88),
];
const CODECS: [&str; 7] = ["none", "gzip", "lzma", "lzo", "xz", "lz4", "zstd"];
const FLAGS: [(u64, &str); 11] = [
    (1, "uncompressed inodes"),
    (1 << 1, "uncompressed data"),
    (1 << 3, "uncompressed fragments"),
    (1 << 4, "no fragments"),
    (1 << 5, "always fragments"),
    (1 << 6, "no duplicates"),
    (1 << 7, "exportable"),
    (1 << 8, "uncompressed xattrs"),
    (1 << 9, "no xattrs"),
    (1 << 10, "compressor options"),
    (1 << 11, "uncompressed ids"),
];

fn superblock_lines(old: &[u8; 96], new: &[u8; 96]) -> String {
    let number = |bytes: &[u8; 96], at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let both = |at: usize, len: usize| (number(old, at, len), number(new, at, len));
    let figure = |name: &str, at: usize, len: usize| match both(at, len) {
        (a, b) if a < b => format!("{name}: +{}\n", b - a),
        (a, b) if a > b => format!("{name}: -{}\n", a - b),
        _ => String::new(),
    };
    let mut text = "======== super blocks are different ========\n".to_owned();
    for (name, at, len) in FIGURES {
        text += &figure(name, at, len);
    }
    let (a, b) = both(20, 2);
    if a != b {
        let name = |id: u64| usize::try_from(id).ok().and_then(|id| CODECS.get(id)).unwrap_or(&"unknown");
        text += &format!("compressor: {} vs {}\n", name(a), name(b));
    }
    let (a, b) = both(24, 2);
    if a != b {
        text += "flags:\n";
    }
    let sign = |mask: u64| if a & mask != 0 { '<' } else { '>' };
    for (mask, name) in FLAGS.iter().filter(|(mask, _)| (a ^ b) & mask != 0) {
        text += &format!("\t{}{name}\n", sign(*mask));
    }
    let known = FLAGS.iter().fold(0, |known, (mask, _)| known | mask);
    for mask in (0..16).map(|bit| 1 << bit).filter(|mask| (a ^ b) & mask & !known != 0) {
        text += &format!("\t{} additional unknown\n", sign(mask));
    }
    text += &figure("total bytes used", 40, 8);
    for (name, at) in LOCATIONS {
        if number(old, at, 8) != number(new, at, 8) {
            text += &format!("Location of {name} differs\n");
        }
    }
    text
}
