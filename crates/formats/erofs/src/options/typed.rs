//! Options as they were typed, each understood on its own.

use super::values::{self, len, len_32, on};
use super::{Dedupe, Fragments, IndexForm, Prefixes, ROWS, Uuid};
use crate::disk;
use crate::kernel::{self, Need, Version};
use crate::rules::{ByPath, TypedRule};
use packfs_core::{Error, Result};
use packfs_format::DataFile;
use std::path::PathBuf;

/// What was typed; `None` where nothing was.
#[derive(Default)]
pub(super) struct Typed {
    pub kernel: Option<Version>,
    pub block_len: Option<u32>,
    pub fragments: Option<Fragments>,
    pub packed_cluster_len: Option<u32>,
    pub inline_clusters: Option<bool>,
    pub dedupe: Option<Dedupe>,
    pub index: Option<IndexForm>,
    pub wide: Option<bool>,
    pub byte_aligned: Option<bool>,
    pub interlaced: Option<bool>,
    /// Input of a cluster; `Some(None)` for none.
    pub metabox: Option<Option<u32>>,
    pub chunk_len: Option<u32>,
    pub holes: Option<bool>,
    pub chunk_indexes: Option<bool>,
    /// Glob and what is to be done.
    pub rules: Vec<(String, TypedRule)>,
    pub first_used: Option<TypedRule>,
    pub one_codec: bool,
    pub label: Option<[u8; disk::VOLUME_NAME_LEN]>,
    pub uuid: Option<Uuid>,
    pub times: Option<bool>,
    pub epoch: Option<i64>,
    pub xattr_filter: Option<bool>,
    pub shared_xattrs: Option<bool>,
    pub prefixes: Option<Prefixes>,
    pub align: Option<u64>,
    pub dot_omitted: Option<bool>,
    pub checksum: Option<bool>,
    pub device_paths: Vec<PathBuf>,
    /// Most bytes on each; the last holds for those that follow.
    pub device_lens: Vec<u64>,
    /// Glob and number of a device, counted from 1.
    pub device_rules: Vec<(String, u16)>,
}

/// Largest chunk, and largest multiple that an image is filled up to.
const CHUNK_LEN_MAX: u32 = 1 << 30;
/// Nobody mounts more devices together.
const DEVICES_MAX: usize = 256;

impl Typed {
    /// Errors: `Usage`.
    pub(super) fn new(options: &[(String, String)]) -> Result<Self> {
        let mut typed = Typed::default();
        for (name, value) in options {
            if !typed.set(name, value)? {
                let allowed = ROWS.iter().find(|row| row.name == name).map_or("", |row| row.values);
                return Err(Error::usage(format!("erofs option {name}={value}: {allowed} is allowed")));
            }
        }
        Ok(typed)
    }

