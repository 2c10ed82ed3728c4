//! Extended attributes: after the inode, shared, and with long prefixes.
//!
//! Owns prefixes and limits. Invariant: the attributes of an inode never take more memory than 64
//! KiB of names and 64 MiB of values. Attributes with an unknown prefix are skipped, as by the
//! kernel.

use crate::corruption::{Allowed, Place};
use crate::disk::*;
use crate::raw::{LongPrefix, RawInode};
use crate::reader::Reader;
use packfs_core::{Result, Xattrs, len_of, usize_of};
use packfs_format::units::*;
use std::mem::size_of;
use zerocopy::little_endian::U32;

/// Longest full name (`XATTR_NAME_MAX` of Linux's `limits.h`).
const NAME_LEN_MAX: usize = 255;
/// Longest stored form of a long prefix: number of a short prefix, then a name.
const PREFIX_LEN_MAX: u64 = EROFS_NAME_LEN as u64 + 1;
/// Limit of an inode's names, each with its NUL (`XATTR_LIST_MAX`).
const NAMES_LEN_MAX: usize = 65_536;
/// Limit of an inode's values. Kernels have no such limit; it keeps shared values from exhausting
/// memory.
const VALUES_LEN_MAX: usize = 64 << 20;

const SHARED_ID_LEN: u64 = size_of::<U32>() as u64;

/// Fields read along with an inode's attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct XattrFigures {
    /// Ids of shared attributes, in order.
    pub(crate) shared: Vec<u32>,
    /// Clear bits of the name filter, which permit a name.
    pub(crate) filter: u32,
    /// Bits that must be clear.
    pub(crate) filter_needed: u32,
    /// Number of attributes with an unknown prefix.
    pub(crate) unknown: u32,
}

struct Stored {
    entry: XattrEntry,
    /// Name without prefix.
    suffix: Vec<u8>,
    value_at: u64,
    /// Length with padding.
    len: u64,
}

impl Stored {
    /// True for the remainder of an attribute that mkfs.erofs `--ovlfs-strip` removed: without
    /// namespace, name, and value. Linux does not show it.
    fn is_emptied(&self) -> bool {
        let XattrEntry { e_name_len, e_name_index, e_value_size } = self.entry;
        e_name_len == 0 && e_name_index == 0 && e_value_size.get() == 0
    }
}

fn short_prefix(index: u8) -> Option<&'static [u8]> {
    XATTR_PREFIXES.iter().find(|(number, _)| *number == index).map(|(_, prefix)| *prefix)
}

/// Returns the bit of a name filter that a name, without its short prefix, clears.
pub(crate) fn filter_bit(base_index: u8, name: &[u8]) -> u32 {
    let seed = EROFS_XATTR_FILTER_SEED.wrapping_add(u32::from(base_index));
    1 << (xxhash_rust::xxh32::xxh32(name, seed) % EROFS_XATTR_FILTER_BITS)
}

impl Reader {
    pub(crate) fn xattrs_of(&self, raw: &RawInode) -> Result<(Xattrs, XattrFigures)> {
        let set = self.filled(raw, Set::default())?;
        Ok((set.xattrs, set.figures))
    }

    /// Returns the long prefix that the image marks as the complete name of file digests, if its
    /// namespace is known.
    pub(crate) fn digest_prefix(&self) -> Option<&LongPrefix> {
        let marked = self.geometry.has_compat(EROFS_FEATURE_COMPAT_ISHARE_XATTRS);
        let index = self.geometry.super_block.ishare_xattr_prefix_id;
        let prefix = self.prefixes.get(usize::from(index)).filter(|_| marked);
        prefix.filter(|prefix| prefix.base_index == 0 || short_prefix(prefix.base_index).is_some())
    }

    pub(crate) fn digest_of(&self, raw: &RawInode) -> Result<Option<Vec<u8>>> {
        let Some(prefix) = self.digest_prefix() else { return Ok(None) };
        let hidden_name = (prefix.base_index == 0).then(|| prefix.infix.clone());
        let mut set = self.filled(raw, Set { hidden_name, ..Set::default() })?;
        Ok(match short_prefix(prefix.base_index) {
            Some(short) => set.xattrs.remove(&[short, &*prefix.infix].concat()),
            None => set.hidden,
        })
    }

