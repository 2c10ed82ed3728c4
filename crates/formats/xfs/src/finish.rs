//! Multi-step changes of files that the log leaves unfinished: finished in memory, over the inodes.
//! Linux finishes them after replaying the log.

use crate::inode::{Fork, Form};
use crate::log::{Exchange, Intent, Remap};
use crate::mapping::Mapping;
use crate::volume::XfsVolume;
use packfs_core::{Result, len_of, range_at};
use packfs_format::units::*;
use std::ops::{ControlFlow, Range};

const MAPPINGS_MAX: usize = 1 << 20;
/// Flags of an exchange: of attributes, of lengths, and only of written extents of the first file.
const OF_ATTRS: u64 = 1;
const OF_SIZES: u64 = 1 << 1;
const OF_WRITTEN: u64 = 1 << 2;

impl XfsVolume {
    /// Finishes changes in order; one that cannot be finished becomes a warning.
    pub(crate) fn finish_intents(&mut self, intents: &[Intent], left_out: u64) {
        for intent in intents {
            let (inos, is_done) = match intent {
                Intent::Mapping(remaps) => {
                    let inos = remaps.iter().map(|remap| remap.ino).collect();
                    (inos, remaps.iter().all(|remap| self.finish_remap(remap).unwrap_or(false)))
                }
                Intent::Exchange(exchange) => {
                    (exchange.inos.to_vec(), self.finish_exchange(exchange).unwrap_or(false))
                }
                Intent::Attr { ino } => (vec![*ino], false),
            };
            if is_done {
                continue;
            }
            let what = if matches!(intent, Intent::Attr { .. }) { "attributes" } else { "data" };
            for ino in inos {
                self.warnings.push(format!(
                    "inode {ino}: the log holds an unfinished change, which is not applied: its {what} may be \
                     old"
                ));
            }
        }
        if left_out > 0 {
            self.warnings.push(format!(
                "the log holds {left_out} further unfinished changes, which are not applied: files changed \
                 shortly before may be old"
            ));
        }
    }

    /// Returns the data mappings of a file; `None` if they cannot be changed.
    fn changeable(&self, ino: u64) -> Result<Option<Vec<Mapping>>> {
        let inode = self.disk_inode(ino)?;
        if !matches!(inode.form, Form::Extents | Form::Tree) {
            return Ok(None);
        }
        let mut mappings = Vec::new();
        self.each_mapping(&inode, Fork::Data, 0, &mut |mapping| {
            mappings.push(mapping);
            Ok(if mappings.len() > MAPPINGS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Some(mappings).filter(|mappings| mappings.len() <= MAPPINGS_MAX))
    }

    /// Maps or unmaps blocks of a file; false for an unsupported change.
    fn finish_remap(&mut self, remap: &Remap) -> Result<bool> {
        let &Remap { ino, start, offset, count, .. } = remap;
        let has_place =
            self.disk_inode(ino)?.is_realtime || self.super_block.blocks_at(start, count).is_some();
        let Some(mappings) = self.changeable(ino)?.filter(|_| !remap.is_attr && has_place) else {
            return Ok(false);
        };
        let range = range_at(offset, count);
        let mut rest = without(&mappings, &range);
        let mut more = 0_i64.saturating_sub_unsigned(blocks_of(&within(&mappings, &range)));
        if remap.is_mapped {
            more = more.saturating_add_unsigned(count);
            rest.push(Mapping { offset, start, count, is_unwritten: remap.is_unwritten });
            rest.sort_unstable_by_key(|mapping| mapping.offset);
        }
        self.patches.set(ino, rest, more);
        Ok(true)
    }

    /// Exchanges mappings of two files; false for an unsupported change.
    fn finish_exchange(&mut self, exchange: &Exchange) -> Result<bool> {
        let &Exchange { inos: [first, second], offsets: [from, to], count, flags, .. } = exchange;
        let kinds = [self.disk_inode(first)?, self.disk_inode(second)?].map(|inode| inode.is_realtime);
        let is_other =
            flags & OF_ATTRS != 0 || first == second || kinds == [true, false] || kinds == [false, true];
        let (Some(a), Some(b)) = (self.changeable(first)?, self.changeable(second)?) else {
            return Ok(false);
        };
        if is_other {
            return Ok(false);
        }
        let range = range_at(from, count);
        let ranges: Vec<Range<u64>> = if flags & OF_WRITTEN != 0 {
            let written = within(&a, &range).into_iter().filter(|mapping| !mapping.is_unwritten);
            written.map(|mapping| mapping.offset..mapping.end()).collect()
        } else {
            vec![range]
        };
        let (mut new_a, mut new_b) = (a.clone(), b.clone());
        for range in ranges {
            let skip = range.start.minus(from);
            let other = range_at(end_of(to, skip), len_of(&range));
            let (out_of_a, out_of_b) = (within(&new_a, &range), within(&new_b, &other));
            new_a = with(without(&new_a, &range), out_of_b, other.start, range.start);
            new_b = with(without(&new_b, &other), out_of_a, range.start, other.start);
        }
        let blocks = |mappings: &[Mapping]| i64::try_from(blocks_of(mappings)).unwrap_or(i64::MAX);
        let more = blocks(&new_a).minus(blocks(&a));
        self.patches.set(first, new_a, more);
        self.patches.set(second, new_b, 0_i64.minus(more));
        if flags & OF_SIZES != 0 {
            for (ino, size) in exchange.inos.into_iter().zip(exchange.sizes) {
                self.patches.sizes.insert(ino, size.min(i64::MAX as u64));
            }
        }
        Ok(true)
    }
}

fn blocks_of(mappings: &[Mapping]) -> u64 {
    mappings.iter().fold(0, |sum: u64, mapping| sum.plus(mapping.count))
}

fn within(mappings: &[Mapping], range: &Range<u64>) -> Vec<Mapping> {
    mappings.iter().filter_map(|mapping| mapping.within(range)).collect()
}

fn without(mappings: &[Mapping], range: &Range<u64>) -> Vec<Mapping> {
    let outside = [0..range.start, range.end..u64::MAX];
    mappings.iter().flat_map(|mapping| outside.iter().filter_map(|range| mapping.within(range))).collect()
}

/// Adds `others`, moved from block `from` to `to`.
fn with(mut mappings: Vec<Mapping>, others: Vec<Mapping>, from: u64, to: u64) -> Vec<Mapping> {
    mappings.extend(
        others
            .into_iter()
            .map(|mapping| Mapping { offset: end_of(mapping.offset.minus(from), to), ..mapping }),
    );
    mappings.sort_unstable_by_key(|mapping| mapping.offset);
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(offset: u64, start: u64, count: u64) -> Mapping {
        Mapping { offset, start, count, is_unwritten: false }
    }

    #[test]
    fn mappings_are_cut_at_the_ends_of_a_range() {
        let mappings = [mapping(0, 100, 10), mapping(20, 200, 5)];
        assert_eq!(within(&mappings, &(5..22)), [mapping(5, 105, 5), mapping(20, 200, 2)]);
        assert_eq!(without(&mappings, &(5..22)), [mapping(0, 100, 5), mapping(22, 202, 3)]);
        assert_eq!(
            without(&mappings, &(2..4)),
            [mapping(0, 100, 2), mapping(4, 104, 6), mapping(20, 200, 5)]
        );
        let moved = with(vec![mapping(9, 1, 1)], vec![mapping(5, 7, 2)], 5, 3);
        assert_eq!(moved, [mapping(3, 7, 2), mapping(9, 1, 1)]);
    }
}
