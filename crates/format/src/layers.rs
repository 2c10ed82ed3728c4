//! Layered volumes as one, as overlayfs shows them. Layers are read on demand.

use crate::{
    Caching, Check, DirCursor, DirEntry, Directories, Extent, ExtentFrom, FactValue, Facts, Finding,
    FormatInfo, Health, Inode, InodeId, InodeKind, Space, SpaceOwner, Storage, StoredExtent, Volume,
    units::*,
};
use packfs_core::overlay::{Candidate, Effect, seen, without_marks};
use packfs_core::{Error, FileType, Image, JoinedImage, Limit, Limits, Result, Xattrs};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an inode's number within its layer; the layer is in the higher bits.
const OWN_BITS: u32 = 54;
/// Limit of cached listings of merged directories.
const LISTINGS_MAX: usize = 8;

type Place = (usize, InodeId);

/// Layered volumes, read on demand.
pub struct Layered {
    /// The lowest layer first; never empty.
    layers: Vec<Layer>,
    /// Bytes of all layers.
    image: Arc<JoinedImage>,
    root: InodeId,
    limits: Limits,
    /// Merged directories, by inode in the result.
    dirs: Mutex<HashMap<InodeId, Dirs>>,
    listings: Mutex<VecDeque<(InodeId, Arc<Vec<DirEntry>>)>>,
}

/// An opened layer.
pub struct Layer {
    name: String,
    volume: Box<dyn Volume>,
    image: Arc<dyn Image>,
    /// Start of that image in the concatenated layers.
    start: u64,
}

/// Directories with the same path.
#[derive(Clone)]
struct Dirs {
    /// The lowest first.
    places: Arc<[Place]>,
    /// Set once directories that a higher layer hides were removed.
    are_visible: bool,
}

