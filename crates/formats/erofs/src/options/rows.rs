//! What `--help` prints.

use packfs_format::OptionRow;

/// Every option besides codec and block size, which is the length of the largest cluster here.
pub(crate) const ROWS: &[OptionRow] = &[
    OptionRow {
        name: "kernel",
        values: "VERSION, as 5.4|5.10|5.15|6.1|6.6|6.12|6.18",
        default: "6.1, or the next that has what is asked for",
        help: "use only what this Linux kernel and newer ones mount",
    },
    OptionRow {
        name: "block",
        values: "512|1024|2048|4096",
        default: "4096",
        help: "unit in which everything is placed; less than 4096 needs Linux 6.4, with compression 6.8",
    },
    OptionRow {
        name: "fragments",
        values: "off|tails|all",
        default: "tails, off before Linux 6.1",
        help: "compress the tails of files together (tails), all of all files (all), or neither (off)",
    },
    OptionRow {
        name: "packed-cluster",
        values: "SIZE",
        default: "as other clusters",
        help: "length of the clusters that hold tails of files",
    },
    OptionRow {
        name: "inline-tails",
        values: "on|off",
        default: "off; on with --optimize size and fragments=off",
        help: "keep the last cluster of a compressed file beside its inode: smaller, but slower to list; only with block=4096, \
               fragments=off and Linux 5.17",
    },
    OptionRow {
        name: "dedupe",
        values: "off|files|ranges",
        default: "files",
        help: "store files with the same contents once (files), and ranges that they share too (ranges)",
    },
    OptionRow {
        name: "index",
        values: "auto|full|compact|extents",
        default: "auto",
        help: "how clusters are listed: the shortest way (auto), or this one; extents need Linux 6.15",
    },
    OptionRow {
        name: "48bit",
        values: "on|off",
        default: "off; on with --optimize size or read and kernel=6.15 or newer",
        help: "allow what came with 48-bit block numbers (Linux 6.15): images above 16 TiB, extents, small inodes \
               with times of their own",
    },
    OptionRow {
        name: "byte-aligned",
        values: "on|off",
        default: "off",
        help: "let clusters start at any byte; the block size is then that of their input (Linux 6.15)",
    },
    OptionRow {
        name: "interlaced",
        values: "on|off",
        default: "off",
        help: "let bytes of uncompressed blocks in compressed files stand where they stand in the page (with fragments)",
    },
    OptionRow {
        name: "metabox",
        values: "off|SIZE",
        default: "off; with kernel=6.17 or newer 64K with --optimize size, 16K with --optimize read if files \
                  have less than 4 KiB on average",
        help: "compress inodes and directories in clusters of so many bytes of input (Linux 6.17)",
    },
    OptionRow {
        name: "chunks",
        values: "off|SIZE",
        default: "off",
        help: "store files uncompressed in chunks of so many bytes, equal ones once (Linux 5.15)",
    },
    OptionRow {
        name: "chunk-indexes",
        values: "on|off",
        default: "off",
        help: "list chunks in 8 bytes each, with room for a device, where 4 would do (Linux 5.15)",
    },
    OptionRow {
        name: "holes",
        values: "on|off",
        default: "on, off before Linux 5.15",
        help: "store the holes of uncompressed files as holes",
    },
    OptionRow {
        name: "rule",
        values: "GLOB=CODEC[:LEVEL][+CODEC[:LEVEL]][@SIZE]",
        default: "none",
        help: "compress the files that match otherwise, in clusters of SIZE; none stores them; the last rule that \
               matches counts",
    },
    OptionRow {
        name: "first-used",
        values: "CODEC[:LEVEL][+CODEC[:LEVEL]][@SIZE]",
        default: "as other files",
        help: "compress the files that --trace names otherwise, such as quickly decoded, where no rule is about them",
    },
    OptionRow {
        name: "codecs",
        values: "any|one",
        default: "any",
        help: "refuse a second codec, from a rule or as in --codec zstd:15+lz4 (one); some kernels of spring 2026 cannot \
               read such images",
    },
    OptionRow { name: "label", values: "up to 15 bytes", default: "none", help: "name of the volume" },
    OptionRow {
        name: "uuid",
        values: "content|none|UUID",
        default: "content",
        help: "id of the volume: a hash of all it holds, zeros, or this one",
    },
    OptionRow {
        name: "times",
        values: "keep|epoch",
        default: "keep",
        help: "keep times of last change, or give every file the epoch, which makes small inodes",
    },
    OptionRow {
        name: "epoch",
        values: "SECONDS",
        default: "the most frequent time of last change",
        help: "seconds since 1970 that times in small inodes are relative to",
    },
    OptionRow {
        name: "xattr-filter",
        values: "on|off",
        default: "on",
        help: "store with each inode which names of extended attributes it cannot have (used from Linux 6.6 on)",
    },
    OptionRow {
        name: "shared-xattrs",
        values: "on|off",
        default: "on",
        help: "store extended attributes that many inodes have once",
    },
    OptionRow {
        name: "prefixes",
        values: "off|auto|PREFIX[+PREFIX...]",
        default: "auto, off before Linux 6.4, and with fragments before 6.18",
        help: "beginnings of names of extended attributes to store once, such as trusted.overlay.",
    },
    OptionRow {
        name: "align",
        values: "SIZE",
        default: "the block",
        help: "fill the image with zeros up to a multiple of this",
    },
    OptionRow {
        name: "dot-omitted",
        values: "on|off",
        default: "as 48bit",
        help: "leave the entry . out of directories (Linux 6.15)",
    },
    OptionRow { name: "checksum", values: "on|off", default: "on", help: "checksum of the superblock" },
    OptionRow {
        name: "device",
        values: "FILE",
        default: "none",
        help: "write file data there, to be mounted with -o device=, and all else to the image (Linux 5.16); given again, \
               the data go on in a further file",
    },
    OptionRow {
        name: "device-size",
        values: "SIZE[+SIZE...]",
        default: "none",
        help: "most bytes on each device, the last size for those that follow: what may not fit goes to the next one",
    },
    OptionRow {
        name: "device-of",
        values: "GLOB=N",
        default: "1",
        help: "put files that match on device N, counted from 1, or on a later one; the last that matches counts",
    },
];
