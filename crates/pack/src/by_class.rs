//! What each class of files takes in the image.

use crate::class::Class;
use std::collections::BTreeMap;

/// Files of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRow {
    /// What they are.
    pub class: Class,
    /// How many; those that share all their data with another are not among them.
    pub files: u64,
    /// Their length together, in bytes.
    pub bytes: u64,
    /// How much they take in the image, in bytes; of a block that several files share, each as
    /// large a part as it has in it.
    pub stored: u64,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Classes {
    /// The class that takes most first.
    pub rows: Vec<ClassRow>,
    /// How much lies in what is shared, before compression.
    pub shared_bytes: u64,
}

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    stored: u64,
}

/// A stretch of a stream that files share.
struct Part {
    offset: u64,
    len: u64,
    class: Class,
}

/// See the module.
#[derive(Default)]
pub(crate) struct ByClass {
    sums: BTreeMap<Class, Sum>,
    parts: Vec<Part>,
}

impl ByClass {
    /// A piece of a file of `bytes`, of which `stored` are the file's own in the image.
    pub(crate) fn add(&mut self, class: Class, is_last: bool, bytes: u64, stored: u64) {
        let sum = self.sums.entry(class).or_default();
        sum.files += u64::from(is_last);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.stored += stored;
    }

    /// A file has this part of what is shared.
    pub(crate) fn add_shared(&mut self, class: Class, offset: u64, len: u64) {
        // Files that are alike lie side by side, and there may be millions of them.
        if let Some(last) = self.parts.last_mut()
            && last.class == class
            && last.offset + last.len == offset
        {
            last.len += len;
            return;
        }
        self.parts.push(Part { offset, len, class });
    }

    /// Divides what is shared, given as runs of input and what is stored for each, both in the
    /// order of the stream.
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
        // The first run is all text, the second half of each.
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
