//! Options that change the effect of others, by packfs under the name of a tool and by the tool
//! itself.

use super::fixture::Run;
use super::names::{Names, words};
use packfs_testkit::peer_since;
use rustix::fs::XattrFlags;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

fn archive(names: &Names) -> PathBuf {
    let path = names.path("a.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&path).args(["-C", "rootfs", "bin", "usr/bin/tool"]).current_dir(names.path(""));
    assert!(tar.status().unwrap().success());
    path
}

#[test]
fn sources_that_are_links_stay_links_and_folders_keep_their_attributes() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    symlink("rootfs/etc", names.path("folder")).unwrap();
    symlink("rootfs/etc/os-release", names.path("file")).unwrap();
    symlink("missing", names.path("null")).unwrap();
    rustix::fs::setxattr(names.path("rootfs/etc"), "user.a", b"1", XattrFlags::empty()).unwrap();
    names.write("list", "folder\nrootfs/etc\nrootfs/etc/os-release\nfile\nnull\n");
    for line in [
        "folder OUT -root-time 5",
        "file OUT -root-time 5",
        "null OUT -root-time 5",
        "folder/ OUT",
        "folder OUT -tarstyle -root-time 5",
        "rootfs/etc/os-release null OUT -no-strip -root-time 5",
        "- OUT -cpiostyle -root-time 5",
    ] {
        names.same_image(&peer, "mksquashfs", line, Some(&names.path("list")));
    }
}

#[test]
fn defaults_of_folders_are_those_of_the_root_and_links_of_archives_have_all_permissions() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    let tar = archive(&names);
    for line in [
        "rootfs OUT -default-mode 4755 -default-uid 5 -default-gid 6",
        "rootfs OUT -root-uid 3 -default-uid 5 -default-gid 6 -root-gid 4 -uid-gid-offset 10",
        "rootfs/etc rootfs/usr OUT -root-mode 700 -default-mode u=rwx,go= -root-time 5",
        "- OUT -tar -root-time 5 -all-time 6",
        "- OUT -tar -default-mode g=u -root-mode o= -default-uid 7 -all-time 6",
        "- OUT -tar -root-mode o= -default-mode g=u -default-uid 7 -root-uid 8 -repro",
    ] {
        names.same_image(&peer, "mksquashfs", line, Some(&tar));
    }
    let bits = |name: &str| {
        let bytes = std::fs::read(names.path(name)).unwrap();
        u16::from_le_bytes([bytes[24], bytes[25]]) & 0b1010_0000
    };
    for line in ["- OUT -tar -all-time 6 -root-time 6", "- OUT -tar -all-time 6 -root-time 6 -no-exports"] {
        names.same_image(&peer, "mksquashfs", line, Some(&tar));
        assert_eq!(bits("ours.img"), bits("theirs.img"), "exportable, and tails in fragments: {line}");
    }
    let run = |name: &str| names.ours_with("sqfstar", &["-repro", name], Some(&tar)).ended(0);
    run("one.img");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    run("two.img");
    assert!(std::fs::read(names.path("one.img")).unwrap() == std::fs::read(names.path("two.img")).unwrap());
}

#[test]
fn attributes_are_those_of_the_last_option_and_of_definitions_without_effect() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    rustix::fs::setxattr(names.path("rootfs/etc"), "user.a", b"1", XattrFlags::empty()).unwrap();
    for line in [
        "rootfs OUT -no-xattrs -xattrs-add user.b=2",
        "rootfs OUT -no-xattrs -xattrs-exclude b",
        "rootfs OUT -xattrs -no-xattrs",
        "rootfs OUT -force-file-mode =r -p '/a S 5 700 0 0 etc'",
        "rootfs OUT -regex -wildcards -e 'etc/*'",
        "rootfs OUT -wildcards -regex -e '^etc$'",
        "rootfs OUT -no-hardlinks -p '/a F 5 600 0 0 echo a' -p '/b L a'",
        "rootfs OUT -action xattrs-add(trusted.e=5)@type(l)",
        "rootfs OUT -p 'etc d 755 0 0' -p 'etc x user.c=3' -p '/ d 700 0 0' -p '/ x user.d=4'",
    ] {
        names.same_image(&peer, "mksquashfs", line, None);
    }
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let names = Names::new();
    names.ours("mksquashfs", "rootfs a.img").ended(0);
    let refused = |tool: &str, line: &str| {
        let ours = names.ours(tool, line);
        assert_eq!((ours.code, ours.text()), (Some(1), ""), "{tool} {line}");
        assert!(!names.path("new.img").exists() && !names.path("squashfs-root").exists(), "{tool} {line}");
        if let Some(peer) = peer_since(tool, "4.7") {
            let theirs: Run = names.theirs(&peer, &words(line), None);
            assert_eq!(theirs.code, Some(1), "{tool} {line}\n{}", theirs.stderr);
        }
    };
    for line in [
        "rootfs new.img -xattrs-add user.a=1 -no-xattrs",
        "rootfs new.img -no-progress -percentage",
        "rootfs new.img -progress -no-progress",
        "rootfs - -stream -percentage",
        "rootfs - -stream -progress",
        "rootfs - -stream -info",
        "rootfs - -stream -offset 4096",
        "rootfs new.img -processors 0",
        "rootfs new.img -p '/new l rootfs/etc'",
        "rootfs new.img -e",
        "rootfs new.img -pd 'd 755 0 0 more'",
    ] {
        refused("mksquashfs", line);
    }
    for line in [
        "-strict-errors -ignore-errors a.img",
        "-strict-errors -no-exit-code -ls a.img",
        "-processors 0 a.img",
        "-exclude-list ; a.img",
        "-d '' a.img etc",
    ] {
        refused("unsquashfs", line);
    }
}

