//! Runs everything on an image that packfs does to images, and judges the outcome.

use crate::outcome::Outcome;
use crate::{Breach, Sandpit};
use packfs::MemoryImage;
use packfs::read::{LoadedVolume, Piece, Wanted};
use packfs::sink::UnpackOptions;
use packfs::{
    DirCursor, Error, ErrorKind, Image, InodeKind, NodeKind, OpenOptions, Opened, Severity, Silent,
};
use packfs_core::escaped;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Verdict on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything was read without an error, and it is what the valid image holds.
    OkSame,
    /// Everything was read without an error, and it is something else.
    OkDiff,
    /// It was refused, or what is wrong was told of.
    Error,
}

/// See [`judge`].
#[derive(Clone, Debug)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// A hash of everything in it, if all could be read.
    pub digest: Option<u64>,
    /// The first fault that was told.
    pub error: Option<String>,
    /// The first promise that did not hold.
    pub breach: Option<Breach>,
}

impl Judged {
    /// Judges an input that is either read or refused.
    pub(crate) fn of(outcome: Result<Outcome, Breach>, valid: Option<u64>) -> Judged {
        let (verdict, digest, error, breach) = match outcome {
            Ok(Outcome::Read(digest)) if Some(digest) == valid => (Verdict::OkSame, Some(digest), None, None),
            Ok(Outcome::Read(digest)) => (Verdict::OkDiff, Some(digest), None, None),
            Ok(Outcome::Refused(why)) => (Verdict::Error, None, Some(why), None),
            Err(breach) => (Verdict::Error, None, None, Some(breach)),
        };
        Judged { verdict, digest, error, breach }
    }
}

/// Names that a walk follows at most; images of the corpus have some hundreds.
const ENTRIES_MAX: usize = 20_000;
/// Names that are looked up.
const LOOKUPS_MAX: usize = 500;

/// Opens, walks, lists, reads, checks and unpacks an image with so many threads. `valid` is the
/// digest of the image that it was made of.
pub fn judge(image: &[u8], pit: &Sandpit, jobs: usize, valid: Option<u64>) -> Judged {
    let mut judging = Judging::default();
    let digest = match open(image, jobs) {
        Ok(opened) => judging.all(&opened, pit),
        Err(error) => {
            judging.fault(&error);
            None
        }
    };
    let verdict = match (&judging.error, digest) {
        (None, Some(digest)) if Some(digest) == valid => Verdict::OkSame,
        (None, Some(_)) => Verdict::OkDiff,
        _ => Verdict::Error,
    };
    Judged { verdict, digest, error: judging.error, breach: judging.breach }
}

/// Opens bytes as an image, whatever its format.
///
/// # Errors
/// As of [`OpenOptions::open_image`].
pub(crate) fn open(image: &[u8], jobs: usize) -> packfs::Result<Opened> {
    let image: Arc<dyn Image> = Arc::new(MemoryImage::new("mutated image", image.to_vec()));
    OpenOptions::new().jobs(jobs).cache_bytes(1 << 20).open_image(image)
}

/// State of a judgement.
#[derive(Default)]
struct Judging {
    error: Option<String>,
    breach: Option<Breach>,
}

impl Judging {
    fn breach(&mut self, breach: Breach) {
        self.breach.get_or_insert(breach);
    }

    /// Notes an error that reading told.
    fn fault(&mut self, error: &Error) {
        if error.kind() == ErrorKind::Io {
            self.breach(Breach::NotTheInput(error.to_string()));
        }
        self.error.get_or_insert_with(|| error.to_string());
    }

    fn all(&mut self, opened: &Opened, pit: &Sandpit) -> Option<u64> {
        // All that is requested once an image is open may fail, and must not do anything else.
        let _ = opened.volume().facts();
        let _ = opened.volume().space();
        let _ = opened.volume().coding();
        let mut found = None;
        let mut note = |finding: packfs::Finding| {
            if finding.severity >= Severity::Error {
                found.get_or_insert(format!("{}: {}", finding.place, finding.fault));
            }
        };
        let checked = opened.volume().check(&mut note);
        let is_clean = checked.is_ok() && found.is_none();
        if let Err(error) = &checked {
            self.fault(error);
        }
        if let Some(found) = found {
            self.error.get_or_insert(found);
        }
        self.walk(opened, is_clean);
        let loaded = match opened.load(&Silent) {
            Ok(loaded) => loaded,
            Err(error) => {
                self.missed(is_clean, &error);
                return None;
            }
        };
        if loaded.tree.nodes().count() > ENTRIES_MAX {
            self.error.get_or_insert("more entries than are tried".into());
            return None;
        }
        let mut damaged = None;
        let decoded = packfs::check::content(opened.engine(), &loaded, &Silent, &mut |finding| {
            damaged.get_or_insert(format!("{}: {}", finding.place, finding.fault));
        });
        if let Err(error) = &decoded {
            self.fault(error);
        }
        let is_whole = decoded.is_ok() && damaged.is_none();
        if let Some(damaged) = damaged {
            self.error.get_or_insert(damaged);
        }
        let digest = match digest(opened, &loaded) {
            Ok(digest) => Some(digest),
            Err(error) => {
                self.missed(is_whole, &error);
                None
            }
        };
        self.unpack(opened, &loaded, pit, is_clean && is_whole);
        digest
    }

