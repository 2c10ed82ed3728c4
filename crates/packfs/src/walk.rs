//! Everything in an image, one after the other, without holding it all in memory.

use crate::Opened;
use packfs_core::{Error, ImagePath, Meter, Name, Result, escaped};
use packfs_format::{DirCursor, DirEntry, Inode, InodeId, InodeKind, NameOrder};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// One name in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// From the root of the image; the root itself comes first.
    pub path: ImagePath,
    /// For [`Opened::open_id`] and the image's [`packfs_format::Volume`]; names with the same id
    /// are hard links.
    pub id: InodeId,
    /// Inode of the entry.
    pub inode: Inode,
}

/// See [`Opened::walk`].
pub struct Walk<'a> {
    opened: &'a Opened,
    path: ImagePath,
    /// The directories on the way to where the walk is, each with what is still to come of it, the
    /// next one last.
    open: Vec<Vec<DirEntry>>,
    /// Directories that were met: a second name of one leads in circles.
    seen: HashSet<InodeId>,
    meter: Meter,
    /// Entry that comes next in any case: the root at first.
    next: Option<InodeId>,
    /// Fault of the directory that was visited last; its entries come next all the same.
    fault: Option<Error>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(opened: &'a Opened) -> Self {
        let next = Some(opened.volume().root());
        let meter = Meter::new(opened.limits(), format!("{} image", opened.format().name()));
        Walk {
            opened,
            path: ImagePath::root(),
            open: Vec::new(),
            seen: HashSet::new(),
            meter,
            next,
            fault: None,
        }
    }

    /// Visits the entry at the path of the walk. A directory is opened, so that its entries come
    /// next.
    fn visit(&mut self, id: InodeId) -> Result<Walked> {
        let volume = self.opened.volume();
        let inode = volume.inode(id)?;
        if inode.kind == InodeKind::Directory {
            if !self.seen.insert(id) {
                return Err(self.corrupt("this directory was reached before by another name"));
            }
            let depth = self.open.len() as u64;
            let mut entries = Vec::new();
            let mut counted = Ok(());
            let mut order = NameOrder::of(&**volume);
            let read = volume.read_dir(id, DirCursor::default(), &mut |entry, _| {
                counted = self.meter.entry(depth, entry.name.len());
                order.next(&entry.name);
                entries.push(entry);
                if counted.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            counted?;
            self.fault =
                read.and_then(|()| order.finish()).err().map(|error| error.at(format!("{:?}", self.path)));
            entries.reverse();
            self.open.push(entries);
        }
        Ok(Walked { path: self.path.clone(), id, inode })
    }

    fn corrupt(&self, fault: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("{} image", self.opened.format().name()), fault)
    }

    /// Visits what the path names, and takes its name off again unless it is a directory that was
    /// opened.
    fn visit_named(&mut self, id: InodeId) -> Result<Walked> {
        let depth = self.open.len();
        let visited = self.visit(id).map_err(|error| error.at(format!("{:?}", self.path)));
        if self.open.len() == depth {
            self.path.pop();
        }
        visited
    }
}

/// After an error the walk goes on with what does not depend on it.
impl Iterator for Walk<'_> {
    type Item = Result<Walked>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(root) = self.next.take() {
            return Some(self.visit_named(root));
        }
        if let Some(fault) = self.fault.take() {
            return Some(Err(fault));
        }
        loop {
            let Some(entry) = self.open.last_mut()?.pop() else {
                self.open.pop();
                self.path.pop();
                continue;
            };
            return Some(match Name::new(&entry.name) {
                Ok(name) => {
                    self.path.push(name);
                    self.visit_named(entry.id)
                }
                Err(fault) => {
                    let fault = format!("entry \"{}\": {fault}", escaped(&entry.name));
                    Err(self.corrupt(fault).at(format!("{:?}", self.path)))
                }
            });
        }
    }
}
