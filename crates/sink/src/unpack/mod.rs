//! Unpacks an opened image into a directory.
//!
//! Invariant: nothing outside the target is created, changed or removed, whatever names, links and
//! values the image contains, and whatever other processes put into the target meanwhile. The
//! target is opened once; every name is reached from there, one at a time and never through a link;
//! existing files are never written to.
//!
//! Directories come first, accessible only to this process if the image lets others write. Then
//! nodes without contents and, at the same time, files in disk order, whose extents are looked up
//! while directories are created. Then hard links, and finally the directories' own metadata, from
//! the bottom up.

mod dirs;
mod fill;
mod layout;
mod losses;
mod make;
mod options;
mod parallel;
mod report;
mod restore;
mod sys;
mod target;

pub use losses::{LossKind, NotRestored, NotRestoredExample};
pub use options::{Existing, OwnerPolicy, UnpackOptions};
pub use report::UnpackReport;

use crate::ready::{Opener, Ready};
use crate::select::{SelectedEntries, WalkEntry};
use dirs::Dirs;
use fill::Filling;
use layout::Layout;
use losses::{Failures, Losses};
use make::{Maker, RemovalLock};
use packfs_core::{Error, NodeId, NodeKind, Progress, Result, Stage, Tree};
use packfs_read::{LoadedVolume, PieceSink, ReadEngine, Wanted};
use restore::{CreatedWith, Restore};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use target::{ConflictScan, Target};

/// Unpacks the selected part of `loaded` (loaded by `engine`) into the directory `target`, which is
/// created if needed (but not its parents).
///
/// Files whose contents cannot be read are skipped and reported through `progress`; the others are
/// unpacked, and the first such error is returned at the end. Errors: `Failed` for a pattern that
/// matches nothing, for existing files that must not be replaced, and with
/// [`UnpackOptions::strict`] for losses; `Corrupt`; `Io`; `Cancelled`.
pub fn unpack(
    engine: &Arc<ReadEngine>,
    loaded: &LoadedVolume,
    target: &Path,
    options: &UnpackOptions,
    progress: &dyn Progress,
) -> Result<UnpackReport> {
    let tree = &loaded.tree;
    let chosen = SelectedEntries::new(tree, &options.paths)?;
    let target = Target::open(target, options.existing)?;
    let mut conflicts = (!target.fresh).then(|| ConflictScan::new(tree, &target, options.existing));
    let layout = Layout::new(tree, &chosen, conflicts.as_mut())?;
    let losses = Losses::default();
    let restore = Restore::new(tree, &losses, options, &target);
    let maker = Maker {
        tree,
        restore: &restore,
        losses: &losses,
        existing: options.existing,
        devices: options.devices,
        turns: RemovalLock::new(),
    };
    let unpacking = Unpacking {
        engine,
        loaded,
        tree,
        target: &target,
        layout: &layout,
        found: conflicts.map(|conflicts| conflicts.found).unwrap_or_default(),
        maker: &maker,
        options,
        progress,
        descriptors: parallel::descriptors_a_worker(engine.jobs()),
        failures: Failures::default(),
        absent: Mutex::default(),
    };
    let report = unpacking.run()?;
    if options.sync {
        rustix::fs::syncfs(&target.fd).map_err(|errno| Error::io("cannot sync the target", errno.into()))?;
    }
    report.finish(losses.into_rows(), options.strict)
}

struct Unpacking<'a> {
    engine: &'a Arc<ReadEngine>,
    loaded: &'a LoadedVolume,
    tree: &'a Tree,
    target: &'a Target,
    layout: &'a Layout<'a>,
    /// Directories that existed before.
    found: HashSet<NodeId>,
    maker: &'a Maker<'a>,
    options: &'a UnpackOptions,
    progress: &'a dyn Progress,
    descriptors: usize,
    failures: Failures,
    /// No hard link must be made to a file that happens to have the name.
    absent: Mutex<HashSet<NodeId>>,
}

