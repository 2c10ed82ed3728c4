//! Disks in cloops and in partitions, with a file system in them that opens through both.

use super::{Base, K4, packed, plain_tree};
use packfs::Result;
use std::path::Path;

/// Codec and version of cloops.
const CLOOPS: [(&str, &str); 5] =
    [("gzip", "2.0"), ("gzip", "4.0"), ("xz:1", "4.0"), ("lz4", "4.0"), ("lzo,variant=1", "4.0")];

/// Containers of every kind that is made here, packed in `folder`.
///
/// # Errors
/// As of packing.
pub fn containers(folder: &Path) -> Result<Vec<Base>> {
    let (tree, contents) = plain_tree()?;
    let image = packed("squashfs", &("zstd:1", K4, &[]), &tree, &contents, folder)?;
    let mut all = vec![Base { name: "partitions".into(), bytes: partitioned(&image) }];
    let (inner, out) = (folder.join("disk"), folder.join("out.cloop"));
    for (codec, version) in CLOOPS {
        // What is in a partition is one step further inside.
        let disk = if version == "2.0" { partitioned(&image) } else { image.clone() };
        let cannot = |error| packfs::Error::io("no disk to wrap", error);
        std::fs::write(&inner, &disk).map_err(cannot)?;
        let packing = packfs::pack(&inner, &out).codec(codec).block_size(K4).option("version", version);
        packing.jobs(1).sync(false).run()?;
        let bytes = std::fs::read(&out).map_err(cannot)?;
        all.push(Base { name: format!("cloop {version} {codec}"), bytes });
    }
    Ok(all)
}

/// A disk with a boot record, a logical partition that holds an image, and one that holds nothing
/// known.
fn partitioned(image: &[u8]) -> Vec<u8> {
    let sectors = image.len().div_ceil(512) as u32;
    let mut disk = vec![0; 512 * 16];
    let mut record = |at: usize, rows: &[(u8, u32, u32)]| {
        for (row, (kind, first, count)) in (at + 446..).step_by(16).zip(rows) {
            disk[row + 4] = *kind;
            disk[row + 8..row + 12].copy_from_slice(&first.to_le_bytes());
            disk[row + 12..row + 16].copy_from_slice(&count.to_le_bytes());
        }
        disk[at + 510..at + 512].copy_from_slice(&[0x55, 0xaa]);
    };
    record(0, &[(0x83, 1, 2), (0x05, 4, 12 + sectors)]);
    record(4 * 512, &[(0x83, 1, 1), (0x05, 4, 8 + sectors)]);
    record(8 * 512, &[(0x83, 8, sectors)]);
    disk.extend_from_slice(image);
    disk.resize(disk.len().next_multiple_of(512), 0);
    disk
}
