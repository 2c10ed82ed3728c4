//! Listings of a mount: in parts of any length, with the error of damage that lies between them.

use crate::common::engine;
use packfs::mount::{DryRun, FuseOptions};
use packfs_core::MemoryImage;
use packfs_read::ReadOptions;
use std::sync::Arc;

const EXT4: &[u8] = include_bytes!("../../../../testdata/legacy/ext4.ext4");
const READDIR: u32 = 28;
const HEADER_LEN: usize = 40;
/// Bytes of an entry of a reply before its name.
const ENTRY_LEN: usize = 24;

/// Asks for a part of a listing.
fn part(mount: &mut DryRun, node: u64, offset: u64, len: u32) -> Result<Vec<u8>, i32> {
    let mut request = vec![0; HEADER_LEN];
    request[4..8].copy_from_slice(&READDIR.to_le_bytes());
    request[16..24].copy_from_slice(&node.to_le_bytes());
    request.extend([0; 8]);
    request.extend(offset.to_le_bytes());
    request.extend(len.to_le_bytes());
    request.extend([0; 20]);
    mount.answer(&request).expect("an answer").map(<[u8]>::to_vec)
}

/// Lists a directory as the kernel does; returns the number of names, and the error at the end.
fn list(image: &[u8], name: &str, len: u32) -> (usize, Option<i32>) {
    let engine = engine(Arc::new(MemoryImage::new("image", image.to_vec())), ReadOptions::default()).unwrap();
    let root = engine.volume().root();
    let dir = engine.volume().lookup(root, name.as_bytes()).unwrap().unwrap();
    let mut mount = DryRun::new(engine, &FuseOptions::new(root, "dry-run")).unwrap();
    let node = mount.node(dir).unwrap();
    let (mut count, mut offset) = (0, 0);
    loop {
        let reply = match part(&mut mount, node, offset, len) {
            Ok(reply) if reply.is_empty() => return (count, None),
            Ok(reply) => reply,
            Err(error) => return (count, Some(error)),
        };
        let mut rest = &*reply;
        while !rest.is_empty() {
            offset = u64::from_le_bytes(rest[8..16].try_into().unwrap());
            let name_len = u32::from_le_bytes(rest[16..20].try_into().unwrap()) as usize;
            rest = &rest[(ENTRY_LEN + name_len).next_multiple_of(8)..];
            count += 1;
        }
    }
}

#[test]
fn damage_is_told_of_at_the_end_of_a_listing_in_parts() {
    let (whole, none) = list(EXT4, "many", 1 << 20);
    assert_eq!(none, None);
    let mut damaged = EXT4.to_vec();
    // In the second block of `many`.
    let text = b"a-rather-long-name-to-fill-blocks-30";
    let at = EXT4.windows(text.len()).position(|bytes| bytes == text).unwrap();
    damaged[at] ^= 1;
    let (rest, eio) = list(&damaged, "many", 1 << 20);
    assert!(rest > 10 && rest < whole, "{rest} of {whole}");
    assert_eq!(eio, Some(5));
    for len in [100, 300, 1000, 4096] {
        assert_eq!(list(EXT4, "many", len), (whole, None), "{len}");
        assert_eq!(list(&damaged, "many", len), (rest, Some(5)), "{len}");
    }
}
