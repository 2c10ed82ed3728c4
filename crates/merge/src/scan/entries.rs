//! Entries of one directory of an input.

use super::{Open, Scan};
use packfs_core::{Error, FileType, Name, Result, escaped};
use packfs_format::{DirCursor, InodeId, NameOrder};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// An entry of a directory of the new tree, as one input has it.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub input: u32,
    pub what: What,
}

/// See [`Found`].
#[derive(Clone, Copy)]
pub(super) enum What {
    /// An inode, and the type that the entry claims.
    Inode(InodeId, FileType),
    /// The directory that is so many names into the path that the input is mounted at; after the
    /// last one its root.
    Mount(usize),
}

impl Scan<'_> {
    /// Reads a directory of an input.
    ///
    /// Errors: `Corrupt` for names that are none, that stand twice, or that are out of order.
    pub(super) fn read_dir(
        &self,
        input: u32,
        dir: InodeId,
        open: &Open,
        mut visit: impl FnMut(Vec<u8>, Found),
    ) -> Result<()> {
        let source = self.input(input)?;
        let at = |error: Error| error.at(self.path(open.name, b"")).at(&source.name);
        let subject = format!("{} image", source.volume.format().name);
        let mut order = NameOrder::of(&*source.volume);
        let mut fault = None;
        // Names of a sorted listing that stand twice are next to each other.
        let mut seen = (!source.volume.is_sorted()).then(HashSet::<Vec<u8>>::new);
        let mut before: Option<Vec<u8>> = None;
        let read = source.volume.read_dir(dir, DirCursor::default(), &mut |entry, _| {
            let is_again = match &mut seen {
                Some(seen) => !seen.insert(entry.name.clone()),
                None => before.as_ref() == Some(&entry.name),
            };
            if is_again {
                fault = Some(format!("name \"{}\" stands twice", escaped(&entry.name)));
                return ControlFlow::Break(());
            }
            if let Err(why) = Name::new(&entry.name) {
                fault = Some(format!("entry \"{}\": {why}", escaped(&entry.name)));
                return ControlFlow::Break(());
            }
            order.next(&entry.name);
            before = seen.is_none().then(|| entry.name.clone());
            visit(entry.name, Found { input, what: What::Inode(entry.id, entry.file_type) });
            ControlFlow::Continue(())
        });
        read.map_err(at)?;
        match fault {
            Some(fault) => Err(at(Error::corrupt(subject, fault))),
            None => order.finish().map_err(at),
        }
    }
}
