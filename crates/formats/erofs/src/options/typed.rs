//! Options as given, each parsed separately, and the kernels they need.

use super::values;
use super::{Dedupe, Fragments, IndexForm, Prefixes, Uuid};
use crate::disk;
use crate::figures::low_bits;
use crate::kernel::{self, Need, Version};
use crate::rules::{ByPath, TypedRule};
use crate::sizes::{len, len_32};
use packfs_core::{Error, Result};
use packfs_format::{DataFile, SWITCH, Values, one_of, options, units::*};
use std::path::PathBuf;

options! {
    /// Options as given, except codec and block size; the latter is the length of the largest
    /// cluster here. `None` means the default.
    pub(crate) struct Typed for "erofs" needs Need {}

    kernel: Option<Version> = "kernel",
        Values::tried("VERSION, as 5.4|5.10|5.15|6.1|6.6|6.12|6.18", kernel::parse), "6.1, or the first that supports all options",
        "Use only features of this Linux version";

    block_len: u32 = "block", Values::new("512|1024|2048|4096", values::block_len), "4096",
        "Set the filesystem block size; below 4096 needs Linux 6.4, with compression 6.8";

    fragments: Option<Fragments> = "fragments",
        one_of!["off" => Fragments::Off, "tails" => Fragments::Tails, "all" => Fragments::All], "tails, off before Linux 6.1",
        "Compress tails (tails) or whole files (all) together in the packed inode",
        needs Some(Fragments::Tails | Fragments::All) => Need::new("fragments", kernel::FRAGMENTS, "fragments=off");

    packed_cluster_len: Option<u32> = "packed-cluster", Values::new("SIZE", len_32), "as other clusters",
        "Set the size of clusters in the packed inode";

    inline_clusters: Option<bool> = "inline-tails", SWITCH, "off; on with --optimize size and fragments=off",
        "Store the last cluster of a file beside its inode (ztailpacking): smaller, slower to list; needs \
        block=4096, fragments=off and Linux 5.17",
        needs Some(true) => Need::new("inline-tails=on", kernel::INLINE_CLUSTERS, "inline-tails=off");

    dedupe: Option<Dedupe> = "dedupe",
        one_of!["off" => Dedupe::Off, "files" => Dedupe::Files, "ranges" => Dedupe::Ranges],
        "files; ranges with --optimize size and a quick codec",
        "Store equal files once (files), and equal ranges (ranges)",
        needs Some(Dedupe::Ranges) => Need::new("dedupe=ranges", kernel::FRAGMENTS, "dedupe=files");

    index: Option<IndexForm> = "index",
        one_of!["auto" => IndexForm::Auto, "full" => IndexForm::Full, "compact" => IndexForm::Compact, "extents" => IndexForm::Extents], "auto",
        "Set the index of clusters; auto is the shortest, extents need Linux 6.15",
        needs Some(IndexForm::Extents) => Need::new("index=extents", kernel::WIDE, "index=auto");

    wide: Option<bool> = "48bit", SWITCH, "off; on with --optimize size or read and kernel=6.15 or newer",
        "Allow 48-bit block numbers (Linux 6.15): images above 16 TiB, extents, mtime in compact inodes",
        needs Some(true) => Need::new("48bit=on", kernel::WIDE, "48bit=off");

    byte_aligned: bool = "byte-aligned", SWITCH, "off",
        "Start clusters at any byte; --block-size is that of their input (Linux 6.15)",
        needs true => Need::new("byte-aligned=on", kernel::WIDE, "byte-aligned=off");

    /// Rotates plain blocks that start within a block of the file.
    interlaced: bool = "interlaced", SWITCH, "off",
        "Rotate uncompressed blocks of compressed files to their page offset (with fragments)",
        needs true => Need::new("interlaced=on", kernel::FRAGMENTS, "interlaced=off");

    /// Uncompressed length of a cluster; `Some(None)` turns compression off.
    metabox: Option<Option<u32>> = "metabox",
        Values::new("off|SIZE", values::metabox_len), "off; with kernel=6.17 by --optimize",
        "Compress inodes and directories in clusters of SIZE input (Linux 6.17); from kernel=6.17 on, 64K with \
        --optimize size, and 16K with --optimize read if files have less than 4 KiB on average",
        needs Some(Some(_)) => Need::new("metabox", kernel::METABOX, "metabox=off");

    chunk_len: Option<u32> = "chunks", Values::new("off|SIZE", values::chunk_len), "off",
        "Store files uncompressed in chunks of SIZE, equal ones once (Linux 5.15)",
        needs Some(_) => Need::new("chunks", kernel::CHUNKS, "chunks=off");

    /// Writes 8-byte rows of chunk maps even if 4 bytes suffice.
    chunk_indexes: bool = "chunk-indexes", SWITCH, "off",
        "Use 8-byte chunk indexes, which hold a device, instead of 4-byte block maps (Linux 5.15)",
        needs true => Need::new("chunk-indexes=on", kernel::CHUNKS, "chunk-indexes=off");

    holes: Option<bool> = "holes", SWITCH, "on, off before Linux 5.15",
        "Keep holes of uncompressed files",
        needs Some(true) => Need::new("holes=on", kernel::CHUNKS, "holes=off");

    /// Glob and storage.
    rules: Vec<(String, TypedRule)> = "rule",
        Values::new("GLOB=CODEC[:LEVEL][+CODEC[:LEVEL]][@SIZE]", rule), "none",
        "Compress matching files with CODEC, in clusters of SIZE; none stores them; the last match counts";

    first_used: Option<TypedRule> = "first-used",
        Values::new("CODEC[:LEVEL][+CODEC[:LEVEL]][@SIZE]", TypedRule::parse), "as other files",
        "Compress files of --trace that match no rule with CODEC, such as a fast one";

    one_codec: bool = "codecs", one_of!["any" => false, "one" => true], "any",
        "Refuse a second codec (one), by rule or as in --codec zstd:15+lz4, for kernels that compare the codec of \
        each file with the superblock";

    label: Option<[u8; disk::VOLUME_NAME_LEN]> = "label",
        Values::new("up to 15 bytes", values::label), "none",
        "Set the volume name";

    uuid: Uuid = "uuid", Values::new("content|none|UUID", uuid), "content",
        "Set the volume UUID: a hash of the contents, zeros, or UUID";

    /// Keeps the time of every inode; otherwise all have the epoch.
    times: bool = "times", one_of!["keep" => true, "epoch" => false], "keep",
        "Keep mtimes, or set all to the epoch, which makes compact inodes";

    epoch: Option<i64> = "epoch",
        Values::new("SECONDS", values::seconds), "the most frequent mtime",
        "Set the epoch of compact inodes, in seconds since 1970";

    xattr_filter: bool = "xattr-filter", SWITCH, "on",
        "Write a filter of xattr names to each inode (used from Linux 6.6 on)";

    shared_xattrs: bool = "shared-xattrs", SWITCH, "on",
        "Store xattrs that several inodes have once";

    prefixes: Option<Prefixes> = "prefixes",
        Values::new("off|auto|PREFIX[+PREFIX...]", prefixes), "auto, off before Linux 6.4, and with fragments before 6.18",
        "Store these prefixes of xattr names once, such as trusted.overlay.",
        needs Some(Prefixes::List(_) | Prefixes::Auto) => Need::new("prefixes", kernel::XATTR_PREFIXES, "prefixes=off");

    /// Name of the xattr, in any namespace.
    digests: Option<Vec<u8>> = "digest-xattr", Values::new("NAME of at most 255 bytes", digests), "none",
        "Mark this xattr as the digest of each file, by which kernels share the pages of equal files (Linux 7.0, \
        mount option inode_share); the source holds its values",
        needs Some(_) => Need::new("digest-xattr", kernel::PLAIN_PREFIXES, "no digest-xattr");

    align: Option<u64> = "align", Values::new("SIZE", values::align), "the block",
        "Pad the image to a multiple of SIZE";

    dot_omitted: Option<bool> = "dot-omitted", SWITCH, "as 48bit",
        "Omit the entry . of directories (Linux 6.15)",
        needs Some(true) => Need::new("dot-omitted=on", kernel::WIDE, "dot-omitted=off");

    checksum: bool = "checksum", SWITCH, "on",
        "Write the checksum of the superblock";

    device_paths: Vec<PathBuf> = "device", Values::new("FILE", device_path), "none",
        "Write file data to FILE and metadata to the image, to be mounted with -o device=FILE (Linux 5.16); given \
        again, data continues in a further file";

    /// Maximum data of each; the last value applies to further ones.
    device_lens: Option<Vec<u64>> = "device-size", Values::new("SIZE[+SIZE...]", device_lens), "none",
        "Limit the bytes on each device; the last SIZE applies to further devices; data that may not fit goes to the next";

    /// Glob and number of a device, counted from 1.
    device_rules: Vec<(String, u16)> = "device-of", Values::new("GLOB=N", device_rule), "1",
        "Place matching files on device N, from 1, or a later one; the last match counts";
}

