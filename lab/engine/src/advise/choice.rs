//! The recommendation, with its reasons.

use super::Want;
use super::row::Row;
use std::cmp::Ordering;

/// Reading times so close are one.
const SAME_TIME: f64 = 1.03;
/// The smallest image may take so many times as long to read as the one that is read soonest.
const READ_ACCEPTABLE: f64 = 2.0;
/// The image that is read soonest may take so many times the least size.
const SIZE_ACCEPTABLE: f64 = 1.6;
/// The image that is made soonest may take so many times the least size.
const BUILD_SIZE_ACCEPTABLE: f64 = 1.25;
/// Least share that compressing has to save to be worth decoding.
const GAIN_MIN: f64 = 0.03;

/// Candidates from the one to recommend on; indexes of `rows`.
pub(crate) fn rank(want: Want, rows: &[Row]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let size = |index: usize| rows[index].size.bytes as f64;
    let read = |index: usize| rows[index].read.seconds;
    let smallest = least(rows.iter().map(|row| row.size.bytes as f64));
    if let Some(stored) = stored_is_best(rows, smallest) {
        order.sort_by(|&a, &b| (a != stored).cmp(&(b != stored)).then(compare(size(a), size(b))));
        return order;
    }
    let (limit_size, by_size) = match want {
        Want::Size => (f64::INFINITY, true),
        Want::Boot | Want::Random => (SIZE_ACCEPTABLE, false),
        Want::Build => (BUILD_SIZE_ACCEPTABLE, false),
    };
    let soonest = least(order.iter().filter(|&&i| size(i) <= smallest * limit_size).map(|&i| read(i)));
    let accepted = |index: usize| {
        size(index) <= smallest * limit_size
            && (want != Want::Size || read(index) <= soonest * READ_ACCEPTABLE)
    };
    // Of those that are read in the same time, the smaller.
    let step = |index: usize| {
        let ratio = read(index).max(1e-9) / soonest.max(1e-9);
        ((ratio.ln() / SAME_TIME.ln()).floor()).max(0.0)
    };
    order.sort_by(|&a, &b| {
        let refused = (!accepted(a)).cmp(&!accepted(b));
        let wanted = match want {
            _ if by_size => compare(size(a), size(b)),
            Want::Build => compare(rows[a].build.cpu, rows[b].build.cpu),
            _ => compare(step(a), step(b)),
        };
        refused.then(wanted).then(compare(size(a), size(b))).then(compare(read(a), read(b)))
    });
    order
}

/// The candidate that stores everything as it is, if no other saves enough.
fn stored_is_best(rows: &[Row], smallest: f64) -> Option<usize> {
    let stored = rows.iter().position(|row| row.candidate.codec.as_deref() == Some("none"))?;
    (smallest >= rows[stored].size.bytes as f64 * (1.0 - GAIN_MIN)).then_some(stored)
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

pub(crate) fn front(rows: &[Row]) -> Vec<bool> {
    let beats = |a: &Row, b: &Row| {
        a.size.bytes <= b.size.bytes
            && a.read.seconds <= b.read.seconds
            && (a.size.bytes < b.size.bytes || a.read.seconds < b.read.seconds)
    };
    rows.iter().map(|row| !rows.iter().any(|other| beats(other, row))).collect()
}

/// Why the first was chosen, in sentences made of the figures.
pub(crate) fn reasons(want: Want, device: &str, rows: &[Row], order: &[usize]) -> Vec<String> {
    let Some((&first, others)) = order.split_first() else { return Vec::new() };
    let best = &rows[first];
    let mut reasons = Vec::new();
    let smallest = least(rows.iter().map(|row| row.size.bytes as f64));
    if stored_is_best(rows, smallest) == Some(first) {
        reasons.push(format!(
            "No codec takes {} % off these files: storing them as they are costs no decoding.",
            (GAIN_MIN * 100.0) as u32
        ));
        return reasons;
    }
    reasons.push(match want {
        Want::Size => format!(
            "{best} is the smallest that {device} gives within {READ_ACCEPTABLE} times the time of the quickest."
        ),
        Want::Boot | Want::Random => format!(
            "{best} reads these files soonest on {device}, of all within {SIZE_ACCEPTABLE} times the least size."
        ),
        Want::Build => format!(
            "{best} is made with the least work, of all within {BUILD_SIZE_ACCEPTABLE} times the least size."
        ),
    });
    if let Some(&second) = others.first() {
        reasons.push(compared(want, best, &rows[second]));
    }
    let smaller = order.iter().map(|&index| &rows[index]).min_by_key(|row| row.size.bytes);
    if let Some(smaller) = smaller.filter(|row| row.size.bytes < best.size.bytes && want != Want::Size) {
        reasons.push(format!(
            "The smallest, {smaller}, would save {}, and {}.",
            percent(1.0 - smaller.size.bytes as f64 / best.size.bytes as f64),
            if want == Want::Build {
                format!("takes {} as much work to make", times(smaller.build.cpu / best.build.cpu.max(1e-9)))
            } else {
                format!("takes {} as long to read", times(smaller.read.seconds / best.read.seconds.max(1e-9)))
            },
        ));
    }
    let read = &best.read;
    if read.seconds > 0.0 {
        let waits = (read.waiting / read.seconds).clamp(0.0, 1.0);
        let what = if waits > 0.66 {
            "so fewer bytes and requests count, and decoding hardly does"
        } else if waits < 0.34 {
            "so cheap decoding counts more than fewer bytes"
        } else {
            "so both fewer bytes and cheap decoding count"
        };
        reasons.push(format!("Of its reading time {} is waiting for the device, {what}.", percent(waits)));
    }
    reasons
}

/// The first against another: what it wins, and what that costs.
fn compared(want: Want, best: &Row, other: &Row) -> String {
    let size = best.size.bytes as f64 / other.size.bytes.max(1) as f64;
    let space = match size {
        _ if (size - 1.0).abs() < 0.005 => "in the same space".to_string(),
        _ if size > 1.0 => format!("for {} more space", percent(size - 1.0)),
        _ => format!("in {} less space", percent(1.0 - size)),
    };
    let won = if want == Want::Build {
        let ratio = other.build.cpu / best.build.cpu.max(1e-9);
        match ratio {
            _ if (0.97..1.03).contains(&ratio) => "takes the same work to make".to_string(),
            _ if ratio > 1.0 => format!("takes {} less work to make", percent(1.0 - 1.0 / ratio)),
            _ => format!("takes {} as much work to make", times(1.0 / ratio.max(1e-9))),
        }
    } else {
        let ratio = other.read.seconds / best.read.seconds.max(1e-9);
        match ratio {
            _ if (0.97..1.03).contains(&ratio) => "reads in the same time".to_string(),
            _ if ratio > 1.0 => format!("reads {} as fast", times(ratio)),
            _ => format!("takes {} as long to read", times(1.0 / ratio)),
        }
    };
    format!("Against the runner-up, {other}, it {won} {space}.")
}

fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio < 1.1 => format!("{ratio:.2} times"),
        _ if ratio < 10.0 => format!("{ratio:.1} times"),
        _ => format!("{ratio:.0} times"),
    }
}

