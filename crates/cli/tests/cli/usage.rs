//! Wrong usage, help, completions, manual pages.

use crate::fixture::{Fixture, Run};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const VERBS: [&str; 11] =
    ["pack", "unpack", "tar", "ls", "cat", "stat", "info", "check", "diff", "completions", "man"];

#[test]
fn wrong_usage_ends_with_code_2_and_names_the_fault() {
    let fixture = Fixture::with_tree();
    for (args, word) in [
        (&["pack", "rootfs", "x.sqfs", "--no-such-flag"][..], "--no-such-flag"),
        (&["pack", "rootfs"], "<IMAGE>"),
        (&["pack", "rootfs", "x.sqfs", "--block-size", "12Q"], "12Q"),
        (&["pack", "rootfs", "x.sqfs", "--block-size", "5000"], "power of two"),
        (&["pack", "rootfs", "x.sqfs", "--jobs", "0"], "--jobs"),
        (&["pack", "rootfs", "x.sqfs", "--codec", "brotli"], "brotli"),
        (&["pack", "rootfs", "x.sqfs", "--codec", "gzip:13"], "gzip"),
        (&["pack", "rootfs", "x.sqfs", "--format", "ext9"], "ext9"),
        (&["pack", "rootfs", "x.sqfs", "-O", "fragments=maybe"], "on|off|always"),
        (&["pack", "rootfs", "x.sqfs", "-O", "fragments"], "NAME=VALUE"),
        (&["pack", "rootfs", "x.sqfs", "--made-at", "yesterday"], "yesterday"),
        (&["pack", "rootfs", "x.sqfs", "--uid-map", "0:x"], "0:x"),
        (&["unpack", "root.sqfs", "out", "--existing", "burn"], "burn"),
        (&["ls"], "<IMAGE>"),
        (&["frobnicate"], "frobnicate"),
        (&["completions", "tcsh"], "tcsh"),
    ] {
        fixture.run(args).failed(2, &[word]);
    }
    assert_eq!(fixture.names(), ["rootfs"]);
}

#[test]
fn a_codec_of_another_format_is_wrong_usage_with_a_hint() {
    let fixture = Fixture::with_tree();
    let run = fixture.run(["pack", "rootfs", "x.sqfs", "--codec", "deflate"]);
    run.failed(2, &["deflate", "hint: ", "gzip"]);
}

#[test]
fn every_verb_has_help_with_examples() {
    let fixture = Fixture::new();
    for verb in VERBS {
        for flag in ["-h", "--help"] {
            let run = fixture.run([verb, flag]);
            let help = run.done().text();
            assert!(help.contains(&format!("Usage: packfs {verb}")), "{verb}: {help}");
            assert!(help.contains(&format!("Examples:\n  packfs {verb}")), "{verb}: {help}");
        }
    }
    let run = fixture.run(["--help"]);
    for verb in VERBS {
        assert!(run.text().contains(&format!("\n  {verb} ")), "{verb}");
    }
}

#[test]
fn help_of_pack_lists_codecs_and_options_of_formats() {
    let run = Fixture::new().run(["pack", "--help"]);
    for word in ["zstd", "lz4hc", "levels 1 to 12", "Format squashfs", "fragments = on|off|always"] {
        assert!(run.text().contains(word), "{word}");
    }
}

#[test]
fn makes_completions_for_every_shell() {
    let fixture = Fixture::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = fixture.run(["completions", shell]);
        assert!(run.done().text().contains("block-size"), "{shell}");
    }
}

#[test]
fn makes_a_manual_page_for_every_verb() {
    let fixture = Fixture::new();
    fixture.run(["man", "pages/man1"]).done();
    for verb in VERBS {
        let page = String::from_utf8(fixture.bytes(&format!("pages/man1/packfs-{verb}.1"))).unwrap();
        assert!(page.contains(".TH"), "{verb}");
        assert!(page.contains(".SH \"EXAMPLES\"\n.nf\n  packfs "), "{verb}");
    }
    assert!(String::from_utf8(fixture.bytes("pages/man1/packfs.1")).unwrap().contains("packfs\\-pack"));
}

