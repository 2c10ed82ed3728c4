//! sqfs2tar and rdsquashfs of squashfs-tools-ng 1.3.

use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse};
use crate::common::selected;
use crate::common::teller::{Form, Teller};
use crate::gensquashfs::answered;
use crate::ng::list;
use crate::ng::streams::Compressor;
use packfs::read::LoadedVolume;
use packfs::sink::{Existing, OwnerPolicy, TarOptions, UnpackOptions};
use packfs::{
    Error, FileType, ImagePath, InodeKind, Meta, NodeId, NodeKind, Opened, Owner, Progress, Result,
    ResultExt, Timestamp, Tree, Xattrs,
};
use packfs_terminal::{Outcome, report};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const TAR: &[Row] = &[
    acts("--compressor -c", Takes::One),
    acts("--subdir -d", Takes::One),
    acts("--root-becomes -r", Takes::One),
    acts("--keep-as-dir -k", Takes::Nothing),
    acts("--no-xattr -X", Takes::Nothing),
    acts("--no-hard-links -L", Takes::Nothing),
    acts("--no-skip -s", Takes::Nothing),
    acts("--help -h", Takes::Nothing),
    acts("--version -V", Takes::Nothing),
];

const READ: &[Row] = &[
    acts("--list -l", Takes::One),
    acts("--cat -c", Takes::One),
    acts("--xattr -x", Takes::One),
    acts("--unpack-path -u", Takes::One),
    acts("--stat -s", Takes::One),
    acts("--describe -d", Takes::Nothing),
    acts("--unpack-root -p", Takes::One),
    acts("--no-dev -D", Takes::Nothing),
    acts("--no-sock -S", Takes::Nothing),
    acts("--no-fifo -F", Takes::Nothing),
    acts("--no-slink -L", Takes::Nothing),
    acts("--no-empty-dir -E", Takes::Nothing),
    ignored("--no-sparse -Z", Takes::Nothing),
    acts("--set-xattr -X", Takes::Nothing),
    acts("--set-times -T", Takes::Nothing),
    acts("--chmod -C", Takes::Nothing),
    acts("--chown -O", Takes::Nothing),
    acts("--quiet -q", Takes::Nothing),
    acts("--help -h", Takes::Nothing),
    acts("--version -V", Takes::Nothing),
];

fn open(given: &Given) -> Result<Opened> {
    match &given.operands[..] {
        [image] => open_at(image),
        _ => Err(Error::usage("missing argument: squashfs image")),
    }
}

/// Errors: `Failed` for another format.
pub fn open_at(image: &OsStr) -> Result<Opened> {
    let opened = packfs::OpenOptions::new().outermost().open(image)?;
    match opened.format().name() {
        "squashfs" => Ok(opened),
        other => Err(Error::failed(format!("{image:?} is not a SquashFS 4 image but {other}"))),
    }
}