    fn filled(&self, raw: &RawInode, mut set: Set) -> Result<Set> {
        let place = raw.place.of("xattrs of the inode");
        let head_len = size_of::<XattrIbodyHeader>() as u64;
        if raw.xattr_len == 0 {
            return Ok(set);
        }
        let head: XattrIbodyHeader = self.read_struct(raw.xattrs_at(), place)?;
        let shared_count = u64::from(head.h_shared_count);
        let shared_at = raw.xattrs_at().plus(head_len);
        let end = raw.tail_at();
        let shared_max = len_of(&(shared_at..end)) / SHARED_ID_LEN;
        if shared_count > shared_max {
            return Err(place.figure("shared xattr count", shared_count, Allowed::AtMost(shared_max)));
        }
        set.figures.filter = head.h_name_filter.get();
        for index in 0..shared_count {
            let id: U32 = self.read_struct(nth_at(shared_at, index, SHARED_ID_LEN), place)?;
            set.figures.shared.push(id.get());
        }
        let mut at = nth_at(shared_at, shared_count, SHARED_ID_LEN);
        while at < end {
            let stored = self.stored_xattr(at, place)?;
            at = at.plus(stored.len);
            if at > end {
                return Err(place.fault("an xattr longer than their room"));
            }
            self.add(&mut set, &stored, place)?;
        }
        for index in 0..set.figures.shared.len() {
            let Some(&id) = set.figures.shared.get(index) else { break };
            let (at, place) = self.shared_xattr_at(id)?;
            let stored = self.stored_xattr(at, place)?;
            self.add(&mut set, &stored, place)?;
        }
        Ok(set)
    }

    pub(crate) fn shared_xattr(&self, id: u32) -> Result<(u64, u64)> {
        let (at, place) = self.shared_xattr_at(id)?;
        Ok((at, self.stored_xattr(at, place)?.len))
    }

    fn shared_xattr_at(&self, id: u32) -> Result<(u64, Place)> {
        let within = self.geometry.xattrs_at.plus(u64::from(id) * XATTR_ALIGN);
        let at = match &self.metabox {
            Some(metabox) if self.geometry.has_compat(EROFS_FEATURE_COMPAT_SHARED_EA_IN_METABOX) => {
                metabox.start.plus(within)
            }
            _ if within >= self.geometry.image_len => {
                let place = Place::at("shared xattr", within);
                return Err(place.outside("the image", within, 4, self.geometry.image_len));
            }
            _ => within,
        };
        Ok((at, self.place("shared xattr", at)))
    }

    fn stored_xattr(&self, at: u64, place: Place) -> Result<Stored> {
        let entry: XattrEntry = self.read_struct(at, place)?;
        let mut suffix = vec![0; usize::from(entry.e_name_len)];
        let name_at = at.plus(size_of::<XattrEntry>() as u64);
        self.read_metadata(name_at, &mut suffix, place)?;
        let value_at = name_at.plus(u64::from(entry.e_name_len));
        let end = value_at.plus(u64::from(entry.e_value_size.get()));
        let len = len_of(&(at..end)).next_multiple_of(XATTR_ALIGN);
        Ok(Stored { entry, suffix, value_at, len })
    }

    fn add(&self, set: &mut Set, stored: &Stored, place: Place) -> Result<()> {
        let index = stored.entry.e_name_index;
        if stored.is_emptied() {
            return Ok(());
        }
        let long = match index & EROFS_XATTR_LONG_PREFIX {
            0 => None,
            _ => self.prefixes.get(usize::from(index & EROFS_XATTR_LONG_PREFIX_MASK)),
        };
        let (base, infix) = match (long, index & EROFS_XATTR_LONG_PREFIX) {
            // A name outside of all namespaces, such as that of digests by which kernels share
            // pages: Linux does not show it.
            (Some(long), _) if long.base_index == 0 => return self.add_hidden(set, long, stored, place),
            (Some(long), _) => (long.base_index, &*long.infix),
            (None, 0) => (index, &b""[..]),
            _ => (0, &b""[..]),
        };
        let Some(prefix) = short_prefix(base) else {
            set.figures.unknown = set.figures.unknown.plus(1);
            return Ok(());
        };
        let own = [infix, &*stored.suffix].concat();
        set.figures.filter_needed |= filter_bit(base, &own);
        let name = [prefix, &*own].concat();
        let fault = if own.is_empty() && prefix.ends_with(b".") {
            // Names of ACLs consist of a prefix only.
            Some("an xattr with an empty name")
        } else if own.contains(&0) {
            Some("an xattr with a NUL byte in its name")
        } else if name.len() > NAME_LEN_MAX {
            Some("an xattr with a name longer than 255 bytes")
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(place.fault(fault));
        }
        let mut value = vec![0; usize::from(stored.entry.e_value_size.get())];
        set.names_len = set.names_len.plus(name.len()).plus(1);
        set.values_len = set.values_len.plus(value.len());
        if set.names_len > NAMES_LEN_MAX || set.values_len > VALUES_LEN_MAX {
            return Err(place.fault("more xattrs than an inode can have"));
        }
        self.read_metadata(stored.value_at, &mut value, place)?;
        // Kernels search those after the inode first, so the first of a name prevails.
        if set.xattrs.contains_key(&name) {
            return Err(place.fault("two xattrs of one name"));
        }
        set.xattrs.insert(name, value);
        Ok(())
    }

