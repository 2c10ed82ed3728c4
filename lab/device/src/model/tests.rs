//! The devices under a clock of our own: whether they do what is stated of them.

use super::*;
use crate::builtin;

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

fn spec(name: &str) -> DeviceSpec {
    builtin(name).unwrap()
}

fn read(offset: u64, len: u64) -> Request {
    Request { operation: Operation::Read, offset, len }
}

fn write(offset: u64, len: u64) -> Request {
    Request { operation: Operation::Write, offset, len }
}

/// Keeps so many requests under way until there are no more; when the last one ended, from `now`
/// on.
fn run(model: &mut Model, now: Nanos, depth: usize, requests: impl IntoIterator<Item = Request>) -> Nanos {
    let mut requests = requests.into_iter();
    let mut now = now;
    let mut under_way: Vec<(Ticket, Due)> = Vec::new();
    loop {
        while under_way.len() < depth {
            let Some(request) = requests.next() else { break };
            let ticket = model.submit(now, request);
            under_way.push((ticket, Due::NotBefore(now)));
        }
        if under_way.is_empty() {
            return now;
        }
        for (ticket, due) in &mut under_way {
            if matches!(due, Due::NotBefore(_)) {
                *due = model.due(now, *ticket);
            }
        }
        let time = |due: &Due| match due {
            Due::At(time) | Due::NotBefore(time) => *time,
        };
        let next = under_way.iter().map(|(_, due)| time(due)).min().unwrap();
        assert!(next >= now, "an answer in the past");
        now = next;
        under_way.retain(|(_, due)| *due != Due::At(now));
    }
}

/// Blocks all over the medium, the same each time.
fn places(spec: &DeviceSpec, count: usize) -> impl Iterator<Item = u64> + use<> {
    let blocks = spec.medium.capacity / BLOCK;
    let mut random = Random(1);
    (0..count).map(move |_| random.below(blocks) * BLOCK)
}

fn per_second(count: usize, time: Nanos) -> f64 {
    count as f64 * 1e9 / time as f64
}

#[track_caller]
fn assert_near(found: f64, stated: f64, tolerance: f64) {
    assert!((found / stated - 1.0).abs() <= tolerance, "found {found:.1}, stated {stated:.1}");
}

#[test]
fn random_requests_are_as_many_as_stated() {
    for name in crate::builtin_names() {
        let spec = spec(name);
        for (depth, reads, writes) in [
            (1, spec.stated.read_iops_1, spec.stated.write_iops_1),
            (32, spec.stated.read_iops_32, spec.stated.write_iops_32),
        ] {
            for (stated, request) in [(reads, read as fn(u64, u64) -> Request), (writes, write)] {
                let Some(stated) = stated else { continue };
                let requests = places(&spec, 3000).map(|place| request(place, BLOCK));
                let time = run(&mut Model::new(&spec), 0, depth, requests);
                assert_near(per_second(3000, time), stated, 0.03);
            }
        }
    }
}

#[test]
fn sequential_rates_are_as_stated() {
    for name in crate::builtin_names() {
        let spec = spec(name);
        let limit = spec.limits.rate.map_or(f64::MAX, |rate| rate as f64);
        let ways = [
            (Some(&spec.read), spec.stated.read_rate, read as fn(u64, u64) -> Request),
            (spec.write.as_ref(), spec.stated.write_rate, write),
        ];
        for (access, stated, request) in ways {
            let Some(access) = access else { continue };
            let stated = stated.unwrap_or((access.rate as f64).min(limit));
            // Reads ahead of the kernel come in pieces like these, several at a time.
            let piece = u64::from(spec.queue.request_kib_max) << 10;
            let total = 256 * MIB;
            let requests = |count: u64| (0..count).map(move |index| request(index * piece, piece));
            let mut model = Model::new(&spec);
            // What a cache takes at once is not what the medium does.
            let before = run(&mut model, 0, 4, requests(64 * MIB / piece));
            let time = run(&mut model, before, 4, requests(total / piece)) - before;
            // The CD is faster further out: 256 MiB of it are a third.
            let tolerance = if name == "cdrom-48x" { 0.5 } else { 0.04 };
            assert_near(total as f64 * 1e9 / time as f64, stated, tolerance);
        }
    }
}

#[test]
fn a_cd_is_faster_at_its_edge() {
    let spec = spec("cdrom-48x");
    let rate = |start: u64| {
        let mut model = Model::new(&spec);
        let first = run(&mut model, 0, 1, [read(start, 64 << 10)]);
        let count = 64;
        let time =
            run(&mut model, first, 1, (1..=count).map(|index| read(start + index * (64 << 10), 64 << 10)))
                - first;
        (count * (64 << 10)) as f64 * 1e9 / time as f64
    };
    // 20.7 and 48 times 153,600 bytes a second.
    assert_near(rate(0), 3.178e6, 0.02);
    assert_near(rate(spec.medium.capacity - 8 * MIB), 7.373e6, 0.02);
}

#[test]
fn what_moves_takes_its_time() {
    for name in ["cdrom-48x", "hdd"] {
        let spec = spec(name);
        let seek = spec.seek.clone().unwrap();
        let reads = |places: Vec<u64>| {
            let count = places.len();
            run(&mut Model::new(&spec), 0, 1, places.into_iter().map(|place| read(place, BLOCK)))
                / count as u64
        };
        let fixed = spec.bus.overhead + spec.read.latency + seek.rotation / 2;
        assert_near(reads(places(&spec, 2000).collect()) as f64, (fixed + seek.average) as f64, 0.06);
        let ends = (0..2000).map(|index| (index % 2) * (spec.medium.capacity - BLOCK));
        assert_near(reads(ends.collect()) as f64, (fixed + seek.full_stroke) as f64, 0.03);
    }
}

