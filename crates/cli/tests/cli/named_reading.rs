//! Options of tools that read, by packfs under the name of a tool and by the tool itself.

use super::fixture::assert_same_files;
use super::names::{Names, words};
use packfs_testkit::{Peer, is_root, peer, peer_since};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a line by both, and compares exit code and standard output.
#[track_caller]
fn same_output(names: &Names, peer: &Peer, name: &str, line: &str) {
    let (ours, theirs) = (names.ours(name, line), names.theirs(peer, &words(line), None));
    assert_eq!(ours.code, theirs.code, "{name} {line}\n{}\n{}", ours.stderr, theirs.stderr);
    let [ours, theirs] = [&ours, &theirs].map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
    assert_eq!(ours, theirs, "{name} {line}");
}

/// Runs a line by both, and compares exit codes alone.
#[track_caller]
fn same_code(names: &Names, peer: &Peer, name: &str, line: &str) {
    let (ours, theirs) = (names.ours(name, line), names.theirs(peer, &words(line), None));
    assert_eq!(ours.code, theirs.code, "{name} {line}\n{}\n{}", ours.stderr, theirs.stderr);
}

#[test]
fn images_are_compared_to_the_letter_of_sqfsdiff() {
    let (Some(diff), Some(make)) = (peer("sqfsdiff"), peer("gensquashfs")) else { return };
    let names = Names::new();
    let made = |line: &str| assert_eq!(names.theirs(&make, &words(line), None).code, Some(0), "{line}");
    made("-q -D rootfs a.img");
    made("-q -k -D rootfs b.img");
    made("-q -D rootfs -c zstd -e -b 64k c.img");
    std::fs::create_dir(names.path("rootfs/new")).unwrap();
    names.write("rootfs/new/file", "n");
    names.write("rootfs/etc/os-release", "NAME=changed\n");
    std::fs::remove_file(names.path("rootfs/usr/share/doc/README")).unwrap();
    std::fs::remove_file(names.path("rootfs/usr/bin/hard")).unwrap();
    made("-q -D rootfs d.img");
    for images in [
        "-a a.img -b a.img",
        "-a a.img -b b.img",
        "-a a.img -b c.img",
        "-a c.img -b a.img",
        "-a a.img -b d.img",
        "-a d.img -b a.img",
    ] {
        for options in ["", "-T", "-S", "-I", "-S -I -T", "-C", "-O -P", "--super --inode-num"] {
            same_output(&names, &diff, "sqfsdiff", &format!("{images} {options}"));
        }
    }
    same_code(&names, &diff, "sqfsdiff", "-a a.img -b missing");
    for (name, run) in [("ours", true), ("theirs", false)] {
        let line = format!("-a a.img -b d.img -e {name}");
        let run = if run { names.ours("sqfsdiff", &line) } else { names.theirs(&diff, &words(&line), None) };
        assert_eq!(run.code, Some(1), "{}", run.stderr);
    }
    assert_same_files(&names.path("ours"), &names.path("theirs"));
    assert!(names.path("ours/old/etc/os-release").exists() && names.path("ours/new/new/file").exists());
}

