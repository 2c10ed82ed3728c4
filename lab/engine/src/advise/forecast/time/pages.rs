//! Page by page, with readahead (`mm/readahead.c`).

use super::{PAGE, Reading, floor};
use crate::advise::forecast::pattern::{FilePattern, Pattern};
use packfs::KernelBlock;
use std::collections::HashSet;

impl Reading<'_> {
    pub(super) fn pages(&mut self, pattern: &Pattern) {
        let mut pages: HashSet<u64> = pattern.mounted.iter().map(|read| read.offset).collect();
        let mut clusters = HashSet::new();
        let (decoded, stored) = pattern.tails_len;
        let cluster = self.scaling.cluster.max(PAGE);
        // So much of the stream a cluster decodes to.
        let span = decoded as f64 * cluster as f64 / (stored as f64 * self.scaling.data).max(1.0);
        let span = span.max(1.0).min((decoded as f64).max(1.0));
        let packed_from = pattern.files.iter().flat_map(|file| &file.blocks);
        let packed_from =
            packed_from.filter(|block| block.tail_at.is_some()).map(|block| block.read.offset).min();
        let packed_from = self.place(packed_from.unwrap_or(0));
        for file in &pattern.files {
            for read in &file.metadata {
                if pages.insert(read.offset) {
                    self.wait_for(self.place(read.offset), u64::from(read.stored));
                }
            }
            self.windows(file);
            for block in &file.blocks {
                let Some(at) = block.tail_at else { continue };
                let len = block.range.end - block.range.start;
                let last = ((at + len.max(1) - 1) as f64 / span) as u64;
                for number in (at as f64 / span) as u64..=last {
                    if clusters.insert(number) {
                        self.wait_for(packed_from + number * cluster, cluster);
                        self.now += self.decode(span as u64);
                    }
                }
                // What is kept is copied to the file's own pages.
            }
            self.open_file();
        }
    }

    fn windows(&mut self, file: &FilePattern) {
        let own = |block: &&KernelBlock| block.tail_at.is_none();
        let ahead = self.device.read_ahead().max(PAGE);
        let mut rest = file.blocks.iter().filter(own).peekable();
        // When the reader came to the window before, and when it was through with it.
        let (mut began, mut through) = (self.now, self.now);
        let mut window_end = 0;
        while let Some(first) = rest.peek() {
            window_end = (first.range.start / ahead * ahead + ahead).max(window_end + 1);
            let mut there = began;
            let mut decoded = 0;
            let mut request: Option<(u64, u64)> = None;
            while let Some(block) = rest.next_if(|block| block.range.start < window_end) {
                decoded += u64::from(block.read.decoded);
                let (offset, len) = (floor(self.place(block.read.offset), PAGE), self.stored(block));
                request = match request {
                    // Clusters that lie together are read together.
                    Some((start, asked)) if offset <= start + asked + 2 * PAGE && offset >= start => {
                        Some((start, asked + len))
                    }
                    Some((start, asked)) => {
                        there = there.max(self.ask(began, start, asked.next_multiple_of(PAGE)));
                        Some((offset, len))
                    }
                    None => Some((offset, len)),
                };
            }
            if let Some((start, asked)) = request {
                there = there.max(self.ask(began, start, asked.next_multiple_of(PAGE)));
            }
            let starts = there.max(through);
            self.sum.waiting += starts - through;
            through = starts + self.decode(decoded);
            began = starts;
        }
        self.now = self.now.max(through);
    }
}
