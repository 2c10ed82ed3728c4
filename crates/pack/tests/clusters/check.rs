//! Reassembles files, and checks the guarantees that a format relies on.

use crate::fake::{Files, Packed};
use packfs_codec::CodecSettings;
use packfs_codec::Decoders;
use packfs_core::{NodeId, NodeKind};
use packfs_format::{
    Cluster, ClusterForm, ClusterRecipe, Clusters, FileForm, FilePlace, InlineTail, Recipe, TailPlace,
};
use std::collections::BTreeMap;

/// Checks everything that must hold of an image in which no file failed.
pub fn check(packed: &Packed, files: &Files) {
    let stream = packed.placed.data.packed.map(|(place, len)| {
        let recipe = packed.cut.packed_recipe;
        let bytes = put_together(packed, &place, len, recipe, None);
        assert_eq!(bytes.len() as u64, len);
        bytes
    });
    for (node, row) in packed.tree.nodes() {
        let NodeKind::File { len, content } = row.kind else { continue };
        if len > 0 && !packed.placed.failed.contains(&node) {
            let bytes =
                put_together(packed, place_of(packed, node), len, recipe_of(packed, node), stream.as_deref());
            assert!(bytes == files.all[content.0 as usize], "file {} of {len} bytes differs", content.0);
        }
    }
    no_overlaps(packed);
    let data = &packed.image[packed.plan.data_start as usize..packed.placed.data_end as usize];
    assert_eq!(packed.placed.data.hash, xxhash_rust::xxh3::xxh3_128(data));
    assert_eq!(packed.placed.data_end % u64::from(packed.cut.block_len), 0);
}

pub fn place_of(packed: &Packed, node: NodeId) -> &FilePlace<Clusters> {
    &packed.placed.files[node.index()]
}

/// Returns the place of the file with this content.
pub fn place(packed: &Packed, content: usize) -> FilePlace<Clusters> {
    let is_it =
        |kind: &NodeKind| matches!(kind, NodeKind::File { content: id, .. } if id.0 == content as u64);
    let (node, _) = packed.tree.nodes().find(|(_, node)| is_it(&node.kind)).unwrap();
    *place_of(packed, node)
}

fn recipe_of(packed: &Packed, node: NodeId) -> u16 {
    packed.plan.files.iter().find(|job| job.node == node).unwrap().storage.recipe
}

fn put_together(
    packed: &Packed,
    place: &FilePlace<Clusters>,
    len: u64,
    recipe: u16,
    stream: Option<&[u8]>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let block_len = u64::from(packed.cut.block_len);
    match place.form {
        FileForm::Flat => {
            let tail_len = match place.tail {
                None => 0,
                Some(TailPlace::Inline(tail)) => u64::from(tail.stored_len),
                Some(other) => panic!("a flat file has no {other:?}"),
            };
            assert_eq!(place.start % block_len, 0);
            assert_eq!(place.count, 0);
            let end = place.start + len - tail_len;
            if len > tail_len {
                bytes.extend_from_slice(&packed.image[place.start as usize..end as usize]);
                assert!(
                    tail_len == 0 || end.is_multiple_of(block_len),
                    "the run of a flat file is whole blocks"
                );
                assert!(
                    packed.image[end as usize..end.next_multiple_of(block_len) as usize]
                        .iter()
                        .all(|&b| b == 0)
                );
            }
        }
        FileForm::Chunks { chunk_bits } => {
            put_chunks_together(packed, place, len, 1 << chunk_bits, &mut bytes)
        }
        FileForm::Clusters { .. } if place.count == 0 => assert!(place.tail.is_some()),
        FileForm::Clusters { recipe } => put_clusters_together(packed, place, len, recipe, &mut bytes),
    }
    match place.tail {
        None => {}
        Some(TailPlace::Packed { offset }) => {
            let rest = len - bytes.len() as u64;
            assert!(rest > 0);
            let stream = stream.expect("a tail needs a packed stream");
            bytes.extend_from_slice(&stream[offset as usize..(offset + rest) as usize]);
        }
        Some(TailPlace::Inline(InlineTail { id, stored_len, compressed })) => {
            let stored = &packed.inline[&id];
            let rest = (len - bytes.len() as u64) as usize;
            let spare = match packed.cut.recipes[usize::from(recipe)] {
                Recipe::Clusters { .. } => 32,
                _ => 1,
            };
            assert!(
                rest > 0 && u64::from(stored_len) <= block_len - spare,
                "{stored_len} of {len}, {place:?}"
            );
            if compressed {
                bytes.extend_from_slice(&decode(codec(packed, recipe, false), stored, rest));
            } else {
                assert_eq!(stored.len(), rest);
                bytes.extend_from_slice(stored);
            }
        }
    }
    bytes
}

/// Returns the codec of a cluster.
fn codec(packed: &Packed, recipe: u16, is_second: bool) -> &CodecSettings {
    let Recipe::Clusters(ClusterRecipe { codec, second, .. }) = &packed.cut.recipes[usize::from(recipe)]
    else {
        panic!("no codec")
    };
    if is_second { second.as_ref().unwrap() } else { codec }
}

fn decode(codec: &CodecSettings, stored: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let decoded = Decoders::new().decompress(codec.algorithm(), stored, &mut bytes).unwrap();
    assert_eq!(decoded, len, "a cluster holds exactly what its row says");
    bytes
}

