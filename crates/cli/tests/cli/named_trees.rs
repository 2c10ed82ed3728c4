//! Tools that copy or measure trees of this machine: mkzftree and compsize.

use super::names::{Names, words};
use packfs_testkit::{is_root, peer};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Adds files of all kinds to the tree.
fn fill(names: &Names) {
    std::fs::write(names.path("rootfs/zeros"), vec![0; 200_000]).unwrap();
    let noise: Vec<u8> = (0..70_000_u64).map(|n| ((n * n * 2_654_435_761) >> 13) as u8).collect();
    std::fs::write(names.path("rootfs/noise"), noise).unwrap();
    names.write("rootfs/nothing", "");
    let pipe = Command::new("mkfifo").arg(names.path("rootfs/pipe")).status().unwrap();
    assert!(pipe.success());
}

#[test]
fn trees_of_mkzftree_are_compressed_and_come_back() {
    let Some(peer) = peer("mkzftree") else { return };
    let names = Names::new();
    fill(&names);
    for options in ["", "-z 9 -p 2", "-f", "-z1 -q", "-l", "-x -v"] {
        let line = |out: &str| format!("{options} rootfs {out}");
        let (ours, theirs) =
            (names.ours("mkzftree", &line("ours")), names.theirs(&peer, &words(&line("theirs")), None));
        assert_eq!((ours.code, theirs.code), (Some(0), Some(0)), "{options}\n{}", ours.stderr);
        // Each reads what the other wrote.
        let back = |run: super::fixture::Run| assert_eq!(run.code, Some(0), "{options}\n{}", run.stderr);
        back(names.theirs(&peer, &words("-u ours ours.back"), None));
        back(names.ours("mkzftree", "-u theirs theirs.back"));
        // The tool gives symbolic links no times.
        let diff = names.fixture.run(["diff", "--no-times", "ours.back", "theirs.back"]);
        assert_eq!(diff.code, Some(0), "{options}\n{}{}", diff.text(), diff.stderr);
        if options != "-l" {
            assert_eq!(names.ours("mkzftree", "-u ours own.back").code, Some(0));
            let diff = names.fixture.run(["diff", "rootfs", "own.back"]);
            std::fs::remove_dir_all(names.path("own.back")).unwrap();
            assert_eq!(diff.code, Some(0), "{options}\n{}{}", diff.text(), diff.stderr);
            let len = |path: &str| std::fs::metadata(names.path(path)).unwrap().len();
            assert!(len("ours/usr/bin/tool") * 2 < 300_000 && len("ours/zeros") < 100);
            let [one, other] = ["tool", "hard"]
                .map(|name| std::fs::metadata(names.path("ours/usr/bin").join(name)).unwrap());
            assert_eq!(one.ino(), other.ino(), "{options}");
        }
        for name in ["ours", "theirs", "ours.back", "theirs.back"] {
            std::fs::remove_dir_all(names.path(name)).unwrap();
        }
    }
}

#[test]
fn mkzftree_takes_single_files_and_files_of_older_trees_and_fails_as_the_tool_does() {
    let Some(peer) = peer("mkzftree") else { return };
    let names = Names::new();
    fill(&names);
    assert_eq!(names.ours("mkzftree", "rootfs old").code, Some(0));
    names.write("rootfs/etc/os-release", "NAME=changed since\n");
    assert_eq!(names.ours("mkzftree", "-C old rootfs new").code, Some(0));
    let ino = |path: &str| std::fs::metadata(names.path(path)).unwrap().ino();
    assert_eq!(ino("old/usr/bin/same"), ino("new/usr/bin/same"));
    assert_ne!(ino("old/etc/os-release"), ino("new/etc/os-release"));
    assert_eq!(std::fs::read(names.path("new/etc/os-release")).unwrap(), b"NAME=changed since\n");
    assert_eq!(names.ours("mkzftree", "-F rootfs/usr/bin/tool tool.z").code, Some(0));
    assert_eq!(names.ours("mkzftree", "-u -F tool.z tool").code, Some(0));
    assert!(
        std::fs::read(names.path("tool")).unwrap()
            == std::fs::read(names.path("rootfs/usr/bin/tool")).unwrap()
    );
    std::fs::create_dir(names.path("there")).unwrap();
    for line in [
        "rootfs",
        "missing new2",
        "rootfs there",
        "rootfs/zeros new2",
        "-z 0 rootfs new2",
        "--none rootfs new2",
    ] {
        let (ours, theirs) = (names.ours("mkzftree", line), names.theirs(&peer, &words(line), None));
        assert_eq!(ours.code, theirs.code, "{line}\n{}\n{}", ours.stderr, theirs.stderr);
        assert!(ours.code != Some(0));
    }
    assert_eq!(names.ours("mkzftree", "-q missing new2").stderr, "");
}

