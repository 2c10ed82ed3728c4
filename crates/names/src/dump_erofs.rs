//! dump.erofs of erofs-utils 1.9.

use crate::common::parse::{Given, Row, Style, Takes, acts, parse};
use crate::common::usage;
use crate::common::when::Clock;
use crate::erofs::extents::{self, Index};
use crate::fsck_erofs::{open, path_of};
use crate::mkfs_erofs::EROFS_UTILS;
use packfs::{
    DirCursor, Error, FileType, ImagePath, InodeId, InodeKind, Opened, Result, ResultExt, uuid_text,
};
use packfs_terminal::{Outcome, report};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("-V --version", Takes::Nothing),
    acts("-h --help", Takes::Nothing),
    acts("-S", Takes::Nothing),
    acts("-e", Takes::Nothing),
    acts("-s", Takes::Nothing),
    acts("--blkid-udev", Takes::Nothing),
    acts("--device", Takes::One),
    acts("--ls", Takes::Nothing),
    acts("--cat", Takes::Nothing),
    acts("--nid", Takes::One),
    acts("--offset", Takes::One),
    acts("--path", Takes::One),
    acts("--no-sbcrc", Takes::Nothing),
];

/// Bit, name, and the Linux version that supports the feature.
const COMPATIBLE: [(u32, &str); 6] = [
    (1, "sb_csum"),
    (2, "mtime"),
    (4, "xattr_filter"),
    (8, "shared_ea_in_metabox"),
    (16, "plain_xattr_pfx"),
    (32, "ishare_xattrs"),
];

/// Bit, name, and the Linux version that supports the feature.
const INCOMPATIBLE: [(u32, &str, (u32, u32)); 11] = [
    (1, "lz4_0padding", (5, 4)),
    (2, "compr_cfgs", (5, 13)),
    (2, "big_pcluster", (5, 13)),
    (4, "chunked_file", (5, 15)),
    (8, "device_table", (5, 16)),
    (16, "ztailpacking", (5, 17)),
    (32, "fragments", (6, 1)),
    (32, "dedupe", (6, 1)),
    (64, "xattr_prefixes", (6, 4)),
    (128, "48bit", (6, 15)),
    (256, "metabox", (6, 17)),
];

/// Bit of `available_compr_algs`, name, and the Linux version that supports the compressor.
const COMPRESSORS: [(u16, &str, (u32, u32)); 4] =
    [(1, "lz4", (0, 0)), (2, "lzma", (5, 16)), (4, "deflate", (6, 6)), (8, "zstd", (6, 10))];

