//! Options of tools that pack, by packfs under the name of a tool and by the tool itself.

use super::fixture::Run;
use super::names::{Names, words};
use packfs_testkit::{peer, peer_since};
use std::path::PathBuf;
use std::process::Command;

/// Makes an archive of a folder.
#[track_caller]
fn archive(names: &Names, name: &str, args: &[&str]) -> PathBuf {
    let path = names.path(name);
    let made = Command::new("tar").arg("-cf").arg(&path).args(args).current_dir(names.path("")).status();
    assert!(made.unwrap().success());
    path
}

/// Lists an image by packfs, owners as numbers.
fn listed(names: &Names, image: &str) -> String {
    let run = names.ours("unsquashfs", &format!("-lln -UTC {image}")).ended(0);
    run.text().to_owned()
}

#[test]
fn a_codec_counts_with_chunks_too() {
    let names = Names::new();
    names.ours("mkfs.erofs", "-zlz4 --chunksize=65536 --quiet a.img rootfs").ended(0);
    let info = names.fixture.run(["info", "a.img"]);
    assert!(info.text().lines().any(|line| line.starts_with("Codecs") && line.contains("lz4")));
}

#[test]
fn an_image_may_be_older_than_its_files() {
    let names = Names::new();
    archive(&names, "a.tar", &["-C", "rootfs", "."]);
    for line in ["-T1 --mkfs-time --quiet a.img rootfs", "-T1 --mkfs-time --quiet --tar=i a.img a.tar"] {
        names.ours("mkfs.erofs", line).ended(0);
        let info = names.ours("dump.erofs", "-s a.img");
        assert!(info.text().contains("Thu Jan  1 00:00:01 1970"), "{line}: {}", info.text());
    }
}

