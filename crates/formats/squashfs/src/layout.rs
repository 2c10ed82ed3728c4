//! Rules of the positions of structures, common to all versions.

use crate::fault::MetadataFault;
use crate::stored::Region;
use packfs_core::Result;
use std::ops::Range;

/// Alignment of an image's length, which old block devices needed.
pub(crate) const PADDING_UNIT: u64 = 4096;

/// Length of an image with its padding, which some writers omit. `len` is that of the file.
pub(crate) fn padded_len(bytes_used: u64, len: u64) -> u64 {
    let padded = bytes_used.next_multiple_of(PADDING_UNIT);
    if padded <= len { padded } else { bytes_used }
}

/// Returns the inode table, which starts at `inodes` and not before `min`, and the directory table
/// after it. The latter is empty if the root is: an empty directory has no listing.
///
/// Errors: `Corrupt` if they are not adjacent.
pub(crate) fn inodes_and_directories(
    inodes: u64,
    directories: Range<u64>,
    min: u64,
) -> Result<(Region, Region)> {
    let Range { start: directories, end } = directories;
    if directories > end {
        let table = "directory table";
        return Err(MetadataFault::TableOrder { table, start: directories, limit: end }.into());
    }
    if inodes >= directories {
        let table = "inode table";
        return Err(MetadataFault::TableOrder { table, start: inodes, limit: directories }.into());
    }
    if inodes < min {
        return Err(MetadataFault::TableStart { table: "inode table", start: inodes, min }.into());
    }
    Ok((
        Region { block_name: "inode table block", start: inodes, end: directories },
        Region { block_name: "directory table block", start: directories, end },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_counts_where_it_is_there() {
        assert_eq!([8192, 5000].map(|len| padded_len(5000, len)), [8192, 5000]);
        assert_eq!(padded_len(4096, 10_000), 4096);
    }

    #[test]
    fn tables_follow_each_other() {
        let found = |inodes, directories| {
            inodes_and_directories(inodes, directories, 96).map_err(|error| error.to_string())
        };
        let (inodes, directories) = found(96, 200..300).unwrap();
        assert_eq!((inodes.start, inodes.end, directories.start, directories.end), (96, 200, 200, 300));
        assert!(found(96, 300..300).is_ok(), "an empty root has no listing");
        for (inodes, start, told) in
            [(96, 301, "directory table"), (200, 200, "inode table"), (95, 200, "inode table")]
        {
            let error = found(inodes, start..300).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
