//! Parts of reading the hierarchy of volumes into a tree.

use crate::{InodeId, InodeKind, Volume};
use packfs_core::{ContentId, Meter, NodeKind, Result, escaped};

/// Returns the node of an inode: a file has `content`, and a symbolic link its target. Both count
/// for `meter`.
///
/// # Errors
/// Those of [`Volume::read_link`], and `Limit`.
pub fn node_kind(
    volume: &dyn Volume,
    (id, kind): (InodeId, InodeKind),
    content: ContentId,
    meter: &mut Meter,
) -> Result<NodeKind> {
    Ok(match kind {
        InodeKind::Directory => NodeKind::Directory,
        InodeKind::File { len } => {
            meter.file(len)?;
            NodeKind::File { len, content }
        }
        InodeKind::Symlink => {
            let target = volume.read_link(id)?;
            meter.target(target.len())?;
            NodeKind::Symlink(target.into())
        }
        InodeKind::BlockDevice(number) => NodeKind::BlockDevice(number),
        InodeKind::CharDevice(number) => NodeKind::CharDevice(number),
        InodeKind::Fifo => NodeKind::Fifo,
        InodeKind::Socket => NodeKind::Socket,
    })
}

/// Names of directories and their parents, for messages: paths of all entries would take more
/// memory than the tree.
#[derive(Debug)]
pub struct DirNames(Vec<(usize, Box<[u8]>)>);

impl Default for DirNames {
    fn default() -> Self {
        DirNames(vec![(DirNames::ROOT, Box::default())])
    }
}

impl DirNames {
    /// Number of the root.
    pub const ROOT: usize = 0;

    /// Adds a directory; returns its number.
    pub fn add(&mut self, parent: usize, name: &[u8]) -> usize {
        self.0.push((parent, name.into()));
        self.0.len().saturating_sub(1)
    }

    /// Returns the path of `name` in a directory, quoted; of the directory itself if the name is
    /// empty.
    pub fn path(&self, mut dir: usize, name: &[u8]) -> String {
        let mut names = vec![name];
        while let Some((parent, name)) = self.0.get(dir).filter(|_| dir != DirNames::ROOT) {
            names.push(name);
            dir = *parent;
        }
        let path = names.into_iter().rev().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(&b'/');
        format!("\"{}\"", if path.is_empty() { escaped(b"/") } else { escaped(&path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_from_the_root_to_the_name() {
        let mut names = DirNames::default();
        let etc = names.add(DirNames::ROOT, b"etc");
        let dir = names.add(etc, b"ssl\n");
        assert_eq!(names.path(DirNames::ROOT, b""), "\"/\"");
        assert_eq!(names.path(etc, b"hosts"), "\"etc/hosts\"");
        assert_eq!(names.path(dir, b""), "\"etc/ssl\\n\"");
    }
}
