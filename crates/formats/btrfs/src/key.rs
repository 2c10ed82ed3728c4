//! Keys of items and UUIDs.

use crate::bytes::Fields;
use std::fmt;

/// Key of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u8,
    pub(crate) offset: u64,
}

impl Key {
    /// Bytes of a key.
    pub(crate) const LEN: usize = 17;

    pub(crate) fn new(object: u64, kind: u8, offset: u64) -> Key {
        Key { object, kind, offset }
    }

    /// Returns the key before it; `None` for the first.
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

    /// Returns the key after it; the last has none after it but itself.
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

    pub(crate) fn read(fields: Fields<'_>) -> Key {
        Key { object: fields.u64(0), kind: fields.u8(8), offset: fields.u64(9) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} {} {})", self.object, self.kind, self.offset)
    }
}

/// UUID, displayed in the usual form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}
