//! The lines of callers, run by packfs under the name of a tool and by the tool itself.

use super::fixture::{Fixture, Run};
use packfs_testkit::{Peer, is_root, peer, peer_since};
use std::path::Path;
use std::process::{Command, Stdio};

/// A folder with a tree, and the program under the names of all tools.
pub struct Names {
    pub fixture: Fixture,
}

impl Names {
    pub fn new() -> Self {
        let fixture = Fixture::with_tree();
        fixture.run(["install-names", "bin"]).done();
        fixture.write("rootfs/tmp/below/x", "x");
        fixture.write("rootfs/.hidden", "h");
        Names { fixture }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.fixture.path(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn prepared(&self, mut command: Command, stdin: Option<&Path>) -> Run {
        command.current_dir(self.path("")).env_remove("SOURCE_DATE_EPOCH").env("TZ", "UTC");
        match stdin {
            Some(path) => command.stdin(std::fs::File::open(path).unwrap()),
            None => command.stdin(Stdio::null()),
        };
        Run::of(command.output().unwrap())
    }

    /// Runs packfs as a tool.
    pub fn ours(&self, name: &str, line: &str) -> Run {
        self.ours_with(name, &words(line), None)
    }

    pub fn ours_with(&self, name: &str, args: &[&str], stdin: Option<&Path>) -> Run {
        let mut command = Command::new(self.path("bin").join(name));
        command.args(args);
        self.prepared(command, stdin)
    }

    pub fn theirs(&self, peer: &Peer, args: &[&str], stdin: Option<&Path>) -> Run {
        let args: Vec<&dyn AsRef<std::ffi::OsStr>> = args.iter().map(|arg| arg as _).collect();
        self.prepared(peer.command(&args), stdin)
    }

    /// Runs a line by both, with `OUT` for the image, and compares the trees.
    #[track_caller]
    pub fn same_image(&self, peer: &Peer, name: &str, line: &str, stdin: Option<&Path>) {
        let run = |out: &str| {
            let _ = std::fs::remove_file(self.path(out));
            let line = line.replace("OUT", out);
            let args: Vec<String> = words(&line).iter().map(|word| word.to_string()).collect();
            args
        };
        let (ours, theirs) = (run("ours.img"), run("theirs.img"));
        let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
        let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
        let (ours, theirs) = (self.ours_with(name, &ours, stdin), self.theirs(peer, &theirs, stdin));
        assert_eq!(ours.code, theirs.code, "{name} {line}\n{}\n{}", ours.stderr, theirs.stderr);
        let offset = if line.contains("-offset 4096") { "4096" } else { "0" };
        let diff =
            self.fixture.run(["diff", "--offset-a", offset, "--offset-b", offset, "ours.img", "theirs.img"]);
        assert_eq!(diff.code, Some(0), "{name} {line}\n{}{}", diff.text(), diff.stderr);
    }
}

/// Splits a line at blanks; a word in single quotes is one.
pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    words
}

#[test]
fn lines_that_call_mksquashfs_make_the_same_tree() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    names.write("excludes", "usr/share\n# a comment\netc/*\n");
    names.write("plain", "usr/share\ntmp\n");
    names.write("sort", "rootfs/usr/bin 100\nusr/share -5\n");
    names.write("pseudo", "/dev D 7 755 0 0\ndev/console C 8 600 0 0 5 1\nmade F 9 644 1 2 echo made\n");
    for line in [
        // Yocto, Buildroot, OpenWrt, systemd-repart.
        "rootfs OUT -noappend -comp xz",
        "rootfs OUT -no-sparse -b 4096",
        "rootfs OUT -noappend -processors 2 -b 128K -nopad -comp gzip",
        "rootfs OUT -noappend -no-compression",
        "rootfs OUT -nopad -noappend -root-owned -comp xz -b 256k -p '/dev D 1 755 0 0' -p '/dev/console C 1 600 0 0 5 1' -processors 1",
        "rootfs OUT -noappend -comp zstd -Xcompression-level 3",
        // live-build, Tails, X2Go, archiso, lorax, livecd-tools, osbuild, kiwi.
        "rootfs OUT -wildcards -ef excludes -comp xz -sort sort -no-progress",
        "rootfs OUT -comp zstd -Xcompression-level 9 -b 1024K -no-exports -mem 512M -wildcards -ef excludes",
        "rootfs OUT -noappend -comp xz -Xbcj x86 -b 1M -Xdict-size 1M -no-progress -quiet",
        "rootfs OUT -comp xz -b 1M -Xdict-size 1M -no-recovery -no-progress",
        "rootfs OUT -comp gzip -regex -e '^usr$/^share$' .hidden",
        "rootfs OUT -root-becomes rootfs -wildcards -no-recovery",
        "rootfs OUT -noappend -b 1M -noI -noD -noF -noX -wildcards -e 'usr/bin/*'",
        // appimagetool, snapd, Apptainer, distrobuilder, Talos, dracut.
        "rootfs OUT -offset 4096 -comp zstd -root-owned -noappend -b 128K -mkfs-time 0",
        "rootfs OUT -noappend -comp xz -no-fragments -no-progress -all-root -no-xattrs",
        "rootfs/usr rootfs/etc OUT -noappend -mem 64M -processors 2 -comp gzip -quiet -percentage -all-root -root-time 5",
        "rootfs OUT -noappend -b 1M -no-exports -no-progress -no-recovery -comp lz4",
        "rootfs OUT -all-root -noappend -no-progress -comp xz -Xdict-size 100% -xattrs-exclude .* -p 'etc x security.selinux=label'",
        "rootfs OUT -no-xattrs -no-exports -noappend -no-recovery -always-use-fragments -no-progress -e rootfs/usr ./rootfs/tmp",
        // NixOS, stackinator, Armbian, compiler-explorer, Bottlerocket, Flatcar, ChromiumOS,
        // podman-hpc.
        "rootfs/etc rootfs/usr OUT -no-hardlinks -keep-as-directory -all-root -b 1048576 -comp xz -Xdict-size 100% -root-time 5",
        "rootfs OUT -keep-as-directory -root-time 5",
        "rootfs OUT -force-uid 7 -force-gid root -all-time 77 -no-recovery -noappend -Xcompression-level 3",
        "rootfs OUT -noappend -comp gzip -no-progress -wildcards -e 'tmp/*' 'usr/share/*'",
        "rootfs OUT -all-root -progress -comp zstd -Xcompression-level 7 -noappend",
        "rootfs OUT -noappend -pf pseudo -xattrs-exclude ^btrfs. -e etc/os-release",
        "rootfs OUT -noappend -mkfs-time 0 -all-time 0",
        "rootfs OUT -all-root -noappend -no-recovery -no-exports -exit-on-error -comp lz4 -root-mode 0755",
        "rootfs OUT -no-progress -comp lz4 -Xhc -no-exports -noappend -no-fragments -no-duplicates",
        "rootfs OUT -e usr/share -e tmp",
        "rootfs OUT -ef plain -force-dir-mode 0700 -force-file-mode u=rw,go= -max-depth 2",
        "rootfs OUT -uid-gid-offset 10 -root-uid 3 -root-gid 4 -wildcards -e '... x'",
        "rootfs/usr/bin rootfs/etc OUT -no-strip -root-time 9",
        "rootfs OUT -p 'new/dir D 5 700 1 1' -pd 'D 6 711 2 2' -p 'link S 4 777 0 0 etc' -p 'etc M 3 700 9 9'",
    ] {
        names.same_image(&peer, "mksquashfs", line, None);
    }
}

