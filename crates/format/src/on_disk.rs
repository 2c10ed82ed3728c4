//! Fields of structures on disk, as a table.

/// A type that structures on disk are made of, and the table of its fields.
pub trait OnDisk {
    /// Its name; "number" and "bytes" for what has no fields.
    const NAME: &'static str;
    /// Fields of a structure, elements of an array; none of a number or of bytes.
    const FIELDS: &'static [DiskField];
    /// True for numbers whose first byte is the highest.
    const IS_BIG: bool = false;
}

/// A field of a structure on disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskField {
    /// Its name in [`disk!`](crate::disk!); that of an array for its elements.
    pub name: &'static str,
    /// Offset in the structure.
    pub at: usize,
    /// Length in bytes.
    pub len: usize,
    /// Fields of the field.
    pub fields: &'static [DiskField],
    /// True for a number whose first byte is the highest.
    pub is_big: bool,
}

impl DiskField {
    /// The field of type `T` at an offset.
    pub const fn of<T: OnDisk>(name: &'static str, at: usize) -> DiskField {
        DiskField { name, at, len: size_of::<T>(), fields: T::FIELDS, is_big: T::IS_BIG }
    }
}

macro_rules! numbers {
    ($($type:ty),*; $($ordered:ident),*) => {
        $(impl OnDisk for $type {
            const NAME: &'static str = "number";
            const FIELDS: &'static [DiskField] = &[];
        })*
        $(impl OnDisk for zerocopy::little_endian::$ordered {
            const NAME: &'static str = "number";
            const FIELDS: &'static [DiskField] = &[];
        })*
        $(impl OnDisk for zerocopy::big_endian::$ordered {
            const NAME: &'static str = "number";
            const FIELDS: &'static [DiskField] = &[];
            const IS_BIG: bool = true;
        })*
    };
}
numbers!(u8, i8; U16, U32, U64, I16, I32, I64, U128);

struct Elements<T, const N: usize>(std::marker::PhantomData<T>);

impl<T: OnDisk, const N: usize> Elements<T, N> {
    const ALL: [DiskField; N] = {
        let mut all = [DiskField::of::<T>(T::NAME, 0); N];
        let (mut index, mut at) = (0, 0_usize);
        while index < N {
            all[index].at = at;
            at += size_of::<T>();
            index += 1;
        }
        all
    };
}

impl<T: OnDisk, const N: usize> OnDisk for [T; N] {
    const NAME: &'static str = if size_of::<T>() == 1 { "bytes" } else { T::NAME };
    const FIELDS: &'static [DiskField] = if size_of::<T>() == 1 { &[] } else { &Elements::<T, N>::ALL };
}