#[test]
fn archives_of_sqfs2tar_are_compressed_and_without_links() {
    let (Some(tar), Some(make)) = (peer("sqfs2tar"), peer_since("mksquashfs", "4.7")) else { return };
    let names = Names::new();
    assert_eq!(names.theirs(&make, &words("rootfs a.img -quiet -no-progress"), None).code, Some(0));
    let decoded = |bytes: &[u8], program: &[&str], name: &str| {
        std::fs::write(names.path(name), bytes).unwrap();
        let run = Command::new(program[0]).args(&program[1..]).arg(names.path(name)).output().unwrap();
        assert!(run.status.success(), "{program:?}: {}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    };
    let plain = names.ours("sqfs2tar", "a.img").stdout;
    for (compressor, program) in
        [("gzip", &["gzip", "-dc"][..]), ("xz", &["xz", "-dc"]), ("zstd", &["zstd", "-dcq"])]
    {
        if Command::new(program[0]).arg("--version").stdout(Stdio::null()).status().is_err() {
            continue;
        }
        let suffix = if compressor == "gzip" { "gz" } else { compressor };
        let run = names.ours("sqfs2tar", &format!("-c {compressor} a.img")).ended(0);
        assert!(run.stdout.len() < plain.len() / 2);
        assert!(decoded(&run.stdout, program, &format!("a.tar.{suffix}")) == plain, "{compressor}");
    }
    same_code(&names, &tar, "sqfs2tar", "-c lz4 a.img");
    for line in ["-L a.img", "--no-hard-links -X a.img"] {
        let [ours, theirs] = [names.ours("sqfs2tar", line), names.theirs(&tar, &words(line), None)];
        for (name, run) in [("ours.tar", ours), ("theirs.tar", theirs)] {
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            std::fs::write(names.path(name), run.stdout).unwrap();
        }
        names.fixture.run(["diff", "ours.tar", "theirs.tar"]).done();
    }
}

#[test]
fn rdsquashfs_leaves_out_directories_that_stay_empty() {
    let (Some(read), Some(make)) = (peer("rdsquashfs"), peer("gensquashfs")) else { return };
    let names = Names::new();
    names.write("list", "dir /only 0755 0 0\nslink /only/link 0777 0 0 etc\ndir /none 0755 0 0\ndir /etc 0755 0 0\nfile /etc/os-release 0644 0 0\n");
    assert_eq!(names.theirs(&make, &words("-q -F list -D rootfs a.img"), None).code, Some(0));
    for line in ["-q -u / -E -p OUT a.img", "-q -u / -E -L -p OUT a.img", "-q -u / -L -p OUT a.img"] {
        for name in ["ours", "theirs"] {
            std::fs::create_dir(names.path(name)).unwrap();
        }
        let run = |out: &str| line.replace("OUT", out);
        let ours = names.ours("rdsquashfs", &run("ours"));
        let theirs = names.theirs(&read, &words(&run("theirs")), None);
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{line}\n{}", ours.stderr);
        assert_same_files(&names.path("ours"), &names.path("theirs"));
        ["ours", "theirs"].iter().for_each(|name| std::fs::remove_dir_all(names.path(name)).unwrap());
    }
}

#[test]
fn verdicts_of_fsck_erofs_are_those_of_the_tool() {
    let (Some(make), Some(check)) = (peer("mkfs.erofs"), peer("fsck.erofs")) else { return };
    let names = Names::new();
    assert_eq!(names.theirs(&make, &words("-zlz4hc -C65536 e.img rootfs"), None).code, Some(0));
    assert_eq!(names.theirs(&make, &words("plain.img rootfs"), None).code, Some(0));
    let image = std::fs::read(names.path("e.img")).unwrap();
    let damaged = |name: &str, range: std::ops::Range<usize>| {
        let mut bytes = image.clone();
        bytes[range].iter_mut().for_each(|byte| *byte ^= 0xff);
        std::fs::write(names.path(name), bytes).unwrap();
    };
    let len = image.len();
    damaged("data.img", len - 3000..len - 2000);
    damaged("super.img", 1024 + 30..1024 + 34);
    damaged("magic.img", 1024..1025);
    std::fs::write(names.path("short.img"), &image[..len / 2]).unwrap();
    for line in [
        "e.img",
        "--extract e.img",
        "data.img",
        "--extract data.img",
        "--no-sbcrc super.img",
        "--no-sbcrc --extract e.img",
        "magic.img",
        "--extract short.img",
        "--path=/etc/os-release e.img",
        "--path=/etc/none e.img",
        "--path=/usr/bin --extract data.img",
        "--path=/etc/os-release --extract data.img",
        "--nid=99999999 e.img",
        "--xattr-inode-digest e.img",
        "--force e.img",
        "--overwrite e.img",
        "--no-preserve e.img",
        "--preserve-perms e.img",
        "--extract=/ e.img",
        "-a -A -y e.img",
        "-p e.img",
        "--unknown e.img",
        "e.img more",
    ] {
        same_code(&names, &check, "fsck.erofs", line);
    }
    // The tool reports the checksum, and ends with 0.
    assert_eq!(names.ours("fsck.erofs", "super.img").code, Some(1));
    assert_eq!(names.ours("fsck.erofs", "-p -d3 e.img").text().lines().count(), 2);
    assert_eq!(names.ours("fsck.erofs", "-p e.img").text(), "");
}

#[test]
fn parts_of_an_image_are_extracted_with_the_permissions_of_fsck_erofs() {
    let (Some(make), Some(check), Some(dump)) = (peer("mkfs.erofs"), peer("fsck.erofs"), peer("dump.erofs"))
    else {
        return;
    };
    let names = Names::new();
    names.write("rootfs/etc/open", "o");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(names.path("rootfs/etc/open"), mode).unwrap();
    assert_eq!(names.theirs(&make, &words("-zlz4 e.img rootfs"), None).code, Some(0));
    let about = names.theirs(&dump, &words("--path=/usr/bin e.img"), None);
    let nid = about.text().split("NID: ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let lines = [
        "--extract=OUT e.img".to_owned(),
        "--extract=OUT --no-preserve-perms e.img".to_owned(),
        "--extract=OUT --no-preserve e.img".to_owned(),
        "--extract=OUT --no-preserve --preserve-perms e.img".to_owned(),
        "--extract=OUT --path=/usr e.img".to_owned(),
        format!("--extract=OUT --nid={nid} e.img"),
    ];
    for line in &lines {
        let run = |out: &str| line.replace("OUT", out);
        let (ours, theirs) =
            (names.ours("fsck.erofs", &run("ours")), names.theirs(&check, &words(&run("theirs")), None));
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{line}\n{}", ours.stderr);
        let diff = names.fixture.run(["diff", "ours", "theirs"]);
        assert_eq!(diff.code, Some(0), "{line}\n{}{}", diff.text(), diff.stderr);
        ["ours", "theirs"].iter().for_each(|name| std::fs::remove_dir_all(names.path(name)).unwrap());
    }
}

#[test]
fn extents_are_listed_to_the_letter_of_dump_erofs() {
    let (Some(make), Some(dump)) = (peer("mkfs.erofs"), peer("dump.erofs")) else { return };
    let names = Names::new();
    let noise: Vec<u8> =
        (0..90_000_u64).map(|n| (n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(names.path("rootfs/etc/noise"), noise).unwrap();
    names.write("rootfs/etc/empty", "");
    names.write("rootfs/etc/block", &"b".repeat(4096));
    for (index, options) in [
        "",
        "-Enoinline_data",
        "-zlz4hc",
        "-zlz4 -C65536",
        "-zlz4hc -C65536 -Eztailpacking",
        "-zlz4hc -C65536 -Eall-fragments",
        "-zlz4hc -C65536 -Efragments",
        "--chunksize=8192",
    ]
    .iter()
    .enumerate()
    {
        let image = format!("e{index}.img");
        let made = names.theirs(&make, &words(&format!("--quiet {options} {image} rootfs")), None);
        assert_eq!(made.code, Some(0), "{options}: {}", made.stderr);
        for path in [
            "/",
            "/etc",
            "/bin",
            "/etc/os-release",
            "/etc/empty",
            "/etc/block",
            "/etc/noise",
            "/usr/bin/tool",
            "/usr/share/doc/README",
        ] {
            same_output(&names, &dump, "dump.erofs", &format!("-e --path={path} {image}"));
        }
    }
    assert_eq!(names.ours("dump.erofs", "--no-sbcrc -s e0.img").code, Some(0));
}

#[test]
fn what_ends_well_says_nothing_of_failures() {
    let Some(make) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    let devices = "-p '/null c 666 0 0 1 3' -p '/pipe i 600 7 0 f'";
    let line = format!("rootfs a.img -quiet -no-progress {devices}");
    assert_eq!(names.theirs(&make, &words(&line), None).code, Some(0));
    // snapd takes the word for an error, whatever the exit code is.
    for line in [
        "-no-progress -force -dest out a.img etc",
        "-n -dest other a.img",
        "-no-xattrs -dest third a.img usr none",
        "-no-progress -dest . -lls a.img",
        "-dest _ -ls a.img usr",
        "-stat a.img",
    ] {
        let run = names.ours("unsquashfs", line);
        let says = run.stderr.lines().any(|line| line.contains("failed"));
        assert!(!says || run.code != Some(0), "{line}: {:?}\n{}", run.code, run.stderr);
    }
    if is_root() {
        assert_eq!(names.ours("unsquashfs", "-n -d whole a.img").code, Some(0));
    }
}

#[test]
fn a_named_pipe_hears_whether_a_mount_answers() {
    let names = Names::new();
    if !is_root() || !Path::new("/dev/fuse").exists() {
        packfs_testkit::skip("mounting through FUSE needs root and /dev/fuse");
        return;
    }
    assert_eq!(names.ours("mksquashfs", "rootfs a.img -quiet -no-progress").code, Some(0));
    std::fs::create_dir(names.path("mnt")).unwrap();
    names.write("no-image", "text");
    for (image, foreground, said) in
        [("a.img", false, "s"), ("a.img", true, "s"), ("no-image", false, "f"), ("missing", true, "f")]
    {
        let pipe = names.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut command = Command::new(names.path("bin/squashfuse_ll"));
        command.args(if foreground { &["-f"][..] } else { &[] }).args([
            "-o",
            "notify_pipe=pipe",
            image,
            "mnt",
        ]);
        let mut child =
            command.current_dir(names.path("")).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(std::fs::read_to_string(&pipe).unwrap(), said, "{image} {foreground}");
        if said == "s" {
            assert_eq!(std::fs::read(names.path("mnt/etc/os-release")).unwrap(), b"NAME=example\n");
            names.fixture.run(["umount", "mnt"]).done();
        }
        assert_eq!(child.wait().unwrap().success(), said == "s", "{image} {foreground}");
        std::fs::remove_file(&pipe).unwrap();
    }
}
