//! Archives and images as sources of mkfs.erofs, by packfs and by the tool.

use super::names::{Names, words};
use super::oci_made::tar;
use packfs_testkit::{is_root, peer, peer_since, skip};
use std::process::Command;

/// Makes an archive of a folder by GNU tar.
#[track_caller]
fn archive(names: &Names, name: &str, args: &[&str]) {
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(names.path(name)).args(args).current_dir(names.path(""));
    assert!(tar.status().unwrap().success());
}

#[test]
fn an_index_of_an_archive_has_the_tree_of_a_whole_image() {
    let names = Names::new();
    archive(&names, "a.tar", &["-C", "rootfs", "."]);
    let tar = names.path("a.tar");
    assert_eq!(names.ours_with("mkfs.erofs", &words("--tar=f -T5 whole.img"), Some(&tar)).code, Some(0));
    for line in ["--tar=i -T5 --quiet stream.img", "--tar=i -T5 --quiet -zlz4 -C65536 file.img a.tar"] {
        let ours = names.ours_with("mkfs.erofs", &words(line), Some(&tar));
        assert_eq!((ours.code, ours.text()), (Some(0), ""), "{line}\n{}", ours.stderr);
    }
    for image in ["stream.img", "file.img"] {
        names.fixture.run(["diff", image, "whole.img", "--device", "a.tar"]).done();
        assert!(names.path(image).metadata().unwrap().len() < 20_000);
    }
    assert_eq!(names.ours("mkfs.erofs", "--tar=i -T5 --quiet -U clear again.img a.tar").code, Some(0));
    let both = [std::fs::read(names.path("again.img")).unwrap(), std::fs::read(&tar).unwrap()].concat();
    std::fs::write(names.path("both.img"), both).unwrap();
    names.fixture.run(["diff", "both.img", "whole.img"]).done();
}

#[test]
fn an_index_needs_files_that_are_stored_as_they_are() {
    let names = Names::new();
    let big = std::fs::File::create(names.path("rootfs/sparse")).unwrap();
    big.set_len(1 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&big, b"data", 500_000).unwrap();
    archive(&names, "sparse.tar", &["-S", "-C", "rootfs", "."]);
    archive(&names, "a.tar.gz", &["-z", "-C", "rootfs", "etc"]);
    for (line, code, word) in [
        ("--tar=i new.img sparse.tar", 1, "--tar=f"),
        ("--tar=i new.img a.tar.gz", 1, "--tar=f"),
        ("--tar=i --quiet --ungzip=raw.tar new.img a.tar.gz", 0, ""),
        ("--tar=x new.img a.tar.gz", 1, "headerball"),
        ("--tar=i new.img a.tar.gz b.tar", 1, "unexpected argument"),
    ] {
        let ours = names.ours("mkfs.erofs", line);
        assert_eq!(ours.code, Some(code), "{line}\n{}", ours.stderr);
        assert!(ours.stderr.contains(word), "{line}\n{}", ours.stderr);
    }
    names.fixture.run(["check", "--data", "new.img", "--device", "raw.tar"]).done();
}

#[test]
fn directories_that_an_archive_lacks_are_those_of_the_tool() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    let names = Names::new();
    archive(&names, "a.tar", &["-C", "rootfs", "etc/os-release"]);
    // The root and a directory are described, directories below them are not.
    let made = "mkdir -p deep/a/b/c deep/d/e && echo x >deep/a/b/c/f && echo x >deep/d/e/f && \
        chmod 755 deep deep/d && chmod 2775 deep/a && touch -d @7 deep deep/a";
    assert!(Command::new("sh").args(["-c", made]).current_dir(names.path("")).status().unwrap().success());
    archive(&names, "b.tar", &["-C", "deep", "--no-recursion", ".", "a", "a/b/c/f", "d/e/f", "d"]);
    for line in [
        "--tar=f -T5 OUT a.tar",
        "--tar=f -T5 --all-root OUT a.tar",
        "--tar=f -T5 --force-uid=9 OUT a.tar",
        "--tar=f -T5 --mkfs-time OUT b.tar",
        "--tar=f -T5 --mkfs-time --uid-offset=7 OUT b.tar",
    ] {
        names.same_image(&peer, "mkfs.erofs", line, None);
    }
    assert_eq!(names.ours("mkfs.erofs", "--tar=f -T5 b.img b.tar").code, Some(0));
    let list = names.fixture.run(["ls", "-lR", "b.img"]);
    let modes: Vec<&str> = list.text().lines().filter_map(|line| line.split(' ').next()).collect();
    let [dir, file] = ["drwxr-xr-x", "-rw-r--r--"];
    assert_eq!(
        modes,
        [dir, "drwxrwsr-x", "drwxrwxr-x", "drwxrwxr-x", file, dir, dir, file],
        "{}",
        list.text()
    );
}

