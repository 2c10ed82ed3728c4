//! An opened filesystem: its devices, chunks, and trees.

use crate::chunks::{Chunk, Chunks};
use crate::corruption::Corruption;
use crate::devices::Devices;
use crate::disk::{DiskKey, RootItem, RootItemV2, SUPER_AT, kind, tree};
use crate::key::Key;
use crate::store::Store;
use crate::super_block::{DeviceItem, RootPlace, SuperBlock};
use crate::tree::{Item, Logs, SumRun, Tree};
use packfs_core::{Error, ErrorKind, Image, Result};
use packfs_format::{Opening, structure, units::*};
use std::sync::Arc;

pub(crate) struct Fs {
    pub(crate) store: Store,
    pub(crate) roots: Tree,
    /// Checksums of file data; `None` if their tree cannot be found.
    pub(crate) sums: Option<Tree>,
    pub(crate) devices: Vec<DeviceItem>,
    /// Checksums of file data in logs, sorted by address.
    pub(crate) log_sums: Vec<SumRun>,
    pub(crate) warnings: Vec<String>,
    /// Reason why the filesystem as a whole is not intact: missing changes.
    pub(crate) fault: Option<Error>,
    /// Changes of each tree after the last commit.
    logs: Logs,
}

#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) tree: Tree,
    pub(crate) dir: u64,
    pub(crate) is_read_only: bool,
    pub(crate) bytes_used: u64,
    pub(crate) parent_uuid: Option<crate::key::Uuid>,
    pub(crate) made_at: i64,
    /// Number of references; 0 for a deleted subvolume.
    pub(crate) refs: u32,
}