#[test]
fn mksquashfs_fails_where_the_tool_fails() {
    let Some(peer) = peer_since("mksquashfs", "4.7") else { return };
    let names = Names::new();
    names.ours("mksquashfs", "rootfs there.img -quiet -no-progress");
    names.write("no-image", "text");
    for line in [
        "rootfs new.img -comp none",
        "rootfs new.img -comp xz -comp gzip",
        "rootfs new.img -unknown",
        "rootfs new.img -b 5000",
        "rootfs new.img -comp zstd -Xhc",
        "rootfs no-image",
        "missing new.img",
        "rootfs new.img -p 'a q 1'",
        "rootfs",
        "rootfs new.img -wildcards -e /absolute",
        "rootfs new.img -pf missing",
    ] {
        let (ours, theirs) = (names.ours("mksquashfs", line), names.theirs(&peer, &words(line), None));
        assert_eq!(
            (ours.code, theirs.code),
            (Some(1), Some(1)),
            "{line}\n{}\n{}",
            ours.stderr,
            theirs.stderr
        );
        assert!(!names.path("new.img").exists(), "{line}");
    }
    let refused = names.ours("mksquashfs", "rootfs there.img");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("packfs pack --base"), "{}", refused.stderr);
}

#[test]
fn mksquashfs_prints_what_apptainer_reads() {
    let names = Names::new();
    let version = names.ours("mksquashfs", "-version");
    let first = version.text().lines().next().unwrap();
    let rest = first.strip_prefix("mksquashfs version ").unwrap();
    let (number, rest) = rest.split_once(' ').unwrap();
    assert!(number.split('.').all(|part| part.parse::<u32>().is_ok()) && number >= "4.6.0", "{first}");
    assert!(rest.starts_with('(') && rest.ends_with(')'), "{first}");
    let run = names.ours("mksquashfs", "rootfs out.img -quiet -percentage -noappend");
    let percents: Vec<u32> = run.text().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(percents.last(), Some(&100));
    assert!(percents.is_sorted(), "{percents:?}");
}