    /// An error of reading, where checking may have called it clean.
    fn missed(&mut self, is_clean: bool, error: &Error) {
        if is_clean && matches!(error.kind(), ErrorKind::Corrupt) {
            self.breach(Breach::CheckMissed(error.to_string()));
        }
        self.fault(error);
    }

    fn walk(&mut self, opened: &Opened, is_clean: bool) {
        let mut lookups = 0;
        for entry in opened.walk().take(ENTRIES_MAX) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.missed(is_clean, &error);
                    continue;
                }
            };
            let volume = opened.volume();
            let read = match entry.inode.kind {
                InodeKind::Symlink => volume.read_link(entry.id).map(drop),
                InodeKind::Directory if lookups < LOOKUPS_MAX => {
                    let mut names = Vec::new();
                    let listed = volume.read_dir(entry.id, DirCursor::default(), &mut |entry, _| {
                        names.push((entry.name, entry.id));
                        lookups += 1;
                        if lookups < LOOKUPS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                    for (name, id) in names {
                        let found = volume.lookup(entry.id, &name);
                        if is_clean && !matches!(found, Ok(Some(found)) if found == id) {
                            let what = format!("{} in {}: {found:?}", escaped(&name), entry.path);
                            self.breach(Breach::LookupDisagrees(what));
                        }
                    }
                    listed
                }
                _ => Ok(()),
            };
            let attributes = if entry.inode.has_xattrs { volume.xattrs(entry.id).map(drop) } else { Ok(()) };
            for error in [read, attributes].into_iter().filter_map(Result::err) {
                self.missed(is_clean, &error);
            }
        }
    }

    fn unpack(&mut self, opened: &Opened, loaded: &LoadedVolume, pit: &Sandpit, is_clean: bool) {
        let options = UnpackOptions::default();
        let unpacked = packfs::sink::unpack(opened.engine(), loaded, &pit.target(), &options, &Silent);
        match &unpacked {
            // What this machine has no room for is its own fault; what cannot be decoded was found
            // before.
            Err(error) if error.kind() != ErrorKind::Io => self.missed(is_clean, error),
            Err(error) => drop(self.error.get_or_insert_with(|| error.to_string())),
            Ok(_) => {}
        }
        if let Err(breach) = pit.clear() {
            self.breach(breach);
        }
    }
}

/// A hash of all names, metadata and contents, in the order in which they are stored.
pub(crate) fn digest(opened: &Opened, loaded: &LoadedVolume) -> packfs::Result<u64> {
    let tree = &loaded.tree;
    let mut hash = Xxh3::new();
    let mut walk = tree.walk();
    while let Some((path, id)) = walk.next() {
        let node = tree.node(id);
        hash.update(path.as_bytes());
        let first = tree.path(id);
        hash.update(first.as_bytes());
        let meta = (node.meta.mode, node.meta.owner, node.meta.mtime, tree.xattrs(node.xattrs));
        hash.update(format!("{meta:?}").as_bytes());
        match &node.kind {
            NodeKind::File { len, .. } => hash.update(&len.to_le_bytes()),
            NodeKind::Symlink(target) => hash.update(target),
            other => hash.update(format!("{other:?}").as_bytes()),
        }
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for (id, node) in tree.nodes() {
        if let NodeKind::File { len, .. } = node.kind {
            wanted.push(Wanted { id: loaded.inodes[id.index()], len });
        }
    }
    opened.engine().in_file_order(&wanted, &Silent, &mut |index, piece| {
        match piece {
            Piece::Data { bytes, .. } => hash.update(bytes),
            Piece::Hole { len, .. } => zeros(&mut hash, len),
            Piece::End => hash.update(&index.to_le_bytes()),
        }
        Ok(())
    })?;
    Ok(hash.digest())
}

/// Longest hole that is hashed byte by byte, as the zeros it stands for; of longer ones the length
/// is.
const HOLE_HASHED_MAX: u64 = 1 << 20;

fn zeros(hash: &mut Xxh3, len: u64) {
    const ZEROS: [u8; 4096] = [0; 4096];
    if len > HOLE_HASHED_MAX {
        return hash.update(&len.to_le_bytes());
    }
    let mut left = len;
    while left > 0 {
        let part = left.min(ZEROS.len() as u64);
        hash.update(&ZEROS[..part as usize]);
        left -= part;
    }
}
