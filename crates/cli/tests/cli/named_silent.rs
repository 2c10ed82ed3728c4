//! Lines of squashfs-tools that lost or changed something without a word.

use super::fixture::Run;
use super::names::{Names, words};
use packfs_testkit::peer_since;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

/// Runs a line of packfs as a tool with a value of `SOURCE_DATE_EPOCH`.
fn at_epoch(names: &Names, tool: &str, line: &str, epoch: &str) -> Run {
    let mut command = Command::new(names.path("bin").join(tool));
    command.args(words(line)).current_dir(names.path("")).env("SOURCE_DATE_EPOCH", epoch);
    Run::of(command.output().unwrap())
}

/// Returns the paths below a folder, without those of directories above others.
fn leaves(names: &Names, folder: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", "find . -mindepth 1 \\( -empty -o ! -type d \\) | sort | tr '\\n' ' '"])
        .current_dir(names.path(folder))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().replace("./", "")
}

#[test]
fn a_name_that_leads_to_nothing_extracts_nothing() {
    let names = Names::new();
    std::fs::create_dir_all(names.path("r/a/b")).unwrap();
    for file in ["r/a/b/c", "r/1.png", "r/2.png"] {
        std::fs::write(names.path(file), file).unwrap();
    }
    symlink("1.png", names.path("r/icon.png")).unwrap();
    symlink("../a", names.path("r/a/round")).unwrap();
    names.ours("mksquashfs", "r t.sqfs").done();
    for (name, found, code) in [
        ("nosuch", "", 0),
        ("a/b/d", "a/b ", 0),
        ("*.bmp", "", 0),
        (".", "", 0),
        ("..", "", 0),
        ("/", "", 1),
        ("", "", 1),
        ("icon.png", "1.png icon.png ", 0),
        ("ico*", "1.png icon.png ", 0),
        ("a/round/b/../b", "a/b/c a/round ", 0),
    ] {
        let _ = std::fs::remove_dir_all(names.path("o"));
        let args = ["-d", "o", "-follow-symlinks", "t.sqfs", name];
        let run = names.ours_with("unsquashfs", &args, None);
        assert_eq!(run.code, Some(code), "{name}: {}", run.stderr);
        let is_told = run.stderr.contains("can't be resolved") || code == 1;
        assert_eq!(is_told, found.is_empty() || name == "a/b/d", "{name}: {}", run.stderr);
        assert_eq!(if code == 0 { leaves(&names, "o") } else { String::new() }, found, "{name}");
        let missing = ["-d", "p", "-follow-symlinks", "-missing-symlinks", "t.sqfs", name];
        let missing = names.ours_with("unsquashfs", &missing, None);
        assert_eq!(missing.code, Some(i32::from(is_told)), "{name}: {}", missing.stderr);
        let _ = std::fs::remove_dir_all(names.path("p"));
    }
    let cat = names.ours_with("sqfscat", &["t.sqfs", "a/round/b/c", "nosuch"], None);
    assert_eq!((cat.code, cat.text()), (Some(2), "r/a/b/c"), "{}", cat.stderr);
}

#[test]
fn standard_input_is_a_source_with_the_option_that_names_it_alone() {
    let names = Names::new();
    for line in [
        "- new",
        "- new -p 'x d 755 0 0'",
        "- new -p '/ m 755 0 0'",
        "- rootfs new",
        "rootfs new -tar",
        "rootfs new -cpiostyle",
        "- new -tar -cpiostyle",
        "- new -cpiostyle0 -pf -",
    ] {
        let run = names.ours("mksquashfs", line);
        assert_eq!(run.code, Some(1), "{line}");
        assert!(!names.path("new").exists(), "{line}");
    }
    for line in ["- new -p '/ d 755 0 0'", "- new -pd 'd 755 0 0'", "- new -cpiostyle"] {
        names.ours("mksquashfs", line).done();
        std::fs::remove_file(names.path("new")).unwrap();
    }
}