#[test]
fn numbers_may_have_blanks_before_them_and_all_suffixes_of_the_tool() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    for line in [
        "rootfs OUT -b 32kb",
        "rootfs OUT -b 1mbytes -all-time ' 7'",
        "rootfs OUT -b ' 8kB' -force-uid ' 5' -Xstrategy fixed,",
    ] {
        names.same_image(&peer, "mksquashfs", line, None);
    }
}

#[test]
fn links_in_the_place_of_folders_are_neither_followed_nor_replaced() {
    let names = Names::new();
    names.ours("mksquashfs", "rootfs a.img").ended(0);
    std::fs::create_dir_all(names.path("at/real")).unwrap();
    symlink("real", names.path("at/usr")).unwrap();
    let run = names.ours("unsquashfs", "-f -d at a.img");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("\"at/usr\" is in the place of a directory"), "{}", run.stderr);
    assert!(names.path("at/usr").is_symlink() && !names.path("at/etc").exists());
    names.ours("unsquashfs", "-f -d at a.img etc").ended(0);
}

#[test]
fn times_are_listed_in_zones_by_name_and_without_rules() {
    let Some(peer) = peer_since("unsquashfs", "4.7") else { return };
    let names = Names::new();
    names.ours("mksquashfs", "rootfs a.img -mkfs-time 0").ended(0);
    let listed_in = |zone: &str, mut command: Command| {
        let out = command.args(["-s", "a.img"]).current_dir(names.path("")).env("TZ", zone).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    let listed = |command| listed_in("ABC5DEF", command);
    let ours = listed(Command::new(names.path("bin/unsquashfs")));
    assert!(ours.contains("Wed Dec 31 19:00:00 1969"), "{ours}");
    assert_eq!(ours, listed(peer.command(&[])));
    // The database of zones may be missing.
    if std::path::Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        let ours = listed_in("Asia/Tokyo", Command::new(names.path("bin/unsquashfs")));
        assert!(ours.contains("Thu Jan  1 09:00:00 1970"), "{ours}");
    }
}

#[test]
fn folders_of_other_filesystems_are_left_out_of_each_source() {
    if !packfs_testkit::is_root() {
        packfs_testkit::skip("mounting a filesystem needs root");
        return;
    }
    let names = Names::new();
    std::fs::create_dir_all(names.path("beside")).unwrap();
    for (line, place) in [
        ("rootfs a.img", "usr"),
        ("rootfs beside a.img", "rootfs/usr"),
        ("rootfs a.img -keep-as-directory", "rootfs/usr"),
        ("./rootfs a.img -tarstyle", "rootfs/usr"),
    ] {
        for (option, is_there) in [("-one-file-system", true), ("-one-file-system-x", false)] {
            let line = format!("mount -t tmpfs none rootfs/usr && bin/mksquashfs {line} -noappend {option}");
            let mut run = Command::new("unshare");
            run.args(["-m", "sh", "-c", &line]).current_dir(names.path(""));
            let run = Run::of(run.output().unwrap());
            assert_eq!(run.code, Some(0), "{line}\n{}", run.stderr);
            let list = names.ours("unsquashfs", "-ls -d _ a.img").text().to_owned();
            assert_eq!(list.lines().any(|row| row == format!("_/{place}")), is_there, "{line}\n{list}");
            assert!(!list.contains(&format!("{place}/")), "{line}\n{list}");
        }
    }
}

#[test]
fn ordinary_users_own_what_they_unpack_and_hear_of_other_losses() {
    let names = Names::new();
    names.ours("mksquashfs", "rootfs a.img -force-uid 7 -force-file-mode 4755").ended(0);
    let for_all = || std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(names.path(""), for_all()).unwrap();
    let as_nobody = |line: &str| {
        let words = words(line).into_iter();
        names.fixture.run_as_nobody(["as", "unsquashfs", "-n"].into_iter().chain(words))
    };
    as_nobody("-strict-errors -no-xattrs -d own a.img").ended(0);
    if packfs_testkit::is_root() {
        std::fs::create_dir(names.path("other")).unwrap();
        std::fs::set_permissions(names.path("other"), for_all()).unwrap();
        let run = as_nobody("-no-xattrs -d other a.img");
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains("failed to set attributes of other"), "{}", run.stderr);
    }
}
