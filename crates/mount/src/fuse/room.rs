use std::ops::Range;

/// Alignment of contents in our memory, as in the kernel's: it copies page by page, and unaligned
/// contents would need two of our pages for each of its own.
pub(crate) const PAGE_LEN: usize = 4096;

pub(crate) enum Room<'a> {
    /// A buffer that grows to the longest answer so far, and a page.
    Growing(&'a mut Vec<u8>),
    /// Memory of a constant length, at a page boundary.
    Fixed(&'a mut [u8]),
}

impl Room<'_> {
    /// Returns `len` bytes, or fewer if there is less room, and their range. Old bytes must be
    /// overwritten.
    pub(crate) fn take(&mut self, len: usize) -> (Range<usize>, &mut [u8]) {
        let (start, all) = match self {
            Room::Growing(buffer) => {
                if buffer.len() < len + PAGE_LEN {
                    buffer.resize(len + PAGE_LEN, 0);
                }
                // Any other start is correct, but slower.
                let start = buffer.as_ptr().align_offset(PAGE_LEN);
                (if start < PAGE_LEN { start } else { 0 }, buffer.as_mut_slice())
            }
            Room::Fixed(payload) => (0, &mut **payload),
        };
        let end = (start + len).min(all.len());
        (start..end, all.get_mut(start..end).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_begin_with_a_page() {
        let mut buffer = Vec::new();
        for len in [0, 1, PAGE_LEN, 3 * PAGE_LEN + 1, 5] {
            let mut room = Room::Growing(&mut buffer);
            let (range, part) = room.take(len);
            assert_eq!((part.len(), range.len(), part.as_ptr().align_offset(PAGE_LEN)), (len, len, 0));
        }
    }

    #[test]
    fn a_fixed_room_gives_no_more_than_it_has() {
        let mut payload = [0; 100];
        assert_eq!(Room::Fixed(&mut payload).take(40).0, 0..40);
        assert_eq!(Room::Fixed(&mut payload).take(400).1.len(), 100);
    }
}