#[test]
fn names_of_one_file_stay_so_in_lists_and_with_their_folders() {
    let names = Names::new();
    names.write("lines", "rootfs/usr\nrootfs/usr/bin/tool\nrootfs/usr/bin/hard\n");
    names.write("zeros", "rootfs/usr\0rootfs/usr/bin/tool\0rootfs/usr/bin/hard\0");
    for (line, list) in [
        ("- new -cpiostyle", Some("lines")),
        ("- new -cpiostyle0", Some("zeros")),
        ("rootfs/usr/bin/tool rootfs/usr/bin/hard rootfs/usr/bin new -tarstyle", None),
    ] {
        let args: Vec<&str> = words(line);
        names.ours_with("mksquashfs", &args, list.map(|list| names.path(list)).as_deref()).done();
        names.ours("unsquashfs", "-d o new").done();
        let [tool, hard] =
            ["tool", "hard"].map(|name| names.path("o/rootfs/usr/bin").join(name).metadata().unwrap());
        assert_eq!((tool.ino(), tool.nlink()), (hard.ino(), 2), "{line}");
        std::fs::remove_dir_all(names.path("o")).unwrap();
        std::fs::remove_file(names.path("new")).unwrap();
    }
}

#[test]
fn times_that_the_image_cannot_hold_are_told() {
    let names = Names::new();
    std::fs::create_dir(names.path("r")).unwrap();
    for (name, time) in [("old", "1960-01-01"), ("new", "2200-01-01"), ("part", "2001-01-01T00:00:00.5")] {
        names.write(&format!("r/{name}"), "x");
        let status = Command::new("touch").args(["-d", time]).arg(names.path("r").join(name)).status();
        assert!(status.unwrap().success());
    }
    let status =
        Command::new("tar").args(["--format=pax", "-cf", "r.tar", "r"]).current_dir(names.path("")).status();
    assert!(status.unwrap().success());
    let packed = names.ours("mksquashfs", "r a.sqfs");
    let starred = names.ours_with("sqfstar", &["b.sqfs"], Some(&names.path("r.tar")));
    let listed = names.ours("gensquashfs", "-q -k -D r c.sqfs");
    let tar = names.ours_with("tar2sqfs", &["-q", "d.sqfs"], Some(&names.path("r.tar")));
    for run in [packed, starred, listed, tar] {
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.contains("times before 1970 become 1970"), "{}", run.stderr);
        assert!(run.stderr.contains("times after 2106 become"), "{}", run.stderr);
        assert!(!run.stderr.contains("fractions"), "{}", run.stderr);
    }
}

#[test]
fn reproducible_lines_make_the_same_image_at_any_time() {
    let names = Names::new();
    let set = "find rootfs -exec touch -h -d @1500000000 {} + && tar -cf r.tar rootfs";
    let status = Command::new("sh").args(["-c", set]).current_dir(names.path("")).status();
    assert!(status.unwrap().success());
    let tar = names.path("r.tar");
    let lines = [
        ("mksquashfs", "rootfs/usr rootfs/etc OUT -repro", None),
        ("mksquashfs", "rootfs/usr rootfs/etc OUT -mkfs-time inode", None),
        ("mksquashfs", "rootfs OUT -repro -p 'x d 755 0 0'", None),
        ("mksquashfs", "- OUT -tar -repro", Some(&*tar)),
        ("sqfstar", "-repro OUT", Some(&*tar)),
    ];
    let made = |round: &str| {
        lines
            .iter()
            .enumerate()
            .map(|(at, (tool, line, stdin))| {
                let out = format!("{round}{at}");
                names.ours_with(tool, &words(&line.replace("OUT", &out)), *stdin).done();
                assert_eq!(
                    names.ours("unsquashfs", &format!("-mkfs-time {out}")).text(),
                    "1500000000\n",
                    "{line}"
                );
                std::fs::read(names.path(&out)).unwrap()
            })
            .collect::<Vec<_>>()
    };
    let first = made("a");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(first == made("b"));
    for (line, code) in [
        ("rootfs c0 -repro", 0),
        ("rootfs c1 -mkfs-time inode", 0),
        ("rootfs c2 -inode-time inode", 0),
        ("rootfs c3 -mkfs-time 5", 1),
        ("rootfs c4 -repro-time 5", 1),
    ] {
        let run = at_epoch(&names, "mksquashfs", line, "1400000000");
        assert_eq!(run.code, Some(code), "{line}: {}", run.stderr);
        if code == 0 {
            let out = words(line)[1];
            let times = names.ours("unsquashfs", &format!("-mkfs-time {out}"));
            assert_eq!(times.text(), "1400000000\n", "{line}");
        }
    }
    for line in
        ["rootfs d -repro -repro-time 5", "rootfs d -repro -mkfs-time 5", "rootfs d -repro-time inode"]
    {
        assert_eq!(names.ours("mksquashfs", line).code, Some(1), "{line}");
    }
}