#[test]
fn marks_of_aufs_in_a_directory_are_files_as_in_the_tool() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    let names = Names::new();
    names.write("rootfs/.wh.gone", "");
    names.same_image(&peer, "mkfs.erofs", "--aufs -T5 OUT rootfs", None);
    let list = names.fixture.run(["ls", "ours.img"]);
    assert!(list.text().contains(".wh.gone"), "{}", list.text());
}

#[test]
fn stripping_leaves_out_whiteouts_and_opaque_marks_as_in_the_tool() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    if !is_root() {
        skip("whiteouts are devices, which need root");
        return;
    }
    let names = Names::new();
    let made = "mkdir -p up/d up/moved && mknod up/d/x c 0 0 && echo 1 >up/d/y && \
        setfattr -n trusted.overlay.opaque -v y up/d && setfattr -n trusted.overlay.redirect -v /z up/moved";
    assert!(Command::new("sh").args(["-c", made]).current_dir(names.path("")).status().unwrap().success());
    for line in ["--ovlfs-strip -T5 OUT up", "--ovlfs-strip=0 -T5 OUT up"] {
        names.same_image(&peer, "mkfs.erofs", line, None);
    }
}

#[test]
fn layers_hide_what_lies_below_as_in_the_tool() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    if !is_root() {
        skip("whiteouts are devices, which need root");
        return;
    }
    let names = Names::new();
    let made = "mkdir -p lower/d lower/hidden upper/d upper/hidden && echo 1 > lower/d/one && \
        echo 2 > lower/d/two && echo 3 > lower/hidden/x && echo 22 > upper/d/two && \
        mknod upper/d/one c 0 0 && setfattr -n trusted.overlay.opaque -v y upper/hidden && \
        chmod 755 lower upper && find lower upper -exec touch -h -d @7 {} +";
    assert!(Command::new("sh").args(["-c", made]).current_dir(names.path("")).status().unwrap().success());
    let layers = "lower.img upper.img";
    // The tool's index takes chunks and whole blocks, its copies of data no chunks.
    for (line, option) in [
        ("--ovlfs-strip=1 --quiet", "chunks=4096"),
        ("--ovlfs-strip --clean=data --quiet", "inline-tails=off"),
    ] {
        for layer in ["lower", "upper"] {
            let image = format!("{layer}.img");
            let args = ["pack", layer, &image, "--format", "erofs", "-c", "none", "-O", option];
            names.fixture.run(args).done();
        }
        let ours = names.ours("mkfs.erofs", &format!("{line} ours.img {layers}"));
        let theirs = names.theirs(&peer, &words(&format!("{line} theirs.img {layers}")), None);
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{}{}", ours.stderr, theirs.stderr);
        let devices = ["--device-a", "lower.img", "--device-a", "upper.img"];
        let others = ["--device-b", "lower.img", "--device-b", "upper.img"];
        let mut args = vec!["diff", "ours.img", "theirs.img"];
        if !line.contains("clean") {
            args.extend(devices.iter().chain(&others));
        }
        // The tool gives the root its own mode and time.
        let diff = names.fixture.run(args).ended(1);
        let is_known = |line: &str| line.starts_with("~ /: ") || line.ends_with(" names");
        assert!(diff.text().lines().filter(|line| !line.is_empty()).all(is_known), "{}", diff.text());
    }
    assert_eq!(names.ours("mkfs.erofs", &format!("--quiet --clean=data all.img {layers}")).code, Some(0));
    let list = names.fixture.run(["ls", "-lR", "all.img"]);
    assert!(list.text().contains("d/one") && !list.text().contains("hidden/x"), "{}", list.text());
    for line in ["--clean=rvsp new.img", "--clean=0 new.img", "--offset=4096 new.img"] {
        let ours = names.ours("mkfs.erofs", &format!("{line} {layers}"));
        assert_eq!(ours.code, Some(1), "{line}\n{}", ours.stderr);
    }
    names.ours("mkfs.erofs", "new.img lower.img upper").ended(1);
}

