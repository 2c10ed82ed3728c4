//! One large file, by pages in random order or from its beginning.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use rustix::fs::{Advice, fadvise};

use super::{Done, Load, in_threads, open};
use crate::corpus::Random;
use crate::failure::{Failure, Result};

const PAGE_LEN: usize = 4096;
const SPAN_LEN: usize = 1 << 20;

/// No page is read twice: what the page cache holds of earlier reads would otherwise answer.
pub fn read_at_random(load: &Load) -> Result<Done> {
    let file = open(&load.path)?;
    advise(load, &file, Advice::Random)?;
    let mut pages: Vec<u32> = (0..parts(load, &file, PAGE_LEN)?).collect();
    Random::new(load.seed).shuffle(&mut pages);
    read_parts(load, &file, &pages, PAGE_LEN)
}

pub fn read_in_order(load: &Load) -> Result<Done> {
    let file = open(&load.path)?;
    advise(load, &file, Advice::Sequential)?;
    let spans: Vec<u32> = (0..parts(load, &file, SPAN_LEN)?).collect();
    read_parts(load, &file, &spans, SPAN_LEN)
}

/// Readers take every `threads`-th part, until none is left or the time is over.
fn read_parts(load: &Load, file: &File, parts: &[u32], part_len: usize) -> Result<Done> {
    in_threads(load.threads, |index| {
        let (start, mut done) = (Instant::now(), Done::default());
        let mut buffer = vec![0; part_len];
        for part in parts.iter().skip(index).step_by(load.threads) {
            if start.elapsed() >= load.time_max {
                break;
            }
            let offset = u64::from(*part) * part_len as u64;
            file.read_exact_at(&mut buffer, offset)
                .map_err(|error| Failure::io(&format!("read at {offset}"), &load.path, error))?;
            done.operations += 1;
            done.bytes += part_len as u64;
        }
        Ok(done)
    })
}

/// How many whole parts the file has.
fn parts(load: &Load, file: &File, part_len: usize) -> Result<u32> {
    let len = file.metadata().map_err(|error| Failure::io("look at", &load.path, error))?.len();
    u32::try_from(len / part_len as u64).map_err(|error| Failure::io("read all of", &load.path, error))
}

fn advise(load: &Load, file: &File, advice: Advice) -> Result<()> {
    fadvise(file, 0, None, advice).map_err(|error| Failure::io("read ahead in", &load.path, error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reads_each_whole_part_once_and_stops_in_time() {
        let path = std::env::temp_dir().join(format!("xtask-large-{}", std::process::id()));
        std::fs::write(&path, vec![7; SPAN_LEN * 3 + 5]).unwrap();
        let load = |threads, time_max| Load {
            path: path.clone(),
            names_of: path.clone(),
            seed: 7,
            threads,
            time_max,
        };
        let hour = Duration::from_secs(3600);
        let random = read_at_random(&load(2, hour)).unwrap();
        let in_order = read_in_order(&load(1, hour)).unwrap();
        let none = read_at_random(&load(1, Duration::ZERO)).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((random.operations, random.bytes), (768, 3 << 20));
        assert_eq!((in_order.operations, in_order.bytes), (3, 3 << 20));
        assert_eq!(none.operations, 0);
    }
}