fn percent(share: f64) -> String {
    if share.abs() < 0.0995 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::row::test_row;

    /// Codec, size in MiB, seconds to read, seconds to make.
    fn rows(figures: &[(&str, u64, f64, f64)]) -> Vec<Row> {
        figures.iter().map(|&(codec, mib, read, build)| test_row(codec, mib << 20, read, build)).collect()
    }

    fn first(want: Want, rows: &[Row]) -> String {
        rows[rank(want, rows)[0]].candidate.codec.clone().unwrap_or_default()
    }

    #[test]
    fn each_want_has_its_winner() {
        let rows = rows(&[
            ("xz", 30, 9.0, 60.0),
            ("zstd:15", 36, 4.0, 12.0),
            ("zstd:3", 40, 4.5, 2.0),
            ("lz4", 47, 3.0, 1.0),
            ("none", 100, 2.0, 0.5),
        ]);
        assert_eq!(first(Want::Size, &rows), "zstd:15");
        assert_eq!(first(Want::Boot, &rows), "lz4");
        assert_eq!(first(Want::Random, &rows), "lz4");
        assert_eq!(first(Want::Build, &rows), "zstd:15");
        let why = reasons(Want::Boot, "sd", &rows, &rank(Want::Boot, &rows));
        assert!(why[0].contains("lz4"), "{why:?}");
        assert!(why[1].contains("1.3 times as fast for 31 % more space"), "{why:?}");
    }

    #[test]
    fn the_smaller_wins_where_times_are_the_same() {
        let rows = rows(&[("lz4", 47, 3.0, 1.0), ("zstd:15", 40, 3.02, 12.0), ("none", 100, 9.0, 0.1)]);
        assert_eq!(first(Want::Boot, &rows), "zstd:15");
    }

    #[test]
    fn a_winner_with_more_work_is_not_reported_as_cheaper() {
        // Only the first is accepted: the other is too large.
        let rows = rows(&[("zstd:3", 40, 4.5, 12.0), ("lz4", 80, 3.0, 1.0), ("none", 100, 2.0, 6.0)]);
        let order = rank(Want::Build, &rows);
        assert_eq!(order[..2], [0, 1]);
        let why = reasons(Want::Build, "sd", &rows, &order);
        assert!(why[1].contains("takes 12 times as much work to make in 50 % less space"), "{why:?}");
        let order = [1, 0];
        let why = reasons(Want::Build, "sd", &rows, &order);
        assert!(why[1].contains("takes 92 % less work to make for 100 % more space"), "{why:?}");
    }

    #[test]
    fn noise_is_stored_with_every_setting() {
        let rows = rows(&[("xz", 99, 3.0, 60.0), ("lz4", 100, 3.0, 1.0), ("none", 100, 3.1, 0.5)]);
        for want in Want::ALL {
            assert_eq!(first(want, &rows), "none", "{want:?}");
        }
        assert!(reasons(Want::Size, "sd", &rows, &rank(Want::Size, &rows))[0].contains("as they are"));
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        let rows = rows(&[("xz", 30, 9.0, 1.0), ("gzip", 40, 9.5, 1.0), ("lz4", 47, 3.0, 1.0)]);
        assert_eq!(front(&rows), [true, false, true]);
    }
}
