//! Encoded extents: a record per cluster, as short as the file permits.

use super::super::file_map::{FileMap, Form, Piece};
use crate::disk::{self, Extent, MapHeader};
use zerocopy::IntoBytes;

/// Limit of 4-byte records, which are summed from the first on: more would make reading slow.
const SUMMED_COUNT_MAX: usize = 32;

/// Largest difference between the logarithms of a logical cluster and of a block.
const CLUSTERBITS_MAX: u32 = disk::CLUSTERBITS_MASK as u32;

#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    len: u64,
    /// Address of the stored bytes; for a fragment the upper half of its offset.
    stored_start: u64,
    plen: u32,
    stored_len: u32,
}

#[derive(Debug)]
pub(super) struct Extents {
    rows: Vec<Row>,
    record_len: u64,
    /// Logarithm of the common length of all rows if records do not contain starts.
    cluster_bits: u32,
    fragment: bool,
}

impl Extents {
    pub(super) fn new(map: &FileMap, block_bits: u32, byte_aligned: bool) -> Self {
        let mut rows = Vec::with_capacity(map.pieces.len());
        for piece in &map.pieces {
            match piece.form {
                Form::Plain => rows.extend(plain_rows(piece)),
                _ => rows.push(row(
                    piece,
                    map.algorithm_of(piece),
                    if byte_aligned { 1 } else { 1 << block_bits },
                )),
            }
        }
        let fragment = matches!(map.pieces.last(), Some(Piece { form: Form::Fragment(_), .. }));
        let (record_len, cluster_bits) = record_len(&rows, map.size, block_bits, fragment);
        Extents { rows, record_len, cluster_bits, fragment }
    }

    pub(super) fn stored_len(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.stored_len)).sum()
    }

    pub(super) fn records_at(&self, header_end: u64) -> u64 {
        header_end.next_multiple_of(self.record_len)
    }

    pub(super) fn end(&self, header_end: u64) -> u64 {
        let first = if self.record_len == 4 { 8 } else { 0 };
        self.records_at(header_end) + first + self.rows.len() as u64 * self.record_len
    }

    pub(super) fn header(&self, block_bits: u32) -> MapHeader {
        let size_bits = (self.record_len.trailing_zeros() - 2) as u16;
        let fragment = if self.fragment { disk::Z_EROFS_ADVISE_FRAGMENT_PCLUSTER } else { 0 };
        let advise = disk::Z_EROFS_ADVISE_EXTENTS | size_bits << disk::Z_EROFS_ADVISE_EXTRECSZ_BIT | fragment;
        let (h_u, h_clusterbits) = match self.record_len {
            4 | 8 => (0, (self.cluster_bits - block_bits) as u8),
            _ => (self.rows.len() as u32, 0),
        };
        MapHeader { h_u: h_u.into(), h_advise: advise.into(), h_algorithmtype: 0, h_clusterbits }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.record_len == 4 {
            out.extend_from_slice(&self.rows[0].stored_start.to_le_bytes());
        }
        for row in &self.rows {
            let record = Extent {
                plen: row.plen.into(),
                pstart_lo: (row.stored_start as u32).into(),
                pstart_hi: ((row.stored_start >> 32) as u32).into(),
                lstart_lo: (row.start as u32).into(),
                lstart_hi: ((row.start >> 32) as u32).into(),
                reserved: [0; 12],
            };
            out.extend_from_slice(&record.as_bytes()[..self.record_len as usize]);
        }
    }
}

/// Splits a plain run by the maximum length of a cluster.
fn plain_rows(piece: &Piece) -> impl Iterator<Item = Row> {
    let Piece { start, len, offset, .. } = *piece;
    (0..len).step_by(disk::Z_EROFS_PCLUSTER_MAX_SIZE as usize).map(move |at| {
        let part_len = (len - at).min(disk::Z_EROFS_PCLUSTER_MAX_SIZE.into());
        let stored_len = part_len as u32;
        Row { start: start + at, len: part_len, stored_start: offset + at, plen: stored_len, stored_len }
    })
}

fn row(piece: &Piece, algorithm: u8, block_len: u32) -> Row {
    let Piece { start, len, offset, stored_len, .. } = *piece;
    let format = u32::from(algorithm + 1) << disk::Z_EROFS_EXTENT_PLEN_FMT_BIT;
    // Whole blocks are decoded in place, including leading zeros; but no cluster may be longer than
    // its decoded length.
    let filled_len = stored_len.next_multiple_of(block_len);
    let (stored_start, stored_len) = if u64::from(filled_len) <= len || piece.form == Form::Part {
        (offset, filled_len)
    } else {
        (offset + u64::from(filled_len - stored_len), stored_len)
    };
    let (stored_start, plen, stored_len) = match piece.form {
        Form::Fragment(offset) => (offset >> 32, offset as u32, 0),
        Form::Part => (stored_start, stored_len | format | disk::Z_EROFS_EXTENT_PLEN_PARTIAL, stored_len),
        Form::Compressed | Form::Inline { .. } => (stored_start, stored_len | format, stored_len),
        Form::Plain => (stored_start, stored_len, stored_len),
        Form::Hole => (0, 0, 0),
    };
    Row { start, len, stored_start, plen, stored_len }
}

/// Returns the shortest record length for all rows, and the logarithm of the common length.
fn record_len(rows: &[Row], size: u64, block_bits: u32, fragment: bool) -> (u64, u32) {
    let first_len = rows.first().map_or(1, |row| row.len);
    let cluster_bits = first_len.next_power_of_two().trailing_zeros().max(block_bits);
    let cluster_len = 1 << cluster_bits;
    let (last, others) = rows.split_last().map_or((first_len, rows), |(last, others)| (last.len, others));
    let even = cluster_bits - block_bits <= CLUSTERBITS_MAX
        && last <= cluster_len
        && others.iter().all(|row| row.len == cluster_len);
    if even {
        let stored = if fragment { others } else { rows };
        let in_a_row = stored
            .windows(2)
            .all(|pair| pair[1].stored_start == pair[0].stored_start + u64::from(pair[0].stored_len));
        // A hole has no length in the sum and no start; a fragment's offset must fit into one word.
        let plain_sum = stored.iter().all(|row| row.stored_len > 0) && !stored.is_empty();
        let short_offset = !fragment || rows.last().is_some_and(|row| row.stored_start == 0);
        if rows.len() <= SUMMED_COUNT_MAX && in_a_row && plain_sum && short_offset {
            return (4, cluster_bits);
        }
        if rows.iter().all(|row| row.stored_start <= u64::from(u32::MAX)) {
            return (8, cluster_bits);
        }
    }
    (if size <= u64::from(u32::MAX) { 16 } else { 32 }, 0)
}
