//! Extended attributes: those of many inodes once in a shared area, others after each inode.

use super::losses::VALUE_LEN_MAX;
use super::xattr_names::Names;
use crate::disk::{self, XATTR_ALIGN, XattrEntry, XattrIbodyHeader};
use crate::options::{Options, Prefixes};
use packfs_core::{Error, Result, Tree, Xattrs, XattrsId};
use packfs_format::units::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use xxhash_rust::xxh32::xxh32;
use zerocopy::IntoBytes;

const HEADER_LEN: u64 = size_of::<XattrIbodyHeader>() as u64;
const SHARED_COUNT_MAX: usize = 255;
/// Minimum saving of sharing between two inodes: a shared attribute costs a reader another block.
const SAVED_MIN: u64 = 64;
/// Limit of the xattrs of one inode; a shared one counts 4 bytes.
pub(super) const XATTRS_LEN_MAX: u64 = 12 + 4 * 65_534;
const PREFIX_COUNT_MAX: usize = 128;

/// Encoded attributes of a tree.
pub(super) struct XattrTables {
    pub shared: Vec<u8>,
    /// Prefixes that the image defines, each with its length.
    pub prefixes: Vec<u8>,
    pub prefix_count: u8,
    /// True if the first prefix is the name of digests.
    pub has_digests: bool,
    /// Encoded attributes after the inode, for each set of the tree.
    bodies: Vec<Box<[u8]>>,
}

impl XattrTables {
    /// Errors: `Failed` for an inode with too many attributes.
    pub(super) fn new(tree: &Tree, options: &Options) -> Result<Self> {
        let mut uses = vec![0u64; tree.xattr_sets().len()];
        // In order of first use, so that shared ones are in reading order.
        let mut order = Vec::new();
        for (_, node) in tree.nodes() {
            let uses = &mut uses[node.xattrs.0 as usize];
            if *uses == 0 && node.xattrs != XattrsId::NONE {
                order.push(node.xattrs);
            }
            *uses += 1;
        }
        let names = Names::new(options);
        let prefixes = LongPrefixes::choose(tree, &uses, options);
        let mut counts: HashMap<(&[u8], &[u8]), u64> = HashMap::new();
        for &id in &order {
            for (name, value) in held(tree.xattrs(id), names) {
                *counts.entry((name, value)).or_default() += uses[id.0 as usize];
            }
        }
        let mut writer = Writer { prefixes, counts, places: HashMap::new(), shared: Vec::new(), options };
        let mut bodies: Vec<Box<[u8]>> = uses.iter().map(|_| Box::default()).collect();
        for &id in &order {
            bodies[id.0 as usize] = writer.body(tree.xattrs(id)).ok_or_else(|| {
                let example = tree.nodes().find(|(_, node)| node.xattrs == id).map(|(id, _)| tree.path(id));
                Error::failed(format!(
                    "{:?} has more extended attributes than the {XATTRS_LEN_MAX} bytes that erofs holds",
                    example.unwrap_or_else(packfs_core::ImagePath::root)
                ))
            })?;
        }
        let has_digests = names.of_digests().is_some() && writer.prefixes.used.contains(&0);
        let (prefixes, prefix_count) = writer.prefixes.written();
        Ok(XattrTables { shared: writer.shared, prefixes, prefix_count, has_digests, bodies })
    }

    /// Returns the bytes after an inode: empty, or header, ids, and entries.
    pub(super) fn body(&self, id: XattrsId) -> &[u8] {
        &self.bodies[id.0 as usize]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bodies.iter().all(|body| body.is_empty())
    }
}

fn held<'a>(set: &'a Xattrs, names: Names<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    set.iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .filter(move |(name, value)| names.split(name).is_some() && value.len() <= VALUE_LEN_MAX)
}

struct Writer<'a> {
    prefixes: LongPrefixes<'a>,
    counts: HashMap<(&'a [u8], &'a [u8]), u64>,
    /// Ids of attributes that are already shared.
    places: HashMap<(&'a [u8], &'a [u8]), u32>,
    shared: Vec<u8>,
    options: &'a Options,
}

impl<'a> Writer<'a> {
    /// Encodes a set; `None` if it is too long.
    fn body(&mut self, set: &'a Xattrs) -> Option<Box<[u8]>> {
        let mut header = XattrIbodyHeader::default();
        let mut filter = disk::EROFS_XATTR_FILTER_DEFAULT;
        let (mut ids, mut entries) = (Vec::new(), Vec::new());
        let names = self.prefixes.names;
        for (name, value) in held(set, names) {
            let (base, rest) = names.split(name)?;
            let seed = disk::EROFS_XATTR_FILTER_SEED.wrapping_add(base.into());
            filter &= !(1 << (xxh32(rest, seed) % disk::EROFS_XATTR_FILTER_BITS));
            if self.is_shared(name, value) && ids.len() < SHARED_COUNT_MAX * 4 {
                ids.extend_from_slice(&self.share(name, value).to_le_bytes());
            } else {
                self.prefixes.write_entry(&mut entries, name, value)?;
            }
        }
        if ids.is_empty() && entries.is_empty() {
            return Some(Box::default());
        }
        header.h_shared_count = (ids.len() / 4) as u8;
        if self.options.typed.xattr_filter {
            header.h_name_filter = filter.into();
        }
        let body = [header.as_bytes(), &ids, &entries].concat();
        (body.len() as u64 <= XATTRS_LEN_MAX).then(|| body.into())
    }

