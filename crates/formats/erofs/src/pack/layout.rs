//! Layout of everything except data: the superblock at the start, all metadata in one zone at the
//! end.
//!
//! All inodes of one directory are adjacent, and directory blocks next to their inodes; the
//! subdirectories follow depth first, which is nearly the order in which trees are walked. Files
//! used first, if known, precede all others. Everything is placed first, then written from front to
//! back.

use super::features::Features;
use super::metabox::Metabox;
use super::node::{Nodes, Shape, Spot, at_node};
use super::plan::head_len;
use super::room::{Room, SLOT_LEN};
use super::stream::{Sink, Stream};
use super::superblock::{self, Places};
use super::times::Times;
use super::xattrs::XattrTables;
use crate::codec;
use crate::disk;
use crate::options::{self, Options};
use packfs_core::{Error, NodeId, Result, Tree};
use packfs_format::{Clusters, Placed, PlacedFile, Plan, Section};
use std::collections::HashMap;

/// Metadata that starts above this block may end above 32-bit block numbers.
const NEAR_BLOCKS_MAX: u64 = u32::MAX as u64 - (1 << 26);

/// Writes all sections; see the module.
pub(super) fn write(
    options: &Options,
    tree: &Tree,
    plan: &Plan<Clusters>,
    placed: &Placed<Clusters>,
    put: &mut dyn FnMut(Section) -> Result<()>,
) -> Result<()> {
    let xattrs = XattrTables::new(tree, options)?;
    let times = Times::new(tree, options.typed.epoch, options.wide, options.typed.times, options.made_at);
    let mut nodes = Nodes::new(options, tree, (plan, placed), &xattrs, times);
    let mut features =
        Features { prefixes: xattrs.prefix_count > 0, wide: options.wide, ..Features::default() };
    let zone = if options.devices.is_empty() {
        Zone::new(&nodes, &mut features)?
    } else {
        features.devices = true;
        Zone::before_device(&mut nodes, &mut features)?
    };
    zone.write(&nodes, features, put)
}

/// The index of the metabox takes at most one part in this many, as clusters have 4 KiB of input
/// and records 32 bytes at most ...
const METABOX_INDEX_SHARE: u64 = 64;
/// ... and inode, alignment, and a short cluster no more than this.
const METABOX_SPARE: u64 = 16 << 10;

fn metadata_start(nodes: &Nodes<'_>) -> u64 {
    if nodes.options.devices.is_empty() { nodes.placed.data_end } else { head_len(nodes.options) }
}

/// Position of an inode that is not placed yet.
const NOWHERE: u64 = u64::MAX;

/// Positions of all metadata.
struct Zone {
    /// Start of the zone in the image, in bytes.
    start: u64,
    nid_base: u64,
    /// Inodes by offset in the zone or in the metabox.
    inode_at: Vec<u64>,
    /// Separate blocks, such as those of directories, by offset in the zone.
    own_at: HashMap<NodeId, u64>,
    packed: Option<(u64, Vec<u8>)>,
    /// End of the metabox, which contains all inodes but the root and special ones.
    metabox_end: Option<u64>,
    end: u64,
}

/// A placed object: one row for each node of a tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Inode(NodeId),
    Blocks(NodeId),
    Packed,
}

/// Sorted by position.
type Items = Vec<Item>;

impl Zone {
    fn new(nodes: &Nodes<'_>, features: &mut Features) -> Result<Self> {
        let (options, tree) = (nodes.options, nodes.tree);
        let block_len = u64::from(options.block_len);
        let start = metadata_start(nodes).next_multiple_of(block_len);
        let far = start / block_len > NEAR_BLOCKS_MAX;
        let shared = nodes.xattrs.shared.len() as u64;
        let prefixes = nodes.xattrs.prefixes.len() as u64;
        let uses_metabox = options.metabox.as_ref().is_some_and(|metabox| metabox.serves(tree));
        features.shared_in_metabox = uses_metabox && shared > 0;
        let (shared_main, shared_metabox) = if uses_metabox { (0, shared) } else { (shared, 0) };
        let mut main = Room::new(block_len, shared_main + prefixes);
        let mut metabox = uses_metabox.then(|| Room::new(block_len, shared_metabox));
        let mut zone = Zone {
            start,
            nid_base: if start / block_len > u64::from(u32::MAX) { 0 } else { start },
            inode_at: vec![NOWHERE; tree.node_count() as usize],
            own_at: HashMap::new(),
            packed: None,
            metabox_end: None,
            end: 0,
        };
        let mut dirs = vec![NodeId::ROOT];
        zone.place(nodes, NodeId::ROOT, far, features, &mut main, None)?;
        if let Some(inode) = nodes.packed(tree.node_count() + 1, features)? {
            let at = main.place_inode(inode.len() as u64, 0);
            zone.packed = Some((at, inode));
        }
        for &id in nodes.first_used {
            if zone.inode_at[id.index()] == NOWHERE {
                zone.place(nodes, id, far, features, &mut main, metabox.as_mut())?;
            }
        }
        while let Some(dir) = dirs.pop() {
            let waiting = dirs.len();
            for entry in tree.entries(dir) {
                // A hard link is placed with its first name, and files used first at the front.
                if zone.inode_at[entry.node.index()] == NOWHERE {
                    zone.place(nodes, entry.node, far, features, &mut main, metabox.as_mut())?;
                }
                if tree.node(entry.node).is_dir() {
                    dirs.push(entry.node);
                }
            }
            dirs[waiting..].reverse();
        }
        zone.metabox_end = metabox.map(|metabox| metabox.end());
        zone.end = main.end();
        Ok(zone)
    }

