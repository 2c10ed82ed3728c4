//! Extended attributes: conversion of a set's index to names and values.
//!
//! Owns prefixes, out-of-line values, and their limits. Invariant: a set never takes more memory
//! than 64 KiB of names and 64 MiB of values. Attributes with an unknown prefix are skipped, as by
//! the kernel.

use crate::v4::corruption::{Corruption, XATTR_NAMES_LEN_MAX, XATTR_TOTAL_LEN_MAX, XATTR_VALUE_LEN_MAX};
use crate::v4::disk::*;
use crate::v4::open::XattrTables;
use crate::v4::volume::SquashfsVolume;
use crate::{Cursor, InodeRef, Place};
use packfs_core::{Result, Xattrs};
use packfs_format::units::*;
use zerocopy::little_endian::U64;

/// Longest full name (`XATTR_NAME_MAX` of Linux's `limits.h`).
const NAME_LEN_MAX: usize = 255;
/// Shortest attribute: two headers and one byte of name.
const PAIR_LEN_MIN: u64 = 9;

/// Upper bound of the headers of a name and a value.
const HEADS_LEN_MAX: u64 = 16;

pub(crate) fn prefix(r#type: u16) -> Option<&'static [u8]> {
    match r#type & SQUASHFS_XATTR_PREFIX_MASK {
        SQUASHFS_XATTR_USER => Some(b"user."),
        SQUASHFS_XATTR_TRUSTED => Some(b"trusted."),
        SQUASHFS_XATTR_SECURITY => Some(b"security."),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetFigures {
    /// Size recorded in the row: bytes of names with a NUL each, and of values.
    pub(crate) size_found: u64,
    pub(crate) size: u64,
    /// Number of attributes, including those with an unknown prefix.
    pub(crate) count: u32,
    /// Number of attributes with an unknown prefix.
    pub(crate) unknown: u32,
    pub(crate) unknown_len: u64,
}

impl SetFigures {
    /// True if no known writer counts like this: some count headers of names and values instead of
    /// prefixes.
    pub(crate) fn is_size_impossible(&self) -> bool {
        let heads = HEADS_LEN_MAX * u64::from(self.count);
        self.count > 0 && !(1..=self.size.plus(heads)).contains(&self.size_found)
    }
}

impl SquashfsVolume {
    /// Reads a set; `place` is the inode, for messages.
    pub(crate) fn xattr_set(&self, index: u32, place: Place) -> Result<(Xattrs, SetFigures)> {
        let Some(tables) = &self.geometry.xattrs else { return Ok(Default::default()) };
        let row: Option<XattrId> = tables.sets.row(&self.metadata, index)?;
        let count = tables.sets.count;
        let row = row.ok_or(Corruption::XattrIndex { place, found: index, count })?;
        self.read_set(tables, &row)
    }

    fn read_set(&self, tables: &XattrTables, row: &XattrId) -> Result<(Xattrs, SetFigures)> {
        let InodeRef { block, offset } = InodeRef::from_raw(row.xattr.get());
        let mut cursor = self.metadata.cursor(tables.pairs, "xattr", block, u32::from(offset))?;
        let max = tables.pairs.decoded_len_max() / PAIR_LEN_MIN;
        if u64::from(row.count.get()) > max {
            let place = cursor.place();
            return Err(Corruption::XattrCount { place, found: row.count.get(), max }.into());
        }
        let mut xattrs = Xattrs::new();
        let mut figures = SetFigures {
            size_found: u64::from(row.size.get()),
            count: row.count.get(),
            ..SetFigures::default()
        };
        let (mut names_len, mut values_len) = (0_usize, 0_usize);
        for _ in 0..row.count.get() {
            cursor.reading("xattr");
            let place = cursor.place();
            let entry: XattrEntry = cursor.read()?;
            let suffix = cursor.read_vec(u32::from(entry.size.get()))?;
            cursor.reading("xattr value");
            let Some(prefix) = prefix(entry.r#type.get()) else {
                let len = cursor.read::<XattrVal>()?.vsize.get();
                cursor.skip(u64::from(len))?;
                figures.unknown = figures.unknown.plus(1);
                figures.unknown_len = figures.unknown_len.plus(len.into());
                continue;
            };
            let name = full_name(prefix, &suffix, place)?;
            let value = self.value(tables, &mut cursor, entry.r#type.get())?;
            names_len = names_len.plus(name.len()).plus(1);
            values_len = values_len.plus(value.len());
            if names_len > XATTR_NAMES_LEN_MAX {
                return Err(Corruption::XattrNames { place }.into());
            }
            if values_len > XATTR_TOTAL_LEN_MAX {
                return Err(Corruption::XattrTotal { place }.into());
            }
            if xattrs.insert(name, value).is_some() {
                return Err(Corruption::XattrTwice { place }.into());
            }
        }
        figures.size = names_len.plus(values_len) as u64;
        Ok((xattrs, figures))
    }

    /// Reads the value at the cursor, or the one that it refers to, which must not be a reference
    /// again.
    fn value(&self, tables: &XattrTables, cursor: &mut Cursor<'_>, r#type: u16) -> Result<Vec<u8>> {
        if r#type & SQUASHFS_XATTR_VALUE_OOL == 0 {
            return in_line(cursor);
        }
        let place = cursor.place();
        let found = cursor.read::<XattrVal>()?.vsize.get();
        if found != 8 {
            return Err(Corruption::XattrReference { place, found }.into());
        }
        let InodeRef { block, offset } = InodeRef::from_raw(cursor.read::<U64>()?.get());
        in_line(&mut self.metadata.cursor(tables.pairs, "xattr value", block, u32::from(offset))?)
    }
}

fn in_line(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let place = cursor.place();
    let found = cursor.read::<XattrVal>()?.vsize.get();
    if found > XATTR_VALUE_LEN_MAX {
        return Err(Corruption::XattrValue { place, found }.into());
    }
    cursor.read_vec(found)
}

fn full_name(prefix: &[u8], suffix: &[u8], place: Place) -> Result<Vec<u8>> {
    let fault = match suffix {
        [] => "empty name",
        _ if suffix.contains(&0) => "name with a NUL byte",
        _ if prefix.len().plus(suffix.len()) > NAME_LEN_MAX => "name longer than 255 bytes",
        _ => return Ok([prefix, suffix].concat()),
    };
    Err(Corruption::XattrName { place, fault }.into())
}
