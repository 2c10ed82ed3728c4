//! Disks in cloops and in partitions, with a file system in them that opens through both.

use super::disks::{lvm, sparse, vdi, vhd, vmdk};
use super::{Base, K4, packed, plain_tree};
use packfs::Result;
use packfs_codec::{Algorithm, CodecSpec, DictLens};
use std::path::Path;

/// Codec and version of cloops.
const CLOOPS: [(&str, &str); 5] =
    [("gzip", "2.0"), ("gzip", "4.0"), ("xz:1", "4.0"), ("lz4", "4.0"), ("lzo,variant=1", "4.0")];

/// Codec and version of qcow2 images.
const QCOW2S: [(&str, u32); 3] = [("deflate", 2), ("deflate", 3), ("zstd", 3)];

/// Containers of every kind that is made here, packed in `folder`.
///
/// # Errors
/// As of packing.
pub fn containers(folder: &Path) -> Result<Vec<Base>> {
    let (tree, contents) = plain_tree()?;
    let image = packed("squashfs", &("zstd:1", K4, &[]), &tree, &contents, folder)?;
    let mut all = vec![Base { name: "partitions".into(), bytes: partitioned(&image) }];
    for (codec, version) in QCOW2S {
        let bytes = qcow2(&partitioned(&image), codec, version)?;
        all.push(Base { name: format!("qcow2 {version} {codec}"), bytes });
    }
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

/// Disks of virtual machines of every kind that is made here, and a group of LVM2.
///
/// # Errors
/// As of packing.
pub(super) fn disks(folder: &Path) -> Result<Vec<Base>> {
    let (tree, contents) = plain_tree()?;
    let image = packed("squashfs", &("zstd:1", K4, &[]), &tree, &contents, folder)?;
    let (disk, mut encode) = (partitioned(&image), encoder("gzip")?);
    let rows = [
        ("vhd fixed", vhd(&disk, true)),
        ("vhd dynamic", vhd(&disk, false)),
        ("vdi", vdi(&disk)),
        ("vmdk sparse", vmdk(&disk, None)),
        ("vmdk stream", vmdk(&disk, Some(&mut encode))),
        ("android-sparse", sparse(&disk)),
        ("lvm", lvm(&image)),
    ];
    Ok(rows.map(|(name, bytes)| Base { name: name.into(), bytes }).into())
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

/// Length of clusters of [`qcow2`].
const CLUSTER: usize = 4096;

/// A qcow2 image of a disk, as QEMU would write it, with every other cluster compressed, zeros left
/// out, and a snapshot of the first cluster. `codec` compresses clusters: `deflate` or `zstd`.
fn qcow2(disk: &[u8], codec: &str, version: u32) -> Result<Vec<u8>> {
    let mut image = vec![0; CLUSTER];
    let mut l2 = Vec::new();
    let mut encode = encoder(codec)?;
    for (index, plain) in disk.chunks(CLUSTER).enumerate() {
        let mut plain = plain.to_vec();
        plain.resize(CLUSTER, 0);
        let at = image.len() as u64;
        let is_empty = plain.iter().all(|byte| *byte == 0);
        let encoded = if index % 2 == 0 { None } else { encode(&plain) };
        l2.push(match encoded {
            _ if is_empty => u64::from(version > 2),
            Some(bytes) => {
                image.extend(&bytes);
                // No more sectors than hold the stream.
                let sectors = (at + bytes.len() as u64 - 1) / 512 - at / 512;
                1 << 62 | sectors << (62 - 4) | at
            }
            None => {
                image.resize(image.len().next_multiple_of(CLUSTER), 0);
                let at = image.len() as u64;
                image.extend(plain);
                1 << 63 | at
            }
        });
    }
    let first = l2[0];
    let mut put = |words: &[u64]| {
        image.resize(image.len().next_multiple_of(CLUSTER), 0);
        let at = image.len() as u64;
        image.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        image.resize(image.len().next_multiple_of(CLUSTER), 0);
        at
    };
    let l2 = put(&l2);
    let l1 = put(&[1 << 63 | l2]);
    let old_l2 = put(&[first]);
    let old_l1 = put(&[old_l2]);
    // One entry, a number of one byte and a name of three, 16 bytes of extra data.
    let name = u64::from_be_bytes(*b"1old\0\0\0\0");
    let snapshots = put(&[old_l1, 1 << 32 | 1 << 16 | 3, 0, 0, 16, 0, CLUSTER as u64, name]);
    let counts = put(&[0x0001_0001_0001_0001; 20]);
    let refcounts = put(&[counts]);
    let words = |high: u32, low: u64| u64::from(high) << 32 | low;
    let (compression, bit) = if codec == "zstd" { (1_u64 << 56, 8) } else { (0, 0) };
    let header = [
        words(u32::from_be_bytes(*b"QFI\xfb"), version.into()),
        0,
        words(0, CLUSTER.trailing_zeros().into()),
        disk.len() as u64,
        words(0, 1),
        l1,
        refcounts,
        words(1, 1),
        snapshots,
        bit,
        0,
        0,
        words(4, 112),
        compression,
    ];
    let len = if version == 2 { 9 } else { header.len() };
    let bytes: Vec<u8> = header[..len].iter().flat_map(|word| word.to_be_bytes()).collect();
    image[..bytes.len()].copy_from_slice(&bytes);
    Ok(image)
}

/// A function that compresses a cluster, if that makes it shorter.
fn encoder(codec: &str) -> Result<impl FnMut(&[u8]) -> Option<Vec<u8>>> {
    let spec: CodecSpec = codec.parse().map_err(packfs::Error::usage)?;
    let algorithms = [Algorithm::Deflate, Algorithm::Zlib, Algorithm::Zstd];
    let settings =
        spec.resolve(&algorithms, DictLens::of_block(CLUSTER as u32)).map_err(packfs::Error::usage)?;
    let settings = settings.ok_or_else(|| packfs::Error::usage("no codec"))?;
    let mut encoder = packfs_codec::encoder(&settings).map_err(packfs::Error::failed)?;
    let is_optional = codec != "gzip";
    Ok(move |plain: &[u8]| {
        let mut out = vec![0; if is_optional { plain.len() - 512 } else { plain.len() * 2 }];
        let len = encoder.compress(plain, &mut out).ok().flatten()?;
        out.truncate(len);
        Some(out)
    })
}