    /// Places metadata if data are on a device, which starts after the image. The length of maps
    /// depends slightly on that start.
    fn before_device(nodes: &mut Nodes<'_>, features: &mut Features) -> Result<Self> {
        let unit = superblock::image_unit(nodes.options);
        // Ends: maps become longer only with wider block numbers, of which few widths exist.
        loop {
            let mut used = *features;
            let zone = Zone::new(nodes, &mut used)?;
            let end = zone.end_max().next_multiple_of(unit);
            if end <= nodes.data_base {
                *features = used;
                return Ok(zone);
            }
            nodes.data_base = end;
        }
    }

    /// Returns an upper bound of the image's end, in bytes.
    fn end_max(&self) -> u64 {
        let metabox = self.metabox_end.map_or(0, |end| end + end / METABOX_INDEX_SHARE + METABOX_SPARE);
        self.start + self.end + metabox
    }

    fn place(
        &mut self,
        nodes: &Nodes<'_>,
        id: NodeId,
        far: bool,
        features: &mut Features,
        main: &mut Room,
        metabox: Option<&mut Room>,
    ) -> Result<()> {
        let shape = nodes.measure(id, far, features).map_err(at_node(nodes.tree, id))?;
        let at = match metabox {
            Some(metabox) => metabox.place_inode(shape.head_len, shape.inline_len),
            None => main.place_inode(shape.head_len, shape.inline_len),
        };
        self.inode_at[id.index()] = at;
        if shape.own_blocks > 0 {
            self.own_at.insert(id, main.place_blocks(shape.own_blocks));
        }
        Ok(())
    }

    fn nid(&self, id: NodeId) -> u64 {
        let at = self.inode_at[id.index()];
        if self.metabox_end.is_some() && id != NodeId::ROOT {
            return (at / SLOT_LEN) | (1 << disk::EROFS_DIRENT_NID_METABOX_BIT);
        }
        self.nid_at(at)
    }

    fn nid_at(&self, at: u64) -> u64 {
        (self.start - self.nid_base + at) / SLOT_LEN
    }

    /// Returns the items of the zone and those of the metabox, each sorted by position.
    fn items(&self) -> (Items, Items) {
        let inodes = (0..self.inode_at.len()).map(|index| Item::Inode(NodeId(index as u32)));
        let (mut main, mut metabox) = (Vec::new(), Vec::new());
        match self.metabox_end {
            Some(_) => metabox.extend(inodes),
            None => main.extend(inodes),
        }
        // Readers must find the root without the metabox.
        if !metabox.is_empty() {
            main.push(metabox.remove(0));
        }
        main.extend(self.own_at.keys().map(|&id| Item::Blocks(id)));
        main.extend(self.packed.iter().map(|_| Item::Packed));
        main.sort_unstable_by_key(|&item| (self.place_of(item), item));
        metabox.sort_unstable_by_key(|&item| (self.place_of(item), item));
        (main, metabox)
    }

    fn place_of(&self, item: Item) -> u64 {
        match item {
            Item::Inode(id) => self.inode_at[id.index()],
            Item::Blocks(id) => self.own_at.get(&id).copied().unwrap_or(0),
            Item::Packed => self.packed.as_ref().map_or(0, |&(at, _)| at),
        }
    }

    fn write_items(&self, nodes: &Nodes<'_>, items: &[Item], base: u64, out: &mut dyn Sink) -> Result<()> {
        let nid = |id| self.nid(id);
        let mut bytes = Vec::new();
        for &item in items {
            bytes.clear();
            match item {
                Item::Inode(id) | Item::Blocks(id) => {
                    let own_at = self.start + self.own_at.get(&id).copied().unwrap_or(0);
                    let spot = Spot { own_at, nid: &nid };
                    let shape = self.shape(nodes, id)?;
                    match item {
                        Item::Inode(_) => nodes.write_inode(id, &shape, spot, &mut bytes),
                        _ => nodes.write_blocks(id, &shape, spot, &mut bytes),
                    }
                    .map_err(at_node(nodes.tree, id))?;
                }
                Item::Packed => {
                    bytes.extend_from_slice(self.packed.as_ref().map_or(&[][..], |(_, inode)| inode));
                }
            }
            out.write_at(base + self.place_of(item), &bytes)?;
        }
        Ok(())
    }

