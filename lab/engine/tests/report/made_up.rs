//! A session that never took place, as a real one would have left it: likely figures, every
//! optional field both there and not, and a name that means something to HTML, Markdown and CSV.

use packfs_lab::results::{
    Cell, CodecUsage, Column, CpuLimit, DeviceFacts, Machine, Measurement, Missing, Noise, Program, Recipe,
    Results, Run, SCHEMA, Settings, Spread, Subject, Table, TreeFacts, Unit,
};

/// A name that users may give a subject.
pub const ODD_NAME: &str = "</script><b>&\"'|,";

/// Maker, format, codec, level, block, stored length, build seconds with one job, seconds to read
/// all from the disk.
type Row = (&'static str, &'static str, &'static str, Option<i32>, Option<u32>, u64, f64, f64);

const ROWS: &[Row] = &[
    ("packfs", "squashfs", "zstd", Some(15), Some(131_072), 46_379_008, 11.2, 0.602),
    ("packfs", "squashfs", "lz4hc", Some(12), Some(131_072), 59_150_336, 5.61, 0.548),
    ("packfs", "squashfs", "xz", None, Some(1_048_576), 38_535_168, 29.8, 2.61),
    ("mksquashfs", "squashfs", "zstd", Some(15), Some(131_072), 46_559_232, 11.6, 0.611),
    ("mksquashfs", "squashfs", "xz", None, Some(131_072), 41_238_528, 20.4, 2.94),
    ("packfs", "erofs", "lz4hc", Some(12), Some(65_536), 58_920_960, 7.73, 0.412),
    ("packfs", "erofs", "zstd", Some(12), Some(65_536), 47_800_320, 12.9, 0.497),
    ("mkfs.erofs", "erofs", "lz4hc", Some(12), Some(65_536), 59_834_368, 14.8, 0.431),
    ("mkdwarfs", "dwarfs", "zstd", None, None, 36_110_336, 33.1, 1.24),
    ("mkfs.btrfs", "btrfs", "zstd", Some(3), None, 61_210_624, 2.31, 0.702),
    ("mkfs.ext4", "ext4", "none", None, None, 129_236_992, 1.93, 0.894),
];

/// Seconds of a workload where reading all takes one.
const WORKLOADS: [(&str, f64, &str); 4] = [
    ("sequential-data", 1.0, "tar cf - . | cat > /dev/null"),
    ("sequential-metadata", 0.13, "tar cf /dev/null ."),
    ("random-data-7%", 0.41, "xargs cat < list.txt > /dev/null"),
    ("random-metadata-7%", 0.09, "xargs stat < list.txt > /dev/null"),
];

pub fn results() -> Results {
    let subjects: Vec<Subject> = ROWS.iter().map(subject).chain([odd_subject()]).collect();
    let mut noise = Jitter(7);
    let mut measurements = builds(&mut noise);
    for device in ["disk", "sd"] {
        for (workload, share, command) in WORKLOADS {
            for (row, subject) in ROWS.iter().zip(&subjects) {
                measurements.push(reading(row, subject, workload, share, command, device, &mut noise));
            }
        }
    }
    measurements.push(Measurement {
        workload: "sequential-data".into(),
        subject: ODD_NAME.into(),
        reader: Some("packfs-fuse".into()),
        device: "disk".into(),
        jobs: None,
        command: "echo `id` | cat".into(),
        runs: vec![Run { wall: 1.7, user: 0.9, system: 0.4, ..Run::default() }],
    });
    measurements.push(Measurement {
        workload: "sequential-data".into(),
        subject: subjects[0].id.clone(),
        reader: Some("packfs".into()),
        device: "disk".into(),
        jobs: None,
        command: "packfs tar root.sqfs - | cat > /dev/null".into(),
        runs: vec![run(0.211, 0.2, Some(24 << 20), Some(126_400_000), &mut noise); 3],
    });
    let tables = vec![sizes(&subjects), sequential(&subjects, &measurements)];
    Results { measurements, tables, subjects, ..context() }
}

fn context() -> Results {
    Results {
        schema: SCHEMA.into(),
        title: "erofs-perf".into(),
        settings: Settings {
            command: "packfs lab seed erofs-perf --output out".into(),
            quick: false,
            runs: 5,
            seed: 42,
            cpu_limit: Some(CpuLimit { cpus: 0.5, way: "cgroup v2 (cpu.max)".into() }),
            jobs: None,
        },
        machine: Machine {
            processor: "Made-up Processor 9000".into(),
            processor_count: 2,
            memory_bytes: 25_158_406_144,
            kernel: "Linux 6.18.5".into(),
            system: "Debian GNU/Linux 12 (bookworm)".into(),
            scratch: "ext4 on a virtual disk".into(),
            started: "2026-11-22T02:22:00Z".into(),
            finished: Some("2026-11-22T02:59:30Z".into()),
        },
        programs: vec![
            Program { name: "packfs".into(), version: "0.1.0".into(), path: Some("/usr/bin/packfs".into()) },
            Program { name: "erofs".into(), version: "Linux 6.18.5".into(), path: None },
        ],
        trees: vec![TreeFacts {
            id: "debian".into(),
            made_by: "debootstrap --variant=minbase bullseye".into(),
            files: 6_021,
            dirs: 1_004,
            others: 713,
            bytes: 124_669_952,
        }],
        devices: vec![
            DeviceFacts { id: "disk".into(), description: "the machine's own disk".into(), simulated: false },
            DeviceFacts {
                id: "sd".into(),
                description: "SD card, class 10: 20 MiB/s, 0.5 ms".into(),
                simulated: true,
            },
        ],
        missing: vec![
            Missing {
                what: "mkfs.xfs xfs none".into(),
                why: "mkfs.xfs is not on PATH; it comes with the package xfsprogs".into(),
            },
            Missing {
                what: format!("{ODD_NAME}, workload build"),
                why: "no root, and no <i>sudo</i>".into(),
            },
        ],
        ..Results::default()
    }
}

fn subject(&(maker, format, codec, level, block_len, stored_len, ..): &Row) -> Subject {
    let spelled = level.map_or_else(|| codec.into(), |level| format!("{codec}:{level}"));
    let block = block_len.map_or_else(String::new, |len| format!(" {}K", len >> 10));
    let usage = match format {
        "btrfs" => {
            let row = |codec: &str, disk, uncompressed| CodecUsage {
                codec: codec.into(),
                disk,
                uncompressed,
                referenced: uncompressed,
            };
            vec![row("none", 21_000_192, 21_000_192), row("zstd", 40_210_432, 103_669_760)]
        }
        _ => vec![],
    };
    Subject {
        id: format!("{maker} {format} {spelled}{block}"),
        tree: "debian".into(),
        recipe: Recipe {
            maker: maker.into(),
            format: format.into(),
            codec: codec.into(),
            level,
            block_len,
            options: vec![],
            luks: false,
        },
        command: format!("{maker} debian debian.{format}"),
        stored_len: Some(stored_len),
        usage,
    }
}

fn odd_subject() -> Subject {
    Subject {
        id: ODD_NAME.into(),
        tree: "debian".into(),
        recipe: Recipe {
            maker: "packfs".into(),
            format: "squashfs".into(),
            codec: "gzip".into(),
            options: vec!["--exclude=*.a,*.la".into(), "-x".into()],
            ..Recipe::default()
        },
        command: format!("packfs pack debian '{ODD_NAME}'"),
        stored_len: Some(50_000_000),
        usage: vec![],
    }
}

fn builds(noise: &mut Jitter) -> Vec<Measurement> {
    let mut builds = Vec::new();
    for row in ROWS.iter().filter(|row| !["mkfs.btrfs", "mkfs.ext4"].contains(&row.0)) {
        for jobs in [1, 2, 4] {
            let serial = 0.04 + if row.0 == "mkfs.erofs" { 0.9 } else { 0.0 };
            let wall = row.6 * (serial + (1.0 - serial) / f64::from(jobs));
            builds.push(Measurement {
                workload: "build".into(),
                subject: subject(row).id,
                reader: None,
                device: "disk".into(),
                jobs: Some(jobs),
                command: format!("{} --jobs {jobs} debian", row.0),
                runs: (0..3).map(|_| run(wall, row.6, Some(60 << 20), None, noise)).collect(),
            });
        }
    }
    builds
}

fn reading(
    row: &Row,
    subject: &Subject,
    workload: &str,
    share: f64,
    command: &str,
    device: &str,
    noise: &mut Jitter,
) -> Measurement {
    let from_card = row.5 as f64 / 20e6;
    let wall = share * if device == "sd" { row.7.max(from_card) } else { row.7 };
    let bytes = workload.contains("-data").then_some((124_669_952.0 * share) as u64);
    Measurement {
        workload: workload.into(),
        subject: subject.id.clone(),
        reader: Some(if row.1 == "dwarfs" { "dwarfs" } else { "kernel" }.into()),
        device: device.into(),
        jobs: None,
        command: command.into(),
        runs: (0..5).map(|_| run(wall, wall * 0.7, None, bytes, noise)).collect(),
    }
}

fn run(wall: f64, processor: f64, memory_peak: Option<u64>, bytes: Option<u64>, noise: &mut Jitter) -> Run {
    let wall = (wall * (0.97 + 0.08 * noise.next()) * 1e6).round() / 1e6;
    Run {
        wall,
        user: (processor * 7e5).round() / 1e6,
        system: (processor * 3e5).round() / 1e6,
        memory_peak,
        bytes,
        device_bytes: bytes.map(|bytes| bytes / 2),
        device_requests: None,
        noise: Noise { others_cpu: (wall * 0.12 * noise.next() * 1e6).round() / 1e6, stolen_cpu: 0.0 },
        simulation: None,
    }
}

fn sizes(subjects: &[Subject]) -> Table {
    let column = |title: &str, unit, quoted| Column { title: title.into(), unit, quoted };
    let quoted = [None, Some(61_456_384.0), None, None, None, None, None, Some(59_834_368.0)];
    let rows = subjects.iter().take(8).zip(quoted).map(|(subject, quoted)| {
        vec![
            Cell::Text(subject.id.clone()),
            Cell::Figure(Spread::exact(subject.stored_len.unwrap() as f64)),
            quoted.map_or(Cell::Empty, |figure| Cell::Figure(Spread::exact(figure))),
            Cell::Figure(Spread::exact(subject.stored_len.unwrap() as f64 / 124_669_952.0)),
        ]
    });
    Table {
        title: "Image size".into(),
        method: "Length of the image file; the share is of the files' lengths.".into(),
        columns: vec![
            column("subject", Unit::Text, false),
            column("size", Unit::Bytes, false),
            column("size", Unit::Bytes, true),
            column("share", Unit::Percent, false),
        ],
        rows: rows.collect(),
    }
}

fn sequential(subjects: &[Subject], measurements: &[Measurement]) -> Table {
    let column = |title: &str, unit, quoted| Column { title: title.into(), unit, quoted };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for subject in &subjects[..3] {
        let measured = measurements
            .iter()
            .find(|it| it.subject == subject.id && it.workload == "sequential-data" && it.device == "disk");
        let spread = Spread::of(measured.unwrap().runs.iter().map(|run| run.wall)).unwrap();
        rows.push(vec![
            Cell::Text(subject.id.clone()),
            Cell::Figure(spread),
            Cell::Figure(Spread { median: 0.9413, min: 0.9338, max: 0.9488, count: 10 }),
        ]);
    }
    rows.push(vec![
        Cell::Text("mkfs.xfs xfs none".into()),
        Cell::Missing("mkfs.xfs is not on PATH".into()),
        Cell::Empty,
    ]);
    rows.push(vec![
        Cell::Text(ODD_NAME.into()),
        Cell::Missing("mkfs.xfs is not on PATH".into()),
        Cell::Missing("the seed has no such row".into()),
    ]);
    Table {
        title: "Sequential data access".into(),
        method: "echo 3 > /proc/sys/vm/drop_caches; sleep 1; tar cf - . | cat > /dev/null".into(),
        columns: vec![
            column("subject", Unit::Text, false),
            column("time", Unit::Seconds, false),
            column("time", Unit::Seconds, true),
        ],
        rows,
    }
}

/// The same numbers between 0 and 1 each time.
struct Jitter(u64);

impl Jitter {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}
