//! Checksums of the metadata of ext4.

use packfs_format::crc32c;

const SUPER_AT: usize = 1024;
/// Inodes that are looked at.
const INODES_MAX: usize = 4096;
/// Offset of the checksum of a group descriptor.
const GROUP_SUM_AT: usize = 0x1e;
const METADATA_CSUM: u32 = 0x400;

/// Returns true if an image begins like one.
fn is_one(image: &[u8]) -> bool {
    image.get(SUPER_AT + 0x38..SUPER_AT + 0x3a) == Some(&[0x53, 0xef])
}

/// Geometry, as far as it is sane.
struct Layout {
    block: usize,
    inode_len: usize,
    group_inodes: usize,
    groups: usize,
    descriptor_len: usize,
    has_sums: bool,
    seed: u32,
}

fn le16(image: &[u8], at: usize) -> usize {
    let bytes = image.get(at..at.saturating_add(2)).and_then(|bytes| bytes.try_into().ok());
    usize::from(bytes.map_or(0, u16::from_le_bytes))
}

fn le32(image: &[u8], at: usize) -> u32 {
    let bytes = image.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(old) = image.get_mut(at..at.saturating_add(bytes.len())) {
        old.copy_from_slice(bytes);
    }
}

impl Layout {
    fn of(image: &[u8]) -> Option<Layout> {
        let word = |at: usize| le32(image, SUPER_AT + at);
        let block = 1024_usize.checked_shl(word(0x18).min(6))?;
        let is_long = word(0x60) & 0x80 != 0;
        let inode_len = if word(0x4c) == 0 { 128 } else { le16(image, SUPER_AT + 0x58) };
        let per_group = (word(0x20) as usize).max(1);
        let groups = (word(0x04) as usize).div_ceil(per_group).min(64);
        let seed = match word(0x60) & 0x2000 {
            0 => crc32c(!0, image.get(SUPER_AT + 0x68..SUPER_AT + 0x78)?),
            _ => word(0x270),
        };
        let descriptor_len = if is_long { le16(image, SUPER_AT + 0xfe).clamp(32, 1024) } else { 32 };
        let has_sums = word(0x64) & METADATA_CSUM != 0;
        let group_inodes = word(0x28) as usize;
        let is_sane = (128..=block).contains(&inode_len);
        is_sane.then_some(Layout { block, inode_len, group_inodes, groups, descriptor_len, has_sums, seed })
    }

    fn descriptor(&self, group: usize) -> usize {
        (SUPER_AT / self.block + 1) * self.block + group * self.descriptor_len
    }

    /// Returns numbers and places of inodes that are in use.
    fn inodes(&self, image: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for group in 0..self.groups {
            let table = le32(image, self.descriptor(group) + 8) as usize;
            let table = table.saturating_mul(self.block);
            for slot in 0..self.group_inodes.min(INODES_MAX) {
                let at = table.saturating_add(slot * self.inode_len);
                if at >= image.len() || found.len() >= INODES_MAX {
                    break;
                }
                if le16(image, at) != 0 {
                    found.push((group.saturating_mul(self.group_inodes) + slot + 1, at));
                }
            }
        }
        found
    }

    /// Returns places of nodes below an inode, and of its data.
    fn blocks(&self, image: &[u8], inode: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut nodes, mut data) = (Vec::new(), Vec::new());
        let place = |block: u32| (block as usize).saturating_mul(self.block);
        if le32(image, inode + 0x20) & 0x1000_0000 != 0 {
            return (nodes, data);
        }
        if le32(image, inode + 0x20) & 0x8_0000 == 0 {
            data.extend((0..12).map(|slot| place(le32(image, inode + 0x28 + 4 * slot))));
            data.retain(|at| *at != 0);
            nodes.extend((12..15).map(|slot| place(le32(image, inode + 0x28 + 4 * slot))));
            nodes.retain(|at| *at != 0);
            return (nodes, data);
        }
        let mut left = vec![inode + 0x28];
        while let Some(at) = left.pop().filter(|_| nodes.len() < 256) {
            let (rows, depth) = (le16(image, at + 2).min(400), le16(image, at + 6));
            for row in (0..rows).map(|row| at + 12 + 12 * row) {
                if depth > 0 {
                    left.push(place(le32(image, row + 4)));
                    nodes.push(place(le32(image, row + 4)));
                } else {
                    let count = le16(image, row + 4).min(64);
                    let first = place(le32(image, row + 8));
                    data.extend((0..count).map(|block| first.saturating_add(block * self.block)));
                }
            }
        }
        (nodes, data)
    }

    fn inode_seed(&self, image: &[u8], number: usize, at: usize) -> u32 {
        let seed = crc32c(self.seed, &(number as u32).to_le_bytes());
        crc32c(seed, &le32(image, at + 0x64).to_le_bytes())
    }
}

