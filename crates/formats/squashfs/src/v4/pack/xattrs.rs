//! The tables of extended attributes: each distinct set once, each long value once.

use super::losses::split_xattr_name;
use crate::InodeRef;
use crate::pack::{MetadataCodec, MetadataWriter};
use crate::v4::disk;
use packfs_core::{Result, Tree, Xattrs, XattrsId};
use std::collections::HashMap;
use zerocopy::IntoBytes;

/// Minimum length of values that are stored once and referred to; for shorter ones the reference
/// costs more.
const SHARED_VALUE_LEN_MIN: usize = 128;

/// Tables of attributes, without positions.
pub(super) struct XattrTables {
    pub values: Vec<u8>,
    /// One row per set.
    pub rows: Vec<u8>,
    pub count: u32,
    /// Row of each set of the tree.
    index_of: Vec<u32>,
}

impl XattrTables {
    /// Encodes the sets of a tree, in order of first use.
    pub(super) fn new(tree: &Tree, codec: &mut MetadataCodec, compressed: bool) -> Result<Self> {
        let mut index_of = vec![disk::SQUASHFS_INVALID_XATTR; tree.xattr_sets().len()];
        let mut writer = SetWriter { codec, out: MetadataWriter::new(compressed), places: HashMap::new() };
        let mut rows = Vec::new();
        let mut count = 0;
        for (_, node) in tree.nodes() {
            let index = &mut index_of[node.xattrs.0 as usize];
            if *index == disk::SQUASHFS_INVALID_XATTR
                && let Some(row) = writer.write(tree.xattrs(node.xattrs))?
            {
                rows.extend_from_slice(row.as_bytes());
                *index = count;
                count += 1;
            }
        }
        let mut values = writer.out;
        values.finish(codec)?;
        Ok(XattrTables { values: values.into_table(), rows, count, index_of })
    }

    /// Returns the row of a set; `SQUASHFS_INVALID_XATTR` if it is empty.
    pub(super) fn index(&self, id: XattrsId) -> u32 {
        self.index_of[id.0 as usize]
    }
}

struct SetWriter<'a, 'tree> {
    codec: &'a mut MetadataCodec,
    out: MetadataWriter,
    /// Position of each long value.
    places: HashMap<&'tree [u8], InodeRef>,
}

impl<'tree> SetWriter<'_, 'tree> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.append(self.codec, bytes)
    }

    fn reference(&mut self) -> Result<InodeRef> {
        self.out.reference(self.codec, self.out.position())
    }

    /// Encodes a set; `None` if no attribute can be represented.
    fn write(&mut self, set: &'tree Xattrs) -> Result<Option<disk::XattrId>> {
        let start = self.reference()?;
        let (mut count, mut size) = (0, 0);
        for (name, value) in set {
            let Some((prefix, rest)) = split_xattr_name(name) else { continue };
            let place = self.places.get(value.as_slice()).copied();
            let elsewhere = if place.is_some() { disk::SQUASHFS_XATTR_VALUE_OOL } else { 0 };
            let entry =
                disk::XattrEntry { r#type: (prefix | elsewhere).into(), size: (rest.len() as u16).into() };
            self.append(entry.as_bytes())?;
            self.append(rest)?;
            match place {
                Some(place) => {
                    self.append(disk::XattrVal { vsize: 8.into() }.as_bytes())?;
                    self.append(&place.to_raw().to_le_bytes())?;
                }
                None => self.write_value(value)?,
            }
            count += 1;
            size += name.len() as u32 + 1 + value.len() as u32;
        }
        let row = disk::XattrId { xattr: start.to_raw().into(), count: count.into(), size: size.into() };
        Ok((count > 0).then_some(row))
    }

    fn write_value(&mut self, value: &'tree [u8]) -> Result<()> {
        if value.len() >= SHARED_VALUE_LEN_MIN {
            let place = self.reference()?;
            self.places.insert(value, place);
        }
        self.append(disk::XattrVal { vsize: (value.len() as u32).into() }.as_bytes())?;
        self.append(value)
    }
}
