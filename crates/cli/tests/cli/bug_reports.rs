//! Facts for maintainers: `--version` and `bug-report`.

use crate::fixture::Fixture;
use std::process::Command;

#[test]
fn the_short_version_is_a_line_and_the_long_one_names_source_and_libraries() {
    let fixture = Fixture::new();
    let line = format!("packfs {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(fixture.run(["-V"]).done().text(), line);
    let run = fixture.run(["--version"]);
    let text = run.done().text();
    assert!(text.starts_with(&line), "{text}");
    for words in [
        "\ntarget: ",
        "\nrustc: rustc 1.",
        "\nformats: squashfs, ",
        "\nlibraries: liblzma 5.",
        ", lz4 1.",
        ", zstd 1.",
        ", libdeflate-sys 1.",
        ", zlib-rs 0.",
        "\nlicense: MIT OR Apache-2.0\n",
    ] {
        assert!(text.contains(words), "{words:?}: {text}");
    }
}

/// Without git, or if git refuses the folder for its owner, no commit is known, or that of an
/// archive or the packager.
#[test]
fn the_commit_is_that_of_the_checkout() {
    let git = |words: [&str; 2]| {
        let output = Command::new("git").args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let run = Fixture::new().run(["--version"]);
    let stated = run.text().lines().find_map(|line| line.strip_prefix("commit: "));
    let is_checkout = git(["rev-parse", "--show-prefix"]).as_deref() == Some("crates/cli/");
    if is_checkout && std::env::var_os("PACKFS_COMMIT").is_none() {
        assert_eq!(stated, git(["rev-parse", "HEAD"]).as_deref());
    } else if let Some(stated) = stated {
        assert!(!stated.is_empty() && stated != "null" && !stated.starts_with('$'), "{stated}");
    }
}

#[test]
fn a_report_has_the_machine_and_nothing_of_the_user() {
    let fixture = Fixture::new();
    let run = |json: &[&str]| {
        let mut command = fixture.command([&["bug-report"], json].concat());
        command
            .env_clear()
            .env("HOME", "/home/hunter2")
            .env("USER", "hunter2")
            .env("PATH", "/home/hunter2/bin");
        command
            .env("PACKFS_SETTING", "hunter2")
            .env("https_proxy", "http://hunter2@proxy")
            .env("OWN", "hunter2");
        let output = command.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    for words in [
        &format!("version: {}\n", env!("CARGO_PKG_VERSION")),
        &format!("\nkernel: {kernel}"),
        "\nvariables: PACKFS_SETTING, https_proxy\n",
        "\nfusermount3: false\n",
        "\nsandbox: ",
    ] {
        assert!(text.contains(words), "{words:?}: {text}");
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for report in [text, json] {
        for private in ["hunter2", "OWN", fixture.path("").to_str().unwrap(), env!("CARGO_MANIFEST_DIR")] {
            assert!(!report.contains(private), "{private}: {report}");
        }
        let mut words = report.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '.');
        assert!(words.all(|word| word != host.trim()), "{host}: {report}");
    }
}