impl Unpacking<'_> {
    fn run(self) -> Result<UnpackReport> {
        let layout = self.layout;
        self.progress.begin(Stage::Extract, (layout.files.len() + layout.bare.len()) as u64, layout.bytes);
        let mut report = UnpackReport::of(self.tree, layout);
        report.not_created = self.make_and_fill()? + self.make_links()?;
        self.finish_directories()?;
        self.failures.into_result().map(|()| report)
    }

    fn dirs(&self) -> Dirs<'_> {
        Dirs::new(self.tree, &self.target.fd, self.descriptors)
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.progress.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    fn make_directories(&self) -> Result<()> {
        let mut dirs = self.dirs();
        for entry in &self.layout.dirs {
            self.check_cancelled()?;
            if self.found.contains(&entry.node) {
                self.maker.enter_found_dir(&mut dirs, entry)?;
            } else {
                self.maker.directory(&mut dirs, entry)?;
            }
        }
        Ok(())
    }

    /// Returns the number of nodes without contents that could not be created.
    fn make_and_fill(&self) -> Result<u64> {
        let (jobs, ready) = (self.engine.jobs(), Ready::default());
        let make = |opener: Opener<'_>, jobs| {
            self.make_directories()?;
            opener.open();
            self.make_bare(jobs)
        };
        if jobs <= 1 {
            let not_created = make(ready.opener(), jobs)?;
            return self.fill_files(&ready).map(|()| not_created);
        }
        std::thread::scope(|scope| {
            let opener = ready.opener();
            let making = scope.spawn(move || make(opener, jobs - 1));
            let filled = self.fill_files(&ready);
            let made = making.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // An error of directories is the cause if files could not be filled.
            made.and_then(|not_created| filled.map(|()| not_created))
        })
    }

    /// Returns the number of failures.
    fn make_bare(&self, jobs: usize) -> Result<u64> {
        parallel::count(&self.layout.bare, jobs, |share| {
            let mut dirs = self.dirs();
            let mut not_created = 0;
            while let Some(entry) = share.next() {
                self.check_cancelled()?;
                if !self.maker.bare(&mut dirs, entry)? {
                    not_created += 1;
                    self.absent().insert(entry.node);
                }
                self.progress.advance(1, 0, 0);
            }
            Ok(not_created)
        })
    }

    /// Waits until directories are `ready`. Incomplete files are removed in any case.
    fn fill_files(&self, ready: &Ready) -> Result<()> {
        let files = &self.layout.files;
        let filling = Filling::new(self.maker, files, self.progress, &self.failures, self.descriptors);
        let wanted: Vec<Wanted> = files.iter().map(|entry| self.wanted(entry)).collect();
        let filled = self.engine.in_disk_order(&wanted, self.progress, &|| {
            let (dirs, fail_fast) = (self.dirs(), self.options.fail_fast);
            Ok(Worker { filling: &filling, dirs, ready: Some(ready), fail_fast })
        });
        let outcome = filled.and_then(|()| ready.wait()).and_then(|()| self.make_holes(&filling));
        filling.discard_partial(&mut self.dirs()).and(outcome)?;
        self.absent().extend(filling.failed().into_iter().map(|file| files[file].node));
        Ok(())
    }

    /// Files without any piece are one hole each.
    fn make_holes(&self, filling: &Filling<'_>) -> Result<()> {
        let holes = filling.missing();
        parallel::count(&holes, self.engine.jobs(), |share| {
            let mut dirs = self.dirs();
            while let Some(&file) = share.next() {
                self.check_cancelled()?;
                filling.hole(&mut dirs, file)?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn wanted(&self, entry: &WalkEntry<'_>) -> Wanted {
        let len = match self.tree.node(entry.node).kind {
            NodeKind::File { len, .. } => len,
            _ => 0,
        };
        Wanted { id: self.loaded.inodes[entry.node.index()], len }
    }

    /// Returns the number of failures: the first name is missing, or the node cannot have another.
    fn make_links(&self) -> Result<u64> {
        let (mut from, mut to) = (self.dirs(), self.dirs());
        let mut not_created = 0;
        let absent = self.absent();
        for (entry, first) in &self.layout.links {
            self.check_cancelled()?;
            if absent.contains(&entry.node) {
                not_created += 1;
            } else if let Some(error) = self.maker.link(&mut from, &mut to, entry, first)? {
                if self.options.fail_fast {
                    return Err(error);
                }
                not_created += 1;
                self.failures.add(error, self.progress);
            }
        }
        Ok(not_created)
    }

    fn absent(&self) -> MutexGuard<'_, HashSet<NodeId>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Children precede parents if those could become inaccessible.
    fn finish_directories(&self) -> Result<()> {
        let kept = |entry: &&WalkEntry<'_>| {
            self.options.existing != Existing::Skip || !self.found.contains(&entry.node)
        };
        let (locking, others): (Vec<&WalkEntry<'_>>, Vec<&WalkEntry<'_>>) = self
            .layout
            .dirs
            .iter()
            .filter(kept)
            .partition(|entry| self.maker.restore.locks_out(self.tree.node(entry.node)));
        parallel::count(&others, self.engine.jobs(), |share| {
            let mut dirs = self.dirs();
            while let Some(entry) = share.next() {
                self.check_cancelled()?;
                self.finish_directory(&mut dirs, entry)?;
            }
            Ok(0)
        })?;
        let mut dirs = self.dirs();
        for entry in locking.iter().rev() {
            self.finish_directory(&mut dirs, entry)?;
        }
        if self.target.fresh || self.options.existing != Existing::Skip {
            self.maker.restore.finish_fd(&self.target.fd, NodeId::ROOT, CreatedWith { mode: None });
        }
        Ok(())
    }

    fn finish_directory(&self, dirs: &mut Dirs<'_>, entry: &WalkEntry<'_>) -> Result<()> {
        let found = self.found.contains(&entry.node);
        let mode = self.maker.restore.mode_to_make_dir(self.tree.node(entry.node));
        self.maker.finish_dir(dirs, entry, CreatedWith { mode: (!found).then_some(mode) })
    }
}

struct Worker<'a> {
    filling: &'a Filling<'a>,
    dirs: Dirs<'a>,
    /// `None` once the directories are known to exist.
    ready: Option<&'a Ready>,
    fail_fast: bool,
}

impl PieceSink for Worker<'_> {
    fn expect(&mut self, file_index: usize, data_len: u64) {
        self.filling.expect(file_index, data_len);
    }

    fn piece(&mut self, file_index: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(ready) = self.ready.take() {
            ready.wait()?;
        }
        self.filling.piece(&mut self.dirs, file_index, offset, bytes)
    }

    fn failed(&mut self, file_index: usize, error: Error) -> Result<()> {
        let error = self.filling.name(file_index, error);
        if self.fail_fast { Err(error) } else { self.filling.fail(&mut self.dirs, file_index, error) }
    }
}