    fn is_shared(&self, name: &[u8], value: &[u8]) -> bool {
        let count = self.counts.get(&(name, value)).copied().unwrap_or(0);
        let len = self.entry_len(name, value);
        let saved = left(len * count, len + 4 * count);
        self.options.typed.shared_xattrs && count > 1 && (saved >= SAVED_MIN || count > 2 && saved > 0)
    }

    fn entry_len(&self, name: &[u8], value: &[u8]) -> u64 {
        let name_len = self.prefixes.names.split(name).map_or(0, |(_, rest)| rest.len());
        (size_of::<XattrEntry>() as u64 + name_len as u64 + value.len() as u64).next_multiple_of(XATTR_ALIGN)
    }

    /// Returns the id of a shared attribute, which is written on first use.
    fn share(&mut self, name: &'a [u8], value: &'a [u8]) -> u32 {
        let (shared, prefixes) = (&mut self.shared, &mut self.prefixes);
        *self.places.entry((name, value)).or_insert_with(|| {
            let id = shared.len() as u64 / XATTR_ALIGN;
            // Names were checked, so an entry exists.
            let _ = prefixes.write_entry(shared, name, value);
            id as u32
        })
    }
}

/// Prefixes that the image defines: base number and infix.
struct LongPrefixes<'o> {
    names: Names<'o>,
    rows: Vec<(u8, Vec<u8>)>,
    used: HashSet<usize>,
}

impl<'o> LongPrefixes<'o> {
    /// The prefix of digests is the first.
    fn choose(tree: &Tree, uses: &[u64], options: &'o Options) -> Self {
        let names = Names::new(options);
        let others = match &options.prefixes {
            Prefixes::Off => Vec::new(),
            Prefixes::List(list) => list
                .iter()
                .filter_map(|prefix| names.split(prefix).map(|(base, rest)| (base, rest.to_vec())))
                .collect(),
            Prefixes::Auto => saving(tree, uses, names, u64::from(options.block_len)),
        };
        let of_digests = names.of_digests().map(|(base, rest)| (base, rest.to_vec()));
        let rows = of_digests.into_iter().chain(others).take(PREFIX_COUNT_MAX).collect();
        LongPrefixes { names, rows, used: HashSet::new() }
    }

    /// Returns the longest defined prefix of a name, with its index and the rest.
    fn find<'n>(&self, base: u8, rest: &'n [u8]) -> Option<(usize, &'n [u8])> {
        let fits = |(index, row): (usize, &(u8, Vec<u8>))| {
            let left = rest.strip_prefix(&row.1[..]).filter(|_| row.0 == base)?;
            Some((index, left))
        };
        self.rows.iter().enumerate().filter_map(fits).min_by_key(|(_, left)| left.len())
    }

    /// Appends an entry; `None` for a name that cannot be represented.
    fn write_entry(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Option<()> {
        let (base, rest) = self.names.split(name)?;
        let (number, rest) = match self.find(base, rest) {
            Some((index, left)) => {
                self.used.insert(index);
                (disk::EROFS_XATTR_LONG_PREFIX | index as u8, left)
            }
            None => (base, rest),
        };
        write_entry(out, number, rest, value)
    }

    /// Returns the table and its number of rows: 0 if nothing refers to it.
    fn written(&self) -> (Vec<u8>, u8) {
        if self.used.is_empty() {
            return (Vec::new(), 0);
        }
        let mut out = Vec::new();
        for (base, infix) in &self.rows {
            out.extend_from_slice(&(infix.len() as u16 + 1).to_le_bytes());
            out.push(*base);
            out.extend_from_slice(infix);
            out.resize(out.len().next_multiple_of(XATTR_ALIGN as usize), 0);
        }
        (out, self.rows.len() as u8)
    }
}

/// Appends an entry: number of a prefix, rest of the name, and value; `None` for a value that is
/// too long.
pub(super) fn write_entry(out: &mut Vec<u8>, number: u8, rest: &[u8], value: &[u8]) -> Option<()> {
    let entry = XattrEntry {
        e_name_len: rest.len() as u8,
        e_name_index: number,
        e_value_size: u16::try_from(value.len()).ok()?.into(),
    };
    out.extend_from_slice(entry.as_bytes());
    out.extend_from_slice(rest);
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(XATTR_ALIGN as usize), 0);
    Some(())
}

/// Returns prefixes of names, up to a dot, that save more than `least` bytes, best first.
fn saving(tree: &Tree, uses: &[u64], names: Names<'_>, least: u64) -> Vec<(u8, Vec<u8>)> {
    let mut saved: BTreeMap<(u8, &[u8]), u64> = BTreeMap::new();
    for (set, &count) in tree.xattr_sets().iter().zip(uses) {
        for (name, _) in held(set, names) {
            let Some((base, rest)) = names.split(name) else { continue };
            let Some(dot) = rest.iter().rposition(|&byte| byte == b'.') else { continue };
            *saved.entry((base, &rest[..=dot])).or_default() += count * (dot as u64 + 1);
        }
    }
    let mut rows: Vec<_> = saved.into_iter().filter(|&(_, saved)| saved > least).collect();
    rows.sort_by_key(|&(_, saved)| std::cmp::Reverse(saved));
    rows.into_iter().map(|((base, infix), _)| (base, infix.to_vec())).collect()
}

pub(super) fn icount(body: &[u8]) -> u16 {
    match body.len() as u64 {
        0 => 0,
        len => ((len - HEADER_LEN) / 4 + 1) as u16,
    }
}