#[test]
fn the_curve_of_seeking_goes_through_its_figures() {
    let seek = spec("hdd").seek.unwrap();
    assert_eq!(seek.time(0.0), 0);
    assert_near(seek.time(1e-12) as f64, seek.track_to_track as f64, 0.001);
    assert_near(seek.time(1.0 / 3.0) as f64, seek.average as f64, 0.001);
    assert_near(seek.time(1.0) as f64, seek.full_stroke as f64, 0.001);
    let times: Vec<Nanos> = (0..100).map(|percent| seek.time(f64::from(percent) / 100.0)).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_disk_that_may_choose_is_faster() {
    let mut spec = spec("hdd");
    let reads = |spec: &DeviceSpec, depth| {
        run(&mut Model::new(spec), 0, depth, places(spec, 640).map(|place| read(place, BLOCK)))
    };
    let (one, many) = (reads(&spec, 1), reads(&spec, 32));
    assert!(many * 3 < one * 2, "{many} {one}");
    spec.queue.order = Order::Fifo;
    assert_near(reads(&spec, 32) as f64, one as f64, 0.02);
}

#[test]
fn no_reader_waits_forever() {
    let spec = spec("hdd");
    let mut model = Model::new(&spec);
    let far = model.submit(0, read(spec.medium.capacity - BLOCK, BLOCK));
    let mut now = 0;
    // There is always something nearer; never two at a time that are read in one go.
    for index in 1_u64.. {
        model.submit(now, read(index % 64 * 16 * MIB, BLOCK));
        match model.due(now, far) {
            Due::At(end) => return assert!(end < 3 * AGE_MAX),
            Due::NotBefore(time) => now = time,
        }
        assert!(now < 3 * AGE_MAX);
    }
}

#[test]
fn a_drive_reads_ahead_while_idle() {
    let spec = spec("hdd");
    let mut model = Model::new(&spec);
    let first = run(&mut model, 0, 1, [read(0, MIB)]);
    // Long enough to fill the buffer, and for the medium to turn twenty times.
    let later = first + 160_000_000;
    let next = run(&mut model, later, 1, [read(MIB, MIB)]) - later;
    let bus = spec.bus.overhead + span(MIB, spec.bus.rate as f64);
    assert_near(next as f64, bus as f64, 0.02);
    let again = later + next;
    assert_near((run(&mut model, again, 1, [read(0, MIB)]) - again) as f64, bus as f64, 0.02);
}

#[test]
fn a_cache_takes_writes_until_it_is_full_and_a_flush_waits_for_them() {
    let spec = spec("hdd");
    let mut model = Model::new(&spec);
    let bus = (32 * MIB) as f64 * 1e9 / spec.bus.rate as f64;
    let taken = run(&mut model, 0, 1, (0..32).map(|index| write(index * MIB, MIB)));
    assert!((taken as f64) < bus * 1.1, "{taken}");
    let flush = Request { operation: Operation::Flush, offset: 0, len: 0 };
    let flushed = run(&mut model, taken, 1, [flush]);
    assert_near(flushed as f64, (32 * MIB) as f64 * 1e9 / spec.write.as_ref().unwrap().rate as f64, 0.1);
    assert_eq!(run(&mut model, flushed, 1, [flush]), flushed);
    // Twice as much as it holds takes at least the time of the half that does not fit.
    let start = flushed;
    let more = run(&mut model, start, 1, (0..64).map(|index| write(index * MIB, MIB))) - start;
    assert!(more as f64 > (32 * MIB) as f64 * 1e9 / spec.write.as_ref().unwrap().rate as f64 * 0.9, "{more}");
}

#[test]
fn a_limit_applies_to_every_request() {
    let spec = spec("cloud-3000iops");
    for depth in [1, 4, 32] {
        let time = run(&mut Model::new(&spec), 0, depth, places(&spec, 6000).map(|place| read(place, BLOCK)));
        assert!(per_second(6000, time) <= 3001.0);
        let time =
            run(&mut Model::new(&spec), 0, depth, (0..500).map(|index| read(index * MIB / 2, MIB / 2)));
        assert!(250.0 * MIB as f64 * 1e9 / time as f64 <= 1.03 * 132e6);
    }
}

#[test]
fn requests_that_overtake_each_other_are_sequential_all_the_same() {
    let mut streams = Streams::default();
    assert!(!streams.follows(&read(128 << 10, 128 << 10)));
    assert!(streams.follows(&read(0, 128 << 10)));
    assert!(streams.follows(&read(256 << 10, 128 << 10)));
    assert!(!streams.follows(&read(100 * MIB, BLOCK)));
    assert!(!streams.follows(&read(101 * MIB, BLOCK)));
}

#[test]
fn the_same_requests_have_the_same_answers() {
    for name in crate::builtin_names() {
        let spec = spec(name);
        let time = || run(&mut Model::new(&spec), 5, 8, places(&spec, 200).map(|place| read(place, BLOCK)));
        assert_eq!(time(), time(), "{name}");
    }
}

#[test]
fn statistics_count_requests() {
    let spec = spec("emmc");
    let mut model = Model::new(&spec);
    let now = run(&mut model, 0, 4, (0..100).map(|index| read(index * BLOCK, BLOCK)));
    run(
        &mut model,
        now,
        1,
        [write(0, BLOCK), Request { operation: Operation::Discard, offset: 0, len: MIB }],
    );
    let found = model.statistics();
    assert_eq!((found.reads, found.writes, found.discards, found.requests()), (100, 1, 1, 102));
    assert_eq!((found.read_bytes, found.written_bytes), (100 * BLOCK, BLOCK));
}