fn put_chunks_together(
    packed: &Packed,
    place: &FilePlace<Clusters>,
    len: u64,
    chunk_len: u64,
    bytes: &mut Vec<u8>,
) {
    for row in packed.placed.clusters_of(place) {
        assert_eq!(bytes.len() as u64 % chunk_len, 0);
        match row.form {
            ClusterForm::Hole => bytes.resize(bytes.len() + row.len as usize, 0),
            ClusterForm::Plain => bytes.extend_from_slice(stored(packed, row)),
            other => panic!("{other:?} among chunks"),
        }
    }
    assert_eq!(bytes.len() as u64, len);
}

fn stored<'a>(packed: &'a Packed, row: &Cluster) -> &'a [u8] {
    let block_len = u64::from(packed.cut.block_len);
    let padding = match row.form {
        ClusterForm::Compressed | ClusterForm::CompressedPart if !packed.cut.byte_aligned => {
            u64::from(row.stored_len).next_multiple_of(block_len) - u64::from(row.stored_len)
        }
        _ => 0,
    };
    assert!(packed.cut.byte_aligned || row.offset.is_multiple_of(block_len));
    let start = (row.offset + padding) as usize;
    assert!(packed.image[row.offset as usize..start].iter().all(|&b| b == 0));
    &packed.image[start..start + row.stored_len as usize]
}

/// Returns the bytes of a run of blocks, each rotated back to its offset in the file.
fn rotated_back(packed: &Packed, row: &Cluster, phase: u64) -> Vec<u8> {
    let block_len = u64::from(packed.cut.block_len);
    let byte = |index: u64| {
        let (block, within) = (index / block_len * block_len, (phase + index) % block_len);
        packed.image[(row.offset + block + within) as usize]
    };
    (0..row.len).map(byte).collect()
}

/// Checks the bytes, and that EROFS indexes can represent the clusters.
fn put_clusters_together(
    packed: &Packed,
    place: &FilePlace<Clusters>,
    len: u64,
    recipe: u16,
    bytes: &mut Vec<u8>,
) {
    let cut = &packed.cut;
    let Recipe::Clusters(ClusterRecipe { cluster_len, .. }) = cut.recipes[usize::from(recipe)] else {
        panic!("no clusters")
    };
    let block_len = u64::from(cut.block_len);
    let mut starts: Vec<(u64, u64)> = Vec::new();
    for row in packed.placed.clusters_of(place) {
        let start = bytes.len() as u64;
        match row.form {
            ClusterForm::Hole => {
                assert!(cut.byte_aligned, "indexes know no holes");
                bytes.resize(bytes.len() + row.len as usize, 0);
            }
            ClusterForm::Plain => {
                assert_eq!(row.len, u64::from(row.stored_len));
                match start % block_len {
                    phase if cut.interlaced && phase > 0 => bytes.extend(rotated_back(packed, row, phase)),
                    _ => bytes.extend_from_slice(stored(packed, row)),
                }
                starts.extend((start..start + row.len).step_by(block_len as usize).map(|at| (at, 1)));
            }
            ClusterForm::Rotated => panic!("only merged images have clusters rotated one by one"),
            ClusterForm::Compressed => {
                assert!(row.len <= u64::from(cut.decoded_len_max));
                assert!(row.stored_len <= cluster_len && u64::from(row.stored_len) < row.len);
                let space = u64::from(row.stored_len).div_ceil(block_len);
                assert!(cut.byte_aligned || space < row.len.div_ceil(block_len));
                let codec = codec(packed, recipe, row.second);
                bytes.extend_from_slice(&decode(codec, stored(packed, row), row.len as usize));
                starts.push((start, space));
            }
            ClusterForm::CompressedPart => {
                assert!(cut.share_ranges, "nobody asked for shared parts");
                assert!(row.stored_len <= cluster_len);
                let codec = codec(packed, recipe, row.second);
                let mut part = vec![0; row.len as usize];
                let stored = stored(packed, row);
                let len = Decoders::new().decompress_prefix(codec.algorithm(), stored, &mut part).unwrap();
                assert_eq!(len, part.len());
                bytes.extend_from_slice(&part);
                starts.push((start, u64::from(row.stored_len).div_ceil(block_len)));
            }
        }
    }
    if place.tail.is_some() {
        starts.push((bytes.len() as u64, 1));
    }
    if cut.byte_aligned {
        return;
    }
    for (index, (start, space)) in starts.iter().enumerate() {
        let next = starts.get(index + 1).map(|(next, _)| next / block_len);
        assert!(next.is_none_or(|next| next > start / block_len), "two clusters start in one unit");
        if *space > 1 {
            let units_end = next.unwrap_or(len.div_ceil(block_len));
            assert!(units_end >= start / block_len + 2, "a cluster of several blocks spans one unit");
        }
    }
}

/// Checks that stored clusters are equal or disjoint.
fn no_overlaps(packed: &Packed) {
    let mut stored = BTreeMap::new();
    for row in packed.placed.data.clusters.iter().filter(|row| row.form == ClusterForm::Compressed) {
        let space = if packed.cut.byte_aligned {
            row.stored_len
        } else {
            row.stored_len.next_multiple_of(packed.cut.block_len)
        };
        let before = stored.insert(row.offset, (space, row.len));
        assert!(before.is_none_or(|before| before == (space, row.len)));
    }
    let mut end = packed.plan.data_start;
    for (offset, (space, _)) in stored {
        assert!(offset >= end, "clusters overlap at {offset}");
        end = offset + u64::from(space);
    }
    assert!(end <= packed.placed.data_end);
}
