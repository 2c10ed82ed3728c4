//! Dumps and directories made up by a random generator.

use super::{dumped, image};
use packfs::composefs::Versions;
use packfs_testkit::{Random, peer};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Attributes that trees have, some of them in many files.
fn xattrs(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(3) > 0 {
        return text;
    }
    let mut names = std::collections::BTreeSet::new();
    let count_max = if random.below(40) == 0 { 300 } else { 6 };
    for _ in 0..1 + random.below(count_max) {
        let prefixes = [
            "user.",
            "trusted.",
            "security.",
            "trusted.overlay.",
            "user.overlay.",
            "system.posix_acl_access",
            "odd.",
        ];
        let prefix = prefixes[random.below(7) as usize];
        let name = match prefix {
            "system.posix_acl_access" => prefix.to_owned(),
            _ => format!("{prefix}{}", random.below(40)),
        };
        if !names.insert(name.clone()) {
            continue;
        }
        let value = match random.below(4) {
            0 => String::new(),
            1 => "shared".to_owned(),
            2 => format!("\\x00{}", random.below(5)),
            _ => "v".repeat(random.below(60) as usize),
        };
        let _ = write!(text, " {name}={value}");
    }
    text
}

fn name(random: &mut Random, number: u64) -> String {
    let len = if random.below(30) == 0 { 240 } else { random.below(20) };
    format!("{}{number}{}", ["", "-", "z", "\\xc3", "."][random.below(5) as usize], "n".repeat(len as usize))
}

fn time(random: &mut Random) -> &'static str {
    ["100.0", "100.0", "100.0", "100.7", "99.0", "5000000000.999999999"][random.below(6) as usize]
}

/// Returns a dump of about `count` lines.
pub fn dump(random: &mut Random, count: u64) -> String {
    let mut text = format!("/ 4096 40755 2 0 0 0 {} - - -{}\n", time(random), xattrs(random));
    let (mut dirs, mut files) = (vec![String::new()], Vec::new());
    for number in 0..count {
        let path = format!("{}/{}", dirs[random.below(dirs.len() as u64) as usize], name(random, number));
        let uid = [0, 1000, 65_535, 65_536, 4_000_000_000_u64][random.below(5) as usize];
        let links = [1, 2, 65_536][random.below(3) as usize];
        let size = match random.below(4) {
            0 => random.below(200),
            1 => random.below(1 << 20),
            2 => random.below(1 << 34),
            _ => random.below(1 << 53),
        };
        let (kind, size, device, payload, content, digest) = match random.below(12) {
            0 => ("40755", 0, 0, "-".to_owned(), "-".to_owned(), "-".to_owned()),
            1 => {
                let len = if random.below(2) == 0 { random.below(4094) } else { random.below(40) };
                ("120777", 3, 0, "t".repeat(len as usize + 1), "-".into(), "-".into())
            }
            2 => (["10644", "140600"][random.below(2) as usize], 0, 0, "-".into(), "-".into(), "-".into()),
            3 => {
                let kind = ["20644", "60600"][random.below(2) as usize];
                (kind, random.below(2), random.below(3) * 1000, "-".into(), "-".into(), "-".into())
            }
            4 | 5 => {
                let len = if random.below(3) == 0 { random.below(5001) } else { random.below(65) };
                let content = if len == 0 { "-".into() } else { "c".repeat(len as usize) };
                ("100644", len, 0, "-".into(), content, "-".into())
            }
            6 => ("104755", size, 0, "-".into(), "-".into(), "-".into()),
            _ => {
                let digest: String =
                    (0..64).map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize])).collect();
                let path = format!("{}/{}", &digest[..2], &digest[2..]);
                (
                    "100755",
                    size + 1,
                    0,
                    path,
                    "-".into(),
                    if random.below(4) == 0 { "-".into() } else { digest },
                )
            }
        };
        let mtime = time(random);
        let xattrs = xattrs(random);
        let _ = writeln!(
            text,
            "{path} {size} {kind} {links} {uid} 7 {device} {mtime} {payload} {content} {digest}{xattrs}"
        );
        match kind {
            "40755" => dirs.push(path),
            _ => files.push(path),
        }
        if random.below(10) == 0 && !files.is_empty() {
            let target = &files[random.below(files.len() as u64) as usize];
            let dir = &dirs[random.below(dirs.len() as u64) as usize];
            let _ = writeln!(text, "{dir}/link{number} 0 @100644 1 0 0 0 0.0 {target} - -");
        }
    }
    text
}

#[test]
fn images_of_dumps_equal_those_of_mkcomposefs() {
    let Some(mkcomposefs) = peer("mkcomposefs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("dump"), folder.path().join("image"));
    let mut random = Random::new(24);
    for round in 0..32 {
        let count = [3, 30, 300, 3000][round % 4];
        let text = dump(&mut random, count);
        std::fs::write(&from, &text).unwrap();
        let version = (round / 4 % 2) as u32;
        let (min, max) = (format!("--min-version={version}"), format!("--max-version={version}"));
        mkcomposefs.run(&[&min, &max, &"--from-file", &from, &to]);
        let own = image(text.as_bytes(), Versions { min: version, max: version });
        if own != std::fs::read(&to).unwrap() {
            let kept = std::env::temp_dir().join("composefs-test.dump");
            std::fs::write(&kept, &text).unwrap();
            panic!("round {round}: the images differ; the dump is {kept:?}");
        }
    }
}

#[test]
fn dumps_of_images_make_the_same_images() {
    let mut random = Random::new(25);
    for count in [3, 30, 300] {
        // Names without a known prefix are not shown by Linux.
        let text = dump(&mut random, count).replace(" odd.", " user.odd.");
        let first = image(text.as_bytes(), Versions::default());
        let again = image(&dumped(first.clone()), Versions::default());
        // Another name of a file with several may come first, so only their dumps need be equal.
        assert!(dumped(again) == dumped(first), "{count} lines");
    }
}

/// Adds what only root can create.
pub fn add_special_files(root: &Path) {
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program).args(args).current_dir(root).status().unwrap();
        assert!(status.success(), "{program} {args:?}");
    };
    run("mknod", &["etc/null", "c", "1", "3"]);
    run("mknod", &["etc/disk", "b", "259", "70000"]);
    run("mknod", &["usr/gone", "c", "0", "0"]);
    run("mkfifo", &["etc/fifo"]);
    run("chown", &["70000:5", "usr/bin/65"]);
    run("chmod", &["6755", "usr/bin/65"]);
    run("touch", &["-h", "-d", "@1000.5", "etc", "etc/null", "bin", "usr/bin/64"]);
    for (path, name, value) in [
        ("etc", "user.shared", "same"),
        ("usr/bin/65", "user.shared", "same"),
        (
            "usr/bin/65",
            "security.capability",
            "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ),
        ("usr/bin/64", "trusted.overlay.redirect", "/elsewhere"),
        ("usr/bin", "trusted.overlay.opaque", "y"),
        (".", "user.of-the-root", "1"),
    ] {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(root.join(path), name, value.as_bytes(), flags).unwrap();
    }
}