    fn add_hidden(&self, set: &mut Set, long: &LongPrefix, stored: &Stored, place: Place) -> Result<()> {
        let name = [&*long.infix, &*stored.suffix].concat();
        if set.hidden.is_none() && set.hidden_name.as_ref() == Some(&name) {
            let mut value = vec![0; usize::from(stored.entry.e_value_size.get())];
            self.read_metadata(stored.value_at, &mut value, place)?;
            set.hidden = Some(value);
        }
        Ok(())
    }

    /// Reads the long prefixes: from the metabox, the packed inode, or the image, in this order.
    pub(crate) fn read_prefixes(&self) -> Result<Vec<LongPrefix>> {
        let count = self.geometry.super_block.xattr_prefix_count;
        let mut at = u64::from(self.geometry.super_block.xattr_prefix_start.get()) << 2;
        let mut prefixes = Vec::new();
        if count == 0 || !self.geometry.has(EROFS_FEATURE_INCOMPAT_XATTR_PREFIXES) {
            return Ok(prefixes);
        }
        let holder = if self.geometry.has_compat(EROFS_FEATURE_COMPAT_PLAIN_XATTR_PFX) {
            None
        } else {
            self.metabox.as_ref().map(|metabox| &metabox.inode).or(self.packed.as_ref())
        };
        let place = Place::at("long xattr prefix", at);
        let read = |at: u64, out: &mut [u8]| match holder {
            Some(raw) if end_of(at, out.len() as u64) > raw.size => {
                Err(place.outside("the inode that contains it", at, out.len() as u64, raw.size))
            }
            Some(raw) => self.read_content(raw, at, out),
            None => self.read_metadata(at, out, place),
        };
        for _ in 0..count {
            at = at.next_multiple_of(XATTR_ALIGN);
            let mut head = [0; 2];
            read(at, &mut head)?;
            let len = u64::from(u16::from_le_bytes(head));
            if !(1..=PREFIX_LEN_MAX).contains(&len) {
                return Err(place.figure("length", len, Allowed::Between(1, PREFIX_LEN_MAX)));
            }
            let mut bytes = vec![0; usize_of(len)];
            at = at.plus(head.len() as u64);
            read(at, &mut bytes)?;
            at = at.plus(len);
            let base_index = bytes.remove(0);
            prefixes.push(LongPrefix { base_index, infix: bytes });
        }
        Ok(prefixes)
    }

    /// Returns the range of the long prefixes in the image, if stored there uncompressed.
    pub(crate) fn plain_prefixes(&self) -> Option<std::ops::Range<u64>> {
        let plain = self.geometry.has_compat(EROFS_FEATURE_COMPAT_PLAIN_XATTR_PFX)
            || self.metabox.is_none() && self.packed.is_none();
        if !plain || self.prefixes.is_empty() {
            return None;
        }
        let start = u64::from(self.geometry.super_block.xattr_prefix_start.get()) << 2;
        let mut end = start;
        for prefix in &self.prefixes {
            // Each has a length of 2 bytes and the number of the short prefix.
            let infix_at = end.next_multiple_of(XATTR_ALIGN).plus(3);
            end = infix_at.plus(prefix.infix.len() as u64);
        }
        Some(start..end)
    }
}

#[derive(Default)]
struct Set {
    xattrs: Xattrs,
    figures: XattrFigures,
    names_len: usize,
    values_len: usize,
    /// Wanted name outside of all namespaces.
    hidden_name: Option<Vec<u8>>,
    /// Its value.
    hidden: Option<Vec<u8>>,
}
