//! An opened image, and what the functions do with it, in safe code.

use crate::error::{ENODATA, Failure, Result, c_text};
use crate::named::NamedOptions;
use crate::types::{Metadata, PACKFS_CHECK_DATA, PACKFS_IGNORE_CHECKSUM, PACKFS_NO_JOURNAL, PACKFS_NOFOLLOW};
use crate::words::in_c;
use packfs::check::Findings;
use packfs::integrity::{DigestFacts, digest_tree};
use packfs::read::{FileRange, spread};
use packfs::{
    DirCursor, DirEntry, FileReader, ImagePath, Inode, InodeId, InodeKind, Limit, OpenOptions, Opened, Silent,
};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries of a directory that are read at a time.
const BATCH: usize = 256;
/// Files that a thread looks up at a time.
const LOOK_UPS: usize = 64;

/// Options of opening, as checked.
#[derive(Default)]
pub struct Options<'a> {
    pub offset: u64,
    pub length: u64,
    pub cache_bytes: u64,
    pub threads: u32,
    pub flags: u32,
    pub part: Option<&'a [u8]>,
    pub devices: Vec<&'a [u8]>,
    pub partition_table: Option<&'a [u8]>,
    pub named: Option<&'a NamedOptions>,
}

impl Options<'_> {
    fn of_library(&self) -> Result<OpenOptions> {
        refuse_flags(self.flags, PACKFS_IGNORE_CHECKSUM | PACKFS_NO_JOURNAL)?;
        let threads = usize::try_from(self.threads).unwrap_or(usize::MAX);
        let mut options = self.named.map_or_else(OpenOptions::new, |named| named.0.clone()).jobs(threads);
        if self.offset > 0 {
            options = options.offset(self.offset);
        }
        if self.length > 0 {
            options = options.len(self.length);
        }
        if self.cache_bytes > 0 {
            options = options.cache_bytes(self.cache_bytes);
        }
        if let Some(part) = self.part {
            options = options.part(utf8(part, "part")?);
        }
        if let Some(table) = self.partition_table {
            options = options.partition_table(utf8(table, "partition_table")?.parse()?);
        }
        for device in &self.devices {
            options = options.device(Path::new(OsStr::from_bytes(device)));
        }
        if self.flags & PACKFS_NO_JOURNAL != 0 {
            options = options.no_journal();
        }
        if self.flags & PACKFS_IGNORE_CHECKSUM != 0 {
            options = options.ignore_checksum();
        }
        Ok(options)
    }
}

fn utf8<'a>(text: &'a [u8], name: &str) -> Result<&'a str> {
    str::from_utf8(text).map_err(|_| Failure::argument(format!("options: {name} is not UTF-8")))
}

fn refuse_flags(flags: u32, allowed: u32) -> Result<()> {
    match flags & !allowed {
        0 => Ok(()),
        unknown => Err(Failure::argument(format!("flags: unknown {unknown:#x}, {allowed:#x} is allowed"))),
    }
}

fn path_of(bytes: &[u8]) -> Result<ImagePath> {
    Ok(ImagePath::parse(bytes)?)
}

/// Memory for a part of a file.
pub struct Part<'a> {
    pub path: &'a [u8],
    pub offset: u64,
    pub memory: &'a mut [u8],
}

/// An opened image.
pub struct Session {
    opened: Arc<Opened>,
    format: CString,
    warnings: Vec<CString>,
}

impl Session {
    pub fn open(place: &[u8], options: &Options<'_>) -> Result<Self> {
        let opened = options.of_library()?.open(Path::new(OsStr::from_bytes(place)))?;
        let format = c_text(opened.format().name());
        let warnings = opened.warnings().iter().map(|warning| c_text(&in_c(warning))).collect();
        Ok(Session { format, warnings, opened: Arc::new(opened) })
    }

    pub fn format(&self) -> &CStr {
        &self.format
    }

