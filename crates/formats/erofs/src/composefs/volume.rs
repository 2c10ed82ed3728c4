//! An image as overlayfs shows it: contents from objects, without the attributes of overlayfs.

use super::names::*;
use super::overlay::{METACOPY_HEAD_LEN, SHA256};
use super::{HEADER_VERSION, MAGIC, SHA256_LEN};
use crate::volume::ErofsVolume;
use packfs_core::{Error, FileType, Image, ImagePath, Name, Result, Xattrs, escaped, range_at, usize_of};
use packfs_format::{
    Caching, Check, DirCursor, DirEntry, Directories, Extent, ExtentFrom, FactValue, Facts, Finding,
    FormatInfo, Health, Inode, InodeId, InodeKind, Object, ObjectFiles, Objects, Severity, Space, SpaceOwner,
    Storage, StoredExtent, Volume, units::*,
};
use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// `FS_VERITY_HASH_ALG_SHA512` of Linux's `fsverity.h`.
const SHA512: u8 = 2;
const SHA512_LEN: usize = 64;
/// Gap between the addresses of objects, so that a read never spans two.
const GAP: u64 = 1 << 26;
const OPEN_MAX: usize = 128;

/// A finding of every image: the feature is not announced, and kernels do not check it.
const UNANNOUNCED: &str = "the image uses chunked_file, but does not announce it";

/// Device 0:0, which overlayfs takes for a whiteout.
const REMOVED: InodeKind = InodeKind::CharDevice(packfs_core::DeviceNumber { major: 0, minor: 0 });

pub(super) struct ComposefsVolume {
    inner: ErofsVolume,
    version: u32,
    data: Arc<Data>,
}

/// The image, followed by all objects that were requested.
struct Data {
    image: Arc<dyn Image>,
    objects: Option<Arc<dyn Objects>>,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    rows: Vec<(u64, Object)>,
    by_object: HashMap<Object, u64>,
    len: u64,
    /// Open objects by row; the most recently opened is the last.
    open: Vec<(usize, Arc<dyn Image>)>,
}

impl ComposefsVolume {
    /// Errors: `Corrupt`; `Unsupported` for another version of the header.
    pub(super) fn open(image: Arc<dyn Image>, objects: Option<Arc<dyn Objects>>) -> Result<Self> {
        let mut head = [[0; 4]; 4];
        image.read_exact_at(0, head.as_flattened_mut())?;
        let [magic, header, _, version] = head.map(u32::from_le_bytes);
        if magic != MAGIC {
            let fault = format!("header: begins with {magic:#010x}, {MAGIC:#010x} allowed");
            return Err(Error::corrupt("composefs image", fault));
        }
        if header != HEADER_VERSION {
            let fault = format!("header version {header}, {HEADER_VERSION} is known");
            return Err(Error::unsupported("composefs image", fault));
        }
        let inner = ErofsVolume::open(Arc::clone(&image), Vec::new())?;
        let data = Arc::new(Data { image, objects, places: Mutex::default() });
        Ok(ComposefsVolume { inner, version, data })
    }

