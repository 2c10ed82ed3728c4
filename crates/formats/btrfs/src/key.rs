//! Keys of items and UUIDs.

use crate::disk::DiskKey;
use packfs_core::uuid_text;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u8,
    pub(crate) offset: u64,
}

impl Key {
    pub(crate) fn new(object: u64, kind: u8, offset: u64) -> Key {
        Key { object, kind, offset }
    }

    /// Returns the largest key below this one; `None` for the first.
    pub(crate) fn before(self) -> Option<Key> {
        let Key { object, kind, offset } = self;
        if let Some(offset) = offset.checked_sub(1) {
            return Some(Key { offset, ..self });
        }
        if let Some(kind) = kind.checked_sub(1) {
            return Some(Key { object, kind, offset: u64::MAX });
        }
        object.checked_sub(1).map(|object| Key { object, kind: u8::MAX, offset: u64::MAX })
    }

    /// Returns the smallest key above this one, or the last key itself.
    pub(crate) fn after(self) -> Key {
        let Key { object, kind, offset } = self;
        if let Some(offset) = offset.checked_add(1) {
            return Key { offset, ..self };
        }
        if let Some(kind) = kind.checked_add(1) {
            return Key { object, kind, offset: 0 };
        }
        object.checked_add(1).map_or(self, |object| Key { object, kind: 0, offset: 0 })
    }

    pub(crate) fn of(raw: &DiskKey) -> Key {
        Key { object: raw.objectid.get(), kind: raw.kind, offset: raw.offset.get() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} {} {})", self.object, self.kind, self.offset)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&uuid_text(&self.0))
    }
}
