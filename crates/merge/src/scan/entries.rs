//! Entries of one directory of an input.

use super::{Open, Scan};
use packfs_core::{Error, FileType, Result, escaped};
use packfs_format::{InodeId, corrupt, entry_name, read_entries};
use std::collections::HashSet;

#[derive(Clone, Copy)]
pub(super) struct Found {
    pub input: u32,
    pub what: What,
}

#[derive(Clone, Copy)]
pub(super) enum What {
    /// The entry claims the type.
    Inode(InodeId, FileType),
    /// Directory at this depth of the input's mount path; after the last name, the input's root.
    Mount(usize),
}

impl Scan<'_> {
    /// Errors: `Corrupt` for names that are invalid, duplicate, or out of order.
    pub(super) fn read_dir(
        &self,
        input: u32,
        dir: InodeId,
        open: &Open,
        mut visit: impl FnMut(Vec<u8>, Found),
    ) -> Result<()> {
        let source = self.input(input)?;
        let at = |error: Error| error.at(self.path(open.name, b"")).at(&source.name);
        let volume = &*source.volume;
        // Duplicate names of a sorted listing are adjacent.
        let mut seen = (!volume.is_sorted()).then(HashSet::<Vec<u8>>::new);
        let mut before: Option<Vec<u8>> = None;
        let read = read_entries(volume, dir, |entry, order| {
            let is_again = match &mut seen {
                Some(seen) => !seen.insert(entry.name.clone()),
                None => before.as_ref() == Some(&entry.name),
            };
            if is_again {
                return Err(corrupt(volume, format!("name \"{}\" stands twice", escaped(&entry.name))));
            }
            entry_name(volume, &entry.name)?;
            order.next(&entry.name);
            before = seen.is_none().then(|| entry.name.clone());
            visit(entry.name, Found { input, what: What::Inode(entry.id, entry.file_type) });
            Ok(())
        });
        read.flatten().map_err(at)
    }
}