#[test]
fn other_tools_words_for_verbs_are_understood() {
    let fixture = Fixture::with_tree();
    fixture.run(["create", "rootfs", "a.sqfs", "-q"]).done();
    fixture.run(["convert", "a.sqfs", "a.erofs", "-q"]).ended(0);
    assert_eq!(fixture.run(["list", "a.sqfs"]).done().text(), fixture.run(["ls", "a.sqfs"]).text());
    fixture.run(["extract", "a.erofs", "out", "-q"]).done();
    assert!(fixture.path("out/etc/os-release").exists());
}

#[test]
fn shells_complete_values() {
    let fixture = Fixture::new();
    for shell in ["bash", "fish", "zsh"] {
        let script = fixture.run(["completions", shell]).done().text().to_owned();
        for values in [
            &["gzip", "lz4hc", "zstd"][..],
            &["squashfs", "erofs", "cramfs", "squashfs-legacy"],
            &["size", "balanced", "build"],
            &["hsqs", "qshs"],
            &["lab", "advise"],
        ] {
            for value in values {
                assert!(script.contains(value), "{shell}: {value}");
            }
        }
        #[cfg(feature = "lab")]
        for value in ["emmc", "nvme", "sd"] {
            assert!(
                fixture.run(["lab", "completions", shell]).done().text().contains(value),
                "{shell}: {value}"
            );
        }
    }
    let fish = fixture.run(["completions", "fish"]).done().text().to_owned();
    let pack: Vec<&str> = fish.lines().filter(|line| line.contains("subcommand pack\"")).collect();
    let completes = |option: &str, value: &str| {
        let option = format!("-l {option} ");
        pack.iter().any(|line| line.contains(&option) && line.contains(value))
            || fish.contains(&format!("\n{value}\\t"))
    };
    for (option, value) in [("codec", "zstd"), ("format", "erofs"), ("optimize", "balanced")] {
        assert!(completes(option, value), "{option} {value}: {pack:?}");
    }
}

#[test]
fn manual_pages_have_examples_line_by_line_exit_codes_and_a_version() {
    let fixture = Fixture::new();
    fixture.run(["man", "man"]).done();
    let pages = ["packfs.1", "packfs-pack.1", "packfs-ls.1", "packfs-lab.1", "packfs-mount.1"];
    let of_lab = cfg!(feature = "lab").then_some("packfs-lab-run.1");
    for page in pages.into_iter().chain(of_lab) {
        let text = String::from_utf8(fixture.bytes(&format!("man/{page}"))).unwrap();
        for part in [
            ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR",
            ".SH VERSION\npackfs ",
            concat!("packfs ", env!("CARGO_PKG_VERSION")),
        ] {
            assert!(text.contains(part), "{page}: {part}\n{text}");
        }
        assert!(!text.contains(".SH EXTRA"), "{page}");
        if page != "packfs.1" {
            assert!(text.contains(".SH \"EXAMPLES\"\n.nf\n  packfs "), "{page}: {text}");
        }
    }
}

#[test]
fn huge_shares_are_printed_as_over_999_percent() {
    let fixture = Fixture::new();
    fixture.write("tiny/file", "x");
    for format in ["squashfs", "erofs", "iso9660"] {
        let run = fixture.run(["pack", "tiny", "image", "--format", format, "--lossy"]).ended(0);
        assert!(run.text().contains("over 999 %"), "{format}: {}", run.text());
    }
}

#[test]
fn verbs_of_a_missing_lab_print_how_to_install_it() {
    let fixture = Fixture::new();
    let program = fixture.program_for_all();
    for args in [&["lab", "list"][..], &["lab", "--help"], &["advise", ".", "--device", "sd"]] {
        let output = Command::new(&program).args(args).env("PATH", fixture.path("nothing")).output().unwrap();
        let run = Run::of(output);
        run.failed(1, &["packfs-lab is not installed", "--path crates/cli --features lab"]);
        assert_eq!((run.stderr.lines().count(), run.text()), (2, ""), "{}", run.stderr);
    }
    let help = Run::of(Command::new(&program).arg("-h").output().unwrap());
    assert!(help.text().contains("  advise ") && help.text().contains("  lab "), "{}", help.text());
}