pub fn run(args: &[OsString]) -> Outcome {
    let given = parse(&[ROWS], Style::Getopt, args)?;
    if given.has("-V") {
        let version = env!("CARGO_PKG_VERSION");
        report::line(format_args!("dump.erofs (erofs-utils) {EROFS_UTILS} (packfs {version})"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        report::print(format_args!("Usage: dump.erofs [OPTIONS] IMAGE\n\n{}", usage::table(&[ROWS])))?;
        return Ok(ExitCode::SUCCESS);
    }
    let dump = Dump { opened: open(&given)? };
    let of_inode = given.has("--path") || given.has("--nid");
    if given.has("--blkid-udev") {
        dump.udev()?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-s") || !of_inode && !given.has("-S") {
        report::print(dump.superblock()?)?;
    }
    if given.has("-S") {
        report::print(dump.statistics()?)?;
    }
    if of_inode {
        dump.inode(&given)?;
    } else if given.has("-e") || given.has("--ls") || given.has("--cat") {
        return Err(Error::usage("missing --path or --nid"));
    }
    Ok(ExitCode::SUCCESS)
}

struct Dump {
    opened: Opened,
}

/// `struct erofs_super_block`.
struct Raw([u8; 144]);

impl Raw {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    fn uuid(&self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0[48..64]);
        uuid_text(&bytes)
    }

    fn is_48bit(&self) -> bool {
        self.u32(80) & 128 != 0
    }
}

struct RawInode {
    layout: u16,
    isize: u32,
    xattr_size: u32,
    stored: Option<u64>,
    /// `i_u`: the first block, the format of chunks, or the count of blocks.
    start: u64,
    behind: u64,
}

impl Dump {
    fn raw(&self) -> Result<Raw> {
        let mut bytes = [0; 144];
        self.opened.image().read_exact_at(1024, &mut bytes)?;
        Ok(Raw(bytes))
    }

    fn udev(&self) -> Result<()> {
        let raw = self.raw()?;
        let label = String::from_utf8_lossy(&raw.0[64..80]);
        let label = packfs::printable(label.trim_end_matches('\0'));
        if !label.is_empty() {
            report::line(format_args!("ID_FS_LABEL={label}\nID_FS_LABEL_ENC={label}"))?;
        }
        report::line(format_args!(
            "ID_FS_UUID={0}\nID_FS_UUID_ENC={0}\nID_FS_BLOCKSIZE={1}\nID_FS_TYPE=erofs\nID_FS_USAGE=filesystem",
            raw.uuid(),
            1_u32 << raw.0[12].min(16)
        ))
    }

    fn superblock(&self) -> Result<String> {
        let raw = self.raw()?;
        let (compat, incompat, algorithms) = (raw.u32(8), raw.u32(80), raw.u16(84));
        let root = if raw.is_48bit() { raw.u64(120) } else { u64::from(raw.u16(14)) };
        let mut lines = vec![
            ("magic number", "0xE0F5E1E2".to_owned()),
            ("blocksize", (1_u64 << raw.0[12].min(16)).to_string()),
            ("blocks", raw.u32(36).to_string()),
            ("inode metadata start block", raw.u32(40).to_string()),
            ("shared xattr metadata start block", raw.u32(44).to_string()),
            ("root nid", root.to_string()),
        ];
        if incompat & 32 != 0 && raw.u64(96) > 0 {
            lines.push(("packed nid", raw.u64(96).to_string()));
        }
        let mut needed = (0, 0);
        if incompat & 2 != 0 {
            let known = COMPRESSORS.iter().filter(|row| algorithms & row.0 != 0);
            needed = known.clone().map(|row| row.2).max().unwrap_or(needed);
            lines.push(("compr_algs", known.map(|row| row.1).collect::<Vec<_>>().join(", ")));
        } else {
            let distance = if algorithms == 0 { u16::MAX } else { algorithms };
            lines.push(("lz4_max_distance", distance.to_string()));
        }
        let seconds = i64::try_from(raw.u64(24)).unwrap_or(0);
        lines.push(("sb_size", (128 + u32::from(raw.0[13]) * 16).to_string()));
        lines.push(("inode count", raw.u64(16).to_string()));
        lines.push(("created", Clock::local().asctime(seconds)));
        let names = COMPATIBLE.iter().filter(|row| compat & row.0 != 0).map(|row| format!("{} ", row.1));
        lines.push(("compatible features", names.collect()));
        let found = INCOMPATIBLE.iter().filter(|row| incompat & row.0 != 0);
        needed = found.clone().map(|row| row.2).max().unwrap_or(needed).max(needed);
        lines.push(("incompatible features", found.map(|row| format!("{} ", row.1)).collect()));
        lines.push(("UUID", raw.uuid()));
        let lines = lines.into_iter().map(|(name, value)| (format!("Filesystem {name}:"), value));
        let version =
            ("Required upstream Linux kernel version:".to_owned(), format!("{}.{}", needed.0, needed.1));
        let version = (needed > (0, 0)).then_some(version);
        Ok(lines.chain(version).map(|(name, value)| format!("{name:46}{value}\n")).collect())
    }

    /// Only if inodes are not compressed.
    fn raw_inode(&self, nid: u64) -> Result<RawInode> {
        let raw = self.raw()?;
        let block = 1_u64 << raw.0[12].min(16);
        let at = u64::from(raw.u32(40)).saturating_mul(block).saturating_add(nid.saturating_mul(32));
        let mut bytes = [0; 32];
        self.opened.image().read_exact_at(at, &mut bytes)?;
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (format, xattrs) = (u16_at(0), u32::from(u16_at(2)));
        let layout = format >> 1 & 7;
        let count = u32::from(u16_at(16)) | u32::from(u16_at(18)) << 16;
        let isize = if format & 1 == 0 { 32 } else { 64 };
        let xattr_size = if xattrs == 0 { 0 } else { 12 + 4 * (xattrs - 1) };
        Ok(RawInode {
            layout,
            isize,
            xattr_size,
            start: u64::from(count),
            behind: at.saturating_add(u64::from(isize + xattr_size)),
            // Compressed files store their number of blocks.
            stored: matches!(layout, 1 | 3).then(|| u64::from(count).saturating_mul(block)),
        })
    }

    fn inode(&self, given: &Given) -> Result<()> {
        let (id, path) = match given.last("--path") {
            Some(path) => {
                let path = ImagePath::parse(path.as_bytes())?;
                let id = self.opened.find(&path)?;
                let inode = self.opened.volume().inode(id)?;
                // The tool names a file by the first of its names.
                let is_linked = inode.links > 1 && inode.kind != InodeKind::Directory;
                (id, if is_linked { path_of(&self.opened, id)? } else { path })
            }
            None => {
                let nid = given.number("--nid")?.unwrap_or(0);
                (InodeId(nid), path_of(&self.opened, InodeId(nid))?)
            }
        };
        if given.has("--cat") {
            let mut out = report::stdout_bytes()?;
            let mut reader = self.opened.open_id(id)?;
            std::io::copy(&mut reader, &mut out).or_io(|| "cannot write to standard output")?;
            return Ok(());
        }
        let mut out = report::Out::stdout();
        let text = self.about(id, &path)?;
        out.writer().write_all(&text).or_io(report::cannot_write)?;
        if given.has("--ls") {
            let list = self.list(id)?;
            out.writer().write_all(&list).or_io(report::cannot_write)?;
        }
        if given.has("-e") {
            let list = self.extents(id, &path)?;
            out.writer().write_all(list.as_bytes()).or_io(report::cannot_write)?;
        }
        out.finish()
    }

    /// Sum of its names, `.`, and `..`.
    fn len(&self, id: InodeId, kind: InodeKind) -> Result<u64> {
        Ok(match kind {
            InodeKind::File { len } => len,
            InodeKind::Symlink => self.opened.volume().read_link(id)?.len() as u64,
            InodeKind::Directory => {
                let names = self.names(id)?;
                names.iter().map(|(name, ..)| 12 + name.len() as u64).sum()
            }
            _ => 0,
        })
    }

    fn names(&self, id: InodeId) -> Result<Vec<(Vec<u8>, u64, FileType)>> {
        let parent = self.parent(id)?;
        let mut names =
            vec![(b".".to_vec(), id.0, FileType::Directory), (b"..".to_vec(), parent.0, FileType::Directory)];
        self.opened.volume().read_dir(id, DirCursor(0), &mut |entry, _| {
            names.push((entry.name, entry.id.0, entry.file_type));
            ControlFlow::Continue(())
        })?;
        names.sort();
        Ok(names)
    }

    fn parent(&self, id: InodeId) -> Result<InodeId> {
        let root = self.opened.volume().root();
        if id == root {
            return Ok(root);
        }
        let mut path = path_of(&self.opened, id)?;
        path.pop();
        self.opened.find(&path)
    }

    fn about(&self, id: InodeId, path: &ImagePath) -> Result<Vec<u8>> {
        let inode = self.opened.volume().inode(id)?;
        let raw = self.raw_inode(id.0)?;
        let len = self.len(id, inode.kind)?;
        let stored = raw.stored.unwrap_or(len);
        // Without data, C divides zero by zero.
        let ratio = match len {
            0 => "-nan".to_owned(),
            len => format!("{:.2}", (stored as f64 * 100.0) / len as f64),
        };
        let mode = inode.meta.mode & 0o777;
        let letters = crate::common::listing::mode('-', mode);
        let word = match inode.kind.file_type() {
            FileType::File => "regular file",
            FileType::CharDevice => "char dev",
            FileType::BlockDevice => "block dev",
            FileType::Fifo => "FIFO file",
            FileType::Socket => "SOCK file",
            FileType::Symlink => "symlink file",
            FileType::Directory => "directory",
        };
        let mut text = b"Path : /".to_vec();
        text.extend(path.as_bytes());
        let owner = inode.meta.owner;
        let time = Clock::local().listed(inode.meta.mtime.seconds, true);
        text.extend(
            format!(
                "\nSize: {len}  On-disk size: {stored}  {word}\n\
                 NID: {}   Links: {}   Layout: {}   Compression ratio: {ratio}%\n\
                 Inode size: {}   Xattr size: {}\n\
                 Uid: {}   Gid: {}  Access: {mode:04o}/{}\n\
                 Timestamp: {time}.{:09}\n",
                id.0,
                inode.links,
                raw.layout,
                raw.isize,
                raw.xattr_size,
                owner.uid,
                owner.gid,
                &letters[1..],
                inode.meta.mtime.nanos
            )
            .bytes(),
        );
        Ok(text)
    }

    fn list(&self, id: InodeId) -> Result<Vec<u8>> {
        let mut text = b"\n       NID TYPE  FILENAME\n".to_vec();
        for (name, nid, file_type) in self.names(id)? {
            let number = match file_type {
                FileType::File => 1,
                FileType::Directory => 2,
                FileType::CharDevice => 3,
                FileType::BlockDevice => 4,
                FileType::Fifo => 5,
                FileType::Socket => 6,
                FileType::Symlink => 7,
            };
            text.extend(format!("{nid:10}    {number}  ").bytes());
            text.extend(name);
            text.push(b'\n');
        }
        Ok(text)
    }

    fn extents(&self, id: InodeId, path: &ImagePath) -> Result<String> {
        let (raw, inode) = (self.raw_inode(id.0)?, self.opened.volume().inode(id)?);
        let index = Index {
            layout: raw.layout,
            len: self.len(id, inode.kind)?,
            start: raw.start,
            behind: raw.behind,
            block: 1 << self.raw()?.0[12].min(16),
        };
        let name = String::from_utf8_lossy(path.as_bytes());
        extents::list(&self.opened, id, &index, &format!("/{name}"))
    }

    fn statistics(&self) -> Result<String> {
        let mut found = Statistics::default();
        for entry in self.opened.walk() {
            let entry = entry?;
            let raw = self.raw_inode(entry.id.0)?;
            let len = if let InodeKind::File { len } = entry.inode.kind { Some(len) } else { None };
            let name = entry.path.names().last().map_or(&b""[..], packfs::Name::as_bytes);
            found.count(entry.inode.kind.file_type(), name, len, raw.stored);
        }
        let raw = self.raw()?;
        if raw.u32(80) & 32 != 0 && raw.u64(96) > 0 {
            let stored = self.raw_inode(raw.u64(96))?.stored;
            found.compressed += u64::from(stored.is_some());
            found.packed = true;
            found.add_stored(stored.unwrap_or(0));
        }
        Ok(found.text())
    }
}

/// Classes of lengths: powers of two from 1 KiB on.
const LENGTHS: usize = 17;

const ENDINGS: [&str; 10] =
    [".txt", ".so", ".xml", ".apk", ".odex", ".vdex", ".oat", ".rc", ".otf", "others"];

#[derive(Default)]
struct Statistics {
    types: [u64; 7],
    original: u64,
    stored: u64,
    compressed: u64,
    /// Set if there is a packed inode for tails.
    packed: bool,
    lengths: [u64; LENGTHS],
    stored_lengths: [u64; LENGTHS],
    endings: [u64; ENDINGS.len()],
}

fn length_row(len: u64) -> usize {
    let bits = u64::BITS - (len >> 10).leading_zeros();
    (bits as usize).min(LENGTHS - 1)
}

impl Statistics {
    fn count(&mut self, file_type: FileType, name: &[u8], len: Option<u64>, stored: Option<u64>) {
        let row = match file_type {
            FileType::File => 0,
            FileType::Directory => 1,
            FileType::CharDevice => 2,
            FileType::BlockDevice => 3,
            FileType::Fifo => 4,
            FileType::Socket => 5,
            FileType::Symlink => 6,
        };
        self.types[row] += 1;
        self.compressed += u64::from(stored.is_some());
        let Some(len) = len else { return };
        self.original = self.original.saturating_add(len);
        self.lengths[length_row(len)] += 1;
        self.add_stored(stored.unwrap_or(len));
        // The tool compares only the beginning of an extension.
        let ending = name.iter().rposition(|&byte| byte == b'.').map(|at| &name[at..]);
        let known = ENDINGS[..ENDINGS.len() - 1]
            .iter()
            .position(|known| ending.is_some_and(|ending| known.as_bytes().starts_with(ending)));
        self.endings[known.unwrap_or(ENDINGS.len() - 1)] += 1;
    }

    fn add_stored(&mut self, stored: u64) {
        self.stored = self.stored.saturating_add(stored);
        self.stored_lengths[length_row(stored)] += 1;
    }

    fn text(&self) -> String {
        let total: u64 = self.types.iter().sum();
        let rate = if self.original == 0 { 100.0 } else { self.stored as f64 * 100.0 / self.original as f64 };
        let names =
            ["regular file", "directory", "char dev", "block dev", "FIFO file", "SOCK file", "symlink file"];
        let mut text =
            format!("Filesystem total file count:\t\t{total}\nFilesystem unknown type count:\t\t0\n");
        for (name, count) in names.iter().zip(self.types) {
            text += &format!("Filesystem {name} count:\t\t{count}\n");
        }
        let uncompressed = (total + u64::from(self.packed)).saturating_sub(self.compressed);
        text += &format!(
            "Filesystem compressed files:            {}\n\
             Filesystem uncompressed files:          {uncompressed}\n\
             Filesystem total original file size:    {} Bytes\n\
             Filesystem total file size:             {} Bytes\n\
             Filesystem compress rate:               {rate:.2}%\n",
            self.compressed, self.original, self.stored
        );
        for (title, counts) in [("Original", &self.lengths), ("On-disk", &self.stored_lengths)] {
            text += &format!("\n{title} file size distribution:\n");
            text += &heading(">=(KB) .. <(KB) ");
            for (row, count) in counts.iter().enumerate() {
                let least = if row == 0 { 0 } else { 1_u64 << (row - 1) };
                let label = match row {
                    row if row == LENGTHS - 1 => format!("{least:6} .."),
                    row => format!("{least:6} .. {:<6}", 1_u64 << row),
                };
                text += &self.bar(&label, *count);
            }
        }
        text += "\nFile type distribution:\n";
        text += &heading("type");
        for (ending, count) in ENDINGS.iter().zip(self.endings) {
            text += &self.bar(&format!("{ending:<17}"), count);
        }
        text
    }

    fn bar(&self, label: &str, count: u64) -> String {
        let files = self.types[0];
        let share = if files == 0 { 0.0 } else { count as f64 * 100.0 / files as f64 };
        let marks = usize::try_from(count.saturating_mul(50).checked_div(files).unwrap_or(0)).unwrap_or(0);
        format!("{label:<16}\t{count:<11} {share:8.2}% |{:<50}|\n", "#".repeat(marks.min(400)))
    }
}

fn heading(first: &str) -> String {
    format!("{first:<16} {:>11} {:>16} |{:<50}|\n", "count", "ratio", "distribution")
}