    pub fn warning(&self, index: usize) -> Option<&CStr> {
        self.warnings.get(index).map(CString::as_c_str)
    }

    fn inode(&self, path: &[u8], flags: u32) -> Result<InodeId> {
        refuse_flags(flags, PACKFS_NOFOLLOW)?;
        let path = path_of(path)?;
        let is_followed = flags & PACKFS_NOFOLLOW == 0;
        Ok(if is_followed { self.opened.resolve(&path) } else { self.opened.find(&path) }?)
    }

    pub fn stat(&self, path: &[u8], flags: u32) -> Result<Metadata> {
        let id = self.inode(path, flags)?;
        Ok(metadata_of(id, &self.opened.volume().inode(id)?))
    }

    pub fn list(&self, path: &[u8]) -> Result<Listing> {
        let dir = self.opened.dir_at(path_of(path)?)?;
        Ok(Listing { opened: Arc::clone(&self.opened), dir, state: Mutex::default() })
    }

    pub fn file(&self, path: &[u8]) -> Result<FileReader> {
        let path = path_of(path)?;
        let wanted = self.opened.file_at(&path)?;
        self.opened.engine().check_data(&[wanted])?;
        Ok(self.opened.open_id(wanted.id)?)
    }

    pub fn link(&self, path: &[u8]) -> Result<Vec<u8>> {
        Ok(self.opened.link_at(path_of(path)?)?)
    }

    pub fn xattr(&self, path: &[u8], name: &[u8], flags: u32) -> Result<Vec<u8>> {
        let id = self.inode(path, flags)?;
        let value = self.opened.volume().xattrs(id)?.remove(name);
        value.ok_or_else(|| Failure::new(ENODATA, "no such extended attribute"))
    }

    /// Returns the names of the attributes, each with a NUL after it.
    pub fn xattr_names(&self, path: &[u8], flags: u32) -> Result<Vec<u8>> {
        let id = self.inode(path, flags)?;
        let xattrs = self.opened.volume().xattrs(id)?;
        // A name with a NUL is none of Linux, and would look like two.
        let names = xattrs.keys().filter(|name| !name.contains(&0));
        Ok(names.flat_map(|name| name.iter().copied().chain([0])).collect())
    }

    /// Calls `on_entry` for each entry. Returns its result other than 0.
    ///
    /// Errors: the first one, after all that does not depend on it.
    pub fn walk(&self, on_entry: &mut dyn FnMut(&CStr, &Metadata) -> c_int) -> Result<c_int> {
        let mut fault = None;
        for walked in self.opened.walk() {
            let walked = match walked {
                Ok(walked) => walked,
                Err(error) if error.kind() == packfs::ErrorKind::Limit => return Err(error.into()),
                Err(error) => {
                    fault.get_or_insert(error);
                    continue;
                }
            };
            let Ok(path) = CString::new(walked.path.as_bytes()) else {
                fault.get_or_insert(packfs::Error::corrupt(
                    "image",
                    format!("a NUL in the path {:?}", walked.path),
                ));
                continue;
            };
            let answer = on_entry(&path, &metadata_of(walked.id, &walked.inode));
            if answer != 0 {
                return Ok(answer);
            }
        }
        fault.map_or(Ok(0), |error| Err(error.into()))
    }