#[test]
fn images_of_files_with_holes_are_for_the_kernels_of_the_tool() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    let names = Names::new();
    std::fs::File::create(names.path("rootfs/hole")).unwrap().set_len(1 << 20).unwrap();
    for line in ["-T5 OUT rootfs", "-T5 -zlz4 OUT rootfs"] {
        names.same_image(&peer, "mkfs.erofs", line, None);
        let [ours, theirs] = ["ours.img", "theirs.img"].map(|image| {
            // Incompatible features, all of Linux 5.4.
            std::fs::read(names.path(image)).unwrap()[1024 + 80..][..4].to_vec()
        });
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn owners_of_an_archive_are_those_of_their_names_and_joined_archives_are_read_on() {
    let Some(star) = peer_since("sqfstar", "4.7") else { return };
    let names = Names::new();
    let first = archive(
        &names,
        "first.tar",
        &["--format=gnu", "--owner=root:77", "--group=root:78", "-C", "rootfs", "etc"],
    );
    let second = archive(
        &names,
        "second.tar",
        &["--format=pax", "--owner=no-such-user:5", "--group=root:6", "-C", "rootfs", "usr", "bin"],
    );
    let garbage = vec![7; 1024];
    let joined = [std::fs::read(first).unwrap(), garbage, std::fs::read(second).unwrap()].concat();
    std::fs::write(names.path("joined.tar"), joined).unwrap();
    let joined = names.path("joined.tar");
    for line in [
        "-root-time 5 OUT",
        "-root-time 5 -numeric-owner OUT",
        "-root-time 5 -ignore-zeros OUT",
        "-root-time 5 -ignore-zeros -numeric-owner OUT",
    ] {
        names.same_image(&star, "sqfstar", line, Some(&joined));
    }
    let list = listed(&names, "ours.img");
    assert!(list.contains(" 77/78 ") && list.contains("squashfs-root/usr/bin/tool"), "{list}");
    names.ours_with("sqfstar", &["-ignore-zeros", "named.img"], Some(&joined)).ended(0);
    let list = listed(&names, "named.img");
    assert!(list.contains(" 0/0 ") && list.contains(" 5/0 "), "{list}");
}

#[test]
fn directories_without_a_member_are_those_of_the_default_options() {
    let names = Names::new();
    let tar = archive(&names, "a.tar", &["--owner=7", "--group=8", "-C", "rootfs", "usr/bin/tool"]);
    let rows = |image: &str| -> Vec<String> {
        let listed = listed(&names, image);
        let rows = listed.lines().filter(|line| line.starts_with('d'));
        rows.map(|row| row.split_whitespace().take(2).chain(row.split_whitespace().nth(3)).collect())
            .collect()
    };
    for (name, line) in [
        ("sqfstar", "-default-uid 3 -default-gid 4 -default-mode 0711 -all-time 9 -root-time 9 OUT"),
        (
            "mksquashfs",
            "- OUT -tar -noappend -default-uid 3 -default-gid 4 -default-mode 0711 -all-time 9 -root-time 9",
        ),
    ] {
        let run = names.ours_with(name, &words(&line.replace("OUT", "ours.img")), Some(&tar));
        assert_eq!((run.code, &*run.stderr), (Some(0), ""));
        let rows = rows("ours.img");
        assert!(rows.len() == 3 && rows.iter().all(|row| row.starts_with("drwx--x--x3/4")), "{rows:?}");
        if let Some(peer) = peer_since(name, "4.7") {
            names.same_image(&peer, name, line, Some(&tar));
        }
    }
    let line = "-q -f -d uid=5,gid=6,mode=0700,mtime=99 OUT";
    let run = names.ours_with("tar2sqfs", &words(&line.replace("OUT", "ours.img")), Some(&tar));
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    let wanted = vec!["drwx------5/61970-01-01"; 3];
    assert_eq!(rows("ours.img"), wanted);
    if let Some(peer) = peer("tar2sqfs") {
        names.same_image(&peer, "tar2sqfs", line, Some(&tar));
    }
}

#[test]
fn targets_below_a_directory_that_becomes_the_root_are_those_of_tar2sqfs() {
    let Some(peer) = peer("tar2sqfs") else { return };
    let names = Names::new();
    for (target, name) in [
        ("/rootfs/usr/bin", "absolute"),
        ("rootfs/usr//./bin", "relative"),
        ("../rootfs/usr", "upward"),
        ("/etc/os-release", "other"),
        ("/rootfs", "whole"),
        ("/rootfsx/usr", "longer"),
    ] {
        std::os::unix::fs::symlink(target, names.path("rootfs").join(name)).unwrap();
    }
    let tar = archive(&names, "a.tar", &["--sort=name", "rootfs"]);
    for line in
        ["-q -r rootfs OUT", "-q -r rootfs -S OUT", "-q -f --root-becomes rootfs --no-symlink-retarget OUT"]
    {
        names.same_image(&peer, "tar2sqfs", line, Some(&tar));
    }
}

#[test]
fn images_are_padded_to_the_device_block_of_gensquashfs() {
    let Some(peer) = peer("gensquashfs") else { return };
    let names = Names::new();
    for (size, code) in [("1024", 0), ("3000", 0), ("64k", 0), ("1M", 0), ("512", 1), ("x", 1)] {
        let line = format!("-q -f -D rootfs -B {size} ours.img");
        let ours = names.ours("gensquashfs", &line);
        let theirs = names.theirs(&peer, &words(&line.replace("ours", "theirs")), None);
        assert_eq!((ours.code, theirs.code), (Some(code), Some(code)), "{size}\n{}", ours.stderr);
        if code == 0 {
            let len = std::fs::metadata(names.path("ours.img")).unwrap().len();
            let unit: u64 = match size {
                "64k" => 65536,
                "1M" => 1 << 20,
                digits => digits.parse().unwrap(),
            };
            assert!(len.is_multiple_of(unit) && len > 0, "{size}: {len}");
            names.fixture.run(["diff", "ours.img", "theirs.img"]).done();
        }
    }
}

#[test]
fn globs_of_pack_files_enter_directories_that_earlier_lines_made() {
    let Some(peer) = peer("gensquashfs") else { return };
    let names = Names::new();
    for file in ["x.txt", ".dot", "a/y.txt", "a/z.c", "a/b/z.txt", "a/b/c/w.txt", "d/v.txt", "d/e/u.txt"] {
        std::fs::create_dir_all(names.path("src").join(file).parent().unwrap()).unwrap();
        names.write(&format!("src/{file}"), file);
    }
    let (a, b) = ("dir /a 0755 0 0\n", "dir /a/b 0755 0 0\n");
    for list in [
        "glob / * * * -type f .".to_owned(),
        format!("{a}glob / * * * -type f ."),
        format!("{a}{b}glob / * * * -type f -name \"*.txt\" ."),
        format!("{a}{b}glob / * * * -name \"*.txt\" ."),
        format!("{a}{b}glob / * * * -type f -path \"a/*\" ."),
        format!("{a}{b}glob / * * * -type f -path \"*/*/*.txt\" -- ."),
        format!("{a}{b}glob / * * * -type f -path \"a/*\" -name \"*.txt\" ."),
        format!("{a}glob / * * * -nonrecursive -type f ."),
        "glob /p * * * -type d .\nglob /p 0644 1 2 -type f -name '?dot'".to_owned(),
        "glob /p * * * -type d .\nglob /p 0644 1 2 -type f -path \"p/*/[x-z].*\"".to_owned(),
        "file /a/made 0644 0 0 x.txt\nglob / * * * -type f .".to_owned(),
        "slink /a 0777 0 0 x.txt\nglob / * * * -type f .".to_owned(),
        "glob /p * * * a".to_owned(),
        "dir /p/b 0755 0 0\nglob /p * * * -type f -type l a".to_owned(),
    ] {
        names.write("list", &list);
        names.same_image(&peer, "gensquashfs", "-q -f -D src -F list OUT", None);
    }
    for list in
        ["glob / * * * -type x .", "glob / * * * -none .", "glob / * * * none", "dir /q 0 0 0\ndir /q 0 0 0"]
    {
        names.write("list", list);
        let line = "-q -f -D src -F list new.img";
        let (ours, theirs) = (names.ours("gensquashfs", line), names.theirs(&peer, &words(line), None));
        assert_eq!((ours.code, theirs.code), (Some(1), Some(1)), "{list}\n{}", ours.stderr);
    }
}

#[test]
fn sort_files_of_gensquashfs_have_its_flags() {
    let Some(peer) = peer("gensquashfs") else { return };
    let names = Names::new();
    names.write("sort", "# comment\n-5 [dont_compress,nosparse] usr/bin/tool\n7 [glob_no_path] usr/*\n1 [glob] etc/*\n9 none\n");
    names.same_image(&peer, "gensquashfs", "-q -D rootfs -S sort OUT", None);
    for (text, code) in [("1 [none] a", 1), ("1 [glob a", 1), ("x a", 1), ("1 [glob] *", 0)] {
        names.write("sort", text);
        let line = "-q -f -D rootfs -S sort new.img";
        let (ours, theirs) = (names.ours("gensquashfs", line), names.theirs(&peer, &words(line), None));
        assert_eq!((ours.code, theirs.code), (Some(code), Some(code)), "{text}\n{}", ours.stderr);
    }
}

#[test]
fn actions_move_files_and_run_programs_as_mksquashfs_does() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    names.write("rootfs/etc/big", &"x".repeat(9000));
    std::os::unix::fs::symlink("big", names.path("rootfs/etc/link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", names.path("rootfs/etc/outer")).unwrap();
    names.write("rootfs/etc/script", "#!/bin/sh\ntrue\n");
    let mut lines = vec![
        "rootfs OUT -action 'move(/usr)@name(os-release)'",
        "rootfs OUT -action 'move(renamed)@name(big)'",
        "rootfs OUT -action 'move(/usr/share/new)@name(big)' -action 'prune@pathname(usr/share/new)'",
        "rootfs OUT -action 'move(/usr)@name(big)' -action 'move(other)@name(big)'",
        "rootfs OUT -action 'move(..)@name(README)'",
        "rootfs OUT -action 'move(/usr/share)@name(bin) && type(d)'",
        "rootfs OUT -action 'move(/usr/bin)@name(share)' -action 'move(/etc)@name(README)'",
        "rootfs OUT -action 'move(/usr/bin/below)@name(bin) && type(d)'",
        "rootfs OUT -action 'move(/none/there)@name(big)'",
        "rootfs OUT -action 'move(/etc/os-release)@name(big)'",
        "rootfs OUT -action 'move(/bin2)@name(tool)' -action 'uid(7)@name(hard)'",
        "rootfs OUT -action 'move(/usr)@type(f) && depth(2)' -action 'empty@true'",
        "rootfs OUT -action 'prune@name(tool)'",
        "rootfs OUT -action 'exclude@name(tool)'",
        "rootfs OUT -action 'prune@exec(\"test -x $SOURCE_PATHNAME\")'",
        "rootfs OUT -action 'exclude@exec(\"test \\\"$NAME\\\" = big\")'",
        "rootfs OUT -action 'prune@exec(\"echo $PATHNAME | grep -q usr/share\")'",
        "rootfs OUT -action 'prune@stat(\"type(f)\") && type(l)'",
        "rootfs OUT -action 'prune@stat(\"filesize(>8000)\")'",
        "rootfs OUT -action 'uid(9)@stat(\"type(f) && !size(<100)\")'",
        "rootfs/etc rootfs/usr OUT -root-time 5 -action 'prune@exec(\"grep -qs script $SOURCE_PATHNAME\")'",
    ];
    if Command::new("file").arg("--version").output().is_ok() {
        lines.push("rootfs OUT -action 'prune@file(\"shell script\")'");
        lines.push("rootfs OUT -action 'uid(3)@file(^ASCII) && type(f)'");
    }
    for line in lines {
        names.same_image(&peer, "mksquashfs", &format!("{line} -noappend -no-progress"), None);
    }
    let refused = names.ours("mksquashfs", "rootfs new.img -action 'dereference@type(l)'");
    assert_eq!((refused.code, names.path("new.img").exists()), (Some(1), false), "{}", refused.stderr);
}

#[test]
fn a_streamed_image_is_whole_and_fix_makes_one_of_those_of_mksquashfs() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    let theirs = names.theirs(&peer, &words("rootfs - -stream -quiet -no-progress"), None);
    std::fs::write(names.path("theirs.img"), theirs.stdout).unwrap();
    assert_eq!(names.ours("mksquashfs", "-fix theirs.img").code, Some(0));
    let ours = names.ours("mksquashfs", "rootfs - -stream").ended(0);
    std::fs::write(names.path("ours.img"), ours.stdout).unwrap();
    assert_eq!(names.ours("mksquashfs", "-fix ours.img").code, Some(0));
    names.fixture.run(["diff", "ours.img", "theirs.img"]).done();
    names.write("text", &"text ".repeat(100));
    let run = names.ours("mksquashfs", "-fix text");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("is not a streamed Squashfs file"), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(names.path("text")).unwrap().len(), 500);
}

