//! Whatever names, targets, attributes and labels hold: no verb lets it reach a terminal raw, and
//! no script loses a byte of it.

use crate::fixture::{Fixture, Run};
use packfs_testkit::Random;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// One name for each byte, what terminals know as commands, and noise.
fn hostile_names() -> BTreeSet<Vec<u8>> {
    let mut names: BTreeSet<Vec<u8>> =
        (1..=255_u8).filter(|byte| *byte != b'/').map(|byte| vec![b'n', byte]).collect();
    for name in [
        &b"\x1b[2J\x1b[H"[..],
        b"\x1b]0;title\x07",
        b"\x1b]52;c;ZXZpbA==\x1b\\",
        b"\x9b31m",
        "\u{9b}31m".as_bytes(),
        "\u{202e}gpj.exe".as_bytes(),
        "\u{2066}a\u{2069}\u{200b}\u{feff}".as_bytes(),
        b"two\nlines\r\rone",
        b"-rf",
        b"'quoted' \"twice\" \\n $HOME `id`",
        b"tab\tbell\x07back\x08\x7f",
        "käse".as_bytes(),
    ] {
        names.insert(name.to_vec());
    }
    let mut random = Random::new(7);
    for len in 1..60 {
        let mut name = random.noise(len);
        name.iter_mut().filter(|byte| matches!(byte, 0 | b'/')).for_each(|byte| *byte = 0x1b);
        if !matches!(&name[..], b"." | b"..") {
            names.insert(name);
        }
    }
    names
}

/// Returns a word of a manifest with every byte escaped.
fn word(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>())
}

/// Images whose every name, target, attribute and label is hostile, and a manifest, a tar and a
/// directory of the same.
fn hostile() -> (Fixture, BTreeSet<Vec<u8>>) {
    let fixture = Fixture::new();
    let names = hostile_names();
    let mut manifest =
        "#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0\ndefault dir mode=0755\ndefault file mode=0644\n\
         default symlink mode=0777\ndir /\ndir /links\ndir /marked\n"
            .to_owned();
    for (index, name) in names.iter().enumerate() {
        let at = |dir: &str| word(&[dir.as_bytes(), name].concat());
        manifest += &format!("file {} data={}\n", at("/"), word(name));
        manifest += &format!("symlink /links/{index} target={}\n", word(name));
        let xattr = [b"user.", &name[..]].concat();
        manifest += &format!("file {} xattr.{}={}\n", at("/marked/"), word(&xattr), word(name));
    }
    fixture.write("m", manifest);
    let label: &[u8] = b"\x1b[31m\xc2\x9b\xff\x7f\n\x1b]0;x\x07";
    for image in ["hostile.sqfs", "hostile.erofs"] {
        fixture.run(["pack", "m", image, "-q"]).done();
    }
    // 16 bytes of label in the superblock, which are not checked; the checksum over them is left
    // out.
    let mut bytes = fixture.bytes("hostile.erofs");
    bytes[1024 + 64..1024 + 64 + label.len()].copy_from_slice(label);
    fixture.write("label.erofs", bytes);
    (fixture, names)
}

/// Nothing that acts on a terminal but line ends, and the colours that packfs itself chooses.
#[track_caller]
fn harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        let end = rest[at + 2..].find(|c: char| !c.is_ascii_digit() && c != ';').map(|end| at + 2 + end);
        let end =
            end.filter(|&end| rest[end..].starts_with('m')).unwrap_or_else(|| panic!("{what}: {text:?}"));
        plain.push_str(&rest[..at]);
        rest = &rest[end + 1..];
    }
    plain.push_str(rest);
    let acts = |c: char| c != '\n' && acts_on_terminals(c);
    assert!(!plain.contains(acts), "{what}: {:?}", plain.lines().find(|line| line.contains(acts)));
}

/// Told apart from the program's own list, so that a gap in that is found.
fn acts_on_terminals(c: char) -> bool {
    matches!(u32::from(c),
        0..=0x1f | 0x7f..=0x9f | 0x200b..=0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff)
}

fn run(fixture: &Fixture, args: &[&OsStr], forced_colours: bool) -> Run {
    let mut command = fixture.command(args);
    if forced_colours {
        command.env("CLICOLOR_FORCE", "1");
    }
    let output = command.output().unwrap();
    let what = format!("{args:?}");
    harmless(&what, &output.stdout);
    harmless(&what, &output.stderr);
    let stderr = String::from_utf8(output.stderr).unwrap();
    Run { code: output.status.code(), stdout: output.stdout, stderr }
}