/// More devices are never mounted together.
const DEVICES_MAX: usize = 256;

impl Typed {
    pub(super) fn wants_wide(&self) -> bool {
        let set = |option: Option<bool>| option == Some(true);
        set(self.wide)
            || self.byte_aligned
            || set(self.dot_omitted)
            || self.metabox.flatten().is_some()
            || self.index == Some(IndexForm::Extents)
    }

    pub(super) fn devices(&self, block_len: u32) -> Result<Vec<DataFile>> {
        let count = self.device_paths.len();
        let lens = self.device_lens.as_deref().unwrap_or_default();
        if count > DEVICES_MAX {
            return Err(Error::usage(format!("{count} devices, at most {DEVICES_MAX} are allowed")));
        }
        if lens.len() > count {
            let given = lens.len();
            return Err(Error::usage(format!(
                "device-size has {given} sizes, but there are {count} devices"
            )));
        }
        let len_max = |index: usize| {
            let len = lens.get(index).or(lens.last());
            len.map(|len| len & !low_bits(block_len.ilog2()))
        };
        let paths = self.device_paths.iter().enumerate();
        Ok(paths.map(|(index, path)| DataFile { path: path.clone(), len_max: len_max(index) }).collect())
    }

    pub(super) fn all_rules(&self) -> impl Iterator<Item = &TypedRule> {
        self.rules.iter().map(|(_, rule)| rule).chain(&self.first_used)
    }

