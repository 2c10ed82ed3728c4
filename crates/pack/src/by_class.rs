//! Space that each class of files takes in the image.

use crate::class::Class;
use std::collections::BTreeMap;

/// Class of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassRow {
    /// Name of the class.
    pub class: Class,
    /// Number of files, without those that share all their data with another.
    pub files: u64,
    /// Total length, in bytes.
    pub bytes: u64,
    /// Bytes in the image; a block shared by several files is divided by their parts in it.
    #[cfg_attr(feature = "serde", serde(rename = "stored_bytes"))]
    pub stored: u64,
}

/// Space by class, and the space of shared blocks.
#[derive(Default)]
pub(crate) struct Classes {
    /// Rows in descending order of space.
    pub rows: Vec<ClassRow>,
    /// Bytes in shared blocks, before compression.
    pub shared_bytes: u64,
}

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    stored: u64,
}

/// A range of a stream shared by several files.
struct Part {
    offset: u64,
    len: u64,
    class: Class,
}

/// Sums of space by class.
#[derive(Default)]
pub(crate) struct ByClass {
    sums: BTreeMap<Class, Sum>,
    parts: Vec<Part>,
}

impl ByClass {
    /// Adds a piece of a file of `bytes`, which takes `stored` bytes of its own in the image.
    pub(crate) fn add(&mut self, class: Class, is_last: bool, bytes: u64, stored: u64) {
        let sum = self.sums.entry(class).or_default();
        sum.files += u64::from(is_last);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.stored += stored;
    }

    /// Adds a file's part of the shared stream.
    pub(crate) fn add_shared(&mut self, class: Class, offset: u64, len: u64) {
        // Similar files are adjacent and may be millions, so adjacent parts are merged.
        if let Some(last) = self.parts.last_mut()
            && last.class == class
            && last.offset + last.len == offset
        {
            last.len += len;
            return;
        }
        self.parts.push(Part { offset, len, class });
    }

    /// Divides the shared stream among classes; `shared` yields input and stored length of each
    /// run, in stream order.
    pub(crate) fn finish(mut self, shared: impl Iterator<Item = (u64, u64)>) -> Classes {
        let shared_bytes = self.parts.iter().map(|part| part.len).sum();
        self.parts.sort_by_key(|part| part.offset);
        let mut parts = self.parts.iter().peekable();
        let mut start = 0;
        for (len, stored) in shared {
            let end = start + len;
            while let Some(part) = parts.peek() {
                let part_end = part.offset + part.len;
                let inside = part_end.min(end).saturating_sub(part.offset.max(start));
                if inside > 0 {
                    let share = u128::from(stored) * u128::from(inside) / u128::from(len);
                    self.sums.entry(part.class).or_default().stored += share as u64;
                }
                if part_end > end {
                    break;
                }
                parts.next();
            }
            start = end;
        }
        let row = |(class, sum): (Class, Sum)| ClassRow {
            class,
            files: sum.files,
            bytes: sum.bytes,
            stored: sum.stored,
        };
        let mut rows: Vec<ClassRow> = self.sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.stored), row.class));
        Classes { rows, shared_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_what_is_shared_by_what_lies_in_it() {
        let mut sums = ByClass::default();
        sums.add(Class::Text, true, 150, 0);
        sums.add(Class::Font, false, 1000, 900);
        sums.add(Class::Font, true, 50, 0);
        sums.add_shared(Class::Text, 0, 150);
        sums.add_shared(Class::Font, 150, 50);
        // The first run is all text, as is the second half of each.
        let rows = sums.finish([(100, 40), (100, 60)].into_iter());
        let row = |class, files, bytes, stored| ClassRow { class, files, bytes, stored };
        assert_eq!(rows.shared_bytes, 200);
        assert_eq!(rows.rows, [row(Class::Font, 1, 1050, 930), row(Class::Text, 1, 150, 70)]);
    }

    #[test]
    fn nothing_shared_is_nothing_divided() {
        assert!(ByClass::default().finish([(10, 5)].into_iter()).rows.is_empty());
    }
}
