//! Plans with targets: met and missed ones, the exit code, and what is skipped by name.

use crate::fixture::{Fixture, Run};

/// A tiny plan, of two targets that hold for anything and one that nothing meets; of a rival that
/// does not exist; and of a tree that is nowhere.
const PLAN: &str = r#"
title = "A tiny plan"
runs = 1
device = "disk"

[[case]]
tree = "small"
packfs = "packfs:squashfs:gzip:1"
cases = [
    { workload = "image-size", bytes = 100_000_000, rival = "packfs:squashfs:none", size = 0.9 },
    { workload = "build", rival = "packfs:erofs:none", wall = 1000.0, size = 0.000001 },
    { workload = "image-size", rival = "mkfs.none:none", size = 1.0 },
    { workload = "image-size", bytes = 1, tree = "nowhere" },
]
"#;

fn plan(fixture: &Fixture, words: &[&str]) -> Run {
    fixture.write("tiny.toml", PLAN);
    let start = ["lab", "plan", "run", "tiny.toml", "--tree", "small=rootfs", "--output", "out", "--quiet"];
    fixture.run([&start[..], &["--scratch", "."], words].concat())
}

#[test]
fn a_missed_target_ends_with_exit_code_1_and_all_are_named() {
    let fixture = Fixture::with_tree();
    let run = plan(&fixture, &[]).ended(1);
    let said = |words: &str| run.stderr.lines().filter(|line| line.contains(words)).count();
    assert_eq!(
        said("missed: build small: packfs squashfs gzip:1, packfs erofs none on "),
        1,
        "{}",
        run.stderr
    );
    assert_eq!(said("mkfs.none"), 1, "{}", run.stderr);
    assert_eq!(said("skipped: image-size nowhere: "), 1, "{}", run.stderr);
    assert_eq!(said("targets: 3 met, 1 missed; 2 cases skipped"), 1, "{}", run.stderr);
    assert!(run.text().contains("A tiny plan") && run.text().contains("missed"), "{}", run.text());
    let results: serde_json::Value = serde_json::from_slice(&fixture.bytes("out/results.json")).unwrap();
    assert_eq!(results["tables"][0]["rows"].as_array().unwrap().len(), 6);
}

#[test]
fn met_targets_end_with_exit_code_0_and_words_choose_cases() {
    let fixture = Fixture::with_tree();
    let run = plan(&fixture, &["image-size", "small"]).ended(0);
    assert!(run.stderr.contains("targets: 2 met, 0 missed; 1 cases skipped"), "{}", run.stderr);
    plan(&fixture, &["no such case"]).failed(2, &["no case of the plan"]);
}

#[test]
fn an_earlier_image_is_the_base_of_the_next() {
    let fixture = Fixture::with_tree();
    let text = "title = 'base'\nruns = 1\n[[case]]\ntree = 'small'\nworkload = 'build'\nbytes = 100_000_000\n\
                packfs = 'packfs:squashfs:gzip:1+--base IMAGE(small)'";
    fixture.write("base.toml", text);
    let args =
        ["lab", "plan", "run", "base.toml", "--tree", "small=rootfs", "--device", "disk", "--scratch", "."];
    fixture.run(args).ended(0);
    let results = fixture.bytes("packfs-lab-results/results.json");
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    let command = results["subjects"][0]["command"].as_str().unwrap();
    assert!(command.contains("--base SCRATCH/image-"), "{command}");
}

#[test]
fn plans_are_listed_with_their_cases_and_targets() {
    let fixture = Fixture::new();
    let all = fixture.run(["lab", "plan", "list"]);
    for name in ["pack ", "unpack ", "disks ", "mount ", "kernel ", "goals ", "sizes ", "legacy ", "growth "]
    {
        assert!(all.done().text().lines().any(|line| line.starts_with(name)), "{name}: {}", all.text());
    }
    let pack = fixture.run(["lab", "plan", "list", "pack"]);
    let row = "build debian: packfs squashfs gzip:9 128K, mksquashfs squashfs gzip:9 128K: time at most 0.4 of the \
               rival's, size at most 0.99 of the rival's, memory at most 200 MiB and 300 bytes an entry\n";
    assert!(pack.done().text().contains(row), "{}", pack.text());
    fixture.run(["lab", "plan", "run", "nothing"]).failed(2, &["nothing", "pack, pack-slow"]);
}
