//! `packfs advise`: an answer that can be run, and what is wrong with a question.

use crate::fixture::{Fixture, Run};
use packfs_testkit::{Mount, Random, is_root, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn tree(fixture: &Fixture) {
    let lines = (0..3000).map(|n| format!("line {n} of the same text as ever, {}\n", n * n % 97));
    let text: String = lines.collect();
    for n in 0..6 {
        let dir = fixture.path(&format!("my tree/dir{}", n % 2));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("file{n}")), &text.as_bytes()[n * 1000..]).unwrap();
    }
}

#[test]
fn the_recommended_command_runs_with_the_forecast_result() {
    let fixture = Fixture::new();
    tree(&fixture);
    let args = [
        "advise", "my tree", "--device", "sd", "--want", "size", "--quick", "--kernel", "5.15", "-j", "1",
        "--json",
    ];
    let run = fixture.run(args);
    let answer = run.json();
    let command = answer["command"].as_str().unwrap();
    assert!(command.starts_with("packfs pack 'my tree' 'my tree."), "{command}");
    let words: Vec<&str> = command.split(['\'', ' ']).filter(|word| !word.is_empty()).collect();
    // Of the quoted words only these hold a space.
    let options = &words[words.iter().position(|word| *word == "--format").unwrap()..];
    let pack = ["pack", "my tree", "image"].into_iter().chain(options.iter().copied());
    fixture.run(pack.collect::<Vec<_>>()).done();
    let len = std::fs::metadata(fixture.path("image")).unwrap().len();
    assert_eq!(answer["rows"][0]["size"]["bytes"].as_u64().unwrap(), len);
    assert_eq!(answer["looked"]["whole"], true);
    let left_out = answer["left_out"].as_array().unwrap();
    assert!(left_out.iter().any(|row| row["reason"].as_str().unwrap().contains("Linux")), "{left_out:?}");
}

#[test]
fn the_answer_begins_with_the_command_and_lists_measurements() {
    let fixture = Fixture::new();
    fixture.write("noise/a", Random::new(3).noise(300_000));
    let args = ["advise", "noise", "--device", "nvme", "--want", "boot", "--quick", "--kernel", "6.12", "-q"];
    let run = fixture.run(args);
    let text = run.done().text();
    assert!(text.starts_with("packfs pack noise noise."), "{text}");
    assert!(text.contains("--codec none") && text.contains("storing them as they are"), "{text}");
    assert!(text.contains("Measured: every candidate packed all"), "{text}");
}

/// Quick advice for a small image on an SD card.
fn quick_advice(fixture: &Fixture, more: &[&str]) -> Run {
    let args = ["advise", "my tree", "--device", "sd", "--want", "size", "--quick"];
    fixture.run([&args[..], more].concat())
}

/// The kernel of the build machine says nothing of the kernel that mounts the image.
#[test]
fn reports_an_assumed_kernel() {
    let fixture = Fixture::new();
    tree(&fixture);
    let asked = |more: &[&str]| quick_advice(&fixture, &[&["-f", "squashfs"], more].concat());
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let running: Vec<&str> = running.split('.').take(2).collect();
    let run = asked(&["-q"]);
    let text = run.done().text();
    assert!(text.contains(&format!("Linux {}, assumed", running.join("."))), "{text}");
    assert!(text.contains("--kernel VERSION") && text.contains("CPU "), "{text}");
    let run = asked(&["-q", "--kernel", "6.1"]);
    let text = run.done().text();
    assert!(text.contains("kernel  Linux 6.1\n") && !text.contains("Linux 6.1, assumed"), "{text}");
    let answer = asked(&["--json"]).json();
    assert_eq!(answer["kernel_assumed"], true);
    assert!(answer["processor"]["count"].as_u64().unwrap() >= 1, "{answer}");
}

#[test]
fn candidates_are_printed_one_by_one_without_a_terminal() {
    let fixture = Fixture::new();
    tree(&fixture);
    let asked = |more: &[&str]| quick_advice(&fixture, &[&["--kernel", "6.1"], more].concat());
    let run = asked(&["-f", "squashfs"]);
    let told: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" of ")).collect();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(told[0].starts_with("1 of ") && told[0].contains("squashfs"), "{told:?}");
    let count = told[0].split_whitespace().nth(2).unwrap().trim_end_matches(':');
    assert_eq!(told.len().to_string(), count, "{told:?}");
    assert_eq!(asked(&["-f", "squashfs", "-q"]).done().stderr, "");
}