#[test]
fn no_verb_prints_what_acts_on_a_terminal() {
    let (fixture, names) = hostile();
    fs::create_dir(fixture.path("empty")).unwrap();
    // A second tree that differs in every way: other targets, attributes, lengths.
    let text = fs::read_to_string(fixture.path("m")).unwrap();
    let other = text.replace("target=\"", "target=\"\\x1b").replace(" data=\"", " data=\"\\x1bx");
    fixture.write("other", other);
    for image in ["hostile.sqfs", "hostile.erofs"] {
        let damaged = format!("damaged-{image}");
        let mut bytes = fixture.bytes(image);
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0x1b);
        fixture.write(&damaged, bytes);
        let verbs: &[&[&str]] = &[
            &["ls", image],
            &["ls", "-lR", image],
            &["ls", "-R", "--json", image],
            &["info", "--space", image],
            &["info", "--json", image],
            &["info", "--manifest", image],
            &["check", "--data", image],
            &["check", "--data", &damaged],
            &["check", "--data", "--json", &damaged],
            &["ls", "-lR", &damaged],
            &["diff", image, "other"],
            &["diff", image, "other", "--json"],
            &["diff", image, "empty"],
            &["diff", "empty", image, "--json"],
            &["unpack", &damaged, "broken"],
            &["unpack", image, "out", "--json"],
            &["unpack", image, "out"],
            &["unpack", image, "out", "--existing", "merge"],
            &["tar", image, "-o", "out.tar"],
            &["pack", image, "again.sqfs", "--report"],
            &["ls", "--max-target", "1", "-R", image],
            &["info", "--manifest", "--max-name", "2", image],
        ];
        for verb in verbs {
            for forced in [false, true] {
                let args: Vec<&OsStr> = verb.iter().map(OsStr::new).collect();
                run(&fixture, &args, forced);
            }
        }
        for name in ["out", "broken"] {
            let _ = fs::remove_dir_all(fixture.path(name));
        }
        for name in names.iter().step_by(19) {
            let marked = OsString::from_vec([b"marked/", &name[..]].concat());
            let missing = OsString::from_vec([&name[..], b"/missing"].concat());
            for args in [
                ["stat", image].map(OsStr::new).into_iter().chain([&*marked]).collect::<Vec<_>>(),
                ["stat", "--json", image].map(OsStr::new).into_iter().chain([&*marked]).collect(),
                ["cat", image].map(OsStr::new).into_iter().chain([&*missing]).collect(),
                ["ls", image].map(OsStr::new).into_iter().chain([&*missing]).collect(),
                ["unpack", image, "none"].map(OsStr::new).into_iter().chain([&*missing]).collect(),
            ] {
                run(&fixture, &args, true);
            }
        }
    }
    for args in [
        &["info", "--ignore-checksum", "label.erofs"][..],
        &["check", "label.erofs"],
        &["as", "dump.erofs", "--blkid-udev", "--no-sbcrc", "label.erofs"],
    ] {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let told = run(&fixture, &args, true);
        assert!(args[0] == "check" || told.text().contains("\\x1b[31m"), "{}", told.text());
    }
}

#[test]
fn hostile_names_of_sources_are_harmless() {
    let fixture = Fixture::new();
    for name in hostile_names().iter().step_by(23) {
        let host = OsStr::from_bytes(name);
        for verb in ["info", "ls", "check"] {
            run(&fixture, &[OsStr::new(verb), OsStr::new("--"), host], true);
        }
        run(&fixture, &[OsStr::new("pack"), OsStr::new("--"), host, OsStr::new("x.sqfs")], true);
        for text in [
            format!("file {} from=nothing\n", word(name)),
            format!("file {} from={}\n", word(b"/a"), word(name)),
            format!("link {} target={}\n", word(b"/a"), word(name)),
            format!("{} /a\n", String::from_utf8_lossy(name).replace('\n', "")),
        ] {
            fixture.write("m", format!("#packfs-manifest 1\ndefault uid=0 gid=0 mtime=0 \n{text}"));
            run(&fixture, &["pack", "m", "x.sqfs"].map(OsStr::new), false);
        }
    }
}

#[test]
fn scripts_get_every_byte() {
    let (fixture, names) = hostile();
    let roots: BTreeSet<Vec<u8>> =
        names.iter().cloned().chain([b"links".to_vec(), b"marked".to_vec()]).collect();
    for image in ["hostile.sqfs", "hostile.erofs"] {
        let listed = fixture.run(["ls", "-0", image]);
        let found: BTreeSet<Vec<u8>> =
            listed.stdout.split(|&b| b == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
        assert_eq!(found, roots);

        let json = fixture.run(["ls", "--json", image]).json();
        let found: BTreeSet<Vec<u8>> =
            json.as_array().unwrap().iter().map(|row| bytes_of(row, "path")).collect();
        assert_eq!(found, roots);
        let links = fixture.run(["ls", "--json", image, "links"]).json();
        let targets: BTreeSet<Vec<u8>> =
            links.as_array().unwrap().iter().map(|row| bytes_of(row, "target")).collect();
        assert_eq!(targets, names);

        for name in names.iter().step_by(31) {
            let path = OsString::from_vec([b"marked/", &name[..]].concat());
            let args = ["stat", "--json", image].map(OsString::from).into_iter().chain([path]);
            let row = fixture.run(args).json();
            let xattr = &row[0]["xattrs"][0];
            assert_eq!(bytes_of(xattr, "name"), [b"user.", &name[..]].concat());
            assert_eq!(bytes_of(xattr, "value"), *name);
        }
    }
}

/// A name as docs/guide/cli.md has it: its bytes in hexadecimal where it is no UTF-8.
fn bytes_of(row: &Value, key: &str) -> Vec<u8> {
    match row.get(format!("{key}_bytes")) {
        Some(hex) => {
            let hex = hex.as_str().unwrap().as_bytes();
            hex.chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect()
        }
        None => row[key].as_str().unwrap().as_bytes().to_vec(),
    }
}

#[test]
fn a_warning_before_the_work_begins_brings_no_bar() {
    let fixture = Fixture::new();
    fixture.write("README", "text");
    let Some(script) = packfs_testkit::peer("script") else { return };
    let program = env!("CARGO_BIN_EXE_packfs");
    let command = format!("'{program}' pack README single.sqfs");
    let mut terminal = script.command(&[]);
    terminal.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    terminal.current_dir(fixture.path("")).stdin(std::process::Stdio::null());
    let run = Run::of(terminal.output().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(shown.contains("\"README\" is not a directory"), "{shown}");
    assert!(!shown.contains("0/0") && !shown.contains('\u{2591}'), "{shown}");
}