    /// Returns the device of files by path, counted from 0.
    ///
    /// Errors: `Usage`.
    pub(super) fn device_of(&self) -> Result<ByPath<u16>> {
        let count = self.device_paths.len();
        if let Some((glob, number)) = self.device_rules.iter().find(|rule| usize::from(rule.1) > count) {
            let message = format!("device-of={glob}={number}, but there are {count} devices");
            return Err(Error::usage(message).hint("each -O device=FILE adds one"));
        }
        ByPath::new(self.device_rules.iter().map(|(glob, number)| (&**glob, left(*number, 1))))
    }
}

fn prefixes(value: &str) -> Option<Prefixes> {
    match value {
        "off" => Some(Prefixes::Off),
        "auto" => Some(Prefixes::Auto),
        list => {
            let list: Vec<Vec<u8>> = list.split('+').map(|prefix| prefix.as_bytes().to_vec()).collect();
            let known = |prefix: &Vec<u8>| {
                disk::XATTR_PREFIXES.iter().any(|(_, base)| {
                    base.ends_with(b".")
                        && prefix.len() > base.len()
                        && prefix.starts_with(base)
                        && prefix.len() < 250
                })
            };
            (list.len() <= 100 && list.iter().all(known)).then_some(Prefixes::List(list))
        }
    }
}

fn digests(name: &str) -> Option<Vec<u8>> {
    let is_name = disk::XATTR_PREFIXES.iter().all(|(_, prefix)| name.as_bytes() != *prefix);
    (is_name && (1..=255).contains(&name.len()) && !name.contains('\0')).then(|| name.into())
}

fn rule(text: &str) -> Option<(String, TypedRule)> {
    let (glob, rule) = text.split_once('=')?;
    Some((glob.into(), TypedRule::parse(rule)?))
}

fn uuid(text: &str) -> Option<Uuid> {
    match text {
        "content" => Some(Uuid::Content),
        "none" => Some(Uuid::Is([0; 16])),
        digits => values::uuid(digits).map(Uuid::Is),
    }
}

/// Refuses standard output, which only the image may use.
fn device_path(text: &str) -> Option<PathBuf> {
    (!["", "-"].contains(&text)).then(|| text.into())
}

fn device_lens(text: &str) -> Option<Vec<u64>> {
    text.split('+').map(|text| len(text).filter(|&len| len > 0)).collect()
}

fn device_rule(text: &str) -> Option<(String, u16)> {
    let (glob, number) = text.rsplit_once('=')?;
    Some((glob.into(), number.parse().ok().filter(|&number| number > 0)?))
}
