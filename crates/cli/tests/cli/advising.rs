//! `packfs advise`: an answer that can be run, and what is wrong with a question.

use crate::fixture::Fixture;
use packfs_testkit::Random;

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
fn what_is_recommended_can_be_run_and_comes_out_as_forecast() {
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
fn the_answer_begins_with_the_command_and_says_what_was_measured() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("noise")).unwrap();
    std::fs::write(fixture.path("noise/a"), Random::new(3).noise(300_000)).unwrap();
    let args = ["advise", "noise", "--device", "nvme", "--want", "boot", "--quick", "--kernel", "6.12", "-q"];
    let run = fixture.run(args);
    let text = run.done().text();
    assert!(text.starts_with("packfs pack noise noise."), "{text}");
    assert!(text.contains("--codec none") && text.contains("storing them as they are"), "{text}");
    assert!(text.contains("Measured: every candidate packed all"), "{text}");
}

#[test]
fn wrong_questions_say_what_would_be_right() {
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
    let run = fixture.run(["advise", "empty", "--device", "sd", "--want", "boot"]);
    run.failed(1, &["no file with a byte"]);
}