#[test]
fn source_date_epoch_clamps_and_excludes_other_times() {
    let names = Names::new();
    let run = |line: &str| {
        let mut command = Command::new(names.path("bin/mksquashfs"));
        command
            .args(words(line))
            .current_dir(names.path(""))
            .env("SOURCE_DATE_EPOCH", "1000")
            .env("TZ", "UTC");
        Run::of(command.output().unwrap())
    };
    assert_eq!(run("rootfs out.img -quiet -no-progress").code, Some(0));
    let stat = names.ours("unsquashfs", "-s out.img");
    assert!(
        stat.text().contains("Creation or last append time Thu Jan  1 00:16:40 1970\n"),
        "{}",
        stat.text()
    );
    let list = names.ours("unsquashfs", "-lls out.img");
    assert!(list.text().lines().all(|line| line.contains(" 1970-01-01 00:16 ")), "{}", list.text());
    assert_eq!(run("rootfs new.img -mkfs-time 5").code, Some(1));
}

#[test]
fn lists_and_the_superblock_are_printed_to_the_letter() {
    let (Some(make), Some(read)) = (peer_since("mksquashfs", "4.7"), peer_since("unsquashfs", "4.7")) else {
        return;
    };
    let names = Names::new();
    let devices = "-p '/null C 1 666 0 0 1 3' -p '/pipe I 1 600 7 0 f' -p '/sock I 1 600 0 7 s' -p '/sda B 1 660 0 6 8 16'";
    let made = [
        format!("rootfs a.img {devices} -comp xz -Xbcj x86"),
        "rootfs b.img -comp lz4 -Xhc -no-exports -no-fragments -no-xattrs".to_owned(),
        "rootfs c.img -noI -noD -noF -noX -tailends -no-duplicates -comp zstd -Xcompression-level 5"
            .to_owned(),
        "rootfs d.img -Xcompression-level 3 -Xwindow-size 10 -Xstrategy fixed,filtered".to_owned(),
    ];
    for line in &made {
        assert_eq!(names.theirs(&make, &words(line), None).code, Some(0), "{line}");
    }
    for line in [
        "-s a.img",
        "-stat b.img",
        "-s c.img",
        "-s d.img",
        "-mkfs-time a.img",
        "-l a.img",
        "-ls a.img usr/bin",
        "-ll a.img",
        "-lln a.img",
        "-lc a.img",
        "-llc -full a.img",
        "-UTC -lls -dest . a.img",
        "-ll -d '' a.img",
        "-n -ls -d _ a.img 'usr/*/*'",
        "-no-progress -dest . -lls a.img etc/os-release",
        "-ls -excludes a.img usr/bin",
        "-ls -max-depth 1 a.img",
        "-ls -follow a.img bin/tool",
        "-ls -regex a.img '^usr$/^s'",
        "-ls a.img none",
        "-cat a.img etc/os-release",
        "-cat a.img none",
        "-cat a.img etc",
        "-pf - b.img",
        "missing.img",
        "-match -ls a.img none",
    ] {
        let (ours, theirs) = (names.ours("unsquashfs", line), names.theirs(&read, &words(line), None));
        assert_eq!(ours.code, theirs.code, "{line}\n{}\n{}", ours.stderr, theirs.stderr);
        let [ours, theirs] = [&ours, &theirs].map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
        assert_eq!(ours, theirs, "{line}");
    }
}

