//! Output that is not taken: a pipe whose reader is gone, and a full disk. No verb and no name of a
//! tool panics, and what could not be printed is told by the exit code.

use crate::fixture::{Fixture, Run};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::process::{Command, Stdio};

/// Lines that print to standard output, and end well where that is read.
const LINES: &[&str] = &[
    "--help",
    "--version",
    "bug-report",
    "pack --help",
    "completions bash",
    "as",
    "pack rootfs again.sqfs",
    "pack rootfs again.sqfs --json",
    "pack rootfs - --format squashfs",
    "repack root.sqfs again.sqfs",
    "ls -lR root.sqfs",
    "ls --json root.sqfs",
    "cat root.sqfs etc/os-release",
    "stat root.sqfs etc",
    "stat --json root.sqfs etc",
    "info root.sqfs",
    "info --manifest root.sqfs",
    "info --json root.sqfs",
    "check --data root.sqfs",
    "digest root.sqfs",
    "tar root.sqfs",
    "unpack root.sqfs out",
    "diff --json root.sqfs rootfs",
    "mount --list --json",
    "as mksquashfs -version",
    "as mksquashfs -help",
    "as mksquashfs -mem-default",
    "as mksquashfs rootfs again.sqfs -noappend",
    "as mksquashfs rootfs again.sqfs -noappend -info -quiet",
    "as mksquashfs rootfs again.sqfs -noappend -quiet -percentage",
    "as sqfstar -version",
    "as unsquashfs -version",
    "as unsquashfs -stat root.sqfs",
    "as unsquashfs -mkfs-time root.sqfs",
    "as unsquashfs -lls root.sqfs",
    "as unsquashfs -cat root.sqfs etc/os-release",
    "as unsquashfs -f -d out root.sqfs",
    "as sqfscat root.sqfs etc/os-release",
    "as mkfs.erofs -V",
    "as mkfs.erofs -h",
    "as mkfs.erofs again.erofs rootfs",
    "as fsck.erofs -V",
    "as fsck.erofs -h",
    "as fsck.erofs -d3 root.erofs",
    "as fsck.erofs -d3 -p root.erofs",
    "as dump.erofs -V",
    "as dump.erofs -h",
    "as dump.erofs root.erofs",
    "as dump.erofs -S root.erofs",
    "as dump.erofs --blkid-udev root.erofs",
    "as dump.erofs --path=/etc --ls root.erofs",
    "as mount.erofs -h",
    "as erofsfuse -V",
    "as squashfuse -h",
    "as squashfuse_ll -V",
    "as snapfuse -h",
    "as gensquashfs --version",
    "as gensquashfs --help",
    "as gensquashfs -f --pack-dir rootfs again.sqfs",
    "as tar2sqfs --version",
    "as sqfs2tar root.sqfs",
    "as rdsquashfs --help",
    "as rdsquashfs -d root.sqfs",
    "as rdsquashfs -c etc/os-release root.sqfs",
    "as rdsquashfs -u / -p out root.sqfs",
    "as sqfsdiff --version",
    "as mkfs.cramfs -V",
    "as mkfs.cramfs -h",
    "as fsck.cramfs -v root.cramfs",
    "as create_compressed_fs -h",
    "as create_compressed_fs root.sqfs -",
    "as extract_compressed_fs -h",
    "as mkcomposefs --print-digest-only rootfs",
    "as composefs-info ls root.cfs",
    "as mkzftree -w",
];

/// Lines that print to standard error.
const FAILING: &[&str] = &[
    "ls missing",
    "ls",
    "--sandbox",
    "check cut.sqfs",
    "pack missing again.sqfs",
    "as mksquashfs missing again.sqfs",
    "as unsquashfs missing",
    "as unsquashfs -cat root.sqfs missing",
    "as mkfs.erofs again.erofs missing",
    "as fsck.erofs cut.sqfs",
    "as fsck.cramfs cut.sqfs",
    "as mkzftree missing out",
    "as mkcomposefs",
    "as composefs-info",
    "as compsize",
    "as rdsquashfs -l / missing",
];

fn fixture() -> Fixture {
    let fixture = Fixture::with_image();
    for image in ["root.erofs", "root.cramfs"] {
        fixture.run(["pack", "rootfs", image, "-q"]);
    }
    fixture.run("as mkcomposefs rootfs root.cfs".split(' ')).done();
    fixture.write("cut.sqfs", &fixture.bytes("root.sqfs")[..500]);
    fixture
}

/// A pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn run(mut command: Command) -> Run {
    Run::of(command.output().unwrap())
}

fn with_stdout(mut command: Command, stdout: Stdio) -> Run {
    Run::of(command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap())
}

/// Holds the lines of one program to this.
fn try_lines(lines: &[&str], command: impl Fn(&str) -> Command) {
    for line in lines {
        let whole = run(command(line));
        assert_eq!(whole.code, Some(0), "{line}: {}", whole.stderr);
        assert!(!whole.stdout.is_empty(), "{line} prints nothing, and shows nothing");
        let on_full = with_stdout(command(line), full());
        assert_eq!(on_full.code, Some(1), "{line}: {}", on_full.stderr);
        assert!(on_full.stderr.contains("No space left"), "{line}: {}", on_full.stderr);
        let on_closed = with_stdout(command(line), closed());
        assert_eq!(on_closed.code, Some(141), "{line}: {}", on_closed.stderr);
        for word in ["panicked", "Broken pipe"] {
            assert!(!on_closed.stderr.contains(word), "{line}: {}", on_closed.stderr);
        }
    }
}

#[test]
fn output_that_cannot_be_written_is_told_by_every_verb_and_tool() {
    let fixture = fixture();
    try_lines(LINES, |line| {
        let _ = std::fs::remove_dir_all(fixture.path("out"));
        fixture.command(line.split(' '))
    });
}

#[cfg(feature = "lab")]
#[test]
fn the_lab_tells_it_too() {
    try_lines(&["--help", "--version", "list", "tree", "completions zsh"], |line| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs-lab"));
        command.args(line.split(' '));
        command
    });
}

#[test]
fn messages_that_nobody_takes_change_no_exit_code() {
    let fixture = fixture();
    for line in FAILING {
        let told = fixture.run(line.split(' '));
        assert!(told.code != Some(0) && !told.stderr.is_empty(), "{line}");
        for stderr in [full(), closed()] {
            let status = fixture.command(line.split(' ')).stdout(Stdio::null()).stderr(stderr).status();
            assert_eq!(status.unwrap().code(), told.code, "{line}");
        }
    }
    // A warning is no failure either.
    let mut command = fixture.command(["as", "mkfs.cramfs", "-n", "a name that is too long", "rootfs", "c"]);
    assert!(command.stdout(Stdio::null()).stderr(full()).status().unwrap().success());
}
