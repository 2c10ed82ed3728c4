//! The pseudo file of an image: definitions of all its files, with their data.

use packfs::{FileType, ImagePath, Node, NodeKind, Opened, Result, ResultExt, Tree};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes it to a file, or to standard output for `-`.
///
/// Errors: `Io`; those of reading the image.
pub fn write(opened: &Opened, tree: &Tree, file: &Path) -> Result<()> {
    let cannot = || format!("cannot write {file:?}");
    let out = match file == Path::new("-") {
        true => crate::out::report::stdout_bytes()?,
        false => File::create(file).or_io(cannot)?,
    };
    let mut out = BufWriter::new(out);
    let (mut firsts, mut data, mut offset) = (HashMap::new(), Vec::new(), 0_u64);
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        let name = escaped(path);
        if let Some(first) = firsts.get(&id) {
            let first: &Vec<u8> = first;
            out.write_all(&[&name[..], b" L ", first, b"\n"].concat()).or_io(cannot)?;
            continue;
        }
        let mut line = name.clone();
        line.extend(definition(node, offset));
        for (xattr, value) in tree.xattrs(node.xattrs) {
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
    out.flush().or_io(cannot)
}

fn definition(node: &Node, offset: u64) -> Vec<u8> {
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
        NodeKind::File { len, .. } => line.extend(format!(" {len} {offset} 0").bytes()),
        NodeKind::Directory => {}
    }
    line.push(b'\n');
    line
}

fn escaped(path: &ImagePath) -> Vec<u8> {
    if path.is_root() {
        return b"/".to_vec();
    }
    let escape = |&byte: &u8| match byte {
        b' ' | b'\t' | b'\\' | b'"' => vec![b'\\', byte],
        byte => vec![byte],
    };
    path.as_bytes().iter().flat_map(escape).collect()
}

fn coded(value: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'\\';
    if value.iter().all(is_plain) && !value.starts_with(b"0") {
        return value.to_vec();
    }
    let octal = |byte: &u8| match is_plain(byte) {
        true => vec![*byte],
        false => format!("\\{byte:03o}").into_bytes(),
    };
    b"0t".iter().copied().chain(value.iter().flat_map(octal)).collect()
}
