//! Order of names in directories: readers that bisect find only names in order.

use crate::{InodeId, Volume};
use packfs_core::{Error, Result, escaped};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Limit of the directories known to be sorted: 512 KiB of ids.
const KNOWN_MAX: usize = 1 << 16;

/// Checks the names of one directory for the order that its image promises
/// ([`Directories::is_sorted`](crate::Directories::is_sorted)), as they are listed.
#[derive(Debug)]
pub struct NameOrder {
    /// The previous name; `None` if any order is valid.
    before: Option<Vec<u8>>,
    format: &'static str,
    fault: Option<String>,
}

impl NameOrder {
    /// Returns a checker for a directory of `volume`.
    pub fn of(volume: &dyn Volume) -> NameOrder {
        NameOrder { before: volume.is_sorted().then(Vec::new), format: volume.format().name, fault: None }
    }

    /// Adds the next name.
    pub fn next(&mut self, name: &[u8]) {
        let Some(before) = self.before.as_mut().filter(|_| self.fault.is_none()) else { return };
        if name <= before.as_slice() {
            self.fault = Some(if name == before.as_slice() {
                format!("two entries \"{}\"", escaped(name))
            } else {
                format!("entry \"{}\" follows \"{}\", out of order", escaped(name), escaped(before))
            });
        }
        before.clear();
        before.extend_from_slice(name);
    }

    /// Returns the result.
    ///
    /// # Errors
    ///
    /// `Corrupt`, naming the first entry out of order.
    pub fn finish(self) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(fault) => {
                let error = Error::corrupt(format!("{} image", self.format), fault);
                Err(error.hint("the kernel lists such a directory, but does not find all names in it"))
            }
        }
    }
}

/// Directories of an image whose names are known to be sorted, so that an unsuccessful bisection is
/// conclusive.
#[derive(Debug, Default)]
pub struct SortedDirs(Mutex<HashSet<InodeId>>);

impl SortedDirs {
    /// True if a directory is known to be sorted.
    pub fn contains(&self, dir: InodeId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&dir)
    }

    /// Searches a name among all entries of a directory, which `read` reports, and remembers the
    /// directory if they are sorted.
    ///
    /// # Errors
    ///
    /// Those of `read`, unless the name was found.
    pub fn find_among_all(
        &self,
        dir: InodeId,
        name: &[u8],
        read: impl FnOnce(&mut dyn FnMut(&[u8], InodeId) -> ControlFlow<()>) -> Result<()>,
    ) -> Result<Option<InodeId>> {
        let mut found = None;
        let mut before = Vec::new();
        let mut rises = true;
        let outcome = read(&mut |entry, id| {
            if entry == name {
                found = Some(id);
                return ControlFlow::Break(());
            }
            rises &= *entry > *before;
            before.clear();
            before.extend_from_slice(entry);
            ControlFlow::Continue(())
        });
        if found.is_some() {
            return Ok(found);
        }
        outcome?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rises && known.len() < KNOWN_MAX {
            known.insert(dir);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(dirs: &SortedDirs, names: &[&str], wanted: &str) -> Option<InodeId> {
        dirs.find_among_all(InodeId(7), wanted.as_bytes(), |visit| {
            for (index, name) in names.iter().enumerate() {
                let id = InodeId(index as u64);
                if visit(name.as_bytes(), id).is_break() {
                    break;
                }
            }
            Ok(())
        })
        .unwrap()
    }

    #[test]
    fn only_directories_in_order_are_remembered() {
        let dirs = SortedDirs::default();
        assert_eq!(find(&dirs, &["a", "c", "b"], "b"), Some(InodeId(2)));
        assert_eq!(find(&dirs, &["a", "c", "b"], "d"), None);
        assert!(!dirs.contains(InodeId(7)));
        assert_eq!(find(&dirs, &["a", "b", "c"], "d"), None);
        assert!(dirs.contains(InodeId(7)));
    }
}
