//! Path tables: a list of all directories, in both byte orders (ECMA-119 9.4).

use crate::disk::PathRow;
use zerocopy::IntoBytes;

#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub name: &'a [u8],
    pub block: u32,
    /// Row number of the parent directory, starting at 1.
    pub parent: u16,
}

pub(super) fn table(rows: &[Row<'_>], is_big: bool) -> Vec<u8> {
    let mut table = Vec::new();
    for row in rows {
        let (block, parent) =
            if is_big { (row.block.swap_bytes(), row.parent.swap_bytes()) } else { (row.block, row.parent) };
        let head = PathRow {
            name_len: row.name.len() as u8,
            attributes_len: 0,
            extent: block.into(),
            parent: parent.into(),
        };
        table.extend_from_slice(head.as_bytes());
        table.extend_from_slice(row.name);
        table.resize(table.len().next_multiple_of(2), 0);
    }
    table
}

pub(super) fn len(rows: &[Row<'_>]) -> u64 {
    rows.iter().map(|row| (size_of::<PathRow>() + row.name.len()).next_multiple_of(2) as u64).sum()
}
