//! Lines that read, and those of smaller tools.

use super::bench::{Call, Shows};
use Shows::{Alone, Code, Files, Fuse, Has, Image, Nothing, Parsed, Text};

const fn call(
    number: u8,
    caller: &'static str,
    tool: &'static str,
    shows: Shows,
    lines: &'static [&'static str],
) -> Call {
    Call { number, caller, tool, lines, shows, differs: "" }
}

/// Lines of `-ll` as compiler-explorer reads them.
const LONG: &str =
    "(?m)^([dlcbps-][rwxst-]{9}) +([^ /]+/[^ ]+) +([0-9]+(?:, *[0-9]+)?) +([0-9-]{10} [0-9:]{5}) +(.+)$";

/// Lines of unsquashfs.
pub const SQUASHFS: &[Call] = &[
    call(
        36,
        "snapd",
        "unsquashfs",
        Files,
        &["-data-queue 16 -frag-queue 16 -no-xattrs -no-progress -force -dest OUT a.sqfs etc/os-release"],
    ),
    call(
        36,
        "snapd",
        "unsquashfs",
        Text,
        &[
            "-no-progress -dest . -lls a.sqfs",
            "-no-progress -dest . -lls a.sqfs usr/bin/tool",
            "-no-progress -dest _ -ls a.sqfs usr",
            "-stat a.sqfs",
        ],
    ),
    call(36, "snapd", "unsquashfs", Parsed("(?m)^Creation or last append time (.+)$"), &["-n -stat a.sqfs"]),
    call(37, "snapd, deltas", "unsquashfs", Text, &["-da 128 -fr 128 -no-progress -pf - b.sqfs"]),
    call(38, "incus", "unsquashfs", Files, &["-f -d OUT -n -user-xattrs -da 5 -fr 5 -p 1 a.sqfs"]),
    call(39, "distrobuilder", "unsquashfs", Files, &["-f -d OUT -n a.sqfs"]),
    call(
        40,
        "Apptainer",
        "unsquashfs",
        Files,
        &[
            "-user-xattrs -f -d OUT a.sqfs",
            "-no-xattrs -d OUT a.sqfs usr",
            "-user-xattrs -f -d OUT a.sqfs none",
        ],
    ),
    call(
        41,
        "dracut, lsinitrd",
        "unsquashfs",
        Files,
        &[
            "-no-xattrs -f -d OUT a.sqfs",
            "-force -d OUT -no-progress a.sqfs etc/os-release",
            "-force -d OUT -no-progress a.sqfs etc/cmdline.d/*.conf",
        ],
    ),
    call(41, "lsinitrd", "unsquashfs", Text, &["-ll a.sqfs"]),
    call(42, "livecd-tools", "unsquashfs", Parsed("(?m)^Compression ([^ ]+)$"), &["LC_ALL=C -s a.sqfs"]),
    call(42, "livecd-tools", "unsquashfs", Files, &["-f -d OUT a.sqfs"]),
    call(43, "lorax, osbuild", "unsquashfs", Text, &["-n -l a.sqfs", "-ls a.sqfs"]),
    call(44, "calamares", "unsquashfs", Text, &["-l a.sqfs"]),
    call(45, "compiler-explorer", "unsquashfs", Parsed(LONG), &["-ll -d '' a.sqfs"]),
    call(45, "compiler-explorer", "unsquashfs", Files, &["-f -d OUT a.sqfs", "-f -d OUT a.sqfs etc"]),
    call(
        46,
        "Talos, VyOS",
        "unsquashfs",
        Files,
        &["-no-xattrs -d OUT -f -n a.sqfs usr/bin", "-follow -dest OUT a.sqfs bin/tool"],
    ),
    call(46, "FEX", "unsquashfs", Has("Decompressors available"), &["-help-all"]),
    Call {
        differs: "`sasquatch` is no name of packfs; `unsquashfs` and `sqfscat` by argument 0 are equal",
        ..call(47, "unblob, binwalk, uruntime", "sqfscat", Text, &["a.sqfs etc/os-release"])
    },
];

