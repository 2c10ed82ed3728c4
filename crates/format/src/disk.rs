//! Structures on disk: declared once, read within bounds.

use crate::OnDisk;
use packfs_core::{Error, Image, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Declares structures on disk, with the field names of their source, and asserts their lengths.
///
/// A structure is `struct NAME (LENGTH) { FIELD: TYPE, ... }`, a table whose fields may share a
/// line. Types are `u8`, arrays, other structures, and the integers of `zerocopy`, which have a
/// byte order.
#[macro_export]
macro_rules! disk {
    ($($(#[$doc:meta])* struct $name:ident ($len:literal) { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, ::zerocopy::FromBytes, ::zerocopy::IntoBytes,
            ::zerocopy::KnownLayout, ::zerocopy::Immutable, ::zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }
        const _: () = ::std::assert!(::std::mem::size_of::<$name>() == $len);

        impl $crate::OnDisk for $name {
            const NAME: &'static str = ::std::stringify!($name);
            const FIELDS: &'static [$crate::DiskField] = &[$(
                $crate::DiskField::of::<$type>(
                    ::std::stringify!($field),
                    ::std::mem::offset_of!($name, $field),
                ),
            )*];
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                ::zerocopy::FromZeros::new_zeroed()
            }
        }
    )*};
}

/// Returns the structure that begins at `at`; `None` if the bytes end before it does.
pub fn structure<T>(bytes: &[u8], at: usize) -> Option<T>
where
    T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned,
{
    let bytes = bytes.get(at..)?;
    let (structure, _) = T::read_from_prefix(bytes).ok()?;
    #[cfg(feature = "watch")]
    crate::watch::tell::<T>(bytes);
    Some(structure)
}

/// Returns the structure that `bytes` begin with, and what follows it.
pub fn split_structure<T>(bytes: &[u8]) -> Option<(T, &[u8])>
where
    T: OnDisk + FromBytes + KnownLayout + Immutable + Unaligned,
{
    structure(bytes, 0).zip(bytes.get(size_of::<T>()..))
}

/// Reads the structure at an offset of an image.
pub fn read_structure<T: OnDisk + FromBytes + IntoBytes>(image: &dyn Image, at: u64) -> Result<T> {
    filled(|bytes| image.read_exact_at(at, bytes))
}

/// Returns the structure whose bytes `fill` puts into the room for them.
pub fn filled<T, E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<T, E>
where
    T: OnDisk + FromBytes + IntoBytes,
{
    let mut structure = T::new_zeroed();
    fill(structure.as_mut_bytes())?;
    #[cfg(feature = "watch")]
    crate::watch::tell::<T>(structure.as_mut_bytes());
    Ok(structure)
}

/// Returns the structures that follow each other in `bytes`; bytes behind the last whole one are
/// left out.
pub fn structures<T: OnDisk + FromBytes>(bytes: &[u8]) -> impl Iterator<Item = T> {
    let read = |row| {
        let structure = T::read_from_bytes(row).ok()?;
        #[cfg(feature = "watch")]
        crate::watch::tell::<T>(row);
        Some(structure)
    };
    bytes.chunks_exact(size_of::<T>().max(1)).filter_map(read)
}

/// Room for structures of which a sound image has no more: it does not let them overlap. An image
/// that refers to the same bytes repeatedly exhausts it, which ends every walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(u64);

impl Budget {
    /// Allows so much.
    pub fn new(amount: u64) -> Self {
        Budget(amount)
    }

    /// Takes `amount`. Returns false if not so much is left; then nothing is left.
    pub fn take(&mut self, amount: u64) -> bool {
        let left = self.0.checked_sub(amount);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    /// Takes `amount`, or fails with `error` if not so much is left.
    pub fn spend<E: Into<Error>>(&mut self, amount: u64, error: impl FnOnce() -> E) -> Result<()> {
        if self.take(amount) { Ok(()) } else { Err(error().into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::big_endian::U16;

    crate::disk! {
        struct Pair (3) {
            first: u8,
            second: U16,
        }
    }

    #[test]
    fn structures_end_with_the_bytes() {
        let bytes = [1, 2, 3, 4, 5, 6, 7];
        let pair = |first: u8, second: u16| Pair { first, second: second.into() };
        assert_eq!(structure(&bytes, 4), Some(pair(5, 0x607)));
        assert_eq!((structure::<Pair>(&bytes, 5), structure::<Pair>(&bytes, usize::MAX)), (None, None));
        assert_eq!(structures(&bytes).collect::<Vec<Pair>>(), [pair(1, 0x203), pair(4, 0x506)]);
    }

    #[test]
    fn tables_have_names_offsets_and_lengths() {
        crate::disk! {
            struct Both (10) { pairs: [Pair; 2], text: [u8; 4] }
        }
        let names = |fields: &[crate::DiskField]| {
            fields.iter().map(|field| (field.name, field.at, field.len, field.is_big)).collect::<Vec<_>>()
        };
        assert_eq!(names(Pair::FIELDS), [("first", 0, 1, false), ("second", 1, 2, true)]);
        assert_eq!(names(Both::FIELDS), [("pairs", 0, 6, false), ("text", 6, 4, false)]);
        assert_eq!(names(Both::FIELDS[0].fields), [("Pair", 0, 3, false), ("Pair", 3, 3, false)]);
    }

    #[test]
    fn a_budget_that_was_not_enough_is_spent() {
        let mut budget = Budget::new(10);
        assert_eq!([4, 7, 1, 0].map(|amount| budget.take(amount)), [true, false, false, true]);
        assert!(budget.spend(1, || Error::corrupt("image", "overlap")).is_err());
    }
}
