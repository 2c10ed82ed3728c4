//! An opened filesystem: its devices, chunks, and trees.

use crate::bytes::Fields;
use crate::chunks::{Chunk, Chunks};
use crate::corruption::Corruption;
use crate::devices::Devices;
use crate::disk::{DeviceItem, RootPlace, SUPER_AT, SuperBlock, kind, tree};
use crate::key::Key;
use crate::store::Store;
use crate::tree::{Item, Logs, SumRun, Tree};
use packfs_core::{Error, ErrorKind, Image, Result};
use packfs_format::Opening;
use std::sync::Arc;

/// Bytes of a description of a tree without the fields of later kernels.
const ROOT_LEN_MIN: usize = 239;
/// Bytes of it with the UUIDs of a subvolume.
const ROOT_LEN: usize = 439;

/// Devices, chunks, and trees.
pub(crate) struct Fs {
    pub(crate) store: Store,
    /// The tree of trees.
    pub(crate) roots: Tree,
    /// Checksums of file data; `None` if their tree cannot be found.
    pub(crate) sums: Option<Tree>,
    /// Devices that the filesystem lists.
    pub(crate) devices: Vec<DeviceItem>,
    /// Checksums of file data in logs, in the order of their addresses.
    pub(crate) log_sums: Vec<SumRun>,
    pub(crate) warnings: Vec<String>,
    /// Fault of the filesystem as a whole: changes that are missing.
    pub(crate) fault: Option<Error>,
    /// Changes after the last commit, by tree.
    logs: Logs,
}

/// Description of a tree.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) tree: Tree,
    /// Inode of its root directory.
    pub(crate) dir: u64,
    pub(crate) is_read_only: bool,
    /// Bytes of its blocks.
    pub(crate) bytes_used: u64,
    pub(crate) parent_uuid: Option<crate::key::Uuid>,
    /// Time of creation, in seconds since 1970.
    pub(crate) made_at: i64,
    /// Names that lead to it; 0 while it is deleted.
    pub(crate) refs: u32,
}

impl Fs {
    /// Opens devices.
    pub(crate) fn open(image: Arc<dyn Image>, opening: &Opening) -> Result<Fs> {
        let devices = Devices::new(image, opening)?;
        let block = devices.super_block().clone();
        let system = system_chunks(&block)?;
        let store = Store::new(devices, Chunks::new(system.clone())?);
        let (chunks, listed) = match block.is_one_chunk() {
            true => (system, vec![block.device]),
            false => read_chunks(&store)?,
        };
        // Linux writes the log to the first superblock alone, and mounts no other.
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

    /// Returns the description of a tree.
    ///
    /// Errors: `Corrupt` if there is none.
    pub(crate) fn root(&self, id: u64) -> Result<Root> {
        self.find_root(id)?.ok_or_else(|| Corruption::NoTree { id }.into())
    }

    /// Returns the description of a tree; `None` if there is none.
    pub(crate) fn find_root(&self, id: u64) -> Result<Option<Root>> {
        let item = self.roots.last_to(&self.store, &Key::new(id, kind::ROOT_ITEM, u64::MAX))?;
        let item = item.filter(|item| (item.key.object, item.key.kind) == (id, kind::ROOT_ITEM));
        let Some(item) = item else { return Ok(None) };
        let mut root = Root::read(&item)?;
        root.tree.changes = self.logs.get(&id).cloned();
        Ok(Some(root))
    }

    /// Takes changes of trees that are not in them, and checksums of file data.
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

    /// Returns the error of an option that names a subvolume.
    pub(crate) fn no_subvolume(&self, name: &str) -> Error {
        Error::usage(format!("the image has no subvolume {name:?}"))
            .hint("packfs info lists subvolumes with their numbers and paths")
    }
}

impl Root {
    pub(crate) fn read(item: &Item) -> Result<Root> {
        let bytes = item.bytes_of(ROOT_LEN_MIN)?;
        let fields = Fields(bytes);
        let id = item.key.object;
        let root = RootPlace { at: fields.u64(0xb0), level: fields.u8(0xee), generation: fields.u64(0xa0) };
        let uuid = |at| {
            let uuid = crate::key::Uuid(fields.array(at));
            (bytes.len() >= ROOT_LEN && uuid.0 != [0; 16]).then_some(uuid)
        };
        Ok(Root {
            tree: Tree::new(id, root),
            dir: fields.u64(0xa8),
            is_read_only: fields.u64(0xd0) & 1 != 0,
            bytes_used: fields.u64(0xc0),
            parent_uuid: uuid(0x107),
            made_at: fields.u64(0x153).cast_signed(),
            refs: fields.u32(0xd8),
        })
    }
}

/// Reads the chunks in the superblock.
fn system_chunks(block: &SuperBlock) -> Result<Vec<Chunk>> {
    let array = &*block.system_array;
    let mut chunks = Vec::new();
    let mut at = 0_usize;
    while at < array.len() {
        let rest = array.get(at..).unwrap_or_default();
        let key = Key::read(Fields(rest));
        let bytes = rest.get(Key::LEN..).unwrap_or_default();
        if key.kind != kind::CHUNK_ITEM {
            return Err(Corruption::SystemArray { at }.into());
        }
        let (chunk, len) = match block.is_one_chunk() {
            true => (Chunk::whole(bytes), bytes.len()),
            false => Chunk::read(bytes, key.offset, block.sector_len)?,
        };
        chunks.push(chunk);
        at = at.saturating_add(Key::LEN).saturating_add(len);
    }
    Ok(chunks)
}

/// Reads the tree of chunks.
fn read_chunks(store: &Store) -> Result<(Vec<Chunk>, Vec<DeviceItem>)> {
    let block = store.super_block();
    let tree = Tree::new(tree::CHUNK, block.chunks);
    let (mut chunks, mut devices) = (Vec::new(), Vec::new());
    for item in tree.all(store) {
        let item = item?;
        match item.key.kind {
            kind::DEV_ITEM => devices.push(DeviceItem::read(Fields(item.bytes_of(DeviceItem::LEN)?))),
            kind::CHUNK_ITEM => {
                chunks.push(Chunk::read(item.bytes(), item.key.offset, block.sector_len)?.0);
            }
            _ => {}
        }
    }
    Ok((chunks, devices))
}
