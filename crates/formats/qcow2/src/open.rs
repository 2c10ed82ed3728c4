//! Conversion of the header to a checked [`Geometry`].
//!
//! Owns every check of the header. Invariant: the tables that it locates are within the file.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::extensions::Extensions;
use packfs_codec::Algorithm;
use packfs_core::{Error, Image, Result, range_at};
use packfs_format::{read_structure, units::*};
use std::ops::Range;

const CLUSTER_BITS_MIN: u32 = 9;
const CLUSTER_BITS_MAX: u32 = 21;
/// Counts of version 2 have 16 bits.
const REFCOUNT_ORDER_OF_V2: u32 = 4;
/// Smaller clusters have subclusters shorter than a sector.
const EXTENDED_BITS_MIN: u32 = 14;
/// Longest L1 table that QEMU reads, in entries of 8 bytes: 32 MiB.
const L1_MAX: u64 = 4 << 20;
/// Longest table of reference counts that QEMU reads, in bytes.
pub(crate) const REFCOUNTS_MAX: u64 = 8 << 20;
pub(crate) const SNAPSHOTS_MAX: u64 = 65_536;
const BACKING_NAME_MAX: u32 = 1023;

/// An L1 table: offsets of L2 tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct L1 {
    pub(crate) at: u64,
    pub(crate) count: u64,
}

impl L1 {
    pub(crate) fn range(&self) -> Range<u64> {
        range_at(self.at, self.count.times(8))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) version: u32,
    pub(crate) image_len: u64,
    pub(crate) disk_len: u64,
    pub(crate) cluster_bits: u32,
    pub(crate) incompatible: u64,
    pub(crate) algorithm: Algorithm,
    pub(crate) l1: L1,
    pub(crate) refcounts: Range<u64>,
    /// Logarithm of the bits of a count.
    pub(crate) refcount_order: u32,
    pub(crate) snapshots_at: u64,
    pub(crate) snapshot_count: u64,
    pub(crate) backing: Option<Vec<u8>>,
    pub(crate) extensions: Extensions,
}

impl Geometry {
    /// Reads and checks the header.
    ///
    /// Errors: `Corrupt`, `Unsupported` for encrypted images and external data, `Io`.
    pub(crate) fn read(image: &dyn Image) -> Result<Geometry> {
        if image.len() < HEADER_LEN {
            return Err(Corruption::Short { len: image.len() }.into());
        }
        let header: Header = read_structure(image, 0)?;
        if header.magic != MAGIC {
            return Err(Corruption::Signature.into());
        }
        let version = header.version.get();
        let v3 = match version {
            2 => HeaderV3::default(),
            3 => read_structure(image, HEADER_LEN)?,
            _ => return Err(unsupported(format!("version {version}, 2 and 3 are supported"))),
        };
        let incompatible = v3.incompatible_features.get();
        let min = if incompatible & EXTENDED_L2 != 0 { EXTENDED_BITS_MIN } else { CLUSTER_BITS_MIN };
        let cluster_bits = header.cluster_bits.get();
        if !(min..=CLUSTER_BITS_MAX).contains(&cluster_bits) {
            return Err(Corruption::ClusterBits { found: cluster_bits, min }.into());
        }
        let cluster_len = 1 << cluster_bits;
        let header_len = header_len(version, v3.header_length.get(), cluster_len)?;
        let backing = backing_name(image, &header, cluster_len)?;
        let extensions = Extensions::read(image, header_len, extensions_end(&header, cluster_len))?;
        refuse_others(&header, incompatible, &extensions)?;
        let geometry = Geometry {
            version,
            image_len: image.len(),
            disk_len: header.size.get(),
            cluster_bits,
            incompatible,
            algorithm: compression(image, header_len, incompatible)?,
            l1: L1 { at: header.l1_table_offset.get(), count: header.l1_size.get().into() },
            refcounts: refcounts(&header, cluster_len),
            // Larger values are treated as the maximum.
            refcount_order: if version == 2 { REFCOUNT_ORDER_OF_V2 } else { v3.refcount_order.get().min(6) },
            snapshots_at: header.snapshots_offset.get(),
            snapshot_count: header.nb_snapshots.get().into(),
            backing,
            extensions,
        };
        geometry.check_l1(&geometry.l1, geometry.disk_len, "L1 table")?;
        let (found, max) = (geometry.snapshot_count, SNAPSHOTS_MAX);
        if found > max {
            return Err(Corruption::TableLength { what: "snapshots", found, max }.into());
        }
        Ok(geometry)
    }

    pub(crate) fn cluster_len(&self) -> u64 {
        1 << self.cluster_bits
    }

    pub(crate) fn is_extended(&self) -> bool {
        self.incompatible & EXTENDED_L2 != 0
    }