pub fn run_tar(args: &[OsString]) -> Outcome {
    let given = parse(&[TAR], Style::Getopt, args)?;
    if answered("sqfs2tar", &given, &[TAR])? {
        return Ok(ExitCode::SUCCESS);
    }
    let compressor = given.text("--compressor")?.map(str::parse::<Compressor>).transpose()?;
    let opened = open(&given)?;
    let teller = Teller::new(Form::Silent);
    let mut loaded = opened.load(&teller)?;
    let dirs: Vec<ImagePath> =
        given.all("--subdir").map(|dir| ImagePath::parse(dir.as_bytes())).collect::<Result<_>>()?;
    if let Some(missing) = dirs.iter().find(|dir| loaded.tree.find(dir).is_none()) {
        return Err(Error::not_found(format!("{missing}: no such file")));
    }
    let no_xattrs = given.has("--no-xattr");
    if no_xattrs || !dirs.is_empty() {
        loaded = selected::selected(loaded, |path, _, edit| {
            if no_xattrs {
                edit.xattrs.clear();
            }
            dirs.is_empty() || dirs.iter().any(|dir| path.starts_with(dir) || dir.starts_with(path))
        })?;
    }
    if let ([dir], false) = (&dirs[..], given.has("--keep-as-dir")) {
        loaded = selected::below(loaded, dir)?;
    }
    let root = given.last("--root-becomes").map(OsStr::as_bytes);
    let root = root.map(|name| if name == b"./" { &b"."[..] } else { name });
    if let Some(name) = root.filter(|name| *name != b".")
        && !ImagePath::parse(name).is_ok_and(|path| !path.is_root())
    {
        return Err(Error::usage(format!("invalid root directory \"{}\"", packfs::escaped(name))));
    }
    if let Some(name) = root.filter(|name| *name != b".") {
        loaded = selected::beneath(loaded, &ImagePath::parse(name)?)?;
    }
    if given.has("--no-hard-links") {
        loaded = selected::unlinked(loaded)?;
    }
    let options = TarOptions { without_root: root != Some(b"."), ..TarOptions::default() };
    let out = std::io::BufWriter::with_capacity(1 << 20, report::stdout_bytes()?);
    let written = crate::ng::streams::written(compressor, out, |out| {
        packfs::sink::write_tar(opened.engine(), &loaded, out, &options, &teller)
    })?;
    if written.sockets > 0 {
        report::note(format_args!("WARNING: {} sockets cannot be stored in a tar archive", written.sockets));
        return Ok(ExitCode::from(u8::from(given.has("--no-skip"))));
    }
    Ok(ExitCode::SUCCESS)
}

/// The last one counts.
const OPERATIONS: [&str; 6] = ["--list", "--cat", "--xattr", "--unpack-path", "--stat", "--describe"];

