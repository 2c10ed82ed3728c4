//! Internal snapshots: states of the disk, each with a separate L1 table.

use crate::corruption::Corruption;
use crate::disk::*;
use crate::open::{Geometry, L1};
use packfs_core::{Error, Image, Result, escaped, range_at, usize_of};
use packfs_format::{read_structure, structure, units::*};
use std::mem::size_of;

const EXTRA_LEN_MAX: u32 = 1024;
const TABLE_LEN_MAX: u64 = 64 << 20;
const NAMED_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) id: Vec<u8>,
    pub(crate) name: Vec<u8>,
    /// Time of the snapshot, in seconds since 1970.
    pub(crate) made_at: u32,
    pub(crate) l1: L1,
    pub(crate) disk_len: u64,
}

impl Snapshot {
    /// Returns its number and name for messages.
    pub(crate) fn words(&self) -> String {
        format!("{} ({})", escaped(&self.name), escaped(&self.id))
    }
}

/// Reads the table of snapshots, and returns them with the end of the table.
///
/// Errors: `Corrupt` if the table exceeds the file, `Io`.
pub(crate) fn read(image: &dyn Image, geometry: &Geometry) -> Result<(Vec<Snapshot>, u64)> {
    let mut snapshots = Vec::new();
    if geometry.snapshot_count == 0 {
        return Ok((snapshots, geometry.snapshots_at));
    }
    geometry.check_table(range_at(geometry.snapshots_at, 0), "snapshot table")?;
    let mut at = geometry.snapshots_at;
    for _ in 0..geometry.snapshot_count {
        let (snapshot, end) = read_row(image, geometry, at)?;
        snapshots.push(snapshot);
        at = end.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        let (found, max) = (at.minus(geometry.snapshots_at), TABLE_LEN_MAX);
        if found > max {
            return Err(Corruption::TableBytes { what: "snapshots", found, max }.into());
        }
    }
    Ok((snapshots, at.min(geometry.image_len)))
}

/// Reads the row at `at`, and returns it with its end.
fn read_row(image: &dyn Image, geometry: &Geometry, at: u64) -> Result<(Snapshot, u64)> {
    let limit = image.len();
    let within = |len: u64| -> Result<u64> {
        let end = range_at(at, len).end;
        if end > limit {
            return Err(Corruption::TablePlace { what: "snapshot", at, len, limit }.into());
        }
        Ok(end)
    };
    let row_len = size_of::<SnapshotRow>() as u64;
    within(row_len)?;
    let row: SnapshotRow = read_structure(image, at)?;
    let extra_len = row.extra_data_size.get();
    if extra_len > EXTRA_LEN_MAX {
        return Err(Corruption::SnapshotExtra { at, found: extra_len }.into());
    }
    let id_len = u64::from(row.id_str_size.get());
    let name_len = u64::from(row.name_size.get());
    let rest_len = u64::from(extra_len).plus(id_len).plus(name_len);
    let end = within(row_len.plus(rest_len))?;
    let mut rest = vec![0; usize_of(rest_len)];
    image.read_exact_at(at.plus(row_len), &mut rest)?;
    let (extra, rest) = rest.split_at_checked(usize_of(extra_len.into())).unwrap_or_default();
    let (id, name) = rest.split_at_checked(usize_of(id_len)).unwrap_or_default();
    // Rows of old images do not record the length, which was that of the disk.
    let disk_len = structure(extra, 0).map(|extra: SnapshotExtra| extra.disk_size.get());
    let snapshot = Snapshot {
        id: id.to_vec(),
        name: name.to_vec(),
        made_at: row.date_sec.get(),
        l1: L1 { at: row.l1_table_offset.get(), count: row.l1_size.get().into() },
        disk_len: disk_len.unwrap_or(geometry.disk_len),
    };
    Ok((snapshot, end))
}

/// Finds a snapshot by its number, or else by its name, as QEMU does.
///
/// Errors: `Usage` if it does not exist; as [`read`].
pub(crate) fn find(image: &dyn Image, geometry: &Geometry, wanted: &str) -> Result<Snapshot> {
    let (snapshots, _) = read(image, geometry)?;
    let by_id = snapshots.iter().find(|snapshot| snapshot.id == wanted.as_bytes());
    let by_name = || snapshots.iter().find(|snapshot| snapshot.name == wanted.as_bytes());
    let Some(found) = by_id.or_else(by_name) else {
        let error = Error::usage(format!("the image has no snapshot {wanted:?}"));
        let mut words: Vec<String> = snapshots.iter().take(NAMED_MAX).map(Snapshot::words).collect();
        if snapshots.len() > words.len() {
            words.push("...".into());
        }
        return Err(error.hint(if words.is_empty() {
            "it has no snapshots at all".into()
        } else {
            format!("snapshots in it: {}", words.join(", "))
        }));
    };
    geometry.check_l1(&found.l1, found.disk_len, "L1 table of the snapshot")?;
    Ok(found.clone())
}