    /// Bytes of the disk that one L2 table covers.
    pub(crate) fn table_span(&self) -> u64 {
        let entry_bits = if self.is_extended() { 4 } else { 3 };
        1 << self.cluster_bits.times(2).minus(entry_bits)
    }

    /// Checks the position of an L1 table, and that it covers a disk.
    ///
    /// Errors: `Corrupt`.
    pub(crate) fn check_l1(&self, l1: &L1, disk_len: u64, what: &'static str) -> Result<(), Corruption> {
        let (found, max) = (l1.count, L1_MAX);
        if found > max {
            return Err(Corruption::TableLength { what, found, max });
        }
        self.check_table(l1.range(), what)?;
        let room = l1.count.times(self.table_span());
        if disk_len > room {
            return Err(Corruption::DiskLength { what, found: disk_len, room });
        }
        Ok(())
    }

    /// Errors: a table that is not aligned to clusters, or exceeds the file.
    pub(crate) fn check_table(&self, table: Range<u64>, what: &'static str) -> Result<(), Corruption> {
        let at = table.start;
        let limit = self.image_len;
        let cluster_len = self.cluster_len();
        if !at.is_multiple_of(cluster_len) {
            return Err(Corruption::TableAlign { what, at, cluster_len });
        }
        if table.end > limit {
            let len = table.end.minus(at);
            return Err(Corruption::TablePlace { what, at, len, limit });
        }
        Ok(())
    }
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::unsupported("qcow2 image", what)
        .hint("qemu-img convert -O raw FILE disk.img makes a disk that packfs reads")
}

fn header_len(version: u32, found: u32, max: u64) -> Result<u64> {
    if version == 2 {
        return Ok(HEADER_LEN);
    }
    let len = u64::from(found);
    if !(HEADER_V3_LEN..=max).contains(&len) || !len.is_multiple_of(8) {
        return Err(Corruption::HeaderLength { found, max }.into());
    }
    Ok(len)
}

/// Refuses features that change the meaning of everything else.
fn refuse_others(header: &Header, incompatible: u64, extensions: &Extensions) -> Result<()> {
    match header.crypt_method.get() {
        0 => {}
        1 => return Err(unsupported("encrypted with AES")),
        2 => return Err(unsupported("encrypted with LUKS")),
        other => return Err(unsupported(format!("encryption method {other}"))),
    }
    if incompatible & EXTERNAL_DATA != 0 {
        return Err(unsupported("its data is in an external data file"));
    }
    let known = DIRTY | CORRUPT | COMPRESSION | EXTENDED_L2;
    let unknown = (0..64).filter(|bit| incompatible & !known & (1 << bit) != 0);
    let names: Vec<String> = unknown.map(|bit| extensions.feature_name(bit)).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(unsupported(format!("unknown incompatible features: {}", names.join(", "))))
    }
}

fn compression(image: &dyn Image, header_len: u64, incompatible: u64) -> Result<Algorithm> {
    let mut kind = [0];
    if header_len > HEADER_V3_LEN {
        image.read_exact_at(HEADER_V3_LEN, &mut kind)?;
    }
    let [found] = kind;
    match (found, incompatible & COMPRESSION != 0) {
        (0, false) => Ok(Algorithm::Deflate),
        (1, true) => Ok(Algorithm::Zstd),
        (0, true) | (_, false) => Err(Corruption::CompressionType { found }.into()),
        _ => Err(unsupported(format!("compression type {found}, 0 (zlib) and 1 (zstd) are supported"))),
    }
}

fn backing_name(image: &dyn Image, header: &Header, cluster_len: u64) -> Result<Option<Vec<u8>>> {
    let (at, len) = (header.backing_file_offset.get(), header.backing_file_size.get());
    // An empty name means no backing file, as in QEMU.
    if at == 0 || len == 0 {
        return Ok(None);
    }
    let limit = cluster_len.min(image.len());
    if len > BACKING_NAME_MAX || range_at(at, len.into()).end > limit {
        return Err(Corruption::BackingName { at, len, limit }.into());
    }
    let mut name = vec![0; packfs_core::usize_of(len.into())];
    image.read_exact_at(at, &mut name)?;
    Ok(Some(name))
}

/// Extensions end where the name of the backing file starts, at the latest.
fn extensions_end(header: &Header, cluster_len: u64) -> u64 {
    match header.backing_file_offset.get() {
        0 => cluster_len,
        at => at.min(cluster_len),
    }
}

fn refcounts(header: &Header, cluster_len: u64) -> Range<u64> {
    let len = u64::from(header.refcount_table_clusters.get()).times(cluster_len);
    range_at(header.refcount_table_offset.get(), len)
}