#[test]
fn lines_that_call_unsquashfs_unpack_the_same_files() {
    let (Some(make), Some(read)) = (peer_since("mksquashfs", "4.7"), peer_since("unsquashfs", "4.7")) else {
        return;
    };
    let names = Names::new();
    assert_eq!(names.theirs(&make, &words("rootfs a.img"), None).code, Some(0));
    for line in [
        "-data-queue 16 -frag-queue 16 -no-xattrs -no-progress -force -dest OUT a.img etc/os-release",
        "-f -d OUT -n -user-xattrs -da 5 -fr 5 -p 1 a.img",
        "-no-xattrs -f -d OUT a.img",
        "-force -d OUT -no-progress a.img 'etc/*.d/x' 'usr/s*'",
        "-n -q -d OUT a.img none",
        "-follow -dest OUT a.img bin/tool usr/release",
        "-d OUT -excludes a.img usr/bin 'usr/*/doc'",
    ] {
        let run = |out: &str| line.replace("OUT", out);
        let (ours, theirs) = (run("ours"), run("theirs"));
        let (ours, theirs) = (names.ours("unsquashfs", &ours), names.theirs(&read, &words(&theirs), None));
        assert_eq!(ours.code, theirs.code, "{line}\n{}\n{}", ours.stderr, theirs.stderr);
        let diff = names.fixture.run(["diff", "ours", "theirs"]);
        assert_eq!(diff.code, Some(0), "{line}\n{}{}", diff.text(), diff.stderr);
        [std::fs::remove_dir_all(names.path("ours")), std::fs::remove_dir_all(names.path("theirs"))]
            .into_iter()
            .for_each(Result::unwrap);
    }
    let cat = names.ours("sqfscat", "a.img etc/os-release");
    assert_eq!((cat.code, cat.text()), (Some(0), "NAME=example\n"));
}

#[test]
fn a_pseudo_file_carries_an_image_through_a_pipe() {
    let names = Names::new();
    assert_eq!(names.ours("mksquashfs", "rootfs a.img -quiet -no-progress").code, Some(0));
    assert_eq!(names.ours("unsquashfs", "-no-progress -pf pseudo a.img").code, Some(0));
    let pseudo = names.path("pseudo");
    let line = words("- b.img -pf - -noappend -quiet -comp xz -no-fragments -mkfs-time 5");
    names.ours_with("mksquashfs", &line, Some(&pseudo)).ended(0);
    names.fixture.run(["diff", "a.img", "b.img"]).done();
}

