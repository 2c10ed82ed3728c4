//! Wrong usage, help, completions, manual pages.

use crate::fixture::Fixture;

const VERBS: [&str; 11] =
    ["pack", "unpack", "tar", "ls", "cat", "stat", "info", "check", "diff", "completions", "man"];

#[test]
fn wrong_usage_ends_with_code_2_and_says_what_was_wrong() {
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
fn tells_its_version() {
    let run = Fixture::new().run(["--version"]);
    assert_eq!(run.done().text(), format!("packfs {}\n", env!("CARGO_PKG_VERSION")));
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
        assert!(page.contains("Examples:"), "{verb}");
    }
    assert!(String::from_utf8(fixture.bytes("pages/man1/packfs.1")).unwrap().contains("packfs\\-pack"));
}
