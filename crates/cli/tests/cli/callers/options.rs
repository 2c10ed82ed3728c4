//! Options of tools that are not in the lines of callers: combined by packfs and by the tool, and
//! each option of the tool's own help.

use super::bench::Bench;
use super::call::{But, Call, Shows};
use packfs_testkit::peer;
use regex::Regex;
use std::collections::BTreeSet;
use std::process::Command;

const fn call(tool: &'static str, shows: Shows, lines: &'static [&'static str]) -> Call {
    Call { number: 0, caller: "", tool, lines, since: "", shows, but: &[], differs: "" }
}

/// Lines of packers of SquashFS. The tools count all entries of a directory as its links.
const NG: &[Call] = &[
    Call {
        but: &[But::DirectoryLinks],
        ..call(
            "tar2sqfs",
            Shows::Image,
            &[
                "<implied.tar -q -d uid=5,gid=6,mode=0700,mtime=99 OUT",
                "SOURCE_DATE_EPOCH=1234 <implied.tar -q OUT",
                "SOURCE_DATE_EPOCH=1234 <implied.tar -q -d mode=448,gid=0x10 -k OUT",
                "SOURCE_DATE_EPOCH=soon <implied.tar -q OUT",
                "<a.tar -q -E usr -c gzip OUT",
                "<a.tar -q -E usr/* OUT",
                "<a.tar -q -E *hidden -E /etc/ -x OUT",
                "<a.tar -q --exclude=@(usr|etc) OUT",
                "<a.tar -q -E * -d uid=7 OUT",
                "<a.tar -q -b 64K -X dictsize=1M,level=0x3,level=1, OUT",
                "<a.tar -q -c lzo -X algorithm=lzo1x_999,level=1 OUT",
                "<a.tar -q -r usr -d uid=7 OUT",
                "<a.tar -q -r none -d uid=7 OUT",
            ],
        )
    },
    call(
        "tar2sqfs",
        Shows::Code,
        &[
            "<a.tar -q -d uid=-1 OUT",
            "<a.tar -q -d size=1 OUT",
            "<a.tar -q -d , OUT",
            "<a.tar -q -X hc OUT",
            "<a.tar -q -X level=3,,x86 OUT",
            "<a.tar -q -c gzip -X help OUT",
            "<a.tar -q -c zstd -X level=99 OUT",
            "<a.tar -q -c none OUT",
            "<a.tar -q -c lz4 -X level=3 OUT",
        ],
    ),
    Call {
        but: &[But::DirectoryLinks],
        ..call(
            "gensquashfs",
            Shows::Image,
            &[
                "SOURCE_DATE_EPOCH=1234 -q -D rootfs OUT",
                "SOURCE_DATE_EPOCH=1234 -q -k -D rootfs OUT",
                "SOURCE_DATE_EPOCH=1234 -q -F names -D rootfs OUT",
                "-q -F names -D rootfs -d uid=5,gid=6,mode=0700,mtime=99 OUT",
                "-q -F globs -D rootfs -d mtime=5 OUT",
                "-q -D rootfs -u 0x10 --all-root -g 010 OUT",
                "-q -D rootfs -A quoted OUT",
                "-q -D rootfs -A twice OUT",
                "-q -D rootfs '-u 7' OUT",
                "-q -F nothing -D rootfs OUT",
                "-q -D rootfs -s hard OUT",
            ],
        )
    },
    call("gensquashfs", Shows::Code, &["-q -D rootfs -A lists OUT"]),
];

/// Lines of mkfs.erofs.
const EROFS: &[Call] = &[
    call(
        "mkfs.erofs",
        Shows::Image,
        &[
            "--exclude-path=/usr OUT rootfs",
            "--exclude-path=usr/ --exclude-path=etc OUT rootfs",
            "--exclude-regex=^usr --exclude-path=.hidden OUT rootfs",
            "--exclude-path=usr --tar=f -T5 OUT a.tar",
            "--tar=f -T5 --uid-offset=7 OUT implied.tar",
            "--tar=f -T5 --force-uid=7 --all-root OUT implied.tar",
            "--tar=f -T5 --hard-dereference OUT a.tar",
            "--tar= -T5 OUT a.tar",
            "--file-contexts=hard --hard-dereference OUT rootfs",
            "--file-contexts=hard -x-1 OUT rootfs",
            "-zlz4 -Ededupe, OUT rootfs",
            "--force-uid=7 --all-root --uid-offset=3 OUT rootfs",
            "--all-root --force-uid=0x7 OUT rootfs",
            "SOURCE_DATE_EPOCH=1500000000 --mkfs-time OUT rootfs",
            "SOURCE_DATE_EPOCH=1500000000 -T5 OUT rootfs",
            "-T1500000000 --mkfs-time OUT rootfs",
            "-zlz4 -C64k -b1k -Efragments=8k OUT rootfs",
            "--xattr-prefix=user. --max-extent-bytes=64k OUT rootfs",
            "--xattr-prefix=user.no -Eall-fragments OUT rootfs",
            "--xattr-prefix=user.no -zlz4:zstd, -Efragments,plain-xattr-prefixes OUT rootfs",
        ],
    ),
    call(
        "mkfs.erofs",
        Shows::Code,
        &[
            "--force-uid=-1 OUT rootfs",
            "-Enozid OUT rootfs",
            "-Ededupe=1 OUT rootfs",
            "-zlz4,3 OUT rootfs",
            "-zlz4:gzip OUT rootfs",
            "-z:lz4 OUT rootfs",
            "-zdeflate,dictsize=100000 OUT rootfs",
            "-d10 OUT rootfs",
            "--chunksize=1024 OUT rootfs",
            "--dsunit=x OUT rootfs",
            "--clean=x OUT rootfs",
        ],
    ),
];

/// Lines that read.
const READING: &[Call] = &[
    call(
        "rdsquashfs",
        Shows::Text,
        &[
            "-d a.sqfs",
            "-d -p /src/ a.sqfs",
            "-d -D -F -L -E a.sqfs",
            "-l / -d a.sqfs more",
            "-l usr/bin a.sqfs",
            "-x usr/bin/tool a.sqfs",
        ],
    ),
    call("rdsquashfs", Shows::Code, &["a.sqfs", "-u / -p rootfs a.sqfs", "-d missing"]),
    call("sqfs2tar", Shows::Code, &["-r '' a.sqfs", "-d none a.sqfs", "-d usr -d none a.sqfs"]),
];

#[test]
fn options_of_squashfs_tools_ng_have_their_effects() {
    Bench::new().hold_all(NG);
}

#[test]
fn options_of_mkfs_erofs_have_their_effects() {
    Bench::new().hold_all(EROFS);
}

#[test]
fn options_of_tools_that_read_have_their_effects() {
    Bench::new().hold_all(READING);
}

/// Returns the options of a help text: words with a dash that begin a line or follow a comma.
fn options(text: &str) -> BTreeSet<String> {
    let list = Regex::new(r"(?m)^ +-[^\n]*").unwrap();
    let option = Regex::new(r"(?:^ +|, )(--\[no-\]|--?)([A-Za-z][a-z0-9-]*)").unwrap();
    let mut found = BTreeSet::new();
    for line in list.find_iter(text) {
        for part in option.captures_iter(line.as_str()) {
            match &part[1] {
                // `-zX`, `-d<0-9>`: a letter, and its value.
                "-" => drop(found.insert(format!("-{}", &part[2][..1]))),
                "--" => drop(found.insert(format!("--{}", part[2].trim_end_matches('-')))),
                _ => found.extend([format!("--{}", &part[2]), format!("--no-{}", &part[2])]),
            }
        }
    }
    found
}

#[test]
fn every_option_of_the_help_of_a_tool_is_in_that_of_packfs() {
    let tools = [
        "mkfs.erofs",
        "fsck.erofs",
        "dump.erofs",
        "gensquashfs",
        "tar2sqfs",
        "sqfs2tar",
        "rdsquashfs",
        "sqfsdiff",
    ];
    for name in tools {
        let Some(tool) = peer(name) else { continue };
        let theirs = options(&String::from_utf8_lossy(&tool.command(&[&"--help"]).output().unwrap().stdout));
        let mut ours = Command::new(env!("CARGO_BIN_EXE_packfs"));
        let ours = ours.args(["as", name, "--help"]).output().unwrap();
        let ours = options(&String::from_utf8_lossy(&ours.stdout));
        let missing: Vec<&String> = theirs.difference(&ours).collect();
        assert!(theirs.len() > 5 && missing.is_empty(), "{name}: {missing:?} are not in {ours:?}");
    }
}

/// Names and modes of all kinds, listed, and packed again.
#[test]
fn lists_of_rdsquashfs_are_read_back_by_gensquashfs() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let names =
        ["a b", "tab\there", "quo\"te", "back\\slash", "b \\", "c \\\\d", "\u{e4}\u{20ac}", "\u{b}", " x"];
    std::fs::create_dir(bench.path("odd")).unwrap();
    for name in names {
        std::fs::write(bench.path("odd").join(name), name).unwrap();
        std::os::unix::fs::symlink(format!("to {name} "), bench.path("odd").join(format!("{name}.l")))
            .unwrap();
    }
    let mode = std::fs::Permissions::from_mode(0o6751);
    std::fs::set_permissions(bench.path("odd/a b"), mode).unwrap();
    bench.packfs(&["pack", "-q", "odd", "odd.sqfs", "--mtime", "0"]);
    let list = bench.packfs(&["as", "rdsquashfs", "-d", "odd.sqfs"]).stdout;
    std::fs::write(bench.path("odd.list"), list).unwrap();
    bench.packfs(&["as", "gensquashfs", "-q", "-F", "odd.list", "-D", "odd", "ours.sqfs"]);
    bench.packfs(&["diff", "odd.sqfs", "ours.sqfs"]);
    if let Some(tool) = peer("gensquashfs") {
        let mut command = tool.command(&[&"-q", &"-F", &"odd.list", &"-D", &"odd", &"theirs.sqfs"]);
        assert!(command.current_dir(bench.path("")).status().unwrap().success());
        bench.packfs(&["diff", "odd.sqfs", "theirs.sqfs"]);
    }
    std::fs::write(bench.path("odd/new\nline"), "x").unwrap();
    bench.packfs(&["pack", "-q", "odd", "odd.sqfs"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
    let run =
        command.args(["as", "rdsquashfs", "-d", "odd.sqfs"]).current_dir(bench.path("")).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(1) && said.contains("left out"), "{said}");
    assert_eq!(run.stdout.split(|&byte| byte == b'\n').count(), 2 * names.len() + 1);
}