#[test]
fn a_file_of_names_is_not_overwritten() {
    let names = Names::new();
    names.write("there", "mine\n");
    assert_eq!(names.ours("mksquashfs", "rootfs a.sqfs -info-file there").code, Some(1));
    assert_eq!(std::fs::read_to_string(names.path("there")).unwrap(), "mine\n");
    assert!(!names.path("a.sqfs").exists());
    names.ours("mksquashfs", "rootfs a.sqfs -info-file new").done();
    assert!(std::fs::read_to_string(names.path("new")).unwrap().contains("file /etc/os-release"));
}

#[test]
fn pseudo_files_are_read_back_with_all_names() {
    let names = Names::new();
    std::fs::create_dir_all(names.path("r/d d")).unwrap();
    let odd: [&[u8]; 12] = [
        b"tab\ty",
        b"sp ace",
        b"back\\slash",
        b"quo\"te",
        b"\xff\xfe",
        "é".as_bytes(),
        b"#hash",
        b" lead",
        b"trail ",
        b"cr\rx",
        b"d d/x",
        b"ff\x0cx",
    ];
    for name in odd {
        std::fs::write(names.path("r").join(OsStr::from_bytes(name)), name).unwrap();
    }
    symlink("a b ", names.path("r/link")).unwrap();
    std::fs::hard_link(names.path("r/d d/x"), names.path("r/again")).unwrap();
    let attributes = "setfattr -n user.a -v 0x0a615c62 link.f && setfattr -n user.b -v 0x30746162 link.f && \
                      setfattr -n user.c -v ' a\\\\b' link.f && truncate -s 300000 holes; true";
    std::fs::write(names.path("r/link.f"), "f").unwrap();
    Command::new("sh").args(["-c", attributes]).current_dir(names.path("r")).status().unwrap();
    names.ours("mksquashfs", "r a.sqfs").done();
    let written = names.ours("unsquashfs", "-n -pf a.pseudo a.sqfs");
    assert_eq!((written.code, &*written.stderr), (Some(0), ""));
    let pseudo = std::fs::read(names.path("a.pseudo")).unwrap();
    let pseudo = String::from_utf8_lossy(&pseudo);
    let sparse = |name: &str| pseudo.lines().any(|line| line.starts_with(name) && line.ends_with(" 1"));
    assert!(sparse("holes R ") && !sparse("link.f R "), "{pseudo}");
    names.ours("mksquashfs", "- b.sqfs -pf a.pseudo").done();
    names.fixture.run(["diff", "a.sqfs", "b.sqfs"]).done();
    if let Some(peer) = peer_since("mksquashfs", "4.7") {
        names.theirs(&peer, &words("- c.sqfs -pf a.pseudo"), None).ended(0);
        names.fixture.run(["diff", "a.sqfs", "c.sqfs"]).done();
    }
    // Line feeds: names are read back by packfs, and targets have no definition.
    std::fs::write(names.path("r").join("nl\nx"), "n").unwrap();
    names.ours("mksquashfs", "r d.sqfs").done();
    let written = names.ours("unsquashfs", "-n -pf d.pseudo d.sqfs");
    assert_eq!(written.code, Some(0));
    assert!(written.stderr.contains("line feed"), "{}", written.stderr);
    names.ours("mksquashfs", "- e.sqfs -pf d.pseudo").done();
    names.fixture.run(["diff", "d.sqfs", "e.sqfs"]).done();
    symlink("t\nx", names.path("r/l")).unwrap();
    names.ours("mksquashfs", "r f.sqfs").done();
    let written = names.ours("unsquashfs", "-n -pf f.pseudo f.sqfs");
    assert_eq!(written.code, Some(1));
    assert!(written.stderr.contains("/l: it has no definition"), "{}", written.stderr);
}