    /// Reads parts of files; returns the length of each, or its failure.
    pub fn read_many(&self, parts: Vec<Part<'_>>) -> Result<Vec<Result<u64>>> {
        let count = parts.len();
        let found: Vec<Mutex<Option<Result<FileRange>>>> = (0..count).map(|_| Mutex::default()).collect();
        let one = |index: usize| {
            let Part { path, offset, memory } = &parts[index];
            let range = self.range(path, *offset, memory.len() as u64);
            *found[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(range);
        };
        spread(count, LOOK_UPS, self.opened.engine().jobs(), &Silent, &one)?;
        let (mut ranges, mut results, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, part) in found.into_iter().zip(parts) {
            let found = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            let range = found.unwrap_or_else(|| Ok(FileRange::empty()));
            let len = range.as_ref().map_or(0, FileRange::bytes);
            // Within the memory, whose length it was cut to.
            let len_here = usize::try_from(len).unwrap_or(part.memory.len()).min(part.memory.len());
            let memory = &mut part.memory[..len_here];
            memory.fill(0);
            targets.push(Mutex::new(memory));
            match range {
                Ok(range) => {
                    ranges.push(range);
                    results.push(Ok(len));
                }
                Err(failure) => {
                    ranges.push(FileRange::empty());
                    results.push(Err(failure));
                }
            }
        }
        for (index, error) in self.opened.read_ranges(&ranges, &targets, &Silent)? {
            results[index] = Err(error.into());
        }
        Ok(results)
    }

    fn range(&self, path: &[u8], offset: u64, len: u64) -> Result<FileRange> {
        let wanted = self.opened.file_at(path_of(path)?)?;
        self.opened.engine().check_data(&[wanted])?;
        Ok(FileRange::new(wanted, offset..offset.saturating_add(len)))
    }

    pub fn check(&self, flags: u32) -> Result<Findings> {
        refuse_flags(flags, PACKFS_CHECK_DATA)?;
        let mut found = Findings::default();
        self.opened.check(flags & PACKFS_CHECK_DATA != 0, &Silent, &mut found)?;
        Ok(found)
    }

    pub fn digest(&self) -> Result<String> {
        let loaded = self.opened.load(&Silent)?;
        let engine = self.opened.engine();
        let digests = digest_tree(&loaded.tree, &**engine, DigestFacts::default(), engine.jobs(), &Silent)?;
        Ok(digests.root().to_string())
    }
}

fn metadata_of(id: InodeId, inode: &Inode) -> Metadata {
    let device = match inode.kind {
        InodeKind::BlockDevice(number) | InodeKind::CharDevice(number) => number,
        _ => packfs::DeviceNumber { major: 0, minor: 0 },
    };
    let size = if let InodeKind::File { len } = inode.kind { len } else { 0 };
    Metadata {
        id: id.0,
        size,
        mtime: inode.meta.mtime.seconds,
        mtime_nsec: inode.meta.mtime.nanos,
        mode: inode.kind.file_type().mode_bits() | u32::from(inode.meta.mode),
        uid: inode.meta.owner.uid,
        gid: inode.meta.owner.gid,
        nlink: inode.links,
        rdev_major: device.major,
        rdev_minor: device.minor,
    }
}

/// A directory that is read entry by entry.
pub struct Listing {
    opened: Arc<Opened>,
    dir: InodeId,
    state: Mutex<Place>,
}

/// The place that reading has reached.
#[derive(Default)]
struct Place {
    next: VecDeque<DirEntry>,
    cursor: DirCursor,
    count: u64,
    fault: Option<packfs::Error>,
    is_at_end: bool,
}

impl Listing {
    /// Returns the next entry; none at the end.
    ///
    /// Errors: damage, once, after the entries before it.
    pub fn next(&self) -> Result<Option<DirEntry>> {
        let mut place = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if place.next.is_empty() && !place.is_at_end {
            self.refill(&mut place);
        }
        match place.next.pop_front() {
            None => place.fault.take().map_or(Ok(None), |error| Err(error.into())),
            entry => Ok(entry),
        }
    }

    fn refill(&self, place: &mut Place) {
        let Place { next, cursor, count, .. } = place;
        let read = self.opened.volume().read_dir(self.dir, *cursor, &mut |entry, after| {
            next.push_back(entry);
            *cursor = after;
            if next.len() < BATCH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        *count += next.len() as u64;
        // A directory of a hostile image may lead in circles.
        let allowed = self.opened.limits().check("directory", Limit::Entries, *count);
        place.is_at_end = place.next.len() < BATCH || read.is_err() || allowed.is_err();
        place.fault = read.and(allowed).err();
    }
}
