//! Limits of every verb that reads: refusals, the options that raise limits, and inputs that are
//! never refused.

use crate::fixture::Fixture;

/// Exit code of inputs over a limit: they fail, because the input may be sound.
const OVER: i32 = 1;

fn with_both_images() -> Fixture {
    let fixture = Fixture::with_image();
    fixture.run(["pack", "rootfs", "root.erofs", "-q"]).done();
    fixture.run(["tar", "root.sqfs", "-o", "root.tar", "-q"]).done();
    fixture
}

#[test]
fn every_verb_that_reads_a_hierarchy_has_the_limits() {
    let fixture = with_both_images();
    for image in ["root.sqfs", "root.erofs"] {
        let verbs: &[&[&str]] = &[
            &["unpack", image, "out"],
            &["tar", image, "-o", "out.tar"],
            &["ls", "-R", image],
            &["info", "--manifest", image],
            &["check", "--data", image],
            &["diff", image, "rootfs"],
            &["diff", "rootfs", image],
            &["digest", image],
            &["pack", image, "out.sqfs"],
            &["repack", image, "out.sqfs"],
        ];
        for verb in verbs {
            for (option, allowed) in [("--max-entries", "3"), ("--max-depth", "1"), ("--max-target", "6")] {
                let run = fixture.run(verb.iter().chain(&[option, allowed]));
                run.failed(OVER, &["over a limit", &format!("hint: {option} allows more")]);
            }
            if verb[0] != "ls" {
                let run = fixture.run(verb.iter().chain(&["--max-bytes", "500K"]));
                run.failed(OVER, &["bytes of all files", "at most 512000 allowed", "--max-bytes"]);
            }
        }
        let named = ["--no-limits", "--max-entries", "none", "--max-ratio", "none", "--max-memory", "1M"];
        fixture.run(["check", "--data", image, "-q"].iter().chain(&named)).done();
    }
    let run = fixture.run(["pack", "root.tar", "out.sqfs", "--max-entries", "3"]);
    run.failed(OVER, &["tar archive over a limit: 4 names", "--max-entries"]);
    assert!(!fixture.path("out").exists() && !fixture.path("out.sqfs").exists(), "nothing was begun");
}

#[test]
fn single_files_have_limits_too() {
    let fixture = with_both_images();
    for image in ["root.sqfs", "root.erofs"] {
        let run = fixture.run(["cat", image, "usr/bin/tool", "--max-bytes", "299999"]);
        run.failed(OVER, &["usr/bin/tool", "300000 bytes", "--max-bytes"]);
        assert_eq!(run.stdout, b"");
        let run = fixture.run(["cat", image, "usr/bin/tool", "--max-ratio", "1"]);
        run.failed(OVER, &["usr/bin/tool", "bytes of file data", "--max-ratio"]);
        fixture
            .run(["stat", image, "bin", "--max-target", "6"])
            .failed(OVER, &["7 bytes of one link target"]);
        fixture.run(["stat", image, "bin", "--max-target", "7"]).done();
    }
}

#[test]
fn values_that_are_none_are_wrong_usage() {
    let fixture = Fixture::with_image();
    for (option, value) in [("--max-entries", "many"), ("--max-bytes", "-1"), ("--max-ratio", "1K")] {
        fixture.run(["ls", "root.sqfs", &format!("{option}={value}")]).failed(2, &[option]);
    }
}

/// Ten thousand levels, twenty thousand names in one directory and a file of a hundred gibibytes
/// are no attack.
#[test]
fn true_trees_are_not_refused() {
    let fixture = Fixture::new();
    let mut manifest = "#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0\ndefault dir mode=0755\n\
                        default file mode=0644\ndir /\nfile /sparse size=107374182400\n"
        .to_owned();
    manifest.push_str(&format!("dir {}\n", "/d".repeat(10_000)));
    for index in 0..20_000 {
        manifest.push_str(&format!("file /many/{index:06}\n"));
    }
    fixture.write("m", manifest);
    fixture.run(["pack", "m", "big.erofs", "-q"]).done();
    fixture.run(["check", "big.erofs", "-q"]).done();
    let listed = fixture.run(["ls", "-R0", "big.erofs", "many"]);
    listed.done();
    assert_eq!(listed.stdout.iter().filter(|&&b| b == 0).count(), 20_001);
    fixture.run(["diff", "m", "big.erofs", "-q", "--no-contents"]).done();
}