#[test]
fn links_are_followed_while_packing_and_metadata_is_forced_while_unpacking() {
    let names = Names::new();
    std::fs::create_dir_all(names.path("r/d")).unwrap();
    std::fs::write(names.path("r/d/f"), "f").unwrap();
    symlink("d/f", names.path("r/to")).unwrap();
    symlink("nowhere", names.path("r/lost")).unwrap();
    for (option, left) in [("-dereference", false), ("-deref keep", true), ("-deref delete", false)] {
        let run = names.ours("mksquashfs", &format!("r a.sqfs -noappend {option}"));
        assert_eq!((run.code, run.stderr.contains("/lost: ")), (Some(0), !left), "{option}");
        let list = names.ours("unsquashfs", "-lln a.sqfs").text().to_owned();
        assert!(list.lines().any(|line| line.starts_with("-rw") && line.ends_with("/to")), "{list}");
        assert_eq!(list.contains("lost"), left, "{option}\n{list}");
    }
    assert_eq!(names.ours("mksquashfs", "r b.sqfs -deref other").code, Some(1));
    let modes = "-d o -force-file-mode u=rw,go= -force-dir-mode 0711 -max-files 3 a.sqfs";
    names.ours("unsquashfs", modes).done();
    let mode = |name: &str| names.path("o").join(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode("d/f"), mode("d")), (0o600, 0o711));
    if packfs_testkit::is_root() {
        names.ours("unsquashfs", "-d p -force-uid 7 -force-gid 8 a.sqfs").done();
        let found = names.path("p/d").metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (7, 8));
    }
}

#[test]
fn mkfs_erofs_takes_an_epoch_of_64_bits() {
    let names = Names::new();
    let old = Command::new("touch").args(["-d", "@-5"]).arg(names.path("rootfs/old")).status();
    assert!(old.unwrap().success());
    for epoch in ["99999999999", "-7", "1500000000"] {
        at_epoch(&names, "mkfs.erofs", "x.erofs rootfs", epoch).ended(0);
        let shown = names.ours("dump.erofs", "--path=/old x.erofs");
        assert!(shown.text().contains("1969-12-31 23:59:55"), "{epoch}: {}", shown.text());
        std::fs::remove_file(names.path("x.erofs")).unwrap();
    }
}

#[test]
fn the_last_option_about_attributes_counts() {
    let names = Names::new();
    names.ours("mksquashfs", "rootfs o -xattrs -p 'usr x user.note=0x41'").ended(0);
    for (line, is_kept) in [
        ("-no-xattrs -xattrs-include note", true),
        ("-xattrs-include note -no-xattrs", false),
        ("-no-xattrs -xattrs-exclude other", true),
        ("-no-xattrs -user-xattrs", true),
        ("-xattrs-include other -user-xattrs", true),
        ("-user-xattrs -xattrs-include other", false),
    ] {
        names.ours("unsquashfs", &format!("-n -d u {line} o")).ended(0);
        let mut value = [0; 8];
        let found = rustix::fs::lgetxattr(names.path("u/usr"), "user.note", &mut value);
        assert_eq!(found.is_ok(), is_kept, "{line}");
        std::fs::remove_dir_all(names.path("u")).unwrap();
    }
    let refused = names.ours("mksquashfs", "rootfs p -pd 'D 4 750 5' -pd 'D 4 755 0 0'");
    assert_eq!(refused.code, Some(1));
}

#[test]
fn directories_that_only_attributes_name_are_made_by_the_option_for_those_above() {
    let names = Names::new();
    for (line, code) in [
        ("rootfs OUT -noappend -p 'x/y x user.y=0tA' -pd 'D 4 755 0 0' -p 'x/y/z F 9 644 0 0 echo z'", 0),
        ("rootfs OUT -noappend -p 'none x user.y=a'", 1),
        ("rootfs OUT -noappend -p 'none m 755 0 0' -p 'none/x m 755 0 0' -pd 'D 4 755 0 0'", 1),
        ("rootfs OUT -noappend -p 'none/x m 755 0 0' -pd 'D 4 755 0 0'", 0),
    ] {
        assert_eq!(names.ours("mksquashfs", &line.replace("OUT", "p")).code, Some(code), "{line}");
        let Some(peer) = peer_since("mksquashfs", "4.7") else { continue };
        match code {
            0 => names.same_image(&peer, "mksquashfs", line, None),
            _ => {
                let theirs = names.theirs(&peer, &words(&line.replace("OUT", "t")), None);
                assert_eq!(theirs.code, Some(code), "{line}");
            }
        }
    }
}
