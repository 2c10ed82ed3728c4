//! Directories and inodes of a walk: their paths, and comparison of their link counts.

use super::Report;
use super::entry_path::{DirNames, EntryPath};
use crate::units::*;
use packfs_core::escaped;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

/// Directories and inodes met on a walk. `K` identifies inodes, `D` is the walk's data of a
/// directory.
///
/// A directory refers to its parent by a lower number, so paths are finite even in a damaged image.
pub struct Hierarchy<K, D> {
    dirs: Vec<D>,
    names: Rc<DirNames>,
    met: HashMap<K, Met>,
    /// First names of inodes with several links, in the order in which they were met.
    linked: Vec<(K, usize, Box<[u8]>)>,
}

struct Met {
    nlink: u32,
    names: u32,
    is_dir: bool,
}

impl<K, D> Default for Hierarchy<K, D> {
    fn default() -> Self {
        Hierarchy { dirs: Vec::new(), names: Rc::default(), met: HashMap::new(), linked: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash, D: Copy> Hierarchy<K, D> {
    /// Adds the root, before all others.
    pub fn meet_root(&mut self, id: K, nlink: u32, facts: D) {
        self.met.insert(id, Met { nlink, names: 1, is_dir: true });
        self.push_dir(0, &[], facts);
    }

    /// Adds an inode met first by the entry `name` of directory `dir`; `facts` for a directory.
    /// Directories are numbered in the order in which they are met.
    pub fn meet(&mut self, id: K, nlink: u32, facts: Option<D>, dir: usize, name: &[u8]) {
        let is_dir = facts.is_some();
        self.met.insert(id, Met { nlink, names: 1, is_dir });
        if let Some(facts) = facts {
            self.push_dir(dir, name, facts);
        } else if nlink != 1 {
            self.linked.push((id, dir, name.into()));
        }
    }

    fn push_dir(&mut self, parent: usize, name: &[u8], facts: D) {
        self.names.push(parent, name);
        self.dirs.push(facts);
    }

    /// Reports an invalid further name of an inode. Returns true for a directory; `None` if the
    /// inode is new.
    pub fn meet_again(&mut self, id: K, dir: usize, name: &[u8], report: &mut Report<'_>) -> Option<bool> {
        let met = self.met.get_mut(&id)?;
        met.names = met.names.plus(1);
        let (is_dir, too_many) = (met.is_dir, met.nlink == 1 && met.names == 2);
        if is_dir {
            report.error(self.entry_path(dir, name), "a second name of a directory");
        } else if too_many {
            report.warn(self.entry_path(dir, name), "a second name of an inode with a link count of 1");
        }
        Some(is_dir)
    }

    /// Returns the walk's data of directory `index`; `None` if it does not exist.
    pub fn dir(&self, index: usize) -> Option<D> {
        self.dirs.get(index).copied()
    }

    /// Returns the data of its parent; the root is its own.
    pub fn parent(&self, index: usize) -> Option<D> {
        self.names.parent(index).and_then(|parent| self.dir(parent))
    }

    /// Returns the number of inodes met.
    pub fn inode_count(&self) -> u64 {
        self.met.len() as u64
    }

    /// Returns the path of directory `index`, without invalid names.
    pub fn path(&self, index: usize) -> EntryPath<'static> {
        EntryPath::new(&self.names, index, &[])
    }

    /// Returns the path of an entry of directory `dir`, or the directory's if `name` is empty.
    pub fn entry_path<'n>(&self, dir: usize, name: &'n [u8]) -> EntryPath<'n> {
        EntryPath::new(&self.names, dir, name)
    }

    /// Reports that the entry `name` of directory `dir` must not follow `before`.
    pub fn order_fault(&self, dir: usize, before: &[u8], name: &[u8], report: &mut Report<'_>) {
        let path = self.path(dir);
        if before == name {
            report.error(path, format_args!("two entries \"{}\"", escaped(name)));
        } else {
            let (name, before) = (escaped(name), escaped(before));
            report.error(path, format_args!("entry \"{name}\" follows \"{before}\", out of order"));
        }
    }

    /// Reports inodes whose link count differs from their number of names. Only valid after a
    /// complete walk.
    pub fn check_links(&self, report: &mut Report<'_>) {
        for (id, dir, name) in &self.linked {
            let Some(&Met { nlink, names, .. }) = self.met.get(id) else { continue };
            let path = || self.entry_path(*dir, name);
            let fault = format_args!("link count {nlink}, but it has {names} names");
            match nlink {
                // Names were lost, or the count is wrong.
                nlink if nlink == 0 || nlink > names => report.error(path(), fault),
                nlink if nlink < names => report.warn(path(), fault),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Finding;

    fn told(tell: impl FnOnce(&mut Hierarchy<u64, char>, &mut Report<'_>)) -> Vec<String> {
        let mut hierarchy = Hierarchy::default();
        hierarchy.meet_root(1, 3, 'r');
        hierarchy.meet(2, 2, Some('a'), 0, b"a");
        hierarchy.meet(3, 2, None, 1, b"f");
        let mut told = Vec::new();
        let mut found = |Finding { place, fault, .. }: Finding| told.push(format!("{place}: {fault}"));
        tell(&mut hierarchy, &mut Report::new("test", &mut found));
        told
    }

    #[test]
    fn paths_lead_to_the_root() {
        told(|hierarchy, _| {
            assert_eq!(hierarchy.path(0).to_string(), "/");
            assert_eq!(hierarchy.entry_path(1, b"f").to_string(), "a/f");
            assert_eq!(hierarchy.entry_path(1, b"..").to_string(), "a");
            assert_eq!(
                (hierarchy.dir(1), hierarchy.parent(1), hierarchy.parent(0)),
                (Some('a'), Some('r'), Some('r'))
            );
            assert_eq!((hierarchy.dir(2), hierarchy.inode_count()), (None, 3));
        });
    }

    #[test]
    fn link_counts_are_held_against_names() {
        assert_eq!(
            told(|hierarchy, report| hierarchy.check_links(report)),
            ["a/f: link count 2, but it has 1 names"]
        );
        let all_named = |hierarchy: &mut Hierarchy<_, _>, report: &mut Report<'_>| {
            assert_eq!(hierarchy.meet_again(3, 0, b"g", report), Some(false));
            hierarchy.check_links(report);
        };
        assert!(told(all_named).is_empty());
    }

    #[test]
    fn reports_second_names_of_directories_but_not_new_inodes() {
        let again = told(|hierarchy, report| {
            assert_eq!(hierarchy.meet_again(9, 0, b"b", report), None);
            assert_eq!(hierarchy.meet_again(2, 1, b"b", report), Some(true));
        });
        assert_eq!(again, ["a/b: a second name of a directory"]);
    }
}