/// Returns the blocks that a line of a map names for a file.
fn blocks_of(map: &str, path: &str) -> Vec<(usize, usize)> {
    let line = map.lines().find(|line| line.split(' ').next() == Some(path));
    let words = line.unwrap_or_else(|| panic!("{path} in\n{map}")).split(' ').skip(1);
    words
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            (first.parse().unwrap(), last.parse().unwrap())
        })
        .collect()
}

#[test]
fn maps_of_blocks_name_those_that_hold_a_file() {
    let names = Names::new();
    names.write("config", "system/etc 0 0 0755\nsystem/etc/os-release 5 6 0600\n");
    let text = std::fs::read(names.path("rootfs/usr/bin/tool")).unwrap();
    for (name, line) in [
        ("mkfs.erofs", "--mount-point=/system --block-list-file=map OUT rootfs"),
        (
            "mksquashfs",
            "rootfs OUT -quiet -no-progress -noappend -noD -noF -no-fragments -mount-point system -block-map map -android-fs-config -fs-config-file config",
        ),
    ] {
        let run = names.ours(name, &line.replace("OUT", "out.img"));
        assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
        let map = std::fs::read_to_string(names.path("map")).unwrap();
        let image = std::fs::read(names.path("out.img")).unwrap();
        let ranges = blocks_of(&map, "/system/usr/bin/tool");
        let held: Vec<u8> = ranges
            .iter()
            .flat_map(|&(first, last)| image[first * 4096..((last + 1) * 4096).min(image.len())].to_vec())
            .collect();
        let start = held.windows(100).position(|part| part == &text[..100]).expect(name);
        assert!(start < 4096 && held[start..].starts_with(&text[..250_000]), "{name}\n{map}");
    }
    let refused = names.ours("mksquashfs", "rootfs new.img -android-fs-config");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("-fs-config-file"), "{}", refused.stderr);
}