#[test]
fn digests_of_files_are_those_that_the_tool_verifies() {
    let (Some(make), Some(check)) = (peer("mkfs.erofs"), peer_since("fsck.erofs", "1.9.3")) else { return };
    let names = Names::new();
    for options in [
        "--xattr-inode-digest",
        "--xattr-inode-digest=trusted.digest --xattr-prefix=user.o",
        "--xattr-inode-digest=user.digest -zlz4 -C65536 -Efragments",
    ] {
        let ours = names.ours("mkfs.erofs", &format!("--quiet -T5 {options} ours.img rootfs"));
        assert_eq!((ours.code, &*ours.stderr), (Some(0), ""), "{options}");
        names.fixture.run(["check", "--data", "ours.img"]).done();
        let verify = || names.theirs(&check, &["--xattr-inode-digest", "ours.img"], None);
        let whole = verify();
        assert_eq!(whole.code, Some(0), "{options}\n{}{}", whole.text(), whole.stderr);
        let mut bytes = std::fs::read(names.path("ours.img")).unwrap();
        let at = bytes.windows(7).position(|word| word == b"sha256:").unwrap();
        bytes[at + 7] ^= 1;
        std::fs::write(names.path("ours.img"), bytes).unwrap();
        assert_eq!(verify().code, Some(1), "{options}");
    }
    names.same_image(&make, "mkfs.erofs", "--xattr-inode-digest=trusted.digest -T5 OUT rootfs", None);
    archive(&names, "a.tar", &["-C", "rootfs", "."]);
    for line in ["--tar=f -T5 whole.img a.tar", "--tar=i -T5 index.img a.tar"] {
        let ours = names.ours("mkfs.erofs", &format!("--xattr-inode-digest=user.sum {line}"));
        assert_eq!(ours.code, Some(0), "{line}\n{}", ours.stderr);
    }
    names.fixture.run(["diff", "index.img", "whole.img", "--device-a", "a.tar"]).done();
    for (option, image) in [("=user.", "new.img rootfs"), ("", "new.img whole.img")] {
        let ours = names.ours("mkfs.erofs", &format!("--xattr-inode-digest{option} {image}"));
        assert_eq!(ours.code, Some(1), "{option}\n{}", ours.stderr);
    }
}

#[test]
fn fsck_erofs_compares_files_with_their_digests() {
    let check = peer_since("fsck.erofs", "1.9.3");
    let names = Names::new();
    std::fs::File::create(names.path("rootfs/hole")).unwrap().set_len(200_000).unwrap();
    let verify = |line: &str| {
        let ours = names.ours("fsck.erofs", line);
        if let Some(check) = &check {
            let theirs = names.theirs(check, &words(line), None);
            assert_eq!(ours.code, theirs.code, "{line}\n{}\n{}", ours.stderr, theirs.stderr);
        }
        (ours.code, ours.stderr)
    };
    for option in
        ["--xattr-inode-digest", "--xattr-inode-digest=trusted.digest", "--xattr-inode-digest -zlz4"]
    {
        names.ours("mkfs.erofs", &format!("--quiet {option} sums.img rootfs")).ended(0);
        assert_eq!(verify("--xattr-inode-digest sums.img"), (Some(0), String::new()), "{option}");
        assert_eq!(verify("--xattr-inode-digest --path=/etc sums.img"), (Some(0), String::new()), "{option}");
        let mut bytes = std::fs::read(names.path("sums.img")).unwrap();
        let at = bytes.windows(7).position(|word| word == b"sha256:").unwrap();
        bytes[at + 7] ^= 1;
        std::fs::write(names.path("sums.img"), &bytes).unwrap();
        let (code, text) = verify("--xattr-inode-digest sums.img");
        assert!(code == Some(1) && text.contains("digest MISMATCH"), "{option}\n{text}");
        assert_eq!(verify("--extract sums.img"), (Some(0), String::new()), "{option}");
        bytes[at] ^= 1;
        std::fs::write(names.path("sums.img"), &bytes).unwrap();
        let (code, text) = verify("--xattr-inode-digest sums.img");
        assert!(code == Some(1) && text.contains("unidentified digest xattr"), "{option}\n{text}");
    }
    names.ours("mkfs.erofs", "--quiet plain.img rootfs").ended(0);
    let (code, text) = verify("--xattr-inode-digest plain.img");
    assert!(code == Some(1) && text.contains("no inode digest xattrs"), "{text}");
}

