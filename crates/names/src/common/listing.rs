//! Lists of files as unsquashfs prints them.

use super::users::Ids;
use super::when::Clock;
use packfs::{ImagePath, NodeId, NodeKind, Result, ResultExt, Tree};
use packfs_terminal::report::{self, Out};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Columns of owner and size.
const COLUMNS: usize = 25;

const EMPTY_LEN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    Names,
    /// `ls -l`.
    Long,
    /// `ls -ln`.
    Numbers,
}

pub struct Lister<'a> {
    pub prefix: &'a Path,
    pub lines: Lines,
    /// Set to omit directories that are not empty.
    pub is_concise: bool,
    pub is_full: bool,
    pub clock: Clock,
    /// Lengths by path, in the whole image.
    pub lens: &'a HashMap<ImagePath, usize>,
}

impl Lister<'_> {
    pub fn print(&self, tree: &Tree) -> Result<()> {
        let (users, groups) = match self.lines {
            Lines::Long => (Ids::users(), Ids::groups()),
            _ => (Ids::default(), Ids::default()),
        };
        let mut out = Out::stdout();
        let mut walk = tree.walk();
        while let Some((path, id)) = walk.next() {
            let node = tree.node(id);
            if self.is_concise && node.is_dir() && self.lens.get(path) != Some(&EMPTY_LEN) {
                continue;
            }
            let mut line = Vec::new();
            if self.lines != Lines::Names {
                line.extend(self.attributes(tree, (path, id), &users, &groups).bytes());
            }
            line.extend(self.prefix.as_os_str().as_bytes());
            if !path.is_root() {
                line.push(b'/');
                line.extend(path.as_bytes());
            }
            if let (NodeKind::Symlink(target), false) = (&node.kind, self.lines == Lines::Names) {
                line.extend(b" -> ");
                line.extend(&target[..]);
            }
            line.push(b'\n');
            out.writer().write_all(&line).or_io(report::cannot_write)?;
        }
        out.finish()
    }

    fn attributes(&self, tree: &Tree, (path, id): (&ImagePath, NodeId), users: &Ids, groups: &Ids) -> String {
        let node = tree.node(id);
        let (user, group) = (users.name(node.meta.owner.uid), groups.name(node.meta.owner.gid));
        let width = COLUMNS.saturating_sub(user.len() + group.len());
        let size = match &node.kind {
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                let stored = number.encode();
                let blank = width.saturating_sub(7).max(1);
                format!("{:blank$}{:3},{:3}", "", stored >> 8, stored & 0xff)
            }
            NodeKind::File { len, .. } => format!("{len:width$}"),
            NodeKind::Symlink(target) => format!("{:width$}", target.len()),
            NodeKind::Directory => {
                let len = self.lens.get(path).copied().unwrap_or_else(|| directory_len(tree, id));
                format!("{len:width$}")
            }
            NodeKind::Fifo | NodeKind::Socket => format!("{:width$}", 0),
        };
        let mode = mode(node.kind.file_type().letter(), node.meta.mode);
        let time = self.clock.listed(node.meta.mtime.seconds, self.is_full);
        format!("{mode} {user}/{group} {size} {time} ")
    }
}

/// Length recorded by SquashFS: 3, a header for each 256 names, and the names.
pub fn directory_len(tree: &Tree, id: NodeId) -> usize {
    let entries = tree.entries(id);
    let headers = entries.len().div_ceil(256) * 12;
    EMPTY_LEN + headers + entries.map(|entry| 8 + entry.name.len()).sum::<usize>()
}

pub fn directory_lens(tree: &Tree) -> HashMap<ImagePath, usize> {
    let (mut lens, mut walk) = (HashMap::new(), tree.walk());
    while let Some((path, id)) = walk.next() {
        if tree.node(id).is_dir() {
            lens.insert(path.clone(), directory_len(tree, id));
        }
    }
    lens
}

pub fn mode(letter: char, mode: u16) -> String {
    let mut text = String::from(letter);
    for (shift, special, lower, upper) in
        [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, true) => lower,
            (true, false) => upper,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::mode;

    #[test]
    fn modes_are_written_as_by_ls() {
        assert_eq!(mode('d', 0o1777), "drwxrwxrwt");
        assert_eq!(mode('-', 0o4755), "-rwsr-xr-x");
        assert_eq!(mode('-', 0o6644), "-rwSr-Sr--");
    }
}