#[test]
fn invalid_requests_are_refused_with_a_hint() {
    let fixture = Fixture::new();
    tree(&fixture);
    let asked = |more: &[&str]| {
        let args = ["advise", "my tree", "--quick", "-q"].into_iter().chain(more.iter().copied());
        fixture.run(args.collect::<Vec<_>>())
    };
    asked(&["--device", "floppy", "--want", "boot"]).failed(2, &["floppy", "sd", "nvme", ".toml"]);
    assert_eq!(asked(&["--device", "sd", "--want", "speed"]).code, Some(2));
    assert!(asked(&["--device", "sd", "--want", "speed"]).stderr.contains("size, boot, random, build"));
    assert!(asked(&["--device", "sd", "--want", "boot", "--kernel", "six"]).stderr.contains("5.15 or 6.1"));
    asked(&["--device", "sd", "--want", "boot", "--format", "vfat"])
        .failed(2, &["vfat", "squashfs", "erofs"]);
    asked(&["--device", "sd", "--want", "boot", "--kernel", "5.3", "-f", "erofs"]).failed(2, &["5.4"]);
    asked(&["--device", "sd", "--want", "boot", "--scratch", "nowhere"]).failed(1, &["nowhere", "--scratch"]);
    std::fs::create_dir(fixture.path("empty")).unwrap();
    let run = fixture.run(["advise", "empty", "--device", "sd", "--want", "boot", "-q"]);
    run.failed(1, &["no file with a byte"]);
}

#[test]
fn unreadable_files_are_skipped_and_reported() {
    let fixture = Fixture::new();
    tree(&fixture);
    let secret = fixture.path("my tree/secret");
    std::fs::write(&secret, "nobody knows").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    let args = ["advise", "my tree", "--device", "sd", "--want", "boot", "--quick", "--kernel", "6.12", "-q"];
    let run = fixture.measure_as_nobody(args);
    let text = run.done().text();
    assert!(text.lines().next().unwrap().ends_with(" --keep-going"), "{text}");
    assert!(text.contains("Left out, as it cannot be read: 1 in all, first cannot open"), "{text}");
    assert!(text.contains("my tree/secret"), "{text}");
}

#[test]
fn a_tree_of_which_nothing_can_be_read_is_not_called_empty() {
    if !is_root() {
        return skip("a directory that somebody else may not list needs root");
    }
    let fixture = Fixture::new();
    tree(&fixture);
    for dir in ["dir0", "dir1"] {
        std::fs::set_permissions(fixture.path("my tree").join(dir), PermissionsExt::from_mode(0o700))
            .unwrap();
    }
    let run =
        fixture.measure_as_nobody(["advise", "my tree", "--device", "sd", "--want", "boot", "--quick", "-q"]);
    run.failed(1, &["nothing in \"my tree\" can be read: 2 left out", "my tree/dir", "hint: run packfs as"]);
}

#[test]
fn figures_of_a_tree_with_one_small_file_differ() {
    let fixture = Fixture::new();
    fixture.write("one/file", "one line\n".repeat(3000));
    let args = ["advise", "one", "--device", "sd", "--want", "boot", "--quick", "--kernel", "6.12", "-q"];
    let run = fixture.run(args);
    let text = run.done().text();
    assert!(text.contains("(1 file, picked at random"), "{text}");
    assert!(text.contains("packed all 26.37 KiB."), "{text}");
    let row = text.lines().find(|line| line.contains("exact")).unwrap();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let size = cells.iter().find_map(|cell| cell.strip_suffix(" KiB")).unwrap();
    let read = cells.iter().find_map(|cell| cell.strip_suffix(" s")).unwrap();
    assert!(size.parse::<f64>().unwrap() >= 4.0 && read.parse::<f64>().unwrap() > 0.0001, "{row}");
}

#[test]
fn distinguishes_a_full_scratch_folder_from_a_full_disk() {
    if !is_root() {
        return skip("mounting needs root");
    }
    let fixture = Fixture::new();
    fixture.write("noise/a", Random::new(3).noise(300_000));
    let disk = Mount::memory(64 << 10).unwrap();
    std::fs::set_permissions(disk.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let args = [
        "advise",
        "noise",
        "--device",
        "sd",
        "--want",
        "boot",
        "--quick",
        "--kernel",
        "6.12",
        "-q",
        "--scratch",
    ];
    // Root has the images in memory.
    let run = fixture.measure_as_nobody(args.iter().map(|arg| arg.as_ref()).chain([disk.path().as_os_str()]));
    run.failed(1, &["disk is full", "--scratch DIR"]);
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
}

#[test]
fn a_stopped_answer_leaves_no_image_behind() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("scratch")).unwrap();
    fixture.write("noise/a", Random::new(5).noise(24_000_000));
    for (signal, code) in [(Signal::INT, 130), (Signal::HUP, 129)] {
        stopped_by(&fixture, signal, code);
    }
}

fn stopped_by(fixture: &Fixture, signal: Signal, code: i32) {
    let args =
        ["advise", "noise", "--device", "sd", "--want", "size", "-q", "-j", "1", "--scratch", "scratch"];
    let packfs = fixture.command(args);
    let mut child = Command::new("env");
    // Who runs the tests may have it ignored, and who inherits that keeps to it.
    child.arg("--default-signal=HUP").arg(packfs.get_program()).args(packfs.get_args());
    child.current_dir(fixture.path("")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    // Many seconds of packing follow.
    while std::fs::read_dir(fixture.path("scratch")).unwrap().count() == 0 {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(code), "error: stopped\n"));
    assert_eq!(std::fs::read_dir(fixture.path("scratch")).unwrap().count(), 0);
}