#[test]
fn archives_of_mkfs_erofs_may_be_compressed_and_without_data() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    let names = Names::new();
    let tar = archive(&names, "a.tar", &["-C", "rootfs", "."]);
    let zipped = Command::new("gzip").arg("-k").arg(&tar).status().unwrap();
    assert!(zipped.success());
    names.same_image(&peer, "mkfs.erofs", "--quiet --tar=f --ungzip=OUT.raw OUT a.tar.gz", None);
    for name in ["ours.img.raw", "theirs.img.raw"] {
        assert!(std::fs::read(names.path(name)).unwrap() == std::fs::read(&tar).unwrap(), "{name}");
    }
    names.write("none.img", "");
    names
        .ours_with("mkfs.erofs", &words("--quiet --tar=f --ungzip OUT -"), Some(&names.path("a.tar.gz")))
        .ended(0);
    std::fs::write(names.path("headers"), headers_of(&std::fs::read(&tar).unwrap())).unwrap();
    let headers = names.path("headers");
    names.same_image(&peer, "mkfs.erofs", "--quiet --tar=headerball -T5 --mkfs-time OUT", Some(&headers));
    for (line, code) in [
        ("-zlz4hc -m4096 OUT rootfs", 0),
        ("-zlz4hc -m4096:lz4hc OUT rootfs", 0),
        ("-zlz4hc:zstd -m4096:0 OUT rootfs", 0),
    ] {
        let line = format!("--quiet {line}").replace("OUT", "m.img");
        let (ours, theirs) = (names.ours("mkfs.erofs", &line), names.theirs(&peer, &words(&line), None));
        assert_eq!((ours.code, theirs.code), (Some(code), Some(code)), "{line}\n{}", ours.stderr);
    }
    let refused = names.ours("mkfs.erofs", "-zlz4hc -m4096:zstd new.img rootfs");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("first compressor"), "{}", refused.stderr);
}

