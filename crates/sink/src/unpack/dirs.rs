//! Open directories of the target, opened name by name from the target's own directory.
//!
//! Invariant: a descriptor handed out is a real directory, reached from the target's root by
//! `openat` with `O_NOFOLLOW` for every name. So links in the target never lead outside. Depth is
//! unlimited: no path string is built, nothing recurses, and the number of open descriptors is
//! bounded.

use packfs_core::{Error, NodeId, Result, Tree};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;

pub(super) const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The least recently used directory is closed first.
pub(super) struct Dirs<'a> {
    tree: &'a Tree,
    root: &'a File,
    capacity: usize,
    nodes: Vec<NodeId>,
    rows: Vec<Row>,
    clock: u64,
    last: usize,
}

struct Row {
    fd: File,
    used: u64,
}

impl<'a> Dirs<'a> {
    /// `root` stays open, besides at most `capacity` others (at least one).
    pub(super) fn new(tree: &'a Tree, root: &'a File, capacity: usize) -> Self {
        Dirs { tree, root, capacity: capacity.max(1), nodes: Vec::new(), rows: Vec::new(), clock: 0, last: 0 }
    }

    pub(super) fn get(&mut self, dir: NodeId) -> Result<BorrowedFd<'_>> {
        self.file(dir).map(AsFd::as_fd)
    }

    pub(super) fn file(&mut self, dir: NodeId) -> Result<&File> {
        if dir == NodeId::ROOT {
            return Ok(self.root);
        }
        if self.nodes.get(self.last) != Some(&dir) {
            self.last = match self.nodes.iter().position(|&node| node == dir) {
                Some(found) => found,
                None => self.open_chain(dir)?,
            };
        }
        self.clock += 1;
        let row = &mut self.rows[self.last];
        row.used = self.clock;
        Ok(&row.fd)
    }

    fn open_chain(&mut self, dir: NodeId) -> Result<usize> {
        let mut closed = vec![dir];
        let mut at = self.tree.node(dir).parent();
        let mut above = loop {
            if at == NodeId::ROOT {
                break None;
            }
            if let Some(found) = self.nodes.iter().position(|&node| node == at) {
                break Some(found);
            }
            closed.push(at);
            at = self.tree.node(at).parent();
        };
        for &node in closed.iter().rev() {
            let parent = match above {
                None => self.root,
                Some(row) => &self.rows[row].fd,
            };
            let fd = openat(parent, self.tree.first_name(node), OPEN_DIR, Mode::empty())
                .map_err(|errno| self.cannot_open(node, errno))?;
            above = Some(self.keep(node, fd.into()));
        }
        Ok(above.unwrap_or(0))
    }

    fn cannot_open(&self, node: NodeId, errno: Errno) -> Error {
        let error = Error::io(
            format!("cannot open directory {:?} of the target", self.tree.path(node)),
            errno.into(),
        );
        if matches!(errno, Errno::NOTDIR | Errno::LOOP) {
            return error.hint("another process replaced it by a file or link; links are never followed");
        }
        error
    }

    pub(super) fn keep(&mut self, node: NodeId, fd: File) -> usize {
        self.clock += 1;
        let row = Row { fd, used: self.clock };
        if self.rows.len() < self.capacity {
            self.nodes.push(node);
            self.rows.push(row);
            return self.rows.len() - 1;
        }
        let oldest = (0..self.rows.len()).min_by_key(|&index| self.rows[index].used).unwrap_or(0);
        self.nodes[oldest] = node;
        self.rows[oldest] = row;
        oldest
    }
}
