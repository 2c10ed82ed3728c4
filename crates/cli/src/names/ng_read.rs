//! sqfs2tar and rdsquashfs of squashfs-tools-ng 1.3.

use super::ng_pack::answered;
use super::parse::{Given, Row, Style, Takes, acts, ignored, parse};
use super::pseudo::quoted;
use super::selected;
use super::streams::Compressor;
use super::teller::{Form, Teller};
use crate::out::{Outcome, report};
use packfs::read::LoadedVolume;
use packfs::sink::{Existing, OwnerPolicy, TarOptions, UnpackOptions};
use packfs::{
    Error, FileType, ImagePath, InodeKind, NodeId, NodeKind, Opened, Progress, Result, ResultExt, Tree,
};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
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

/// Opens an image.
///
/// Errors: those of opening; `Failed` for another format.
pub fn open_at(image: &OsStr) -> Result<Opened> {
    let opened = packfs::OpenOptions::new().outermost().open(image)?;
    match opened.format().name() {
        "squashfs" => Ok(opened),
        other => Err(Error::failed(format!("{image:?} is not a SquashFS 4 image but {other}"))),
    }
}

/// Runs sqfs2tar.
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
    if let Some(name) = root.filter(|name| *name != b".") {
        loaded = selected::beneath(loaded, &ImagePath::parse(name)?)?;
    }
    if given.has("--no-hard-links") {
        loaded = selected::unlinked(loaded)?;
    }
    let options = TarOptions { without_root: root != Some(b"."), ..TarOptions::default() };
    let out = std::io::BufWriter::with_capacity(1 << 20, report::stdout_bytes()?);
    let written = super::streams::written(compressor, out, |out| {
        packfs::sink::write_tar(opened.engine(), &loaded, out, &options, &teller)
    })?;
    if written.sockets > 0 {
        report::note(format_args!("WARNING: {} sockets cannot be stored in a tar archive", written.sockets));
        return Ok(ExitCode::from(u8::from(given.has("--no-skip"))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs rdsquashfs.
pub fn run_read(args: &[OsString]) -> Outcome {
    let given = parse(&[READ], Style::Getopt, args)?;
    if answered("rdsquashfs", &given, &[READ])? {
        return Ok(ExitCode::SUCCESS);
    }
    let opened = open(&given)?;
    let teller = Teller::new(Form::Silent);
    let path = |name: &str| given.last(name).map(|path| ImagePath::parse(path.as_bytes())).transpose();
    let mut out = report::stdout_bytes()?;
    if let Some(path) = path("--cat")? {
        opened.copy_file(&path, &mut out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = if let Some(path) = path("--list")? {
        list(&opened.load(&teller)?.tree, &path)?
    } else if let Some(path) = path("--xattr")? {
        xattrs(&opened, &path)?
    } else if let Some(path) = path("--stat")? {
        stat(&opened, &path)?
    } else if given.has("--describe") {
        describe(&opened.load(&teller)?.tree, given.last("--unpack-root").map(Path::new))
    } else if let Some(path) = path("--unpack-path")? {
        unpack(&given, &opened, &path, &teller)?;
        Vec::new()
    } else {
        return Err(Error::usage("no operation specified"));
    };
    out.write_all(&text).or_io(report::cannot_write)?;
    Ok(ExitCode::SUCCESS)
}

fn list(tree: &Tree, path: &ImagePath) -> Result<Vec<u8>> {
    let id = tree.find(path).ok_or_else(|| Error::not_found(format!("/{path}: no such file")))?;
    let entries: Vec<(Vec<u8>, NodeId)> = match tree.node(id).is_dir() {
        true => tree.entries(id).map(|entry| (entry.name.to_vec(), entry.node)).collect(),
        false => vec![(tree.first_name(id).to_vec(), id)],
    };
    let rows: Vec<[String; 3]> = entries
        .iter()
        .map(|(_, id)| {
            let node = tree.node(*id);
            let size = match &node.kind {
                NodeKind::File { len, .. } => len.to_string(),
                NodeKind::Symlink(target) => target.len().to_string(),
                NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                    format!("{}:{}", number.major, number.minor)
                }
                NodeKind::Directory => super::listing::directory_len(tree, *id).to_string(),
                NodeKind::Fifo | NodeKind::Socket => "0".to_owned(),
            };
            [node.meta.owner.uid.to_string(), node.meta.owner.gid.to_string(), size]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (users, groups, sizes) = (width(0), width(1), width(2));
    let mut text = Vec::new();
    for ((name, id), [uid, gid, size]) in entries.iter().zip(&rows) {
        let node = tree.node(*id);
        let mode = super::listing::mode(node.kind.file_type().letter(), node.meta.mode);
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

fn xattrs(opened: &Opened, path: &ImagePath) -> Result<Vec<u8>> {
    let found = opened.volume().xattrs(opened.find(path)?)?;
    let mut text = Vec::new();
    for (name, value) in found {
        text.extend(name);
        text.push(b'=');
        text.extend(value);
        text.push(b'\n');
    }
    Ok(text)
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
            "\nInode type: {word}\nInode number: {}\nAccess: {:04o}\nUID: {}\nGID: {}\nLast modified: {} ({seconds})\n",
            inode.number,
            meta.mode,
            meta.owner.uid,
            meta.owner.gid,
            super::when::Clock::utc().mail(seconds)
        )
        .bytes(),
    );
    if let InodeKind::File { len } = inode.kind {
        text.extend(format!("File size: {len}\n").bytes());
    }
    Ok(text)
}

fn describe(tree: &Tree, prefix: Option<&Path>) -> Vec<u8> {
    let (mut text, mut walk) = (Vec::new(), tree.walk());
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        if path.is_root() {
            continue;
        }
        let word = match node.kind.file_type() {
            FileType::Directory => "dir",
            FileType::File => "file",
            FileType::Symlink => "slink",
            FileType::BlockDevice | FileType::CharDevice => "nod",
            FileType::Fifo => "pipe",
            FileType::Socket => "sock",
        };
        let name = match path.as_bytes().iter().any(|byte| b" \t\"\\".contains(byte)) {
            true => quoted(path.as_bytes()),
            false => path.as_bytes().to_vec(),
        };
        let owner = node.meta.owner;
        text.extend([word.as_bytes(), b" ", &name].concat());
        text.extend(format!(" {:04o} {} {}", node.meta.mode, owner.uid, owner.gid).bytes());
        match (&node.kind, prefix) {
            (NodeKind::Symlink(target), _) => text.extend([b" ", &target[..]].concat()),
            (NodeKind::BlockDevice(number), _) => {
                text.extend(format!(" b {} {}", number.major, number.minor).bytes())
            }
            (NodeKind::CharDevice(number), _) => {
                text.extend(format!(" c {} {}", number.major, number.minor).bytes())
            }
            (NodeKind::File { .. }, Some(prefix)) => {
                let from = prefix.join(OsStr::from_bytes(path.as_bytes()));
                text.extend([b" ", from.as_os_str().as_bytes()].concat());
            }
            _ => {}
        }
        text.push(b'\n');
    }
    text
}

fn unpack(given: &Given, opened: &Opened, path: &ImagePath, teller: &Teller) -> Result<()> {
    let keeps_modes = given.has("--chmod");
    let left_out = |file_type: FileType| match file_type {
        FileType::BlockDevice | FileType::CharDevice => given.has("--no-dev"),
        FileType::Socket => given.has("--no-sock"),
        FileType::Fifo => given.has("--no-fifo"),
        FileType::Symlink => given.has("--no-slink"),
        _ => false,
    };
    let loaded = opened.load(teller)?;
    let loaded = selected::selected(loaded, |_, node, edit| {
        if !keeps_modes {
            edit.meta.mode = if node.is_dir() { 0o755 } else { 0o644 };
        }
        !left_out(node.kind.file_type())
    })?;
    let loaded = if given.has("--no-empty-dir") { selected::without_empty_dirs(loaded)? } else { loaded };
    let loaded: LoadedVolume = if path.is_root() { loaded } else { selected::below(loaded, path)? };
    let target = given.last("--unpack-root").map_or_else(|| PathBuf::from("."), PathBuf::from);
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
    std::fs::create_dir_all(&target).or_io(|| format!("cannot create directory {target:?}"))?;
    let options = UnpackOptions {
        existing: Existing::Replace,
        owner: if given.has("--chown") { OwnerPolicy::Image } else { OwnerPolicy::Current },
        xattrs: given.has("--set-xattr"),
        times: given.has("--set-times"),
        ..UnpackOptions::default()
    };
    let report = packfs::sink::unpack(opened.engine(), &loaded, &target, &options, teller)?;
    report.not_restored.iter().for_each(|row| teller.warn(&row.to_string()));
    Ok(())
}