#[test]
fn lines_that_call_sqfstar_make_the_same_tree() {
    let Some(star) = peer("sqfstar") else { return };
    let names = Names::new();
    let tar = names.path("a.tar");
    let mut made = Command::new("tar");
    made.arg("-cf").arg(&tar).args(["-C", "rootfs", "."]).current_dir(names.path(""));
    assert!(made.status().unwrap().success());
    names.same_image(&star, "sqfstar", "-comp xz -all-root -root-time 5 OUT", Some(&tar));
    names.same_image(&star, "sqfstar", "-no-xattrs -b 64K -root-time 5 OUT usr/bin 'etc/*'", Some(&tar));
}

#[test]
fn lines_that_call_mkfs_erofs_make_the_same_tree() {
    let Some(peer) = peer("mkfs.erofs") else { return };
    let names = Names::new();
    let tar = names.path("a.tar");
    let mut made = Command::new("tar");
    made.arg("-cf").arg(&tar).args(["-C", "rootfs", "."]).current_dir(names.path(""));
    assert!(made.status().unwrap().success());
    let zero = "00000000-0000-0000-0000-000000000000";
    let uuid = "c151c42a-73b2-46ad-8388-3cdf070fb1c4";
    for line in [
        "-zlz4hc OUT rootfs",
        "-zlz4hc,12 -T 5 -U ZERO -C 65536 -Ededupe -Efragments OUT rootfs",
        "-U UUID --quiet -zzstd,level=3 OUT rootfs",
        "OUT rootfs -z zstd,8 -Ededupe,all-fragments -C 65536",
        "--quiet -U ZERO -zlzma,109 -E ztailpacking -- OUT rootfs",
        "OUT rootfs --quiet -z lz4 --exclude-regex ^usr/share",
        "--exclude-regex=^tmp$ -L label OUT rootfs",
        "--exclude-path=usr/bin -C 65536 -E fragments -x -1 -U ZERO -T 0 -z deflate OUT rootfs",
        "-z lz4hc -b 4096 --mount-point /system -T 7 -U UUID OUT rootfs",
        "--quiet -Enoinline_data -U UUID OUT rootfs",
        "--all-root -T 1 -z lz4hc,12 -C 262144 OUT rootfs",
        "-d0 --quiet --all-root -zlz4hc,6 -Eall-fragments,fragdedupe=inode -C1048576 OUT rootfs",
        "-zlz4hc -Eztailpacking -Efragments -T 0 --all-root -L nix-store --mount-point=/nix/store OUT rootfs",
        "OUT rootfs",
        "--fsalignblks=512 OUT rootfs",
        "--chunksize=4096 -T 3 --mkfs-time OUT rootfs",
    ] {
        let line = line.replace("ZERO", zero).replace("UUID", uuid);
        names.same_image(&peer, "mkfs.erofs", &line, None);
    }
    let from_tar =
        format!("--tar=f --aufs --quiet -Enoinline_data -U {uuid} -b4096 -T0 --mkfs-time --sort=none OUT");
    names.same_image(&peer, "mkfs.erofs", &from_tar, Some(&tar));
    let help = names.ours("mkfs.erofs", "--help");
    assert!(
        ["--tar=", "mkfs-time", "--sort"].iter().all(|word| help.text().contains(word)),
        "{}",
        help.text()
    );
}