#[test]
fn an_empty_folder_to_extract_to_is_refused() {
    let names = Names::new();
    names.fixture.run(["pack", "rootfs", "a.erofs"]).done();
    let ours = names.ours("fsck.erofs", "--extract= a.erofs").ended(1);
    assert!(ours.stderr.contains("empty value given for --extract=X"), "{}", ours.stderr);
    assert_eq!(names.ours("fsck.erofs", "--extract a.erofs").code, Some(0));
}

#[test]
fn whiteouts_of_new_and_opaque_directories_are_hidden_in_overlays() {
    let names = Names::new();
    if !is_root() {
        skip("whiteouts are devices, which need root");
        return;
    }
    let made = "mkdir -p low/d low/n up/d up/fresh ml mu mo && echo 1 >low/d/x && echo 1 >low/n/a && \
        setfattr -n trusted.overlay.opaque -v y up/d && mknod up/d/x c 0 0 && echo 2 >up/d/keep && \
        mknod up/fresh/old c 0 0 && echo 2 >up/fresh/new && mknod up/gone c 0 0";
    assert!(Command::new("sh").args(["-c", made]).current_dir(names.path("")).status().unwrap().success());
    let layer = [("d/", ""), ("d/.wh..wh..opq", ""), ("d/.wh.x", ""), ("d/keep", "2"), ("fresh/", "")];
    let layer = [&layer[..], &[("fresh/.wh.old", ""), ("fresh/new", "2"), (".wh.gone", "")]].concat();
    std::fs::write(names.path("up.tar"), tar(&layer)).unwrap();
    assert_eq!(names.ours("mkfs.erofs", "low.erofs low").code, Some(0));
    for (door, is_made) in [
        ("mkfs.erofs", names.ours("mkfs.erofs", "up.erofs up")),
        ("--aufs", names.ours("mkfs.erofs", "--tar=f --aufs up.erofs up.tar")),
        ("pack", names.fixture.run(["pack", "-q", "--whiteouts", "overlayfs", "up.tar", "up.erofs"])),
    ] {
        assert_eq!(is_made.code, Some(0), "{door}: {}", is_made.stderr);
        let opened = packfs::open(names.path("up.erofs")).unwrap();
        for dir in ["", "d", "fresh"] {
            let xattrs = opened.volume().xattrs(opened.find(dir).unwrap()).unwrap();
            assert!(xattrs.contains_key(&b"trusted.overlay.origin"[..]), "{door}: {dir}");
        }
        let mounted = "mount -o loop,ro low.erofs ml && mount -o loop,ro up.erofs mu && \
            mount -t overlay -o lowerdir=mu:ml none mo; ls mo/d mo/fresh; echo $?; umount mo; umount mu; umount ml";
        let run =
            Command::new("unshare").args(["-m", "sh", "-c", mounted]).current_dir(names.path("")).output();
        let run = run.unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        if !run.stderr.is_empty() && !text.contains("keep") {
            skip("EROFS images are not mounted here");
            return;
        }
        assert_eq!(text, "mo/d:\nkeep\n\nmo/fresh:\nnew\n0\n", "{door}");
    }
}
