//! Everything in an image, one after the other, without holding it all in memory.

use crate::Reader;
use packfs_core::{Error, ImagePath, Meter, Result};
use packfs_format::{DirEntry, Inode, InodeId, InodeKind, SeenDirs, entry_name, image_words, read_entries};

/// One name in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walked {
    /// From the root of the image; the root itself comes first.
    pub path: ImagePath,
    /// For [`Reader::open_id`] and the image's [`packfs_format::Volume`]; names with the same id
    /// are hard links.
    pub id: InodeId,
    /// Inode of the entry.
    pub inode: Inode,
}

/// See [`Reader::walk`].
pub struct Walk<'a> {
    reader: &'a Reader,
    path: ImagePath,
    /// The directories on the way to where the walk is, each with what is still to come of it, the
    /// next one last.
    open: Vec<Vec<DirEntry>>,
    /// Directories that were met: a second name of one leads in circles.
    seen: SeenDirs,
    meter: Meter,
    /// Entry that comes next in any case: the root at first.
    next: Option<InodeId>,
    /// Fault of the directory that was visited last; its entries come next all the same.
    fault: Option<Error>,
}

impl<'a> Walk<'a> {
    fn new(reader: &'a Reader) -> Self {
        let next = Some(reader.volume().root());
        let meter = Meter::new(reader.limits(), image_words(&**reader.volume()));
        Walk {
            reader,
            path: ImagePath::root(),
            open: Vec::new(),
            seen: SeenDirs::default(),
            meter,
            next,
            fault: None,
        }
    }

    /// Visits the entry at the path of the walk. A directory is opened, so that its entries come
    /// next.
    fn visit(&mut self, id: InodeId) -> Result<Walked> {
        let volume = self.reader.volume();
        let inode = volume.inode(id)?;
        if inode.kind == InodeKind::Directory {
            self.seen.enter(&**volume, id)?;
            let depth = self.open.len() as u64;
            let mut entries = Vec::new();
            let read = read_entries(&**volume, id, |entry, order| {
                self.meter.entry(depth, entry.name.len())?;
                order.next(&entry.name);
                entries.push(entry);
                Ok(())
            })?;
            self.fault = read.err().map(|error| error.at(format!("{:?}", self.path)));
            entries.reverse();
            self.open.push(entries);
        }
        Ok(Walked { path: self.path.clone(), id, inode })
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
            return Some(match entry_name(&**self.reader.volume(), &entry.name) {
                Ok(name) => {
                    self.path.push(name);
                    self.visit_named(entry.id)
                }
                Err(error) => Err(error.at(format!("{:?}", self.path))),
            });
        }
    }
}

impl Reader {
    /// Everything in the image, the root first, each directory before what is in it, in stored
    /// order. Only the directories on the way are held in memory. After an error, the walk goes on
    /// with what does not depend on it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
    /// # std::fs::create_dir_all(source.join("etc")).unwrap();
    /// # std::fs::write(source.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
    /// # packfs::pack(&source, &path).run()?;
    /// let image = packfs::open(&path)?;
    /// let mut paths = Vec::new();
    /// for entry in image.walk() {
    ///     let entry = entry?;
    ///     paths.push(format!("{} {}", entry.path, entry.inode.kind.file_type().word()));
    /// }
    /// assert_eq!(paths, ["/ directory", "etc directory", "etc/hosts file"]);
    /// # Ok::<(), packfs::Error>(())
    /// ```
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(self)
    }
}