/// Puts the checksums of metadata right.
pub(super) fn repair(image: &mut [u8]) {
    if !is_one(image) || image.len() < 2 * SUPER_AT {
        return;
    }
    let Some(layout) = Layout::of(image).filter(|layout| layout.has_sums) else { return };
    for (number, at) in layout.inodes(image) {
        repair_inode(image, &layout, number, at);
    }
    for group in 0..layout.groups {
        let at = layout.descriptor(group);
        put(image, at + GROUP_SUM_AT, &[0; 2]);
        let Some(bytes) = image.get(at..at + layout.descriptor_len) else { break };
        let sum = crc32c(crc32c(layout.seed, &(group as u32).to_le_bytes()), bytes);
        put(image, at + GROUP_SUM_AT, &sum.to_le_bytes()[..2]);
    }
    let sum = crc32c(!0, &image[SUPER_AT..SUPER_AT + 0x3fc]);
    put(image, SUPER_AT + 0x3fc, &sum.to_le_bytes());
}

fn repair_inode(image: &mut [u8], layout: &Layout, number: usize, at: usize) {
    let seed = layout.inode_seed(image, number, at);
    let (nodes, data) = layout.blocks(image, at);
    for node in nodes {
        let end = 12 + 12 * le16(image, node.saturating_add(4));
        let Some(bytes) = image.get(node..node.saturating_add(end)) else { continue };
        let sum = crc32c(seed, bytes);
        put(image, node + end, &sum.to_le_bytes());
    }
    if le16(image, at) & 0o170_000 == 0o040_000 {
        let is_indexed = le32(image, at + 0x20) & 0x1000 != 0;
        for (number, block) in data.into_iter().enumerate() {
            // The root of a hash tree keeps the tail of the plain block that it was.
            let is_node = le32(image, block) == 0 && le16(image, block + 4) == layout.block;
            if is_indexed && (number == 0 || is_node) {
                repair_index(image, seed, block, block.saturating_add(layout.block))
            } else {
                repair_directory(image, layout, seed, block)
            }
        }
    }
    let xattrs = le32(image, at + 0x68);
    let place = (xattrs as usize).saturating_mul(layout.block);
    if xattrs != 0 && image.len() >= place.saturating_add(layout.block) {
        put(image, place + 0x10, &[0; 4]);
        let seed = crc32c(layout.seed, &u64::from(xattrs).to_le_bytes());
        let sum = crc32c(seed, &image[place..place + layout.block]);
        put(image, place + 0x10, &sum.to_le_bytes());
    }
    put(image, at + 0x7c, &[0; 2]);
    let is_wide = layout.inode_len > 128 && le16(image, at + 0x80) >= 4;
    if is_wide {
        put(image, at + 0x82, &[0; 2]);
    }
    let Some(bytes) = image.get(at..at + layout.inode_len) else { return };
    let sum = crc32c(seed, bytes).to_le_bytes();
    put(image, at + 0x7c, &sum[..2]);
    if is_wide {
        put(image, at + 0x82, &sum[2..]);
    }
}

/// Puts the sum of a block of entries right.
fn repair_directory(image: &mut [u8], layout: &Layout, seed: u32, block: usize) {
    let end = block.saturating_add(layout.block);
    if end > image.len() {
        return;
    }
    let tail = end - 12;
    if le32(image, tail) == 0 && le32(image, tail + 4) == 0xde00_000c {
        let sum = crc32c(seed, &image[block..tail]);
        put(image, tail + 8, &sum.to_le_bytes());
    }
}

/// Puts the sum of a block of a hash tree right.
fn repair_index(image: &mut [u8], seed: u32, block: usize, end: usize) {
    if end > image.len() {
        return;
    }
    let start = if le32(image, block) == 0 { 8 } else { 32 };
    let (limit, count) = (le16(image, block + start), le16(image, block + start + 2));
    let tail = block + start + 8 * limit;
    if tail + 8 > end || count > limit {
        return;
    }
    let sum = crc32c(seed, &image[block..block + start + 8 * count]);
    let sum = crc32c(crc32c(sum, &image[tail..tail + 4]), &[0; 4]);
    put(image, tail + 4, &sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_genuine_images_are_right_already() {
        let folder = tempfile::tempdir().unwrap();
        for base in crate::corpus::images("ext4", folder.path()).unwrap() {
            let mut again = base.bytes.clone();
            repair(&mut again);
            assert!(again == base.bytes, "{}", base.name);
        }
    }
}