#[test]
fn erofs_images_are_described_and_checked_as_by_the_tools() {
    let (Some(make), Some(dump), Some(check)) = (peer("mkfs.erofs"), peer("dump.erofs"), peer("fsck.erofs"))
    else {
        return;
    };
    let names = Names::new();
    assert_eq!(names.theirs(&make, &words("-zlz4hc -U clear e.img rootfs"), None).code, Some(0));
    for line in [
        "-s e.img",
        "e.img",
        "--ls --path /usr/bin e.img",
        "--ls --path=/ e.img",
        "--path=/etc/os-release e.img",
        "--cat --path=/etc/os-release e.img",
    ] {
        let (ours, theirs) = (names.ours("dump.erofs", line), names.theirs(&dump, &words(line), None));
        assert_eq!(ours.code, theirs.code, "{line}\n{}", ours.stderr);
        assert_eq!(ours.text(), theirs.text(), "{line}");
    }
    assert_eq!(names.ours("fsck.erofs", "e.img").code, Some(0));
    assert_eq!(names.ours("fsck.erofs", "--extract e.img").code, Some(0));
    for (name, run) in [("ours", true), ("theirs", false)] {
        let line = format!("--extract={name} --overwrite e.img");
        let run =
            if run { names.ours("fsck.erofs", &line) } else { names.theirs(&check, &words(&line), None) };
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    names.fixture.run(["diff", "ours", "theirs"]).done();
    names.write("text", "not an image");
    let damaged = std::fs::read(names.path("e.img")).unwrap();
    std::fs::write(names.path("short.img"), &damaged[..3000]).unwrap();
    assert_eq!(names.theirs(&check, &["text"], None).code, Some(1));
    // The tool accepts a superblock with a wrong checksum if it finds the root behind it.
    for bad in ["text", "short.img"] {
        assert_eq!(names.ours("fsck.erofs", bad).code, Some(1), "{bad}");
    }
}

#[test]
fn lines_that_call_squashfs_tools_ng_make_the_same_tree() {
    let (Some(star), Some(make)) = (peer("tar2sqfs"), peer("gensquashfs")) else { return };
    let names = Names::new();
    let tar = names.path("a.tar");
    let mut made = Command::new("tar");
    made.arg("-cf").arg(&tar).args(["-C", "rootfs", "."]).current_dir(names.path(""));
    assert!(made.status().unwrap().success());
    for line in [
        "OUT -q -f -j1 -c gzip",
        "--no-skip --force --compressor xz OUT",
        "-q -b 1M -X extreme OUT",
        "-q -c zstd -k -x OUT",
    ] {
        names.same_image(&star, "tar2sqfs", line, Some(&tar));
    }
    names.write("list", "dir /dev 0755 0 0\nnod /dev/null 0666 0 0 c 1 3\nslink /l 0777 0 0 dev\nfile /etc/os-release 0644 1 2\n");
    for line in [
        "-k -D rootfs -q OUT",
        "-c zstd -j 2 -D rootfs --all-root -q OUT",
        "--pack-dir rootfs -c xz -k -x OUT",
        "-q -F list -D rootfs --block-size 1048576 OUT",
    ] {
        names.same_image(&make, "gensquashfs", line, None);
    }
    names.ours("gensquashfs", "-q -D rootfs ours.img").ended(1);
}

#[test]
fn images_are_read_as_by_squashfs_tools_ng() {
    let (Some(make), Some(tar), Some(read), Some(diff)) =
        (peer("gensquashfs"), peer("sqfs2tar"), peer("rdsquashfs"), peer("sqfsdiff"))
    else {
        return;
    };
    let names = Names::new();
    assert_eq!(names.theirs(&make, &words("-q -D rootfs a.img"), None).code, Some(0));
    assert_eq!(names.theirs(&make, &words("-q -k -D rootfs/usr b.img"), None).code, Some(0));
    for line in
        ["-c etc/os-release a.img", "--cat=etc/os-release a.img", "-l / a.img", "-d a.img", "-l /usr a.img"]
    {
        let (ours, theirs) = (names.ours("rdsquashfs", line), names.theirs(&read, &words(line), None));
        assert_eq!((ours.code, ours.text()), (theirs.code, theirs.text()), "{line}");
    }
    for line in ["--no-skip a.img", "-r . a.img", "-r top a.img"] {
        let archive = |run: Run, name: &str| {
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            std::fs::write(names.path(name), run.stdout).unwrap();
        };
        archive(names.ours("sqfs2tar", line), "ours.tar");
        archive(names.theirs(&tar, &words(line), None), "theirs.tar");
        let diff = names.fixture.run(["diff", "ours.tar", "theirs.tar"]);
        assert_eq!(diff.code, Some(0), "{line}\n{}{}", diff.text(), diff.stderr);
    }
    for (line, code) in [("-a a.img -b a.img", 0), ("--old a.img --new b.img", 1), ("-a a.img -b missing", 2)]
    {
        let (ours, theirs) = (names.ours("sqfsdiff", line), names.theirs(&diff, &words(line), None));
        assert_eq!((ours.code, theirs.code), (Some(code), Some(code)), "{line}\n{}", ours.stderr);
    }
}

#[test]
fn older_formats_have_their_names_too() {
    let names = Names::new();
    std::fs::remove_file(names.path("rootfs/usr/bin/hard")).unwrap();
    names.ours("mkfs.cramfs", "-n label -N little rootfs c.img").ended(0);
    assert_eq!(names.ours("fsck.cramfs", "c.img").code, Some(0));
    assert!(names.ours("mkfs.cramfs", "-h").text().contains("-N endian"));
    assert_eq!(names.ours("mkcramfs", "-L rootfs d.img").code, Some(0));
    let whole = std::fs::read(names.path("c.img")).unwrap();
    std::fs::write(names.path("short.img"), &whole[..100]).unwrap();
    assert_eq!(names.ours("fsck.cramfs", "short.img").code, Some(4));
    let old = names.ours_with("create_compressed_fs", &["-", "65536"], Some(&names.path("c.img"))).ended(0);
    std::fs::write(names.path("c.cloop"), &old.stdout).unwrap();
    assert_eq!(names.ours("create_compressed_fs", "-q -B 128K -t 2 -L 9 c.img d.cloop").code, Some(0));
    let back = names.ours("extract_compressed_fs", "c.cloop");
    assert!(back.stdout.starts_with(&whole), "{}", back.stderr);
    assert_eq!(names.ours("extract_compressed_fs", "d.cloop d.back").code, Some(0));
    assert!(std::fs::read(names.path("d.back")).unwrap().starts_with(&whole));
}

#[test]
fn fuse_drivers_are_mounts_of_packfs() {
    let names = Names::new();
    let names_and_codes =
        [("squashfuse", 254), ("squashfuse_ll", 2), ("snapfuse", 254), ("erofsfuse", 1), ("mount.erofs", 1)];
    for (name, refused) in names_and_codes {
        let help = names.ours(name, "--help");
        assert_eq!((help.code, help.text().starts_with("Usage: ")), (Some(0), true), "{name}");
        assert_eq!(names.ours(name, "only-one").code, Some(refused), "{name}");
    }
    if !is_root() || !Path::new("/dev/fuse").exists() {
        packfs_testkit::skip("mounting through FUSE needs root and /dev/fuse");
        return;
    }
    assert_eq!(names.ours("mksquashfs", "rootfs a.img -quiet -no-progress -offset 4096").code, Some(0));
    std::fs::create_dir(names.path("mnt")).unwrap();
    names.ours("squashfuse", "a.img mnt -o ro,offset=4096,uid=5").ended(0);
    let text = std::fs::read(names.path("mnt/etc/os-release"));
    names.fixture.run(["umount", "mnt"]).done();
    assert_eq!(text.unwrap(), b"NAME=example\n");
}

#[test]
fn names_are_listed_and_installed() {
    let fixture = Fixture::new();
    let listed = fixture.run(["as"]);
    assert!(listed.text().lines().any(|line| line == "mkfs.erofs"), "{}", listed.text());
    fixture.run(["install-names", "bin", "--only", "mksquashfs"]).done();
    assert_eq!(std::fs::read_dir(fixture.path("bin")).unwrap().count(), 1);
    fixture.run(["install-names", "bin", "--only", "mksquashfs"]).failed(2, &["--force"]);
    fixture.run(["as", "mkfs.ext4"]).failed(2, &["mksquashfs"]);
    let help = fixture.run(["as", "unsquashfs", "-help-all"]);
    let mut lines = help.text().lines().skip_while(|line| !line.starts_with("Decompressors available"));
    assert!(lines.any(|line| line.contains("zstd")), "{}", help.text());
}