#[test]
fn a_tree_of_mkzftree_packs_to_an_image_that_decodes_it() {
    let names = Names::new();
    assert_eq!(names.ours("mkzftree", "rootfs z").code, Some(0));
    let Some(iso) = peer("genisoimage").or_else(|| peer("xorrisofs")) else { return };
    names.theirs(&iso, &words("-quiet -R -z -o a.iso z"), None).ended(0);
    let cat = names.fixture.run(["cat", "a.iso", "usr/bin/tool"]);
    assert!(cat.stdout == std::fs::read(names.path("rootfs/usr/bin/tool")).unwrap(), "{}", cat.stderr);
}

#[test]
fn figures_are_printed_to_the_letter_of_compsize() {
    let (Some(compsize), Some(make)) = (peer("compsize"), peer("mkfs.btrfs")) else { return };
    let names = Names::new();
    let driver = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !is_root() || !driver.contains("btrfs") {
        packfs_testkit::skip("mounting btrfs needs root and the driver");
        return;
    }
    fill(&names);
    std::fs::File::create(names.path("disk.img")).unwrap().set_len(160 << 20).unwrap();
    assert_eq!(names.theirs(&make, &words("-q disk.img"), None).code, Some(0));
    std::fs::create_dir(names.path("mnt")).unwrap();
    let shell = |script: &str| {
        let run = Command::new("sh").args(["-ec", script]).current_dir(names.path("")).output().unwrap();
        assert!(run.status.success(), "{script}: {}", String::from_utf8_lossy(&run.stderr));
    };
    shell("mount -o loop,compress-force=zstd disk.img mnt && cp -a rootfs mnt/a && sync -f mnt");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        shell(
            "mount -o remount,compress=lzo mnt && cp -a rootfs mnt/b && cp --reflink=always -a mnt/a/usr mnt/c && \
             dd if=/dev/zero of=mnt/b/noise bs=4096 seek=2 count=1 conv=notrunc status=none && sync -f mnt",
        );
        for line in [
            "mnt",
            "-b mnt",
            "-b -x mnt/a",
            "mnt/a/usr/bin/tool",
            "-b mnt/a mnt/c",
            "mnt/a/nothing",
            "--bytes mnt/b",
            "mnt/none",
        ] {
            let (ours, theirs) = (names.ours("compsize", line), names.theirs(&compsize, &words(line), None));
            assert_eq!(ours.code, theirs.code, "{line}\n{}\n{}", ours.stderr, theirs.stderr);
            assert_eq!(ours.text(), theirs.text(), "{line}");
        }
        let json = names.fixture.run(["info", "--compression", "--json", "mnt"]).json();
        let theirs = names.theirs(&compsize, &words("-b mnt"), None);
        let total = theirs.text().lines().find(|line| line.starts_with("TOTAL")).unwrap().to_owned();
        let figures = ["disk", "uncompressed", "referenced"].map(|key| json[0]["total"][key].to_string());
        assert_eq!(total.split_whitespace().skip(2).collect::<Vec<_>>(), figures);
    }));
    shell("umount mnt");
    outcome.unwrap();
    let whole = names.ours("compsize", "-b disk.img").ended(0);
    assert!(whole.text().contains("\nzstd ") && whole.text().contains("\nTOTAL "), "{}", whole.text());
    for line in ["", "--none x", "rootfs", "missing"] {
        assert_eq!(names.ours("compsize", line).code, Some(1), "{line}");
    }
    assert_eq!(names.ours("compsize", "--help").code, Some(0));
}