impl Fs {
    pub(crate) fn open(image: Arc<dyn Image>, opening: &Opening) -> Result<Fs> {
        let devices = Devices::new(image, opening)?;
        let block = devices.super_block().clone();
        let system = system_chunks(&block)?;
        let store = Store::new(devices, Chunks::new(system.clone())?);
        let (chunks, listed) =
            if block.is_one_chunk() { (system, vec![block.device]) } else { read_chunks(&store)? };
        // Linux writes the log to the first superblock only, and does not mount from a copy.
        let copy = (block.at != SUPER_AT).then_some(Corruption::SuperCopy { at: block.at });
        let mut warnings = store.devices.warnings.clone();
        let mut store = store.with_chunks(Chunks::new(chunks)?);
        store.devices.listed = Some(listed.iter().map(|device| (device.id, device.uuid)).collect());
        for device in listed.iter().filter(|device| !store.devices.has(device.id, device.uuid)) {
            warnings.push(format!(
                "device {} ({}) is not given; data on it is computed from other devices, or missing",
                device.id, device.uuid
            ));
        }
        let roots = Tree::new(tree::ROOT, block.root);
        let mut fs = Fs {
            store,
            roots,
            sums: None,
            devices: listed,
            log_sums: Vec::new(),
            warnings,
            fault: copy.map(|fault| Error::from(fault).hint("--ignore-checksum reads the copy")),
            logs: Logs::new(),
        };
        match fs.root(tree::CHECKSUMS) {
            Ok(sums) => fs.sums = Some(sums.tree),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                fs.warnings.push(format!("file data is not verified: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(fs)
    }

    /// Errors: `Corrupt` if the tree of trees has no such item.
    pub(crate) fn root(&self, id: u64) -> Result<Root> {
        self.find_root(id)?.ok_or_else(|| Corruption::NoTree { id }.into())
    }

    pub(crate) fn find_root(&self, id: u64) -> Result<Option<Root>> {
        let item = self.roots.last_to(&self.store, &Key::new(id, kind::ROOT_ITEM, u64::MAX))?;
        let item = item.filter(|item| (item.key.object, item.key.kind) == (id, kind::ROOT_ITEM));
        let Some(item) = item else { return Ok(None) };
        let mut root = Root::read(&item)?;
        root.tree.changes = self.logs.get(&id).cloned();
        Ok(Some(root))
    }

    /// Adds changes of trees that are not in them, and checksums of file data.
    pub(crate) fn put_logs(&mut self, logs: Logs, mut sums: Vec<Item>) {
        sums.sort_by_key(|item| item.key.offset);
        let mut end = 0;
        for item in sums {
            let whole = self.sums_in(&item);
            let range = whole.start.max(end)..whole.end;
            if !range.is_empty() {
                end = range.end;
                self.log_sums.push(SumRun { range, item: Some(item) });
            }
        }
        self.logs = logs;
    }

    /// Returns the subvolume that Linux mounts by default.
    pub(crate) fn default_subvolume(&self) -> Result<u64> {
        let key = Key::new(tree::ROOT_DIR, kind::DIR_ITEM, crate::entry::name_hash(b"default"));
        let Some(item) = self.roots.get(&self.store, &key)? else { return Ok(tree::TOP) };
        for entry in crate::entry::entries(&item) {
            let entry = entry?;
            if entry.name == b"default" && entry.location.kind == kind::ROOT_ITEM {
                return Ok(entry.location.object);
            }
        }
        Ok(tree::TOP)
    }

    pub(crate) fn no_subvolume(&self, name: &str) -> Error {
        Error::usage(format!("the image has no subvolume {name:?}"))
            .hint("packfs info lists subvolumes with their numbers and paths")
    }
}

impl Root {
    pub(crate) fn read(item: &Item) -> Result<Root> {
        let raw: RootItem = item.head()?;
        let more: Option<RootItemV2> = structure(item.bytes(), size_of::<RootItem>());
        let root = RootPlace { at: raw.bytenr.get(), level: raw.level, generation: raw.generation.get() };
        let parent = more.map(|more| more.parent_uuid).filter(|uuid| *uuid != [0; 16]);
        Ok(Root {
            tree: Tree::new(item.key.object, root),
            dir: raw.root_dirid.get(),
            is_read_only: raw.flags.get() & 1 != 0,
            bytes_used: raw.bytes_used.get(),
            parent_uuid: parent.map(crate::key::Uuid),
            made_at: more.map_or(0, |more| more.otime.sec.get().cast_signed()),
            refs: raw.refs.get(),
        })
    }
}

fn system_chunks(block: &SuperBlock) -> Result<Vec<Chunk>> {
    let array = &*block.system_array;
    let mut chunks = Vec::new();
    let mut at = 0_usize;
    while at < array.len() {
        let rest = array.within(at..);
        let raw = structure::<DiskKey>(rest, 0).ok_or(Corruption::SystemArray { at })?;
        let key = Key::of(&raw);
        let bytes = rest.within(size_of::<DiskKey>()..);
        if key.kind != kind::CHUNK_ITEM {
            return Err(Corruption::SystemArray { at }.into());
        }
        let (chunk, len) = if block.is_one_chunk() {
            (Chunk::whole(bytes).ok_or(Corruption::SystemArray { at })?, bytes.len())
        } else {
            Chunk::read(bytes, key.offset, block.sector_len)?
        };
        chunks.push(chunk);
        at = at.plus(size_of::<DiskKey>()).plus(len);
    }
    Ok(chunks)
}

fn read_chunks(store: &Store) -> Result<(Vec<Chunk>, Vec<DeviceItem>)> {
    let block = store.super_block();
    let tree = Tree::new(tree::CHUNK, block.chunks);
    let (mut chunks, mut devices) = (Vec::new(), Vec::new());
    for item in tree.all(store) {
        let item = item?;
        match item.key.kind {
            kind::DEV_ITEM => devices.push(DeviceItem::of(&item.head()?)),
            kind::CHUNK_ITEM => {
                chunks.push(Chunk::read(item.bytes(), item.key.offset, block.sector_len)?.0);
            }
            _ => {}
        }
    }
    Ok((chunks, devices))
}