    /// Recomputed rather than stored: a tree may have many nodes.
    fn shape(&self, nodes: &Nodes<'_>, id: NodeId) -> Result<Shape> {
        let far = self.start / u64::from(nodes.options.block_len) > NEAR_BLOCKS_MAX;
        nodes.measure(id, far, &mut Features::default())
    }

    fn write(
        self,
        nodes: &Nodes<'_>,
        mut features: Features,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()> {
        let (options, xattrs) = (nodes.options, nodes.xattrs);
        let block_len = u64::from(options.block_len);
        let mut out = Stream::new(metadata_start(nodes), put);
        let shared: &[u8] = if features.shared_in_metabox { &[] } else { &xattrs.shared };
        let prefix_start = self.start + shared.len() as u64;
        out.write_at(self.start, shared)?;
        out.write_at(prefix_start, &xattrs.prefixes)?;
        let (main, metabox) = self.items();
        self.write_items(nodes, &main, self.start, &mut out)?;
        let metabox_nid = match (self.metabox_end, &nodes.options.metabox) {
            (Some(end), Some(settings)) => {
                Some(self.write_metabox(nodes, settings, (&metabox, end), &mut features, &mut out)?)
            }
            _ => None,
        };
        let end = out.end().max(self.start + self.end).next_multiple_of(block_len);
        if !options.devices.is_empty() && end > nodes.data_base {
            return Err(Error::failed(
                "cannot place the device: compressed metadata is longer than was estimated",
            )
            .hint("-O metabox=off"));
        }
        let end = end.max(nodes.data_base);
        out.write_at(end, &[])?;
        let (hash, put) = out.finish()?;
        let image_len = end.next_multiple_of(superblock::image_unit(options));
        let device = |file: &PlacedFile| superblock::DevicePlace {
            len: (file.end - file.start).div_ceil(block_len),
            start: (nodes.data_base + file.start) / block_len,
            hash: file.hash,
        };
        let devices: Vec<_> = nodes.placed.data.files.iter().map(device).collect();
        let all_blocks =
            devices.last().map_or(0, |device| device.start + device.len).max(image_len / block_len);
        if all_blocks > u64::from(u32::MAX) && !options.wide {
            let message = format!("the image has {image_len} bytes, more than 2^32 blocks of {block_len}");
            let option = if options.merged.is_some() { "--kernel 6.15" } else { "-O 48bit=on" };
            return Err(Error::failed(message).hint(format!("{option} allows more, and needs Linux 6.15")));
        }
        let is_far = !devices.is_empty() && all_blocks > u64::from(u32::MAX);
        if options.merged.is_some() && is_far && !options.is_flat && !options.far_devices {
            return Err(Error::too_large(
                "devices above 2^32 blocks, of which Linux before 7.1 reads the lower 32 bits",
            )
            .hint("merge into one file, flat or not; --kernel 7.1 allows such devices"));
        }
        let places = Places {
            image_blocks: if options.is_flat { all_blocks } else { image_len / block_len },
            meta_block: self.nid_base / block_len,
            xattr_block: if shared.is_empty() { 0 } else { self.start / block_len },
            prefix_start,
            prefix_count: xattrs.prefix_count,
            root_nid: self.nid(NodeId::ROOT),
            packed_nid: self.packed.as_ref().map(|&(at, _)| self.nid_at(at)),
            metabox_nid,
            inode_count: u64::from(nodes.tree.node_count())
                + u64::from(self.packed.is_some())
                + u64::from(metabox_nid.is_some()),
            has_xattrs: !xattrs.is_empty(),
            has_digests: xattrs.has_digests,
            devices,
        };
        superblock::write(options, &features, &nodes.times, &places, (hash, nodes.placed.data.hash), put)
    }

    /// Writes the metabox after everything else, then its inode; returns the number of that.
    fn write_metabox(
        &self,
        nodes: &Nodes<'_>,
        settings: &options::Metabox,
        (items, end): (&[Item], u64),
        features: &mut Features,
        out: &mut Stream<'_>,
    ) -> Result<u64> {
        let options::Metabox { cluster_len, codec: settings, .. } = settings;
        let algorithm = codec::number(settings.algorithm())?;
        out.write_at(self.start + self.end, &[])?;
        out.begin("compressed metadata")?;
        let mut metabox = Metabox::new(out, settings, algorithm, *cluster_len)?;
        if features.shared_in_metabox {
            metabox.write_at(0, &nodes.xattrs.shared)?;
        }
        self.write_items(nodes, items, 0, &mut metabox)?;
        let map = metabox.finish(end)?;
        features.metabox = true;
        let facts = nodes.special_facts(map.size, nodes.tree.node_count() + 2);
        let mut inode = Vec::new();
        nodes.write_special(&mut inode, &facts, (&map, true), features)?;
        let at = out.end().next_multiple_of(SLOT_LEN);
        out.write_at(at, &inode)?;
        Ok(self.nid_at(at - self.start))
    }
}