#[test]
fn the_lab_is_also_found_on_path_and_sees_arguments_exit_codes_and_its_name() {
    let fixture = Fixture::new();
    let program = fixture.program_for_all();
    let (folder, stand_in) = (fixture.path("bin"), fixture.path("bin/packfs-lab"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&stand_in, "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).unwrap();
    for (args, seen) in [
        (&["lab", "run", "--help", "--", "a b", "-x"][..], "run|--help|--|a b|-x|"),
        (&["lab", "--version"], "--version|"),
        (&["advise", "-h"], "advise|-h|"),
    ] {
        let mut command = Command::new(&program);
        let run = Run::of(packfs_testkit::output_of_copy(command.args(args).env("PATH", &folder)));
        assert_eq!((run.code, run.text()), (Some(7), seen), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn options_of_other_tools_lead_to_their_names() {
    let fixture = Fixture::with_image();
    for (line, tool, option) in [
        ("pack rootfs x.sqfs -noappend", "mksquashfs", "-noappend"),
        ("pack rootfs x.sqfs -comp xz", "mksquashfs", "-comp"),
        ("create rootfs x.sqfs -processors 2", "mksquashfs", "-processors"),
        ("unpack root.sqfs -dest out", "unsquashfs", "-dest"),
    ] {
        let hint = format!("hint: packfs as {tool} takes the command line of {tool}, such as {option}");
        fixture.run(line.split(' ')).failed(2, &[&hint]);
    }
    let run = fixture.run(["pack", "rootfs", "x.sqfs", "--codec", "brotli"]);
    assert!(!run.stderr.contains("packfs as"), "{}", run.stderr);
}

#[test]
fn no_message_has_several_lines_in_one() {
    let fixture = Fixture::with_image();
    for line in ["as unsquashfs -regex -ls root.sqfs (", "as mksquashfs rootfs x.sqfs -regex -e (a"] {
        let run = fixture.run(line.split(' '));
        assert_eq!(run.code, Some(1), "{line}");
        assert!(run.stderr.contains("unclosed group") && !run.stderr.contains("\\n"), "{}", run.stderr);
    }
}

#[test]
fn an_error_is_told_once() {
    let fixture = Fixture::with_image();
    let mut bytes = fixture.bytes("root.sqfs");
    bytes[100..200].iter_mut().for_each(|byte| *byte ^= 0x55);
    fixture.write("damaged.sqfs", bytes);
    for line in ["unpack damaged.sqfs out -q", "as unsquashfs -q -d out2 damaged.sqfs"] {
        let run = fixture.run(line.split(' '));
        let faults: Vec<&str> = run.stderr.lines().filter(|line| line.contains("corrupt image")).collect();
        let places = |line: &&str| line.split_once('"').map(|(_, rest)| rest.to_owned());
        let mut told: Vec<_> = faults.iter().filter_map(places).collect();
        let count = told.len();
        told.sort();
        told.dedup();
        assert!(count > 0 && told.len() == count, "{line}: {}", run.stderr);
    }
}

#[test]
fn a_dash_behind_an_image_is_standard_output() {
    let fixture = Fixture::with_image();
    let whole = fixture.run(["tar", "root.sqfs"]);
    assert!(whole.done().stdout == fixture.run(["tar", "root.sqfs", "-"]).done().stdout);
}

#[test]
fn a_manifest_without_its_files_says_where_they_belong() {
    let fixture = Fixture::with_image();
    let manifest = fixture.run(["info", "--manifest", "root.sqfs"]);
    fixture.write("else/m", manifest.stdout);
    let run = fixture.run(["pack", "else/m", "x.sqfs"]);
    run.failed(1, &["cannot open", "hint: ", "packfs unpack IMAGE \"else\""]);
    fixture.run(["unpack", "root.sqfs", "else", "-q", "--existing", "merge"]);
    assert_eq!(fixture.run(["pack", "else/m", "x.sqfs", "-q"]).code, Some(0));
}
