//! Paths on a walk, built only when displayed: an image may nest directories as deep as its size
//! permits, and a path for every inode would need the square of that.

use packfs_core::{ImagePath, Name};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Limit of the names displayed of a path; its start is omitted.
const NAMES_SHOWN: usize = 4096;

/// Directories by number: the number of the parent, which is lower, and the name.
#[derive(Default)]
pub(super) struct DirNames(RefCell<Vec<(usize, Box<[u8]>)>>);

impl DirNames {
    /// Adds the next directory; the first is the root.
    pub(super) fn push(&self, parent: usize, name: &[u8]) {
        self.0.borrow_mut().push((parent, name.into()));
    }

    /// Returns the number of the parent; the root is its own.
    pub(super) fn parent(&self, dir: usize) -> Option<usize> {
        self.0.borrow().get(dir).map(|(parent, _)| *parent)
    }

    /// Returns the path from the root, without invalid names; true if names next to the root were
    /// omitted.
    fn path(&self, mut dir: usize, last: &[u8]) -> (ImagePath, bool) {
        let dirs = self.0.borrow();
        let mut names = vec![last];
        while let Some((parent, name)) = dirs.get(dir).filter(|_| dir != 0 && names.len() < NAMES_SHOWN) {
            names.push(name);
            dir = *parent;
        }
        let mut path = ImagePath::root();
        names.into_iter().rev().filter_map(|name| Name::new(name).ok()).for_each(|name| path.push(name));
        (path, dir != 0)
    }
}

/// Path of an entry, or of a directory itself, built only when it is displayed.
///
/// Very long paths are truncated at the start and begin with `...`.
#[derive(Clone)]
pub struct EntryPath<'n> {
    names: Rc<DirNames>,
    dir: usize,
    /// Empty for the directory's own path.
    name: &'n [u8],
}

impl<'n> EntryPath<'n> {
    pub(super) fn new(names: &Rc<DirNames>, dir: usize, name: &'n [u8]) -> Self {
        EntryPath { names: names.clone(), dir, name }
    }
}

impl fmt::Display for EntryPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.path(self.dir, self.name) {
            (path, false) => write!(f, "{path}"),
            (path, true) => write!(f, ".../{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_end_of_a_very_deep_path() {
        let names = Rc::new(DirNames::default());
        names.push(0, b"");
        (0..NAMES_SHOWN + 10).for_each(|parent| names.push(parent, b"d"));
        let shown = EntryPath::new(&names, NAMES_SHOWN + 10, b"f").to_string();
        assert!(shown.starts_with(".../d/d/") && shown.ends_with("/d/f"), "{shown}");
        assert_eq!(shown.split('/').count(), 1 + NAMES_SHOWN);
    }

    #[test]
    fn the_root_is_a_slash_even_before_it_is_met() {
        assert_eq!(EntryPath::new(&Rc::default(), 0, b"").to_string(), "/");
    }
}