/// Returns an archive without the data of its files.
fn headers_of(tar: &[u8]) -> Vec<u8> {
    let (mut headers, mut at) = (Vec::new(), 0);
    while at < tar.len() && tar[at] != 0 {
        let header = &tar[at..at + 512];
        headers.extend(header);
        let size = std::str::from_utf8(&header[124..135]).unwrap();
        at += 512 + usize::from_str_radix(size, 8).unwrap().next_multiple_of(512);
    }
    headers.extend([0; 1024]);
    headers
}

#[test]
fn device_tables_of_mkcramfs_make_nodes() {
    let names = Names::new();
    std::fs::create_dir(names.path("rootfs/dev")).unwrap();
    std::fs::remove_file(names.path("rootfs/usr/bin/hard")).unwrap();
    names.write("table", "# name type mode uid gid major minor start inc count\n/dev/console c 600 0 0 5 1 - - -\n/dev/tty c 666 0 5 4 0 0 1 3\n/etc/os-release f 640 7 8 - - - - -\n");
    names.ours("mkcramfs", "-L -D table rootfs c.img").ended(0);
    let list = names.fixture.run(["ls", "-lR", "c.img"]);
    for row in ["crw-------", "tty2", "-rw-r-----"] {
        assert!(list.text().contains(row), "{row}\n{}", list.text());
    }
    std::fs::write(names.path("rootfs/noise"), packfs_testkit::Random::new(1).noise(5000)).unwrap();
    let _ = std::os::unix::fs::chown(names.path("rootfs/noise"), Some(5), Some(5));
    names.ours("mkcramfs", "-L -q -x -D table rootfs squashed.img").ended(0);
    for (path, owner) in [("noise", "0/0"), ("etc/os-release", "7/8")] {
        let stat = names.fixture.run(["stat", "squashed.img", path]);
        assert!(stat.text().contains(&format!(" {owner}\n")), "{}", stat.text());
    }
    let info = |image: &str| names.fixture.run(["info", image]).text().to_owned();
    assert!(info("squashed.img").contains("extended") && !info("c.img").contains("extended"));
    // A segment that is read and executed, and one that is written to.
    for (name, flags) in [("program", 5), ("data", 6)] {
        let mut elf = packfs_testkit::Random::new(2).text(20_000);
        elf[..52].fill(0);
        elf[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        (elf[28], elf[44], elf[52]) = (52, 1, 1);
        elf[53..56].fill(0);
        elf[76..80].copy_from_slice(&[flags, 0, 0, 0]);
        std::fs::write(names.path("rootfs").join(name), elf).unwrap();
    }
    names.ours("mkcramfs", "-L -X -X rootfs placed.img").ended(0);
    names.fixture.run(["check", "--data", "placed.img"]).done();
    let image = std::fs::read(names.path("placed.img")).unwrap();
    let at_page = |name: &str| {
        let data = std::fs::read(names.path("rootfs").join(name)).unwrap();
        (0..image.len()).step_by(4096).any(|at| image[at..].starts_with(&data))
    };
    assert!(at_page("program") && !at_page("data"));
    let pack = ["pack", "rootfs", "none.cramfs", "--lossy", "-O", "pointers=extended", "-O", "in-place=none"];
    names.fixture.run(pack).failed(2, &["in-place", "none"]);
}

#[test]
fn header_and_blocks_of_a_cloop_image_may_be_two_files() {
    let Some(peer) = peer("create_compressed_fs") else { return };
    let names = Names::new();
    let text: String = (0..40_000).map(|n: u32| format!("line {n} ")).collect();
    names.write("disk.img", &text);
    let split = |run: Run, name: &str| {
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let header = std::fs::read(names.path(&format!("{name}.header"))).unwrap();
        let blocks = std::fs::read(names.path(&format!("{name}.blocks"))).unwrap();
        std::fs::write(names.path(&format!("{name}.cloop")), [&header[..], &blocks].concat()).unwrap();
        header
    };
    let line = |name: &str| format!("-q -B 65536 -S {name}.header disk.img {name}.blocks");
    let ours = split(names.ours("create_compressed_fs", &line("ours")), "ours");
    let theirs = split(names.theirs(&peer, &words(&line("theirs")), None), "theirs");
    // The first offset is where blocks begin: behind the header.
    assert_eq!((ours.len(), &ours[..144]), (theirs.len(), &theirs[..144]));
    for name in ["ours", "theirs"] {
        names.ours("extract_compressed_fs", &format!("{name}.cloop {name}.back")).ended(0);
        let back = std::fs::read(names.path(&format!("{name}.back"))).unwrap();
        assert!(back.starts_with(text.as_bytes()), "{name}");
    }
    let piped = names.ours("create_compressed_fs", "-q -B 65536 -S piped.header disk.img -");
    assert!(piped.stdout == std::fs::read(names.path("ours.blocks")).unwrap(), "{}", piped.stderr);
}
