//! Fields of an image that hold lengths, offsets and counts, so that mutations hit them and not the
//! bytes between.
//!
//! These walks are written apart from the readers they help to test, and take any bytes: they skip
//! invalid structures.

pub(crate) mod btrfs;
mod containers;
pub(crate) mod cramfs;
pub(crate) mod disks;
mod erofs;
pub(crate) mod ext;
pub(crate) mod iso9660;
pub(crate) mod recovery;
pub(crate) mod romfs;
mod squashfs;
pub(crate) mod squashfs_legacy;
pub(crate) mod udf;
mod verity;
pub(crate) mod xfs;

/// A figure of an image, taken as little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its offset.
    pub at: usize,
    /// Its length in bytes, at most 8.
    pub len: usize,
    /// The structure it is part of.
    pub of: &'static str,
}

impl Field {
    /// Its value.
    pub fn get(self, image: &[u8]) -> u64 {
        let mut raw = [0; 8];
        if let Some(bytes) = image.get(self.at..self.at.saturating_add(self.len)) {
            raw[..self.len].copy_from_slice(bytes);
        }
        u64::from_le_bytes(raw)
    }

    /// Gives it another; what does not fit is cut off.
    pub fn set(self, image: &mut [u8], value: u64) {
        if let Some(bytes) = image.get_mut(self.at..self.at.saturating_add(self.len)) {
            bytes.copy_from_slice(&value.to_le_bytes()[..self.len]);
        }
    }
}

/// More than any image of the corpus has; what is longer is looked at in part.
const FIELDS_MAX: usize = 50_000;

/// The figures of an image of any format, of a container, of a recovery file or of a hash tree;
/// none for anything else. `nodes` are the places that inodes of EROFS are numbered by, if a valid
/// image told them.
pub fn fields(image: &[u8], nodes: &[u64]) -> Vec<Field> {
    let mut fields = if squashfs_legacy::is_known(image) {
        squashfs_legacy::fields(image)
    } else if image.starts_with(b"hsqs") {
        squashfs::fields(image)
    } else if image.get(1024..1028) == Some(&0xE0F5_E1E2_u32.to_le_bytes()) {
        erofs::fields(image, nodes)
    } else if cramfs::is_one(image) {
        cramfs::fields(image)
    } else if xfs::is_one(image) {
        xfs::fields(image)
    } else if btrfs::is_one(image) {
        btrfs::fields(image)
    } else if romfs::is_one(image) {
        romfs::fields(image)
    } else if ext::is_one(image) {
        ext::fields(image)
    } else if udf::is_one(image) {
        // Bridges open as UDF.
        udf::fields(image)
    } else if iso9660::is_one(image) {
        iso9660::fields(image)
    } else if image.starts_with(b"#!/bin/sh\n#V") {
        containers::cloop(image)
    } else if image.starts_with(b"QFI\xfb") {
        containers::qcow2(image)
    } else if let Some(fields) = disks::fields(image) {
        fields
    } else if containers::is_boot_record(image) {
        containers::boot_records(image)
    } else if (0..image.len()).step_by(recovery::PAGE_LEN).any(|at| image[at..].starts_with(recovery::MAGIC))
    {
        recovery::fields(image)
    } else {
        verity::superblock(image).map(|at| verity::fields(image, at)).unwrap_or_default()
    };
    fields.retain(|field| field.at + field.len <= image.len());
    fields
}

/// Collects figures, one after the other.
struct Finder<'a> {
    image: &'a [u8],
    found: Vec<Field>,
}

impl<'a> Finder<'a> {
    fn new(image: &'a [u8]) -> Self {
        Finder { image, found: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= FIELDS_MAX
    }

    /// Figures of these lengths from `at` on; 0 skips four bytes.
    fn row(&mut self, of: &'static str, mut at: usize, lens: &[usize]) {
        for &len in lens {
            if len > 0 && !self.is_full() {
                self.found.push(Field { at, len, of });
            }
            at = at.saturating_add(if len == 0 { 4 } else { len });
        }
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        Field { at, len, of: "" }.get(self.image)
    }

    /// Returns a value as an offset, one beyond every image if it does not fit.
    fn offset(&self, at: usize, len: usize) -> usize {
        usize::try_from(self.number(at, len)).unwrap_or(usize::MAX / 4).min(usize::MAX / 4)
    }
}
