//! Memory that ends: an error and exit code 1 whatever the verb, never a crash; and what `--memory`
//! promises.

use crate::fixture::{Fixture, Run, words};
use std::fs;
use std::process::Command;

/// A tree whose names and contents take more memory than the smallest limits below leave.
fn with_many_files() -> Fixture {
    let fixture = Fixture::new();
    for dir in 0..20 {
        let dir = fixture.path(&format!("many/{dir}"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..500 {
            fs::write(dir.join(format!("{file:04}-with-a-name-of-some-length")), format!("{file}\n"))
                .unwrap();
        }
    }
    fixture.write("many/large", words(1 << 20));
    fixture
}

fn run_within(fixture: &Fixture, kib: u32, arguments: &str) -> Run {
    let script = format!("ulimit -v {kib} && exec {} {arguments}", env!("CARGO_BIN_EXE_packfs"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(fixture.path("")).output();
    Run::of(output.unwrap())
}

#[test]
fn a_limit_of_address_space_is_an_error_or_costs_threads_only() {
    let fixture = with_many_files();
    fixture.run(["pack", "many", "many.sqfs", "-q"]).done();
    fixture.run(["tar", "many.sqfs", "-o", "many.tar", "-q"]).done();
    let whole = fixture.bytes("many.sqfs");
    let verbs = [
        "pack many new.sqfs -q --jobs 8",
        "pack many new.erofs -q --jobs 8 --codec zstd:12",
        "pack many.tar new.sqfs -q --jobs 8",
        "repack many.sqfs new.sqfs -q --codec zstd:12 --jobs 8",
        "check --data many.sqfs --jobs 8",
        "digest many.sqfs --jobs 8",
        "tar many.sqfs -o new.tar -q --jobs 8",
        "diff many many.sqfs",
    ];
    let (mut failed, mut succeeded) = (0, 0);
    for kib in [40_000, 1_000_000] {
        for verb in verbs {
            let run = run_within(&fixture, kib, verb);
            match run.code {
                Some(0) => succeeded += 1,
                Some(1) if run.stderr.contains("error: ") => failed += 1,
                // Not even the program itself could be loaded.
                Some(127 | 126) => {}
                code => panic!("{kib} KiB, {verb}: {code:?}: {}", run.stderr),
            }
            assert!(!run.stderr.contains("panicked"), "{kib} KiB, {verb}: {}", run.stderr);
            if run.code == Some(0) && verb.starts_with("pack many new.sqfs") {
                assert!(fixture.bytes("new.sqfs") == whole, "fewer threads make the same image");
            }
            for new in ["new.sqfs", "new.erofs", "new.tar"] {
                let _ = fs::remove_file(fixture.path(new));
            }
        }
    }
    assert!(succeeded >= verbs.len(), "{failed} failed, {succeeded} succeeded");
}

#[test]
fn the_error_names_the_limit_and_what_needs_less() {
    let fixture = with_many_files();
    let runs = (20_000..200_000).step_by(4000).map(|kib| run_within(&fixture, kib, "pack many new.sqfs -q"));
    let found = runs.into_iter().find(|run| run.code == Some(1) && run.stderr.contains("cannot allocate"));
    let stderr = found.expect("some limit is too low").stderr;
    for word in ["out of memory", "ulimit -v", "--jobs 1"] {
        assert!(stderr.contains(word), "{stderr}");
    }
}

/// Most memory that a run held at a time, in bytes; it has to succeed.
fn peak_len(fixture: &Fixture, arguments: &[&str]) -> Result<u64, String> {
    let output = fixture.path(".peak");
    let run = Command::new("python3")
        .args(["-c", "import sys,subprocess,resource\nout=sys.argv[1]\nrun=subprocess.run(sys.argv[2:])\n\
            open(out,'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\nsys.exit(run.returncode)"])
        .arg(&output)
        .arg(env!("CARGO_BIN_EXE_packfs"))
        .args(arguments)
        .current_dir(fixture.path(""))
        .output()
        .unwrap();
    if run.status.success() {
        Ok(fs::read_to_string(&output).unwrap().trim().parse::<u64>().unwrap() << 10)
    } else {
        Err(String::from_utf8(run.stderr).unwrap())
    }
}

/// A manifest of so many files that take no room on a disk.
fn with_manifest(count: u32) -> Fixture {
    let fixture = Fixture::new();
    let mut manifest = "#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0\ndefault dir mode=0755\n\
                        default file mode=0644\ndir /\n"
        .to_owned();
    for file in 0..count {
        if file % 1000 == 0 {
            manifest.push_str(&format!("dir /{}\n", file / 1000));
        }
        manifest.push_str(&format!(
            "file /{}/{file:07}-with-a-name-of-some-length size={}\n",
            file / 1000,
            1 + file % 50
        ));
    }
    fixture.write("many", manifest);
    fixture
}

/// Memory for reading an image back is bounded by what its files need, beside which packing holds
/// no second tree.
#[test]
fn an_image_is_read_back_within_the_memory_that_is_allowed() {
    if packfs_testkit::peer("python3").is_none() {
        return;
    }
    let fixture = with_manifest(60_000);
    for image in ["many.sqfs", "many.erofs"] {
        let without =
            peak_len(&fixture, &["pack", "many", image, "-q", "--no-verify", "--jobs", "2"]).unwrap();
        let with = peak_len(&fixture, &["pack", "many", image, "-q", "--verify", "--jobs", "2"]).unwrap();
        let a_node = with.saturating_sub(without) / 60_000;
        assert!(a_node < 300, "{image}: {a_node} bytes a file, {without} without, {with} with");
        // As short as it may be, it is kept.
        let error =
            peak_len(&fixture, &["pack", "many", image, "-q", "--verify", "--memory", "20M"]).unwrap_err();
        assert!(error.contains("cannot verify the image") && error.contains("--no-verify"), "{error}");
        let least = error.split("): ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let least: u64 = least.parse().unwrap();
        for memory in [least, least + 8] {
            let peak = peak_len(
                &fixture,
                &["pack", "many", image, "-q", "--verify", "--memory", &format!("{memory}M")],
            );
            if let Ok(peak) = peak {
                assert!(peak <= (memory + 4) << 20, "{image}: {} MiB of {memory}", peak >> 20);
            }
        }
    }
}