impl Layer {
    /// `name` is used in errors, `image` contains the extents.
    pub fn new(name: String, volume: Box<dyn Volume>, image: Arc<dyn Image>) -> Self {
        Layer { name, volume, image, start: 0 }
    }

    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(format!("layer {}", self.name)))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each step leaves the tables consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Layered {
    /// Stacks layers, the lowest first.
    ///
    /// Errors: `Usage` if they are longer together than any image; `Unsupported` for an inode
    /// number that is too large.
    pub fn new(mut layers: Vec<Layer>, limits: Limits) -> Result<Self> {
        let image = Arc::new(JoinedImage::new(layers.iter().map(|layer| Arc::clone(&layer.image)))?);
        for (index, layer) in layers.iter_mut().enumerate() {
            layer.start = image.start_of(index).unwrap_or(0);
        }
        let (dirs, listings) = (Mutex::default(), Mutex::default());
        let roots: Vec<Place> = layers.iter().map(|layer| layer.volume.root()).enumerate().collect();
        let layered = Layered { layers, image, root: InodeId(0), limits, dirs, listings };
        Ok(Layered { root: layered.remember(roots)?, ..layered })
    }

    /// Returns the bytes of all layers.
    pub fn image(&self) -> Arc<dyn Image> {
        Arc::clone(&self.image) as Arc<dyn Image>
    }

    fn layer(&self, index: usize) -> Result<&Layer> {
        self.layers.get(index).ok_or_else(|| Error::failed("internal: no such layer"))
    }

    fn top(&self) -> Result<&Layer> {
        self.layer(left(self.layers.len(), 1))
    }

    /// Returns the inode of an inode of a layer.
    fn id(&self, (index, own): Place) -> Result<InodeId> {
        if own.0 >> OWN_BITS != 0 {
            let fault = format!("inode number {}; numbers of layers below 2^{OWN_BITS} are known", own.0);
            return Err(Error::unsupported(format!("layer {}", self.layer(index)?.name), fault));
        }
        Ok(InodeId((index as u64) << OWN_BITS | own.0))
    }

    fn place(&self, id: InodeId) -> Result<(&Layer, InodeId)> {
        let (index, own) = place_of(id);
        Ok((self.layer(index)?, own))
    }

    fn own_inode(&self, (index, own): Place) -> Result<Inode> {
        let layer = self.layer(index)?;
        layer.named(layer.volume.inode(own))
    }

    /// Assigns one inode to directories with the same path, the lowest first.
    fn remember(&self, places: Vec<Place>) -> Result<InodeId> {
        let Some(&top) = places.last() else { return Err(Error::failed("internal: no directory")) };
        let id = self.id(top)?;
        if places.len() > 1 {
            let dirs = || Dirs { places: places.into(), are_visible: false };
            locked(&self.dirs).entry(id).or_insert_with(dirs);
        }
        Ok(id)
    }

    /// Returns the directories that are merged at a path, the lowest first.
    fn visible(&self, id: InodeId) -> Result<Arc<[Place]>> {
        let known = locked(&self.dirs).get(&id).cloned();
        let Some(Dirs { places, are_visible }) = known else { return Ok(Arc::new([place_of(id)])) };
        if are_visible {
            return Ok(places);
        }
        let count = seen(places.iter().rev().map(|place| self.effect(*place)))?;
        let kept = places.get(places.len().minus(count)..).unwrap_or(&places);
        let kept: Arc<[Place]> = kept.into();
        locked(&self.dirs).insert(id, Dirs { places: Arc::clone(&kept), are_visible: true });
        Ok(kept)
    }

    /// Returns the effect of an entry on lower layers.
    fn effect(&self, place: Place) -> Result<Effect> {
        let inode = self.own_inode(place)?;
        let xattrs = if inode.has_xattrs && Candidate::from(inode.kind).needs_xattrs() {
            let layer = self.layer(place.0)?;
            layer.named(layer.volume.xattrs(place.1))?
        } else {
            Xattrs::new()
        };
        Ok(Effect::of(inode.kind, &xattrs))
    }

    /// `file_type` is that of the entry, which avoids reading most inodes.
    fn is_whiteout(&self, place: Place, file_type: FileType) -> Result<bool> {
        let may_be = matches!(file_type, FileType::CharDevice | FileType::File);
        Ok(may_be && self.effect(place)? == Effect::Hides)
    }

    /// Lists directories of several layers, by name.
    fn listing(&self, id: InodeId, places: &[Place]) -> Result<Arc<Vec<DirEntry>>> {
        if let Some((_, found)) = locked(&self.listings).iter().find(|(dir, _)| *dir == id) {
            return Ok(Arc::clone(found));
        }
        let mut names: BTreeMap<Vec<u8>, (FileType, Vec<Place>)> = BTreeMap::new();
        let mut count = 0_u64;
        for &(index, own) in places {
            let layer = self.layer(index)?;
            let mut visit = |entry: DirEntry, _| {
                count = count.plus(1);
                let found = names.entry(entry.name).or_insert((entry.file_type, Vec::new()));
                found.0 = entry.file_type;
                found.1.push((index, entry.id));
                match self.limits.check("layers", Limit::Entries, count) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            };
            layer.named(layer.volume.read_dir(own, DirCursor::default(), &mut visit))?;
            self.limits.check("layers", Limit::Entries, count)?;
        }
        let mut entries = Vec::with_capacity(names.len());
        for (name, (file_type, found)) in names {
            let Some(&top) = found.last() else { continue };
            if self.is_whiteout(top, file_type)? {
                continue;
            }
            let id = if file_type == FileType::Directory { self.remember(found)? } else { self.id(top)? };
            entries.push(DirEntry { name, id, file_type });
        }
        let entries = Arc::new(entries);
        let mut listings = locked(&self.listings);
        if listings.len() >= LISTINGS_MAX {
            listings.pop_front();
        }
        listings.push_back((id, Arc::clone(&entries)));
        Ok(entries)
    }

    /// Lists the directory of one layer, without its whiteouts.
    fn read_own_dir(
        &self,
        (index, own): Place,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let layer = self.layer(index)?;
        let mut fault = None;
        let read = layer.volume.read_dir(own, from, &mut |entry, cursor| {
            let place = (index, entry.id);
            let found = self.is_whiteout(place, entry.file_type).and_then(|is| Ok((is, self.id(place)?)));
            match found {
                Ok((true, _)) => ControlFlow::Continue(()),
                Ok((false, id)) => visit(DirEntry { id, ..entry }, cursor),
                Err(error) => {
                    fault = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        layer.named(read)?;
        fault.map_or(Ok(()), Err)
    }

    fn sum(&self, count: impl Fn(&dyn Volume) -> u64) -> u64 {
        self.layers.iter().map(|layer| count(&*layer.volume)).fold(0, end_of)
    }
}

fn place_of(id: InodeId) -> Place {
    ((id.0 >> OWN_BITS) as usize, InodeId(id.0 & ((1 << OWN_BITS) - 1)))
}

impl Volume for Layered {
    fn format(&self) -> &'static FormatInfo {
        // Never empty, see `layers`.
        self.layers[0].volume.format()
    }

    fn root(&self) -> InodeId {
        self.root
    }

    fn inode(&self, id: InodeId) -> Result<Inode> {
        let place = place_of(id);
        let mut inode = self.own_inode(place)?;
        // Equal numbers of different files would look like hard links.
        let (count, layer) = (self.layers.len() as u64, place.0 as u64);
        inode.number = inode.number.wrapping_mul(count).wrapping_add(layer);
        if inode.has_xattrs {
            inode.has_xattrs = !self.xattrs(id)?.is_empty();
        }
        if inode.kind == InodeKind::Directory && locked(&self.dirs).contains_key(&id) {
            // The count of one layer would tell readers that it contains no more directories.
            inode.links = 1;
        }
        Ok(inode)
    }

    fn read_link(&self, id: InodeId) -> Result<Vec<u8>> {
        let (layer, own) = self.place(id)?;
        layer.named(layer.volume.read_link(own))
    }

    fn xattrs(&self, id: InodeId) -> Result<Xattrs> {
        let (layer, own) = self.place(id)?;
        layer.named(layer.volume.xattrs(own)).map(without_marks)
    }

    fn extents(
        &self,
        id: InodeId,
        range: Range<u64>,
        visit: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let (layer, own) = self.place(id)?;
        layer.named(layer.volume.extents(own, range, &mut |mut extent| {
            match &mut extent.from {
                ExtentFrom::Hole => {}
                ExtentFrom::Stored(at) => *at = end_of(*at, layer.start),
                ExtentFrom::Block { block, .. } => block.offset = end_of(block.offset, layer.start),
            }
            visit(extent)
        }))
    }

    fn data_image(&self) -> Option<Arc<dyn Image>> {
        Some(self.image())
    }

    fn image_len(&self) -> Option<u64> {
        Some(self.sum(|volume| volume.image_len().unwrap_or(0)))
    }

    fn inode_count_hint(&self) -> u64 {
        self.sum(|volume| volume.inode_count_hint())
    }

    fn made_at(&self) -> Option<i64> {
        self.top().ok()?.volume.made_at()
    }

    fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::default();
        facts.push("format", "Format", FactValue::Text(self.format().name.to_owned()));
        facts.push("layers", "Layers", FactValue::Count(self.layers.len() as u64));
        facts.push("image_len", "Image length", FactValue::Bytes(self.image_len().unwrap_or(0)));
        facts.push("inodes", "Inodes", FactValue::Count(self.inode_count_hint()));
        Ok(facts)
    }

    fn health(&self) -> Option<&dyn Health> {
        Some(self)
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    fn caching(&self) -> Option<&dyn Caching> {
        Some(self)
    }
}

impl Directories for Layered {
    fn lookup(&self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>> {
        let mut found = Vec::new();
        for &(index, own) in self.visible(dir)?.iter().rev() {
            let layer = self.layer(index)?;
            let Some(own) = layer.named(layer.volume.lookup(own, name))? else { continue };
            if found.is_empty() {
                match self.effect((index, own))? {
                    Effect::Hides => return Ok(None),
                    Effect::Covers => return self.id((index, own)).map(Some),
                    Effect::Joins | Effect::Replaces => {}
                }
            }
            found.push((index, own));
        }
        found.reverse();
        if found.is_empty() { Ok(None) } else { self.remember(found).map(Some) }
    }

    fn read_dir(
        &self,
        dir: InodeId,
        from: DirCursor,
        visit: &mut dyn FnMut(DirEntry, DirCursor) -> ControlFlow<()>,
    ) -> Result<()> {
        let places = self.visible(dir)?;
        if let [only] = *places {
            return self.read_own_dir(only, from, visit);
        }
        let entries = self.listing(dir, &places)?;
        for (entry, cursor) in entries.iter().zip(1..).skip(packfs_core::usize_of(from.0)) {
            if visit(entry.clone(), DirCursor(cursor)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn is_sorted(&self) -> bool {
        self.layers.iter().all(|layer| layer.volume.is_sorted())
    }
}

impl Check for Layered {
    fn check(&self, found: &mut dyn FnMut(Finding)) -> Result<()> {
        for layer in &self.layers {
            layer.named(layer.volume.check(&mut |finding| {
                let place = format!("layer {}: {}", layer.name, finding.place);
                found(Finding { place, ..finding });
            }))?;
        }
        Ok(())
    }
}

impl Space for Layered {
    fn space(&self) -> Result<Vec<SpaceOwner>> {
        let mut all: Vec<SpaceOwner> = Vec::new();
        for layer in &self.layers {
            let end = all.last().map_or(0, |it| end_of(it.offset, it.len));
            if let Some(len) = layer.start.checked_sub(end).filter(|&len| len > 0) {
                all.push(SpaceOwner { owner: "between layers", offset: end, len });
            }
            all.extend(layer.named(layer.volume.space())?.into_iter().map(|it| {
                let offset = end_of(it.offset, layer.start);
                SpaceOwner { offset, ..it }
            }));
        }
        Ok(all)
    }
}

impl Health for Layered {
    fn fault(&self) -> Option<Error> {
        self.layers.iter().find_map(|layer| layer.named(layer.volume.fault().map_or(Ok(()), Err)).err())
    }

    fn whole_fault(&self, checksum: bool) -> Result<Option<Error>> {
        for layer in &self.layers {
            if let Some(fault) = layer.named(layer.volume.whole_fault(checksum))? {
                return Ok(layer.named::<()>(Err(fault)).err());
            }
        }
        Ok(None)
    }

    fn warnings(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.volume.warnings()).collect()
    }

    fn remarks(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.volume.remarks()).collect()
    }
}

impl Storage for Layered {
    fn stored_extents(
        &self,
        id: InodeId,
        len: u64,
        visit: &mut dyn FnMut(StoredExtent) -> ControlFlow<()>,
    ) -> Result<()> {
        let (layer, own) = self.place(id)?;
        layer.named(layer.volume.stored_extents(own, len, &mut |extent| {
            let place = extent.place.map(|at| end_of(at, layer.start));
            visit(StoredExtent { place, ..extent })
        }))
    }
}

impl Caching for Layered {
    fn will_read_inodes(&self, ids: &[InodeId]) {
        for (index, layer) in self.layers.iter().enumerate() {
            let own = ids.iter().map(|id| place_of(*id)).filter(|place| place.0 == index);
            if let Some(caching) = layer.volume.caching() {
                caching.will_read_inodes(&own.map(|place| place.1).collect::<Vec<_>>());
            }
        }
    }

    fn keep_at_most(&self, len_max: usize) {
        locked(&self.listings).clear();
        let each = len_max.checked_div(self.layers.len()).unwrap_or(len_max);
        self.layers.iter().for_each(|layer| layer.volume.keep_at_most(each));
    }
}