    /// Checks the attributes of all files that describe objects.
    fn check_objects(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        let mut seen = HashSet::from([self.root()]);
        let mut open = vec![(self.root(), ImagePath::root())];
        while let Some((dir, path)) = open.pop() {
            let mut entries = Vec::new();
            // The check of the EROFS image reports faults of listings.
            let _ = self.inner.read_dir(dir, DirCursor::default(), &mut |entry, _| {
                entries.push(entry);
                ControlFlow::Continue(())
            });
            for entry in entries {
                let Ok(name) = Name::new(&entry.name) else { continue };
                match entry.file_type {
                    FileType::Directory if seen.insert(entry.id) => open.push((entry.id, path.join(name))),
                    FileType::File => {
                        if let Err(error) = self.object(entry.id) {
                            let place = format!("{:?}", path.join(name));
                            found(Finding::new(Severity::Error, place, error.to_string()));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the kind that overlayfs shows; true for an escaped whiteout of the tree.
    fn kind(&self, id: InodeId, inode: &Inode) -> Result<(InodeKind, bool)> {
        let may_be = inode.has_xattrs && matches!(inode.kind, InodeKind::File { len: 0 });
        let is_kept = may_be && self.inner.xattrs(id)?.contains_key(WHITEOUT);
        Ok((if is_kept { REMOVED } else { inode.kind }, is_kept))
    }
}

/// Returns the attributes that overlayfs shows.
fn shown(xattrs: Xattrs) -> Xattrs {
    let is_whiteout = xattrs.contains_key(WHITEOUT);
    let has_whiteouts = xattrs.contains_key(WHITEOUTS);
    let rows = xattrs.into_iter().filter_map(|(name, value)| match name.as_slice() {
        WHITEOUT | WHITEOUTS | USER_WHITEOUTS => None,
        USER_WHITEOUT if is_whiteout => None,
        ESCAPED_OPAQUE | USER_OPAQUE if has_whiteouts && value == b"x" => None,
        _ => match (name.strip_prefix(ESCAPED), name.strip_prefix(OVERLAY)) {
            (Some(rest), _) => Some(([OVERLAY, rest].concat(), value)),
            (None, Some(_)) => None,
            (None, None) => Some((name, value)),
        },
    });
    rows.collect()
}

/// Returns the digest in an attribute of overlayfs, if it contains one.
fn digest_of(metacopy: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some((head, digest)) = metacopy.split_at_checked(METACOPY_HEAD_LEN) else { return Ok(None) };
    let fault = match head {
        [0, len, _, function] if usize::from(*len) == metacopy.len() => match (*function, digest.len()) {
            (SHA256, SHA256_LEN) | (SHA512, SHA512_LEN) => return Ok(Some(digest.to_vec())),
            (_, 0) => return Ok(None),
            (function, len) => format!("a digest of {len} bytes by hash function {function}"),
        },
        _ => format!("{} bytes that start with {head:02x?}", metacopy.len()),
    };
    Err(Error::corrupt("composefs image", format!("trusted.overlay.metacopy has {fault}")))
}

impl Volume for ComposefsVolume {
    fn format(&self) -> &'static FormatInfo {
        &super::INFO
    }

    fn root(&self) -> InodeId {
        self.inner.root()
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let mut inode = self.inner.inode(id)?;
        (inode.kind, _) = self.kind(id, &inode)?;
        if inode.has_xattrs {
            inode.has_xattrs = !self.xattrs(id)?.is_empty();
        }
        inode.sectors = inode.kind.sectors_filled();
        Ok(inode)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        self.inner.read_link(id)
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        self.inner.xattrs(id).map(shown)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(object) = self.object(id)? else { return self.inner.extents(id, range, visit) };
        let end = range.end.min(object.len);
        let start = range.start.min(end);
        if start < end {
            let at = self.data.place_of(&object)?.plus(start);
            let len = end.minus(start);
            let _ = visit(Extent { offset: start, len, from: ExtentFrom::Stored(at) });
        }
        Ok(())
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Some(Arc::clone(&self.data) as Arc<dyn Image>)
    }

    fn image_len(&self) -> Option<u64> {
        self.inner.image_len()
    }

    fn inode_count_hint(&self) -> u64 {
        self.inner.inode_count_hint()
    }

    fn made_at(&self) -> Option<i64> {
        self.inner.made_at()
    }

    fn facts(&self) -> Result<Facts> {
        let kept = ["block_len", "made_at", "image_len", "bytes_used", "inodes"];
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text(super::INFO.name.to_owned()));
        facts.push("version", "Version", FactValue::Count(self.version.into()));
        let inner = self.inner.facts()?.0.into_iter();
        facts.0.extend(inner.filter(|fact| kept.contains(&fact.key)));
        Ok(facts)
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }

    fn objects(&self) -> Option<&dyn ObjectFiles> {
        Some(self)
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    fn caching(&self) -> Option<&dyn Caching> {
        Some(self)
    }
}

impl Directories for ComposefsVolume {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        match self.inner.lookup(dir, name)? {
            Some(found) if self.inner.inode(found)?.kind == REMOVED => Ok(None),
            found => Ok(found),
        }
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut fault = None;
        self.inner.read_dir(dir, from, &mut |mut entry, cursor| {
            if [FileType::CharDevice, FileType::File].contains(&entry.file_type) {
                match self.inner.inode(entry.id).and_then(|inode| self.kind(entry.id, &inode)) {
                    // Whiteouts are hidden.
                    Ok((REMOVED, false)) => return ControlFlow::Continue(()),
                    Ok((kind, _)) => entry.file_type = kind.file_type(),
                    Err(error) => fault = Some(error),
                }
            }
            visit(entry, cursor)
        })?;
        fault.map_or(Ok(()), Err)
    }

    fn is_sorted(&self) -> bool {
        true
    }
}

impl Check for ComposefsVolume {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        self.inner.check(&mut |finding| {
            if finding.fault != UNANNOUNCED {
                found(finding);
            }
        })?;
        self.check_objects(found)
    }
}

impl Space for ComposefsVolume {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        self.inner.space()
    }
}

impl Health for ComposefsVolume {
    fn fault(&self) -> Option<Error> {
        self.inner.fault()
    }

    fn whole_fault(&self, checksum: bool) -> Result<Option<Error>> {
        self.inner.whole_fault(checksum)
    }
}

impl ObjectFiles for ComposefsVolume {
    fn object(&self, id: InodeId) -> Result<Option<Object>> {
        let inode = self.inner.inode(id)?;
        let InodeKind::File { len } = inode.kind else { return Ok(None) };
        if !inode.has_xattrs || len == 0 {
            return Ok(None);
        }
        let xattrs = self.inner.xattrs(id)?;
        let Some(metacopy) = xattrs.get(METACOPY) else { return Ok(None) };
        let path = xattrs.get(REDIRECT).map(Vec::as_slice).unwrap_or_default();
        let path = path.strip_prefix(b"/").unwrap_or(path).to_vec();
        Ok(Some(Object { path, digest: digest_of(metacopy)?, len }))
    }

    fn objects_len(&self) -> u64 {
        self.data.places().len
    }
}

impl Storage for ComposefsVolume {
    fn stored_extents(
        &self,
        id: InodeId,
        len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        // Objects take no space in the image.
        match self.object(id)? {
            Some(_) => Ok(()),
            None => (&self.inner as &dyn Volume).stored_extents(id, len, visit),
        }
    }
}

impl Caching for ComposefsVolume {
    fn will_read_inodes(&self, ids: &[InodeId]) {
        self.inner.will_read_inodes(ids);
    }

    fn keep_at_most(&self, len_max: usize) {
        self.data.places().open.clear();
        self.inner.keep_at_most(len_max);
    }
}

impl Data {
    /// Each step leaves the table consistent, so a panicked thread has done no harm.
    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of an object.
    ///
    /// Errors: `Corrupt` for one that is missing or has another length, `Failed` without a store.
    fn place_of(&self, object: &Object) -> Result<u64> {
        if let Some(at) = self.places().by_object.get(object) {
            return Ok(*at);
        }
        let path = escaped(&object.path);
        let Some(objects) = &self.objects else {
            let error = Error::failed(format!("the contents are not in the image but in object {path}"));
            return Err(error.hint("--objects DIR names the directory of objects"));
        };
        let found = objects.len(object)?;
        if found != object.len {
            let fault = format!("it has {found} bytes, and the image says {}", object.len);
            return Err(Error::corrupt(format!("object {path}"), fault));
        }
        let mut places = self.places();
        // Another thread may have opened it.
        if let Some(at) = places.by_object.get(object) {
            return Ok(*at);
        }
        let last = places.rows.last().map(|(at, object)| range_at(*at, object.len).end);
        let at = end_of(last.unwrap_or(self.image.len()), GAP) & !(GAP - 1);
        if end_of(at, object.len) >= self.len() {
            return Err(Error::unsupported("composefs image", "objects of more than 8 EiB together"));
        }
        places.len = places.len.plus(object.len);
        places.rows.push((at, object.clone()));
        places.by_object.insert(object.clone(), at);
        Ok(at)
    }

    /// Returns the object at or before an address, and its address.
    fn object_at(&self, offset: u64) -> Result<Option<(u64, Arc<dyn Image>)>> {
        let (row, at, object) = {
            let places = self.places();
            let row = places.rows.partition_point(|(at, _)| *at <= offset).checked_sub(1);
            let Some((row, (at, object))) = row.and_then(|row| Some((row, places.rows.get(row)?))) else {
                return Ok(None);
            };
            if let Some((_, image)) = places.open.iter().find(|(open, _)| *open == row) {
                return Ok(Some((*at, Arc::clone(image))));
            }
            (row, *at, object.clone())
        };
        // Without the lock, because opening reads the object to verify it.
        let Some(objects) = &self.objects else { return Ok(None) };
        let image = objects.open(&object)?;
        let mut places = self.places();
        if places.open.len() >= OPEN_MAX {
            places.open.remove(0);
        }
        places.open.push((row, Arc::clone(&image)));
        Ok(Some((at, image)))
    }
}

impl Image for Data {
    fn len(&self) -> u64 {
        u64::MAX >> 1
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let (at, image) = if offset < self.image.len() {
            (0, Arc::clone(&self.image))
        } else {
            match self.object_at(offset)? {
                Some(found) => found,
                None => return Ok(0),
            }
        };
        let within = offset.minus(at);
        let room = left(image.len(), within).min(buf.len() as u64);
        image.read_at(within, buf.within_mut(..usize_of(room)))
    }

    fn name(&self) -> String {
        self.image.name()
    }
}