pub fn run_read(args: &[OsString]) -> Outcome {
    let mut given = parse(&[READ], Style::Getopt, args)?;
    if answered("rdsquashfs", &given, &[READ])? {
        return Ok(ExitCode::SUCCESS);
    }
    let is_operation = |(name, _): &&(&'static str, OsString)| OPERATIONS.contains(name);
    let operation = given.options.iter().rev().find(is_operation).cloned();
    let (operation, path) = operation.ok_or_else(|| Error::usage("no operation specified"))?;
    // The tool ignores further operands.
    given.operands.truncate(1);
    let opened = open(&given)?;
    let teller = Teller::new(Form::Silent);
    let path = ImagePath::parse(path.as_bytes())?;
    let mut out = report::stdout_bytes()?;
    let text = match operation {
        "--cat" => {
            opened.copy_file(&path, &mut out)?;
            return Ok(ExitCode::SUCCESS);
        }
        "--xattr" => xattrs(&opened, &path)?,
        "--stat" => stat(&opened, &path)?,
        "--list" => list(&chosen(&given, opened.load(&teller)?)?.tree, &path)?,
        "--describe" => {
            let loaded = chosen(&given, opened.load(&teller)?)?;
            let list = list::described(&loaded.tree, given.last("--unpack-root"));
            out.write_all(&list.text).or_io(report::cannot_write)?;
            for path in &list.left_out {
                let path = packfs::printable(&path.to_string()).into_owned();
                report::note(format_args!(
                    "rdsquashfs: {path}: left out, as a line cannot hold this name or target"
                ));
            }
            return Ok(ExitCode::from(u8::from(!list.left_out.is_empty())));
        }
        _ => {
            unpack(&given, &opened, &path, &teller)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    out.write_all(&text).or_io(report::cannot_write)?;
    Ok(ExitCode::SUCCESS)
}

fn chosen(given: &Given, loaded: LoadedVolume) -> Result<LoadedVolume> {
    let loaded = selected::selected(loaded, |_, node, _| {
        let option = match node.kind.file_type() {
            FileType::BlockDevice | FileType::CharDevice => "--no-dev",
            FileType::Socket => "--no-sock",
            FileType::Fifo => "--no-fifo",
            FileType::Symlink => "--no-slink",
            FileType::Directory | FileType::File => return true,
        };
        !given.has(option)
    })?;
    if given.has("--no-empty-dir") { selected::without_empty_dirs(loaded) } else { Ok(loaded) }
}

fn list(tree: &Tree, path: &ImagePath) -> Result<Vec<u8>> {
    let id = tree.find(path).ok_or_else(|| Error::not_found(format!("/{path}: no such file")))?;
    let entries: Vec<(Vec<u8>, NodeId)> = if tree.node(id).is_dir() {
        tree.entries(id).map(|entry| (entry.name.to_vec(), entry.node)).collect()
    } else {
        vec![(tree.first_name(id).to_vec(), id)]
    };
    let rows: Vec<[String; 3]> = entries
        .iter()
        .map(|(_, id)| {
            let node = tree.node(*id);
            let size = match &node.kind {
                NodeKind::File { len, .. } => rounded(*len),
                NodeKind::Symlink(target) => rounded(target.len() as u64),
                NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                    format!("{}:{}", number.major, number.minor)
                }
                NodeKind::Directory => rounded(crate::common::listing::directory_len(tree, *id) as u64),
                NodeKind::Fifo | NodeKind::Socket => "0".to_owned(),
            };
            [node.meta.owner.uid.to_string(), node.meta.owner.gid.to_string(), size]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let ids = |column: usize| rows.iter().map(|row| id_width(&row[column])).max().unwrap_or(0);
    let (users, groups, sizes) = (ids(0), ids(1), width(2));
    let mut text = Vec::new();
    for ((name, id), [uid, gid, size]) in entries.iter().zip(&rows) {
        let node = tree.node(*id);
        let mode = crate::common::listing::mode(node.kind.file_type().letter(), node.meta.mode);
        text.extend(format!("{mode} {uid:>users$}/{gid:<groups$} {size:>sizes$} ").bytes());
        text.extend(name);
        if let NodeKind::Symlink(target) = &node.kind {
            text.extend(b" -> ");
            text.extend(&target[..]);
        }
        text.push(b'\n');
    }
    Ok(text)
}

/// Rounded as by the tool: `1024`, `2k`, `293k`.
fn rounded(mut size: u64) -> String {
    let (mut rest, mut unit) = (0, None);
    for letter in "kMGTPE".chars() {
        if size > 1024 {
            (rest, size, unit) = (size % 1024, size / 1024, Some(letter));
        }
    }
    let size = size + u64::from(unit.is_some() && rest >= 512);
    unit.map_or_else(|| size.to_string(), |unit| format!("{size}{unit}"))
}

/// Reproduces the tool's width: one too few for powers of ten.
fn id_width(digits: &str) -> usize {
    let is_power =
        digits.len() > 1 && digits.starts_with('1') && digits[1..].bytes().all(|digit| digit == b'0');
    digits.len() - usize::from(is_power)
}

fn xattrs(opened: &Opened, path: &ImagePath) -> Result<Vec<u8>> {
    let found = opened.volume().xattrs(opened.find(path)?)?;
    let mut text = Vec::new();
    for (name, value) in found {
        text.extend([&name[..], b"=", &printed(&value), b"\n"].concat());
    }
    Ok(text)
}

/// Text without final NULs, or hexadecimal digits.
fn printed(value: &[u8]) -> Vec<u8> {
    let zeros = value.iter().rev().take_while(|&&byte| byte == 0).count();
    let text = &value[..value.len() - zeros];
    let is_plain = |byte: &u8| (0x07..=0x0d).contains(byte) || *byte >= 0x20 && *byte != 0x7f;
    if text.iter().all(is_plain) && std::str::from_utf8(text).is_ok() {
        return text.to_vec();
    }
    [b"0x", packfs::to_hex(value).to_uppercase().as_bytes()].concat()
}

fn stat(opened: &Opened, path: &ImagePath) -> Result<Vec<u8>> {
    let inode = opened.volume().inode(opened.find(path)?)?;
    let word = match inode.kind.file_type() {
        FileType::Directory => "directory",
        FileType::File => "file",
        FileType::Symlink => "symbolic link",
        FileType::BlockDevice => "block device",
        FileType::CharDevice => "character device",
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
    };
    let (meta, seconds) = (inode.meta, inode.meta.mtime.seconds);
    let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    let mut text = [b"Name: ", &name[..]].concat();
    text.extend(
        format!(
            "\nInode type: {word}\nInode number: {}\nAccess: 0{:o}\nUID: {}\nGID: {}\nLast modified: {} ({seconds})\n",
            inode.number,
            meta.mode,
            meta.owner.uid,
            meta.owner.gid,
            crate::common::when::Clock::utc().mail(seconds)
        )
        .bytes(),
    );
    if let InodeKind::File { len } = inode.kind {
        text.extend(format!("File size: {len}\n").bytes());
    }
    Ok(text)
}

fn unpack(given: &Given, opened: &Opened, path: &ImagePath, teller: &Teller) -> Result<()> {
    let loaded = chosen(given, opened.load(teller)?)?;
    let loaded = if path.is_root() { loaded } else { selected::below(loaded, path)? };
    let target = given.last("--unpack-root").map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::fs::create_dir_all(&target).or_io(|| format!("cannot create directory {target:?}"))?;
    let loaded = as_created(given, loaded, &target)?;
    if !given.has("--quiet") {
        let mut out = report::Out::stdout();
        let mut walk = loaded.tree.walk();
        while let Some((path, _)) = walk.next() {
            if !path.is_root() {
                out.line(format_args!("creating {path}"))?;
            }
        }
        out.finish()?;
    }
    let options = UnpackOptions {
        existing: Existing::Merge,
        owner: if given.has("--chown") { OwnerPolicy::Image } else { OwnerPolicy::Current },
        xattrs: given.has("--set-xattr"),
        times: given.has("--set-times"),
        ..UnpackOptions::default()
    };
    let report = packfs::sink::unpack(opened.engine(), &loaded, &target, &options, teller)?;
    report.not_restored.iter().for_each(|row| teller.warn(&row.to_string()));
    Ok(())
}

/// Permissions are those of the tool's new files, unless the image's permissions are requested. The
/// target is unchanged.
fn as_created(given: &Given, loaded: LoadedVolume, target: &Path) -> Result<LoadedVolume> {
    let found = target.metadata().or_io(|| format!("cannot read {target:?}"))?;
    let top = Meta {
        mode: (found.mode() & 0o7777) as u16,
        owner: Owner { uid: found.uid(), gid: found.gid() },
        mtime: Timestamp::from_seconds(found.mtime()),
    };
    let (keeps_modes, kept) = (given.has("--chmod"), selected::kept_by_umask());
    selected::selected(loaded, |path, node, edit| {
        if path.is_root() {
            (edit.meta, edit.xattrs) = (top, Xattrs::new());
        } else if !keeps_modes {
            edit.meta.mode = kept
                & match node.kind.file_type() {
                    FileType::Directory => 0o755,
                    FileType::File => 0o644,
                    FileType::Fifo | FileType::Socket => 0o700,
                    FileType::BlockDevice | FileType::CharDevice => 0,
                    FileType::Symlink => 0o777,
                };
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ids_and_values_are_printed_as_rdsquashfs_prints_them() {
        let sizes = [0, 1023, 1024, 1025, 1535, 1536, 300_000, 1 << 20, (1 << 20) + 1, u64::MAX];
        let shown = ["0", "1023", "1024", "1k", "1k", "2k", "293k", "1024k", "1024k", "16E"];
        assert_eq!(sizes.map(rounded), shown);
        assert_eq!(["0", "9", "10", "11", "100", "1000", "101"].map(id_width), [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(printed(b"label\0"), b"label");
        assert_eq!(printed("\u{e4}\n".as_bytes()), "\u{e4}\n".as_bytes());
        assert_eq!(printed(b"a\0b"), b"0x610062");
        assert_eq!(printed(b"\xff\0"), b"0xFF00");
    }
}
