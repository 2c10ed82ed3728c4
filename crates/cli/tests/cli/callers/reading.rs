//! Lines that read, and those of smaller tools.

use super::call::{But, Call, SQUASHFS_TOOLS, Shows};
use Shows::{Alone, Code, Decoded, Files, Fuse, Has, Image, Parsed, Text};

const fn call(
    number: u8,
    caller: &'static str,
    tool: &'static str,
    shows: Shows,
    lines: &'static [&'static str],
) -> Call {
    Call { number, caller, tool, lines, since: "", shows, but: &[], differs: "" }
}

const fn unsquashfs(number: u8, caller: &'static str, shows: Shows, lines: &'static [&'static str]) -> Call {
    Call { since: SQUASHFS_TOOLS, ..call(number, caller, "unsquashfs", shows, lines) }
}

const NG_LINKS: &str =
    "equal but for link counts of directories: squashfs-tools-ng counts all entries, packfs subdirectories";

/// Lines of `-ll` as compiler-explorer reads them.
const LONG: &str =
    "(?m)^([dlcbps-][rwxst-]{9}) +([^ /]+/[^ ]+) +([0-9]+(?:, *[0-9]+)?) +([0-9-]{10} [0-9:]{5}) +(.+)$";

/// Lines of unsquashfs.
pub const SQUASHFS: &[Call] = &[
    unsquashfs(
        36,
        "snapd",
        Files,
        &["-data-queue 16 -frag-queue 16 -no-xattrs -no-progress -force -dest OUT a.sqfs etc/os-release"],
    ),
    unsquashfs(
        36,
        "snapd",
        Text,
        &[
            "-no-progress -dest . -lls a.sqfs",
            "-no-progress -dest . -lls a.sqfs usr/bin/tool",
            "-no-progress -dest _ -ls a.sqfs usr",
            "-stat a.sqfs",
        ],
    ),
    unsquashfs(36, "snapd", Parsed("(?m)^Creation or last append time (.+)$"), &["-n -stat a.sqfs"]),
    unsquashfs(
        37,
        "snapd, deltas",
        Text,
        &[
            "-da 128 -fr 128 -no-progress -pf - b.sqfs",
            "+pipe -no-progress -pf OUT b.sqfs",
            "+pipe -da 128 -fr 128 -no-progress -pf OUT a.sqfs",
        ],
    ),
    unsquashfs(38, "incus", Files, &["-f -d OUT -n -user-xattrs -da 5 -fr 5 -p 1 a.sqfs"]),
    unsquashfs(39, "distrobuilder", Files, &["-f -d OUT -n a.sqfs"]),
    unsquashfs(
        40,
        "Apptainer",
        Files,
        &[
            "-user-xattrs -f -d OUT a.sqfs",
            "-no-xattrs -d OUT a.sqfs usr",
            "-user-xattrs -f -d OUT a.sqfs none",
        ],
    ),
    unsquashfs(
        41,
        "dracut, lsinitrd",
        Files,
        &[
            "-no-xattrs -f -d OUT a.sqfs",
            "-force -d OUT -no-progress a.sqfs etc/os-release",
            "-force -d OUT -no-progress a.sqfs etc/cmdline.d/*.conf",
        ],
    ),
    unsquashfs(41, "lsinitrd", Text, &["-ll a.sqfs"]),
    unsquashfs(42, "livecd-tools", Parsed("(?m)^Compression ([^ ]+)$"), &["LC_ALL=C -s a.sqfs"]),
    unsquashfs(42, "livecd-tools", Files, &["-f -d OUT a.sqfs"]),
    unsquashfs(43, "lorax, osbuild", Text, &["-n -l a.sqfs", "-ls a.sqfs"]),
    unsquashfs(44, "calamares", Text, &["-l a.sqfs"]),
    unsquashfs(45, "compiler-explorer", Parsed(LONG), &["-ll -d '' a.sqfs"]),
    unsquashfs(45, "compiler-explorer", Files, &["-f -d OUT a.sqfs", "-f -d OUT a.sqfs etc"]),
    unsquashfs(
        46,
        "Talos, VyOS",
        Files,
        &["-no-xattrs -d OUT -f -n a.sqfs usr/bin", "-follow -dest OUT a.sqfs bin/tool"],
    ),
    unsquashfs(46, "FEX", Has("Decompressors available"), &["-help-all"]),
    Call {
        differs: "`sasquatch` is no name of packfs; `unsquashfs` and `sqfscat` by argument 0 are equal",
        ..call(47, "unblob, binwalk, uruntime", "sqfscat", Text, &["a.sqfs etc/os-release"])
    },
];

/// Lines of all others.
pub const OTHERS: &[Call] = &[
    call(63, "Android", "fsck.erofs", Code, &["--extract a.erofs", "a.erofs", "missing"]),
    Call {
        but: &[But::SetIds],
        differs: "equal but for set-user-ID bits, which `--no-preserve` does not restore",
        ..call(63, "unblob", "fsck.erofs", Files, &["--no-preserve --extract=OUT a.erofs"])
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
    Call {
        but: &[But::ExitCode],
        differs: "equal but for the exit code, which is 0",
        ..call(65, "FEX", "erofsfuse", Has("sage"), &["--help"])
    },
    Call {
        since: "0.2",
        ..call(66, "Apptainer", "squashfuse_ll", Fuse, &["-f -o uid=5,gid=6,offset=0 a.sqfs OUT"])
    },
    call(66, "podman-hpc", "squashfuse_ll", Fuse, &["a.sqfs OUT", "-f -o offset=0 a.sqfs OUT"]),
    Call {
        but: &[But::Links],
        differs: "equal but for hard links, which packfs shows as such",
        ..call(
            66,
            "FEX, ch, snapd",
            "squashfuse",
            Fuse,
            &["a.sqfs OUT", "-o ro,uid=5,gid=6 a.sqfs OUT", "a.sqfs OUT -o ro,nodev,allow_other"],
        )
    },
    Call {
        but: &[But::ExitCode],
        differs: "equal but for the exit code, which is 0",
        ..call(66, "FEX", "squashfuse", Has("sage"), &["--help"])
    },
    Call {
        differs: "runs; no caller is known, and Debian ships no mount.erofs. Layers of registries are not mounted",
        ..call(67, "(none)", "mount.erofs", Alone, &["--help"])
    },
    Call {
        but: &[But::DirectoryLinks],
        differs: NG_LINKS,
        ..call(
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
        )
    },
    call(68, "others", "tar2sqfs", Has("1.3"), &["--version"]),
    Call {
        but: &[But::Root],
        ..call(69, "incus", "sqfs2tar", Image, &[">OUT --no-skip a.sqfs", ">OUT a.sqfs"])
    },
    call(69, "others", "sqfs2tar", Image, &[">OUT -r . a.sqfs"]),
    Call {
        but: &[But::DirectoryLinks],
        differs: NG_LINKS,
        ..call(
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
        )
    },
    call(
        71,
        "others",
        "rdsquashfs",
        Text,
        &["-c etc/os-release a.sqfs", "--cat=etc/os-release a.sqfs", "-l / a.sqfs"],
    ),
    Call {
        but: &[But::Times, But::SetIds, But::Links],
        differs: "equal but for set-user-ID bits and hard links, which packfs restores as such",
        ..call(71, "others", "rdsquashfs", Files, &["-C -u / -p OUT a.sqfs"])
    },
    Call {
        but: &[But::Times, But::SpecialModes, But::Links],
        differs: "equal but for hard links, which packfs restores, and modes of devices and pipes",
        ..call(71, "others", "rdsquashfs", Files, &["-q -u / -p OUT a.sqfs"])
    },
    call(
        72,
        "others",
        "sqfsdiff",
        Code,
        &["-a a.sqfs -b a.sqfs", "--old a.sqfs --new b.sqfs", "-a a.sqfs -b missing"],
    ),
    // The format has no times.
    Call {
        but: &[But::Times],
        ..call(
            73,
            "OpenEmbedded",
            "mkfs.cramfs",
            Image,
            &["rootfs/usr OUT", "-n label rootfs/usr OUT", "-N big rootfs/usr OUT"],
        )
    },
    call(73, "others", "mkfs.cramfs", Has("-N endian"), &["-h"]),
    Call {
        differs: "runs; the tool stores less of a program uncompressed with `-X`",
        ..call(
            74,
            "Buildroot's fork",
            "mkcramfs",
            Alone,
            &["-L rootfs/usr OUT", "-B rootfs/usr OUT", "-L -X -X rootfs/usr OUT"],
        )
    },
    Call {
        differs: "runs; trees are compared by `crates/cli/tests/cli/named_trees.rs`",
        ..call(75, "catalyst, others", "mkzftree", Alone, &["-z 9 -p2 rootfs OUT"])
    },
    call(76, "Buildroot", "create_compressed_fs", Decoded, &[">OUT <a.disk - 65536"]),
    call(
        76,
        "KNOPPIX",
        "create_compressed_fs",
        Decoded,
        &[
            "-q -B 65536 -t 8 -L 9 -f tmp a.disk OUT",
            "<a.disk -B 128K -t 4 -f ./isotemp -q -L 9 - OUT",
            "<a.disk -L -2 -B 131072 -m - OUT",
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
        differs: "runs; figures of a mounted btrfs are compared by `crates/cli/tests/cli/named_trees.rs`",
        ..call(78, "others", "compsize", Alone, &["--help"])
    },
    call(
        79,
        "containers-storage, NixOS, ostree",
        "mkcomposefs",
        Text,
        &[
            "<a.dump --from-file - -",
            "--from-file --print-digest a.dump OUT",
            "--digest-store=store --print-digest rootfs OUT",
        ],
    ),
    call(80, "ostree", "composefs-info", Text, &["objects a.cfs", "ls a.cfs"]),
    Call {
        differs: "runs; attributes are sorted, and directories have the size 0",
        ..call(80, "ostree", "composefs-info", Alone, &["dump a.cfs"])
    },
];
