//! The pseudo file of an image: definitions of all its files, with their data.
//!
//! mksquashfs cannot read definitions with some bytes; files that it would misread or reject are
//! reported.

use packfs::read::LoadedVolume;
use packfs::{FileType, ImagePath, InodeKind, Node, NodeId, NodeKind, Opened, Result, ResultExt};
use packfs_terminal::report;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// `-` is standard output. Returns true if everything has a definition.
pub fn write(opened: &Opened, loaded: &LoadedVolume, file: &Path) -> Result<bool> {
    let cannot = || format!("cannot write {file:?}");
    let out =
        if file == Path::new("-") { report::stdout_bytes()? } else { File::create(file).or_io(cannot)? };
    let (mut out, tree) = (BufWriter::new(out), &loaded.tree);
    let mut firsts = HashMap::new();
    let mut data = Vec::new();
    let mut offset = 0_u64;
    let mut is_whole = true;
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        let name = escaped(path);
        if let Some(first) = firsts.get(&id) {
            let first: &Vec<u8> = first;
            out.write_all(&[&name[..], b" L ", first, b"\n"].concat()).or_io(cannot)?;
            continue;
        }
        if path.as_bytes().contains(&b'\n') {
            tell(path, "squashfs-tools' mksquashfs reads its name without the line feed");
        }
        if let NodeKind::Symlink(target) = &node.kind
            && is_unspeakable(target)
        {
            tell(
                path,
                "it has no definition: its target begins with a blank, has a line feed, or ends with a backslash",
            );
            is_whole = false;
            continue;
        }
        let mut line = name.clone();
        line.extend(definition(node, offset, || is_sparse(opened, loaded, id))?);
        for (xattr, value) in tree.xattrs(node.xattrs) {
            if xattr.iter().any(|byte| matches!(byte, b'=' | b'\n')) {
                tell(path, "an attribute has no definition: its name has an equals sign or a line feed");
                is_whole = false;
                continue;
            }
            if value.is_empty() {
                tell(path, "squashfs-tools' mksquashfs refuses its attribute without a value");
            }
            line.extend([&name[..], b" x ", xattr, b"="].concat());
            line.extend(coded(value));
            line.push(b'\n');
        }
        out.write_all(&line).or_io(cannot)?;
        if let NodeKind::File { len, .. } = node.kind {
            offset = offset.saturating_add(len);
            data.push(path.clone());
        }
        if node.links > 1 && !node.is_dir() {
            firsts.insert(id, name);
        }
    }
    out.write_all(b"#\n# START OF DATA - DO NOT MODIFY\n#\n").or_io(cannot)?;
    for path in &data {
        opened.copy_file(path, &mut out)?;
    }
    out.flush().or_io(cannot)?;
    Ok(is_whole)
}

fn tell(path: &ImagePath, what: &str) {
    report::note(format_args!("/{path}: {what}"));
}

/// A target is the rest of a line without surrounding blanks.
fn is_unspeakable(target: &[u8]) -> bool {
    target.first().is_some_and(u8::is_ascii_whitespace) || target.contains(&b'\n') || target.ends_with(b"\\")
}

/// Decided by the inode.
fn is_sparse(opened: &Opened, loaded: &LoadedVolume, id: NodeId) -> Result<bool> {
    let Some(inode) = loaded.inodes.get(id.index()) else { return Ok(false) };
    let inode = opened.volume().inode(*inode)?;
    Ok(matches!(inode.kind, InodeKind::File { len, .. } if inode.sectors < len.div_ceil(512)))
}

fn definition(node: &Node, offset: u64, is_sparse: impl Fn() -> Result<bool>) -> Result<Vec<u8>> {
    let letter = match node.kind.file_type() {
        FileType::Directory => 'D',
        FileType::File => 'R',
        FileType::Symlink => 'S',
        FileType::BlockDevice => 'B',
        FileType::CharDevice => 'C',
        FileType::Fifo | FileType::Socket => 'I',
    };
    let (meta, owner) = (node.meta, node.meta.owner);
    let mode = if letter == 'S' { 0o777 } else { meta.mode };
    let mut line =
        format!(" {letter} {} {mode:o} {} {}", { meta.mtime.seconds }, owner.uid, owner.gid).into_bytes();
    match &node.kind {
        NodeKind::Symlink(target) => line.extend([b" ", &target[..]].concat()),
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
            line.extend(format!(" {} {}", number.major, number.minor).bytes());
        }
        NodeKind::Fifo => line.extend(b" f"),
        NodeKind::Socket => line.extend(b" s"),
        NodeKind::File { len, .. } => {
            line.extend(format!(" {len} {offset} {}", u8::from(is_sparse()?)).bytes());
        }
        NodeKind::Directory => {}
    }
    line.push(b'\n');
    Ok(line)
}

fn escaped(path: &ImagePath) -> Vec<u8> {
    if path.is_root() {
        return b"/".to_vec();
    }
    let escape = |(at, &byte): (usize, &u8)| match byte {
        b'\\' | b'"' => vec![b'\\', byte],
        // A comment begins with this character.
        b'#' if at == 0 => vec![b'\\', byte],
        b' ' | b'\t'..=b'\r' => vec![b'\\', byte],
        byte => vec![byte],
    };
    path.as_bytes().iter().enumerate().flat_map(escape).collect()
}

fn coded(value: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    let is_coded = matches!(value, [b'0', b't' | b'T' | b'x' | b'X' | b's' | b'S', ..]);
    if value.iter().all(is_plain) && !is_coded {
        return value.to_vec();
    }
    let octal = |byte: &u8| {
        if is_plain(byte) && *byte != b'\\' { vec![*byte] } else { format!("\\{byte:03o}").into_bytes() }
    };
    b"0t".iter().copied().chain(value.iter().flat_map(octal)).collect()
}
