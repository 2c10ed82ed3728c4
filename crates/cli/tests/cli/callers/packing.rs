//! Lines that pack.

use super::call::{But, Call, SQUASHFS_TOOLS, Shows};
use Shows::{Alone, Code, Followed, Has, Image, Parsed};

const fn call(number: u8, caller: &'static str, shows: Shows, lines: &'static [&'static str]) -> Call {
    Call { number, caller, tool: "mksquashfs", lines, since: SQUASHFS_TOOLS, shows, but: &[], differs: "" }
}

const fn erofs(number: u8, caller: &'static str, shows: Shows, lines: &'static [&'static str]) -> Call {
    Call { number, caller, tool: "mkfs.erofs", lines, since: "", shows, but: &[], differs: "" }
}

/// The root that holds several sources, and directories of pseudo files, have the current time.
const fn timeless(call: Call) -> Call {
    Call { but: &[But::Times], ..call }
}

const FORK: &str = "equal to the line without the fork's options";

/// Lines of mksquashfs.
pub const SQUASHFS: &[Call] = &[
    call(1, "OpenEmbedded", Image, &["SOURCE_DATE_EPOCH=1500000000 rootfs OUT -noappend -comp xz"]),
    call(
        1,
        "OpenEmbedded",
        Image,
        &[
            "rootfs OUT -noappend",
            "rootfs OUT -noappend -comp lzo",
            "rootfs OUT -noappend -comp lz4",
            "rootfs OUT -noappend -comp zstd",
        ],
    ),
    call(2, "wic", Image, &["rootfs OUT -noappend -no-sparse -b 4096"]),
    call(
        3,
        "Buildroot",
        Image,
        &[
            "rootfs OUT -noappend -processors 2 -b 128K -nopad -comp gzip",
            "rootfs OUT -noappend -processors 2 -b 64K -comp lz4 -Xhc",
            "rootfs OUT -noappend -processors 2 -b 1M -no-compression",
        ],
    ),
    call(3, "Buildroot", Code, &["rootfs OUT -noappend -comp xz -comp gzip"]),
    timeless(call(
        4,
        "OpenWrt",
        Image,
        &[
            "rootfs OUT -nopad -noappend -root-owned -comp gzip -b 256k -p '/dev d 755 0 0' -p '/dev/console c 600 0 0 5 1' -processors 1",
        ],
    )),
    Call {
        differs: FORK,
        ..call(
            4,
            "OpenWrt's fork",
            Image,
            &[
                "rootfs OUT -nopad -noappend -root-owned -comp xz {-Xpreset 9 -Xe -Xlc 0 -Xlp 2 -Xpb 2} -Xbcj arm -b 256k {-fixed-time 5}",
            ],
        )
    },
    Call {
        differs: "runs; Debian's mksquashfs packs no lzma",
        ..call(
            4,
            "OpenWrt's fork",
            Alone,
            &["rootfs OUT -noappend -comp lzma -Xpreset 9 -Xe -Xlc 0 -Xlp 2 -Xpb 2 -b 256k"],
        )
    },
    call(
        5,
        "systemd-repart",
        Image,
        &[
            "rootfs OUT -noappend",
            "rootfs OUT -noappend -comp zstd -Xcompression-level 3",
            "rootfs OUT -quiet -noappend",
            "+file rootfs OUT -noappend",
            "+device rootfs OUT -noappend -comp zstd",
        ],
    ),
    call(
        6,
        "live-build",
        Image,
        &[
            "rootfs OUT -wildcards -ef excludes -Xcompression-level 5 -comp zstd -sort sort -no-progress",
            "rootfs OUT -comp xz -info",
        ],
    ),
    call(
        7,
        "Tails",
        Image,
        &[
            "rootfs OUT -comp zstd -Xcompression-level 22 -b 1024K -no-exports -mem 512M -wildcards -ef excludes",
        ],
    ),
    call(8, "X2Go TCE", Image, &["rootfs OUT -comp xz -Xbcj x86 -b 1024K -Xdict-size 1024K"]),
    call(
        9,
        "archiso",
        Image,
        &["rootfs OUT -noappend -comp xz -Xbcj x86 -b 1M -Xdict-size 1M -no-progress -quiet"],
    ),
    timeless(call(9, "archiso", Image, &["a.iso OUT -noappend -comp xz -Xbcj x86 -b 1M -Xdict-size 1M"])),
    call(10, "lorax", Image, &["rootfs OUT -comp xz -Xbcj x86", "rootfs OUT -Xbcj x86 -comp xz"]),
    call(11, "livecd-tools", Image, &["rootfs OUT -comp xz -b 1M -Xdict-size 1M -no-recovery -no-progress"]),
    call(
        12,
        "osbuild",
        Image,
        &["rootfs OUT -comp xz -Xbcj x86 -Xdict-size 1M -regex -e '^usr$/^share$' .hidden"],
    ),
    call(
        13,
        "osbuild, CoreOS",
        Image,
        &["rootfs OUT -root-becomes rootfs -wildcards -no-recovery -comp zstd"],
    ),
    call(
        14,
        "kiwi",
        Image,
        &[
            "rootfs OUT -noappend -b 1M -comp xz -Xbcj x86 -wildcards -e 'usr/bin/*' tmp",
            "rootfs OUT -noappend -b 1M -noI -noD -noF -noX",
        ],
    ),
    call(
        15,
        "appimagetool",
        Image,
        &[
            "rootfs OUT -offset 4096 -comp zstd -root-owned -noappend -b 128K -wildcards -ef excludes -mkfs-time 0",
            "rootfs OUT -offset 4096 -comp xz -root-owned -noappend -Xdict-size 100% -b 16384",
            "rootfs OUT -offset 4096 -comp zstd -root-owned -noappend -b 128K -comp zstd -b 1M",
        ],
    ),
    call(
        16,
        "snapd",
        Image,
        &[
            "@rootfs . OUT -noappend -comp xz -no-fragments -no-progress -wildcards -ef ../excludes -xattrs",
            "@rootfs . OUT -noappend -comp xz -no-fragments -no-progress -all-root -no-xattrs",
        ],
    ),
    call(
        17,
        "snapd, deltas",
        Image,
        &[
            "<a.pseudo - OUT -pf - -noappend -quiet -comp xz -no-fragments -no-duplicates -exports -no-xattrs -mkfs-time 5",
        ],
    ),
    timeless(call(
        18,
        "Apptainer",
        Image,
        &["rootfs/usr rootfs/etc OUT -noappend -mem 64M -processors 2 -comp gzip -quiet -all-root"],
    )),
    call(
        18,
        "Apptainer",
        Parsed("^mksquashfs version ([0-9]+[.][0-9]+)(?:[.][0-9]+)? [(].*[)]"),
        &["-version"],
    ),
    call(18, "Apptainer", Parsed("(?m)^(100)$"), &["rootfs OUT -noappend -quiet -percentage"]),
    call(
        19,
        "distrobuilder",
        Image,
        &[
            "rootfs OUT -noappend -b 1M -no-exports -no-progress -no-recovery -comp zstd -Xcompression-level 7",
        ],
    ),
    call(
        20,
        "Talos, extensions",
        Image,
        &[
            "rootfs OUT -all-root -noappend -no-progress -comp zstd -Xcompression-level 18",
            "rootfs OUT -all-root -noappend -no-progress -comp xz -Xdict-size 100% -xattrs-exclude .* -p 'etc x security.selinux=label'",
        ],
    ),
    call(
        21,
        "Talos, root",
        Image,
        &[
            "rootfs OUT -all-root -noappend -comp zstd -Xcompression-level 3 -no-progress -xattrs-exclude .* -pf labels",
        ],
    ),
    call(
        22,
        "dracut-ng",
        Code,
        &["/dev/null OUT -no-progress -comp zstd", "/dev/null OUT -no-progress -comp lzma2"],
    ),
    call(
        22,
        "dracut-ng",
        Image,
        &[
            "rootfs OUT -no-xattrs -no-exports -noappend -no-recovery -always-use-fragments -no-progress -comp zstd -e rootfs/squash",
        ],
    ),
    call(23, "void-mklive", Image, &["rootfs OUT -comp xz"]),
    timeless(call(
        24,
        "NixOS",
        Image,
        &[
            "a.tar rootfs/usr rootfs/etc OUT -no-hardlinks -keep-as-directory -all-root -b 1048576 -comp xz -Xdict-size 100% -processors 2",
        ],
    )),
    call(
        25,
        "stackinator",
        Image,
        &[
            "rootfs OUT -force-uid nobody -force-gid nogroup -all-time 77 -no-recovery -noappend -Xcompression-level 3",
        ],
    ),
    call(
        26,
        "Armbian",
        Image,
        &["rootfs OUT -noappend -comp zstd -no-progress -wildcards -e 'proc/*' 'tmp/*' 'usr/share/*'"],
    ),
    call(
        27,
        "compiler-explorer",
        Image,
        &["rootfs OUT -all-root -progress -comp zstd -Xcompression-level 7 -noappend"],
    ),
    call(28, "Bottlerocket", Image, &["rootfs OUT -no-exports -all-root -comp zstd"]),
    call(
        29,
        "Flatcar",
        Image,
        &[
            "rootfs OUT -noappend -xattrs-exclude ^btrfs.",
            "rootfs OUT -noappend -pf pseudo -xattrs-exclude ^btrfs. -e etc/os-release",
        ],
    ),
    call(30, "Titanoboa", Image, &["rootfs OUT -all-root -noappend"]),
    Call {
        differs: FORK,
        ..call(
            31,
            "ChromiumOS, DLC",
            Image,
            &["rootfs OUT {-4k-align} -noappend -mkfs-time 0 -all-time 0 -comp zstd -Xcompression-level 22"],
        )
    },
    Call {
        but: &[But::Times],
        differs: FORK,
        ..call(
            32,
            "ChromiumOS",
            Image,
            &[
                "rootfs/usr rootfs/etc OUT -all-root -noappend -no-recovery -no-exports -exit-on-error -comp lzo -root-mode 0755 {-4k-align}",
            ],
        )
    },
    Call {
        differs: "runs without `-android-fs-config`, which is refused unless `-fs-config-file` is given, and \
                  without `-block-map`",
        ..call(
            33,
            "Android",
            Alone,
            &[
                "rootfs/ OUT -no-progress -comp lz4 -Xhc -no-exports -noappend -no-recovery -no-fragments -no-duplicates \
             -mount-point system -product-out p -fs-config-file config -context-file contexts -b 131072 -t 90 \
             -disable-4k-align -whitelist w",
            ],
        )
    },
    call(34, "podman-hpc", Image, &["rootfs OUT -e usr/share -e tmp"]),
    call(
        35,
        "LinuxKit, calamares, squashfs-mount",
        Image,
        &["rootfs OUT", "rootfs OUT -all-root", "rootfs OUT -quiet -noappend"],
    ),
];

/// Lines of mkfs.erofs.
pub const EROFS: &[Call] = &[
    erofs(48, "OpenEmbedded", Image, &["OUT rootfs", "-zlz4 OUT rootfs"]),
    erofs(48, "OpenEmbedded", Image, &["SOURCE_DATE_EPOCH=1500000000 -zlz4hc OUT rootfs"]),
    erofs(
        49,
        "Buildroot",
        Image,
        &[
            "-zlz4hc,12 -T 5 -U 00000000-0000-0000-0000-000000000000 -C 65536 -Ededupe -Efragments OUT rootfs",
            "-zlzma,6 -C 65536 -Eall-fragments OUT rootfs",
            "-zlz4hc,9 -Eztailpacking OUT rootfs",
        ],
    ),
    Call {
        differs: "runs; mkfs.erofs 1.9.4 stops with SIGSEGV if a hint matches",
        ..erofs(49, "Buildroot", Alone, &["-zlz4:lz4hc -C 65536 --compress-hints hints OUT rootfs"])
    },
    erofs(
        50,
        "systemd-repart",
        Image,
        &[
            "-U c151c42a-73b2-46ad-8388-3cdf070fb1c4 --quiet -zzstd,level=3 OUT rootfs",
            "-U c151c42a-73b2-46ad-8388-3cdf070fb1c4 OUT rootfs -zlz4hc -Ededupe",
        ],
    ),
    erofs(51, "lorax", Image, &["OUT rootfs -z zstd,8 -Ededupe,all-fragments -C 65536"]),
    erofs(
        52,
        "archiso",
        Image,
        &["--quiet -U 00000000-0000-0000-0000-000000000000 -zlzma,109 -E ztailpacking -- OUT rootfs"],
    ),
    erofs(
        53,
        "osbuild",
        Image,
        &[
            "OUT rootfs --quiet -z zstd,8 -E all-fragments,dedupe -C 65536 --exclude-regex ^usr/share --exclude-regex ^tmp$",
        ],
    ),
    erofs(
        54,
        "kiwi",
        Image,
        &["-C65536 -z lz4hc,9 --exclude-regex=^tmp$ --exclude-regex=^usr/share$ -L label OUT rootfs"],
    ),
    erofs(
        55,
        "dracut-ng",
        Image,
        &[
            "--exclude-path=squash -C 65536 -E fragments -x -1 -U 00000000-0000-0000-0000-000000000000 -T 0 -z lz4hc OUT rootfs",
        ],
    ),
    erofs(55, "dracut-ng", Code, &["-z none OUT rootfs"]),
    erofs(
        56,
        "Android",
        Image,
        &[
            "-z lz4hc -b 4096 --mount-point /system -T 7 -U c151c42a-73b2-46ad-8388-3cdf070fb1c4 -C 16384 -E legacy-compress OUT rootfs",
            "-b 4096 --mount-point /system --chunksize 4096 -T 7 OUT rootfs",
            "-z lz4hc -b 4096 --mount-point /system --file-contexts contexts -T 7 OUT rootfs",
        ],
    ),
    Call {
        differs: "runs; Debian's mkfs.erofs is built without Android's options",
        ..erofs(
            56,
            "Android",
            Alone,
            &[
                "-z lz4hc -b 4096 --mount-point /system --product-out p --fs-config-file config --file-contexts contexts -T 7 OUT rootfs",
            ],
        )
    },
    Call {
        differs: "runs; Debian's mkfs.erofs is built without Android's options",
        ..erofs(56, "Android", Alone, &["--block-list-file blocks OUT rootfs"])
    },
    erofs(
        57,
        "containerd",
        Image,
        &[
            "<a.tar --tar=f --aufs --quiet -Enoinline_data -U c151c42a-73b2-46ad-8388-3cdf070fb1c4 -b4096 -T0 --mkfs-time --sort=none OUT",
            "<a.tar --tar=f --aufs --quiet -Enoinline_data -U c151c42a-73b2-46ad-8388-3cdf070fb1c4 -b4096 -zlz4 -C 65536 OUT",
            "--quiet -Enoinline_data -T 3 OUT rootfs",
        ],
    ),
    erofs(57, "containerd", Has("--tar="), &["--help"]),
    erofs(57, "containerd", Followed(&["a.tar"]), &["<a.tar --tar=i --aufs --quiet OUT"]),
    Call {
        differs: "equal but for the root: packfs keeps that of the last layer",
        but: &[But::Root],
        ..erofs(
            57,
            "containerd",
            Followed(&["lower.erofs", "upper.erofs"]),
            &["--aufs --ovlfs-strip=1 --quiet OUT lower.erofs upper.erofs"],
        )
    },
    erofs(58, "Kata", Image, &["-zlz4hc -Enoinline_data OUT rootfs"]),
    Call {
        differs: "holds the strings `mkfs-time` and `sort`",
        ..erofs(58, "Kata", Shows::Holds(&["mkfs-time", "sort"]), &["(the program as a file)"])
    },
    erofs(
        59,
        "Bottlerocket",
        Image,
        &["--file-contexts=contexts --all-root -T 1 -z lz4hc,12 -C 262144 OUT rootfs"],
    ),
    erofs(
        60,
        "Titanoboa",
        Image,
        &["-d0 --quiet --all-root -zlz4hc,6 -Eall-fragments,fragdedupe=inode -C1048576 OUT rootfs"],
    ),
    erofs(
        61,
        "microvm.nix",
        Image,
        &[
            "-zlz4hc -Eztailpacking -Efragments -T 0 --all-root -L nix-store --mount-point=/nix/store OUT rootfs",
        ],
    ),
    erofs(62, "LinuxKit, conch", Image, &["OUT rootfs", "--fsalignblks=512 OUT rootfs"]),
];

/// Lines of no caller: the language of actions.
pub const ACTIONS: &[Call] = &[
    call(
        0,
        "",
        Image,
        &[
            "rootfs OUT -action 'exclude@name(*.conf) || (type(d) && name(squash))'",
            "rootfs OUT -action 'exclude@!type(d)' -action 'empty(excluded)@true'",
            "rootfs OUT -action 'exclude@!type(d)' -action empty@true",
            "rootfs OUT -action 'exclude@!type(d)' -action 'empty(source)@true'",
            "rootfs OUT -action 'exclude@depth(>2) && filesize(+4K)' -action 'uid(5)@type(f)' -action 'prune@uid(5) && perm(4755)'",
            "rootfs OUT -action 'guid(7, games)@subpathname(usr/b*)' -action 'chmod(u=rw,go=r)@name(same)' -action 'mode(0700)@pathname(/etc)'",
            "rootfs OUT -action 'gid(root)@group(root) || uid_range(5,9)' -action 'chmod(o-r)@perm(-a=r) && perm(/a=x)'",
            "rootfs OUT -action 'prune@type(l) && absolute' -action 'prune@type(l) && readlink(\"type(d)\")'",
            "rootfs OUT -action 'prune@type(l) && !exists'",
            "rootfs OUT -action 'prune@type(d) && eval(doc, \"type(d)\")' -action 'prune@name(x) && eval(.., \"name(below)\")'",
            "rootfs OUT -action 'prune@dircount(0)' -action 'prune@nlink(2) && type(f)'",
            "rootfs OUT -action 'xattrs-exclude(^user)@true' -action 'xattrs-add(user.new=0x4142)@name(README)'",
            "rootfs OUT -action 'xattrs-include(none)@name(tool) || name(hard)' -xattrs-exclude none",
            "rootfs OUT -action-file actions -action 'uncompressed@filesize_range(1K, 1M)' -action 'fragment(x)@name(*)'",
            "rootfs OUT -action 'prune@size(<=5) && type(f) && !user(root)' -true-action noop@true",
        ],
    ),
    call(
        0,
        "",
        Code,
        &[
            "rootfs OUT -action exclude",
            "rootfs OUT -action 'exclude@exists'",
            "rootfs OUT -action 'exclude@name(a'",
            "rootfs OUT -action 'none@true'",
            "rootfs OUT -action 'uid@true'",
            "rootfs OUT -action 'prune@size(x)'",
            "rootfs OUT -action-file missing",
        ],
    ),
];