/// Lines of all others.
pub const OTHERS: &[Call] = &[
    call(63, "Android", "fsck.erofs", Code, &["--extract a.erofs", "a.erofs", "missing"]),
    Call {
        differs: "equal but for set-user-ID bits, which `--no-preserve` does not restore",
        ..call(63, "unblob", "fsck.erofs", Code, &["--no-preserve --extract=OUT a.erofs"])
    },
    call(
        63,
        "dracut, Bottlerocket",
        "fsck.erofs",
        Files,
        &["--extract=OUT --overwrite a.erofs", "--extract=OUT a.erofs"],
    ),
    call(63, "FEX", "fsck.erofs", Has("erofs-utils"), &["-V"]),
    call(
        64,
        "lorax, osbuild",
        "dump.erofs",
        Text,
        &["--ls --path /boot a.erofs", "--ls --path=/usr/bin a.erofs"],
    ),
    call(
        64,
        "lorax, osbuild",
        "dump.erofs",
        Parsed("(?m)^ +([0-9]+) +([0-9]) +(.+)$"),
        &["--ls --path / a.erofs"],
    ),
    call(
        64,
        "others",
        "dump.erofs",
        Text,
        &[
            "-s a.erofs",
            "-S a.erofs",
            "--cat --path=/etc/os-release a.erofs",
            "--offset=0 -s a.erofs",
            "-S b.erofs",
        ],
    ),
    call(65, "FEX, linglong", "erofsfuse", Fuse, &["a.erofs OUT", "--offset=0 a.erofs OUT"]),
    call(65, "FEX", "erofsfuse", Has("sage"), &["--help"]),
    call(
        66,
        "Apptainer, podman-hpc",
        "squashfuse_ll",
        Fuse,
        &["-f -o uid=5,gid=6,offset=0 a.sqfs OUT", "a.sqfs OUT"],
    ),
    call(
        66,
        "FEX, ch, snapd",
        "squashfuse",
        Fuse,
        &["a.sqfs OUT", "-o ro,uid=5,gid=6 a.sqfs OUT", "a.sqfs OUT -o ro,nodev,allow_other"],
    ),
    call(66, "FEX", "squashfuse", Has("sage"), &["--help"]),
    Call {
        differs: "no caller; images are mounted, layers of registries are not",
        ..call(67, "(none)", "mount.erofs", Has("sage"), &["--help"])
    },
    call(
        68,
        "catalyst, incus",
        "tar2sqfs",
        Image,
        &[
            "<a.tar OUT -q -f -j1 -c gzip",
            "<a.tar --no-skip --force --compressor xz OUT",
            "<a.tar --quiet OUT",
            "<a.tar --force --quiet -b 1M -X extreme OUT",
            "<a.tar --compressor zstd OUT",
        ],
    ),
    call(68, "others", "tar2sqfs", Has("1.3"), &["--version"]),
    call(69, "incus", "sqfs2tar", Image, &[">OUT --no-skip a.sqfs", ">OUT a.sqfs", ">OUT -r . a.sqfs"]),
    call(
        70,
        "catalyst, microvm.nix",
        "gensquashfs",
        Image,
        &[
            "-k -D rootfs -q -c zstd OUT",
            "-c zstd -j 2 -D rootfs --all-root -q OUT",
            "--pack-dir rootfs -c xz -k -x OUT",
            "--pack-dir rootfs --block-size 1048576 --keep-time -f OUT",
            "-q --pack-file list -D rootfs OUT",
            "-q -D rootfs --sort-file order OUT",
            "-q -D rootfs --selinux contexts OUT",
            "-q -D rootfs --xattr-file xattrs OUT",
            "-q --pack-file globs -D rootfs OUT",
        ],
    ),
    call(
        71,
        "others",
        "rdsquashfs",
        Text,
        &["-c etc/os-release a.sqfs", "--cat=etc/os-release a.sqfs", "-l / a.sqfs"],
    ),
    Call {
        differs: "equal but for hard links, which stay such, set-user-ID bits, and modes of devices without `-C`",
        ..call(71, "others", "rdsquashfs", Code, &["-C -u / -p OUT a.sqfs", "-q -u / -p OUT a.sqfs"])
    },
    call(
        72,
        "others",
        "sqfsdiff",
        Code,
        &["-a a.sqfs -b a.sqfs", "--old a.sqfs --new b.sqfs", "-a a.sqfs -b missing"],
    ),
    call(
        73,
        "OpenEmbedded",
        "mkfs.cramfs",
        Image,
        &["rootfs/usr OUT", "-n label rootfs/usr OUT", "-N big rootfs/usr OUT"],
    ),
    call(73, "others", "mkfs.cramfs", Has("-N endian"), &["-h"]),
    Call {
        differs: "runs; `-X` is refused: packfs stores no data for execution in place",
        ..call(74, "Buildroot's fork", "mkcramfs", Alone, &["-L rootfs/usr OUT", "-B rootfs/usr OUT"])
    },
    Call {
        differs: "no name of packfs: `packfs pack DIR out.iso` writes zisofs in one step",
        ..call(75, "catalyst, others", "mkzftree", Nothing, &["-z 9 -p2 IN OUT", "-F FILE OUT"])
    },
    call(76, "Buildroot", "create_compressed_fs", Code, &[">a.cloop <a.iso - 65536"]),
    call(
        76,
        "KNOPPIX",
        "create_compressed_fs",
        Alone,
        &[
            "-q -B 65536 -t 8 -L 9 -f tmp a.iso OUT",
            "<a.iso -B 128K -t 4 -f ./isotemp -q -L 9 - OUT",
            "<a.iso -L -2 -B 131072 -m - OUT",
        ],
    ),
    Call {
        differs: "runs; the tool of Debian needs a second operand",
        ..call(
            77,
            "others",
            "extract_compressed_fs",
            Alone,
            &["a.cloop OUT", ">OUT a.cloop", ">OUT a.cloop --convert-to-v2"],
        )
    },
    Call {
        differs: "no name of packfs: `packfs info --compression` reads images and directories of all filesystems",
        ..call(78, "others", "compsize", Nothing, &["PATH", "-b PATH"])
    },
    Call {
        differs: "no name of packfs: it writes no composefs images yet",
        ..call(79, "containers-storage, NixOS, ostree", "mkcomposefs", Nothing, &["--from-file - -"])
    },
    Call {
        differs: "no name of packfs: it writes no composefs images yet",
        ..call(80, "ostree", "composefs-info", Nothing, &["dump IMG"])
    },
];