    /// Sets one option; `false` for a value that is none.
    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        Ok(match name {
            "kernel" => put(&mut self.kernel, Some(kernel::parse(value)?)),
            "block" => put(&mut self.block_len, block_len(value)),
            "fragments" => {
                let known = [("off", Fragments::Off), ("tails", Fragments::Tails), ("all", Fragments::All)];
                put(&mut self.fragments, one_of(value, &known))
            }
            "packed-cluster" => put(&mut self.packed_cluster_len, len_32(value)),
            "inline-tails" => put(&mut self.inline_clusters, on(value)),
            "dedupe" => {
                let known = [("off", Dedupe::Off), ("files", Dedupe::Files), ("ranges", Dedupe::Ranges)];
                put(&mut self.dedupe, one_of(value, &known))
            }
            "index" => {
                let known = [
                    ("auto", IndexForm::Auto),
                    ("full", IndexForm::Full),
                    ("compact", IndexForm::Compact),
                    ("extents", IndexForm::Extents),
                ];
                put(&mut self.index, one_of(value, &known))
            }
            "48bit" => put(&mut self.wide, on(value)),
            "byte-aligned" => put(&mut self.byte_aligned, on(value)),
            "interlaced" => put(&mut self.interlaced, on(value)),
            "metabox" => {
                let mut len = None;
                let known = set_or_off(&mut len, value, |value| {
                    len_32(value).filter(|len| (4096..=disk::Z_EROFS_PCLUSTER_MAX_SIZE).contains(len))
                });
                put(&mut self.metabox, known.then_some(len))
            }
            "chunks" => set_or_off(&mut self.chunk_len, value, |value| {
                len_32(value).filter(|len| len.is_power_of_two() && (512..=CHUNK_LEN_MAX).contains(len))
            }),
            "holes" => put(&mut self.holes, on(value)),
            "chunk-indexes" => put(&mut self.chunk_indexes, on(value)),
            "rule" => {
                let rule =
                    value.split_once('=').and_then(|(glob, rule)| Some((glob, TypedRule::parse(rule)?)));
                rule.map(|(glob, rule)| self.rules.push((glob.into(), rule))).is_some()
            }
            "first-used" => put(&mut self.first_used, TypedRule::parse(value)),
            "codecs" => {
                one_of(value, &[("any", false), ("one", true)]).map(|one| self.one_codec = one).is_some()
            }
            "label" => put(&mut self.label, values::label(value)),
            "uuid" => {
                let known = [("content", Uuid::Content), ("none", Uuid::Is([0; 16]))];
                put(&mut self.uuid, one_of(value, &known).or_else(|| values::uuid(value).map(Uuid::Is)))
            }
            "times" => put(&mut self.times, one_of(value, &[("keep", true), ("epoch", false)])),
            "epoch" => put(&mut self.epoch, value.strip_prefix('@').unwrap_or(value).parse().ok()),
            "xattr-filter" => put(&mut self.xattr_filter, on(value)),
            "shared-xattrs" => put(&mut self.shared_xattrs, on(value)),
            "prefixes" => put(&mut self.prefixes, prefixes(value)),
            "align" => {
                put(&mut self.align, len(value).filter(|len| (1..=u64::from(CHUNK_LEN_MAX)).contains(len)))
            }
            "dot-omitted" => put(&mut self.dot_omitted, on(value)),
            "checksum" => put(&mut self.checksum, on(value)),
            // Nothing but the image goes to standard output.
            "device" => {
                let path = Some(value).filter(|path| !["", "-"].contains(path));
                path.map(|path| self.device_paths.push(path.into())).is_some()
            }
            "device-size" => {
                let lens: Option<Vec<u64>> =
                    value.split('+').map(|len| values::len(len).filter(|&len| len > 0)).collect();
                lens.map(|lens| self.device_lens = lens).is_some()
            }
            "device-of" => {
                let rule = value.rsplit_once('=');
                let rule = rule.and_then(|(glob, number)| {
                    Some((glob.into(), number.parse().ok().filter(|&number| number > 0)?))
                });
                rule.map(|rule| self.device_rules.push(rule)).is_some()
            }
            _ => return Err(unknown(name)),
        })
    }

    /// Whether something was asked for that only images with 48-bit block numbers have.
    pub(super) fn wants_wide(&self) -> bool {
        let set = |option: Option<bool>| option == Some(true);
        set(self.wide)
            || set(self.byte_aligned)
            || set(self.dot_omitted)
            || self.metabox.flatten().is_some()
            || self.index == Some(IndexForm::Extents)
    }

    /// The files for data.
    ///
    /// Errors: `Usage`.
    pub(super) fn devices(&self, block_len: u32) -> Result<Vec<DataFile>> {
        let count = self.device_paths.len();
        if count > DEVICES_MAX {
            return Err(Error::usage(format!("{count} devices, at most {DEVICES_MAX} are allowed")));
        }
        if self.device_lens.len() > count {
            let given = self.device_lens.len();
            return Err(Error::usage(format!(
                "device-size has {given} sizes, but there are {count} devices"
            )));
        }
        let len_max = |index: usize| {
            let len = self.device_lens.get(index).or(self.device_lens.last());
            len.map(|len| len / u64::from(block_len) * u64::from(block_len))
        };
        let paths = self.device_paths.iter().enumerate();
        Ok(paths.map(|(index, path)| DataFile { path: path.clone(), len_max: len_max(index) }).collect())
    }

    /// The rules of globs, and that of files used first.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &TypedRule> {
        self.rules.iter().map(|(_, rule)| rule).chain(&self.first_used)
    }

    /// Which device files belong to, counted from 0.
    ///
    /// Errors: `Usage`.
    pub(super) fn device_of(&self) -> Result<ByPath<u16>> {
        let count = self.device_paths.len();
        if let Some((glob, number)) = self.device_rules.iter().find(|rule| usize::from(rule.1) > count) {
            let message = format!("device-of={glob}={number}, but there are {count} devices");
            return Err(Error::usage(message).hint("each -O device=FILE adds one"));
        }
        ByPath::new(self.device_rules.iter().map(|(glob, number)| (&**glob, number - 1)))
    }

    /// What these options ask of the kernel.
    pub(super) fn needs(&self) -> Vec<Need> {
        let set = |option: Option<bool>| option == Some(true);
        let some_fragments = self.fragments.is_some_and(|fragments| fragments != Fragments::Off);
        let rows = [
            (some_fragments, "fragments", kernel::FRAGMENTS, "fragments=off"),
            (set(self.inline_clusters), "inline-tails=on", kernel::INLINE_CLUSTERS, "inline-tails=off"),
            (self.dedupe == Some(Dedupe::Ranges), "dedupe=ranges", kernel::FRAGMENTS, "dedupe=files"),
            (self.index == Some(IndexForm::Extents), "index=extents", kernel::WIDE, "index=auto"),
            (set(self.wide), "48bit=on", kernel::WIDE, "48bit=off"),
            (set(self.byte_aligned), "byte-aligned=on", kernel::WIDE, "byte-aligned=off"),
            (set(self.interlaced), "interlaced=on", kernel::FRAGMENTS, "interlaced=off"),
            (set(self.dot_omitted), "dot-omitted=on", kernel::WIDE, "dot-omitted=off"),
            (self.metabox.flatten().is_some(), "metabox", kernel::METABOX, "metabox=off"),
            (self.chunk_len.is_some(), "chunks", kernel::CHUNKS, "chunks=off"),
            (!self.device_paths.is_empty(), "device", kernel::DEVICES, "no device"),
            (set(self.chunk_indexes), "chunk-indexes=on", kernel::CHUNKS, "chunk-indexes=off"),
            (set(self.holes), "holes=on", kernel::CHUNKS, "holes=off"),
            (
                matches!(self.prefixes, Some(Prefixes::List(_) | Prefixes::Auto)),
                "prefixes",
                kernel::XATTR_PREFIXES,
                "prefixes=off",
            ),
        ];
        let asked = rows.into_iter().filter(|row| row.0);
        asked.map(|(_, what, since, instead)| Need::new(what, since, instead)).collect()
    }
}

/// Sets `place`, unless there is no value.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some();
    if known {
        *place = value;
    }
    known
}

fn set_or_off<T>(place: &mut Option<T>, value: &str, parse: impl Fn(&str) -> Option<T>) -> bool {
    match value {
        "off" => {
            *place = None;
            true
        }
        value => put(place, parse(value)),
    }
}

fn one_of<T: Copy>(value: &str, known: &[(&str, T)]) -> Option<T> {
    known.iter().find(|(name, _)| *name == value).map(|&(_, value)| value)
}

fn block_len(value: &str) -> Option<u32> {
    len_32(value).filter(|len| len.is_power_of_two() && (512..=4096).contains(len))
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

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    Error::usage(format!("erofs has no option {name:?}; it has {}", names.join(", ")))
}
