//! Who owns each byte of an image.
//!
//! Owns the map from structures to ranges. Invariant: the ranges are in order, do not overlap and add up to the file's
//! length, for every image that can be walked; where structures share bytes, the first that claims them has them.

use crate::disk::*;
use crate::inode::RawKind;
use crate::table::Table;
use crate::volume::SquashfsVolume;
use crate::walk::Budget;
use packfs_core::{Result, SpaceOwner};
use std::mem::size_of;
use std::ops::Range;

/// Claims on the image, strongest first.
#[derive(Default)]
struct Claims {
    rows: Vec<(Range<u64>, &'static str)>,
}

impl Claims {
    fn add(&mut self, range: Range<u64>, owner: &'static str) {
        if !range.is_empty() {
            self.rows.push((range, owner));
        }
    }

    /// Blocks and list of a lookup table; rows may share blocks with nothing else.
    fn add_table(&mut self, table: &Table, blocks_end: u64, owner: &'static str) {
        self.add(table.start()..blocks_end, owner);
        self.add(table.list_start..table.list_end(), owner);
    }
}

impl SquashfsVolume {
    /// See [`packfs_core::Volume::space`].
    pub(crate) fn space_owners(&self) -> Result<Vec<SpaceOwner>> {
        let geometry = &self.geometry;
        let super_block_len = size_of::<SuperBlock>() as u64;
        let mut fixed = Claims::default();
        fixed.add(0..super_block_len, "superblock");
        let at = geometry.super_block_at;
        fixed.add(at..at + super_block_len, "superblock");
        if let Some(options) = geometry.options {
            fixed.add(super_block_len..options.end(), "codec options");
        }
        fixed.add(geometry.inodes.start..geometry.inodes.end, "inode table");
        fixed.add(geometry.directories.start..geometry.directories.end, "directory table");
        for (table, owner) in [
            (&geometry.fragments, "fragment table"),
            (&geometry.export, "export table"),
            (&Some(geometry.ids.clone()), "id table"),
        ] {
            if let Some(table) = table {
                fixed.add_table(table, table.list_start, owner);
            }
        }
        if let Some(xattrs) = &geometry.xattrs {
            fixed.add(xattrs.pairs.start..xattrs.pairs.end, "xattr table");
            fixed.add_table(&xattrs.sets, xattrs.head, "xattr table");
            fixed.add(xattrs.head..xattrs.sets.list_start, "xattr table");
        }
        // The superblock of a streamed image stands behind the padding.
        let padding_end = if at < geometry.bytes_used { geometry.image_len } else { at };
        fixed.add(geometry.bytes_used..padding_end, "padding");
        let mut map = owners_of(fixed.rows, 0..geometry.image_len);
        map = fill(map, self.fragment_claims()?, "fragments");
        map = fill(map, self.file_claims()?, "file data");
        Ok(name_unused(map))
    }

    fn fragment_claims(&self) -> Result<Vec<Range<u64>>> {
        let mut claims = Vec::new();
        let Some(table) = &self.geometry.fragments else { return Ok(claims) };
        let place = crate::corruption::Place::at("fragment", table.start());
        table.each_row(&self.metadata, |_, row: FragmentEntry| {
            let (start, stored) = self.check_fragment(&row, place)?;
            claims.push(start..start + u64::from(stored.len));
            Ok(())
        })?;
        Ok(claims)
    }

    fn file_claims(&self) -> Result<Vec<Range<u64>>> {
        let mut claims = Vec::new();
        let mut budget = Budget::of(&self.geometry.inodes);
        self.each_inode(|_, raw| {
            if let RawKind::File(file) = &raw.kind {
                budget.spend(raw.place, self.word_count(file) * 4)?;
            }
            let range = self.data_range(raw)?;
            if !range.is_empty() {
                claims.push(range);
            }
            Ok(())
        })?;
        Ok(claims)
    }
}

/// Parts of a range, in order and without gaps; those without an owner are free.
type Map = Vec<(Range<u64>, Option<&'static str>)>;

/// The parts of `all` that the claims own; where they overlap, the one that starts first wins.
fn owners_of(mut claims: Vec<(Range<u64>, &'static str)>, all: Range<u64>) -> Map {
    claims.sort_by_key(|(range, _)| range.start);
    let mut map = Map::new();
    let mut at = all.start;
    for (range, owner) in claims {
        let range = range.start.max(at)..range.end.min(all.end);
        if range.is_empty() {
            continue;
        }
        if at < range.start {
            map.push((at..range.start, None));
        }
        at = range.end;
        map.push((range, Some(owner)));
    }
    if at < all.end {
        map.push((at..all.end, None));
    }
    map
}

/// Gives the free parts of `map` to `owner` as far as it claims them.
fn fill(map: Map, mut claims: Vec<Range<u64>>, owner: &'static str) -> Map {
    claims.sort_by_key(|range| range.start);
    claims.dedup_by(|next, before| {
        let joins = next.start <= before.end;
        if joins {
            before.end = before.end.max(next.end);
        }
        joins
    });
    let mut filled = Map::new();
    let mut claims = claims.into_iter().peekable();
    for (range, owned) in map {
        if owned.is_some() {
            filled.push((range, owned));
            continue;
        }
        let mut inside = Vec::new();
        while let Some(claim) = claims.peek() {
            if claim.start >= range.end {
                break;
            }
            inside.push((claim.clone(), owner));
            if claim.end > range.end {
                break;
            }
            claims.next();
        }
        filled.extend(owners_of(inside, range));
    }
    filled
}

/// Names what nobody owns, and joins neighbours with the same owner.
fn name_unused(map: Map) -> Vec<SpaceOwner> {
    let mut owners: Vec<SpaceOwner> = Vec::new();
    for (range, owner) in map {
        let owner = owner.unwrap_or("unused");
        let len = range.end - range.start;
        match owners.last_mut() {
            Some(last) if last.owner == owner => last.len += len,
            _ => owners.push(SpaceOwner { owner, offset: range.start, len }),
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_add_up_whatever_is_claimed() {
        let fixed = vec![(0..96, "superblock"), (5000..6000, "inode table"), (5500..7000, "directory table")];
        let map =
            fill(owners_of(fixed, 0..8000), vec![200..300, 100..250, 4900..5600, 7500..9000], "file data");
        let owners = name_unused(map);
        let words: Vec<_> = owners.iter().map(|o| (o.owner, o.offset, o.len)).collect();
        assert_eq!(
            words,
            [
                ("superblock", 0, 96),
                ("unused", 96, 4),
                ("file data", 100, 200),
                ("unused", 300, 4600),
                ("file data", 4900, 100),
                ("inode table", 5000, 1000),
                ("directory table", 6000, 1000),
                ("unused", 7000, 500),
                ("file data", 7500, 500),
            ]
        );
        assert_eq!(owners.iter().map(|o| o.len).sum::<u64>(), 8000);
    }
}
