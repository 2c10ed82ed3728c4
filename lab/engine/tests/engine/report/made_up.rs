//! A session that never took place, as a real one would have left it: every optional field both
//! there and not, and a name that means something to HTML, Markdown and CSV.

use packfs_lab::results::{
    Cell, Column, CpuLimit, DeviceFacts, Machine, Measurement, Missing, Noise, Program, Recipe, Results, Run,
    Settings, Spread, Subject, Table, TreeFacts, Unit,
};
use packfs_lab::session::{parse_recipe, recipe_label};

/// A name that users may give a subject.
pub const ODD_NAME: &str = "</script><b>&\"'|,";

/// Recipe, stored length, seconds to read all from the disk.
const SUBJECTS: [(&str, u64, f64); 7] = [
    ("packfs:squashfs:zstd:15:128K", 46_379_008, 0.602),
    ("packfs:squashfs:xz:1M", 38_535_168, 2.61),
    ("mksquashfs:squashfs:xz:128K", 41_238_528, 2.94),
    ("packfs:erofs:lz4hc:12:64K", 58_920_960, 0.412),
    ("packfs:erofs:zstd:12:64K+-O fragments=off", 47_800_320, 0.497),
    ("mkfs.erofs:erofs:lz4hc:12:64K", 59_834_368, 0.431),
    ("mkfs.ext4:ext4", 129_236_992, 0.894),
];

pub fn results() -> Results {
    let mut subjects: Vec<Subject> =
        SUBJECTS.iter().map(|&(of, len, _)| subject(parse_recipe(of).unwrap(), len)).collect();
    let mut measurements = Vec::new();
    for (subject, (_, len, wall)) in subjects.iter().zip(SUBJECTS) {
        for jobs in [1, 2, 4].into_iter().filter(|_| subject.recipe.format != "ext4") {
            measurements.push(measured(
                "build",
                subject,
                None,
                "disk",
                Some(jobs),
                12.0 * wall / f64::from(jobs),
            ));
        }
        for device in ["disk", "sd"] {
            let wall = if device == "sd" { wall.max(len as f64 / 20e6) } else { wall };
            measurements.push(measured("sequential-data", subject, Some("kernel"), device, None, wall));
            measurements.push(measured("random-data-7%", subject, Some("kernel"), device, None, wall * 0.41));
        }
    }
    let odd = Recipe {
        options: vec!["--exclude=*.a,*.la".into()],
        ..parse_recipe("packfs:squashfs:gzip").unwrap()
    };
    let odd = Subject {
        id: ODD_NAME.into(),
        command: format!("pack '{ODD_NAME}' `id`"),
        ..subject(odd, 50_000_000)
    };
    measurements.push(measured("sequential-data", &odd, Some("packfs-fuse"), "disk", None, 1.7));
    subjects.push(odd);
    Results { tables: vec![table(&subjects)], measurements, subjects, ..context() }
}

fn context() -> Results {
    let device = |id: &str, description: &str| DeviceFacts {
        id: id.into(),
        description: description.into(),
        simulated: id == "sd",
    };
    let missing = |what: String, why: &str| Missing { what, why: why.into() };
    Results {
        title: "erofs-perf".into(),
        settings: Settings {
            command: "packfs lab seed erofs-perf --output out".into(),
            runs: 3,
            seed: 42,
            cpu_limit: Some(CpuLimit { cpus: 0.5, way: "cgroup v2 (cpu.max)".into() }),
            ..Settings::default()
        },
        machine: Machine {
            processor: "Made-up Processor 9000".into(),
            processor_count: 2,
            memory_bytes: 25_158_406_144,
            kernel: "Linux 6.18.5".into(),
            started: "2026-11-22T02:22:00Z".into(),
            finished: Some("2026-11-22T02:59:30Z".into()),
            ..Machine::default()
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
        devices: vec![device("disk", "the machine's own disk"), device("sd", "SD card, class 10")],
        missing: vec![
            missing(
                "mkfs.xfs xfs none".into(),
                "mkfs.xfs is not on PATH; it comes with the package xfsprogs",
            ),
            missing(format!("{ODD_NAME}, workload build"), "no root, and no <i>sudo</i>"),
        ],
        ..Results::new()
    }
}

fn subject(recipe: Recipe, stored_len: u64) -> Subject {
    Subject {
        id: recipe_label(&recipe),
        tree: "debian".into(),
        command: format!("{} debian | cat > image", recipe.maker),
        recipe,
        stored_len: Some(stored_len),
        usage: vec![],
    }
}

/// Three runs that take about `wall`, as a file keeps them to the last digit.
fn walls(wall: f64) -> [f64; 3] {
    [1.0, 1.07, 0.98].map(|times| (wall * times * 1e4).round() / 1e4)
}

fn measured(
    workload: &str,
    subject: &Subject,
    reader: Option<&str>,
    device: &str,
    jobs: Option<u32>,
    wall: f64,
) -> Measurement {
    let bytes = reader.map(|_| 124_669_952);
    let run = |wall: f64| Run {
        wall,
        user: 0.5,
        system: 0.25,
        memory_peak: jobs.map(|_| 60 << 20),
        bytes,
        device_bytes: bytes.map(|bytes| bytes / 2),
        noise: Noise { others_cpu: 0.125, stolen_cpu: 0.0 },
        ..Run::default()
    };
    Measurement {
        workload: workload.into(),
        subject: subject.id.clone(),
        reader: reader.map(str::to_owned),
        device: device.into(),
        jobs,
        command: "tar cf - . | cat > /dev/null".into(),
        runs: walls(wall).map(run).into(),
    }
}

fn table(subjects: &[Subject]) -> Table {
    let column = |title: &str, unit, quoted| Column { title: title.into(), unit, quoted };
    let row = |(subject, wall): (&Subject, f64)| {
        vec![
            Cell::Text(subject.id.clone()),
            Cell::exact(subject.stored_len.unwrap() as f64),
            Cell::exact(61_456_384.0),
            Cell::Figure(Spread::of(walls(wall)).unwrap()),
        ]
    };
    let missing = |name: &str, why: &str| {
        let missing = || Cell::Missing("mkfs.xfs is not on PATH".into());
        vec![Cell::Text(name.into()), missing(), Cell::Empty, Cell::Missing(why.into())]
    };
    let mut rows: Vec<_> = subjects.iter().take(3).zip(SUBJECTS.map(|it| it.2)).map(row).collect();
    rows.push(missing("mkfs.xfs xfs none", "mkfs.xfs is not on PATH"));
    rows.push(missing(ODD_NAME, "the seed has no such row"));
    Table {
        title: "Image size and sequential data access".into(),
        method: "echo 3 > /proc/sys/vm/drop_caches; sleep 1; tar cf - . | cat > /dev/null".into(),
        columns: vec![
            column("subject", Unit::Text, false),
            column("size", Unit::Bytes, false),
            column("size", Unit::Bytes, true),
            column("time", Unit::Seconds, false),
        ],
        rows,
    }
}
