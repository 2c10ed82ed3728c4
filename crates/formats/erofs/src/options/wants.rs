//! Resolution of options: defaults by goal, codec, and kernel.

use super::typed::Typed;
use super::{Dedupe, Fragments, IndexForm, Metabox, Options, Prefixes, values};
use crate::codec::{self, Codecs};
use crate::disk;
use crate::kernel::{self, Need, Version};
use crate::rules::{Rules, Storage};
use crate::sizes::display_len;
use packfs_codec::{Algorithm, CodecSettings};
use packfs_core::{Error, Goal, Result};
use packfs_format::PackSettings;

const BLOCK_LEN_DEFAULT: u32 = 4096;
const CLUSTER_LEN_DEFAULT: u32 = 64 << 10;

/// Uncompressed length of a metadata cluster for size: 1 MiB saves 1 % more, but each lookup
/// decodes it whole.
const METABOX_LEN_SIZE: u32 = 64 << 10;
/// Highest level at which equal ranges save more: at level 9, they win on one tree of two by 0.4 %
/// and lose on the other by 0.2 %.
const ZSTD_LEVEL_QUICK: i32 = 9;
/// Uncompressed length of a metadata cluster for reading: a lookup decodes little.
const METABOX_LEN_READ: u32 = 16 << 10;

fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "lzma",
        Goal::Balanced | Goal::Read => "lz4hc:12",
        Goal::Build => "lz4",
    }
}

fn cluster_len_for(goal: Goal, kernel: Version, block_len: u32) -> u32 {
    match goal {
        _ if kernel < kernel::BIG_CLUSTERS => block_len,
        Goal::Size => disk::Z_EROFS_PCLUSTER_MAX_SIZE,
        Goal::Balanced | Goal::Read | Goal::Build => CLUSTER_LEN_DEFAULT,
    }
}

/// Options that the caller set explicitly, which must be met.
pub(super) struct Wants {
    typed_codec: String,
    codec_name: String,
    compressed: bool,
    pub(super) needs: Vec<Need>,
}

impl Wants {
    pub(super) fn new(settings: &PackSettings, typed: &Typed, block_len: u32) -> Result<Self> {
        let typed_codec = settings.codec.as_deref().unwrap_or(codec_for(settings.optimize));
        let typed_codec = packfs_codec::codec_for_goal(typed_codec, settings.optimize).into_owned();
        let (codec_name, chosen) = codec::parse(&typed_codec, CLUSTER_LEN_DEFAULT)?;
        let mut codecs: Vec<Codecs> = chosen.into_iter().collect();
        for rule in typed.all_rules() {
            codecs.extend(rule.codecs(CLUSTER_LEN_DEFAULT)?);
        }
        let mut algorithms: Vec<Algorithm> =
            codecs.iter().flat_map(Codecs::both).map(CodecSettings::algorithm).collect();
        if typed.chunk_len.is_some() {
            algorithms.clear();
        }
        let compressed = !algorithms.is_empty();
        let mut needs = typed.needs();
        if !typed.device_paths.is_empty() {
            needs.push(Need::new("device", kernel::DEVICES, "no device"));
        }
        needs.extend(algorithms.iter().map(|&algorithm| codec::need(algorithm)));
        if compressed && codecs.iter().any(|codecs| codecs.second.is_some()) {
            needs.push(Need::new("a second codec in a file", kernel::SECOND_CODEC, "one codec"));
        }
        let cluster_len =
            settings.block_size.max(typed.all_rules().filter_map(|rule| rule.cluster_len).max());
        if compressed && cluster_len.is_some_and(|len| len > block_len) {
            let cluster = display_len(cluster_len.unwrap_or_default());
            let what = format!("clusters of {cluster} in blocks of {}", display_len(block_len));
            needs.push(Need::new(what, kernel::BIG_CLUSTERS, "a block size that is one block"));
        }
        if block_len < BLOCK_LEN_DEFAULT {
            let len = display_len(block_len);
            let (what, since) = if compressed {
                (format!("compressed files in blocks of {len}"), kernel::SMALL_BLOCKS_COMPRESSED)
            } else {
                (format!("files in blocks of {len}"), kernel::SMALL_BLOCKS)
            };
            needs.push(Need::new(what, since, "block=4096"));
        }
        algorithms.sort_unstable();
        algorithms.dedup();
        if typed.one_codec && algorithms.len() > 1 {
            let names: Vec<&str> = algorithms.iter().map(|&algorithm| codec::name(algorithm)).collect();
            return Err(Error::usage(format!("codecs=one, but rules and --codec name {}", names.join(", "))));
        }
        Ok(Wants { typed_codec, codec_name, compressed, needs })
    }

    pub(super) fn resolve(
        self,
        settings: &PackSettings,
        typed: Typed,
        kernel: Version,
        block_len: u32,
    ) -> Result<Options> {
        let usual_len = cluster_len_for(settings.optimize, kernel, block_len);
        let cluster_len = settings.block_size.unwrap_or(usual_len);
        let compact = Compact::new(settings.optimize, &typed, self.compressed);
        let wide = typed.wants_wide() || compact.wide;
        let (devices, device_of) = (typed.devices(block_len)?, typed.device_of()?);
        let index =
            typed.index.unwrap_or(if typed.byte_aligned { IndexForm::Extents } else { IndexForm::Auto });
        let check = |len: u32| values::check_cluster_len(len, block_len, index);
        check(cluster_len)?;
        let storage = match typed.chunk_len {
            Some(chunk_len) => Storage::Chunks { chunk_len: chunk_len.max(block_len) },
            None => Storage::of_codec(&self.typed_codec, cluster_len)?,
        };
        let chunk_len = typed.chunk_len.map(|len| len.max(block_len));
        let rules = Rules::of_rules(&typed.rules, cluster_len, chunk_len)?;
        let first_used =
            typed.first_used.as_ref().map(|rule| rule.storage(cluster_len, chunk_len)).transpose()?;
        for (_, len) in rules.storages().chain(&first_used).filter_map(Storage::codecs) {
            check(len)?;
        }
        let (fragments, dedupe) = self.sharing(settings.optimize, &typed, kernel, &storage);
        check_together(&typed, fragments, dedupe, index)?;
        let inline_clusters = self.compressed
            && fragments == Fragments::Off
            && index != IndexForm::Extents
            && block_len == BLOCK_LEN_DEFAULT
            && typed.inline_clusters.unwrap_or(compact.inline_clusters);
        let packed_cluster_len = typed.packed_cluster_len.unwrap_or(cluster_len);
        check(packed_cluster_len)?;
        let metabox = typed.metabox.unwrap_or(compact.metabox).map(|cluster_len| Metabox {
            cluster_len,
            codec: codec::of_metadata(storage.codecs().map(|(codecs, _)| codecs), cluster_len),
            for_small_files: typed.metabox.is_none() && settings.optimize == Goal::Read,
        });
        let prefixes = prefixes(&typed, kernel, fragments == Fragments::Off && metabox.is_none())?;
        Ok(Options {
            codec_is_default: settings.codec.is_none() && settings.optimize == Goal::default(),
            codec_name: if typed.chunk_len.is_some() { "none".into() } else { self.codec_name },
            kernel,
            block_len,
            storage,
            rules,
            first_used,
            fragments,
            dedupe,
            packed_cluster_len,
            inline_clusters,
            index,
            wide,
            metabox,
            holes: typed.holes.unwrap_or(true) && kernel >= kernel::CHUNKS,
            made_at: settings.made_at,
            prefixes,
            dot_omitted: typed.dot_omitted.unwrap_or(compact.wide),
            devices,
            device_of,
            merged: None,
            is_flat: false,
            far_devices: false,
            typed,
        })
    }

    /// Returns the default of data in the packed inode, and of shared data.
    fn sharing(&self, goal: Goal, typed: &Typed, kernel: Version, storage: &Storage) -> (Fragments, Dedupe) {
        let inline_clusters = typed.inline_clusters == Some(true);
        let has_none = kernel < kernel::FRAGMENTS || !self.compressed || inline_clusters;
        // Files that are entirely in the packed inode share no ranges.
        let shares_ranges = goal == Goal::Size
            && !has_none
            && !typed.interlaced
            && storage.codecs().is_some_and(|(codecs, _)| is_quick(&codecs.first))
            && matches!(typed.fragments, None | Some(Fragments::Tails))
            && matches!(typed.dedupe, None | Some(Dedupe::Ranges));
        let fragments = match goal {
            _ if has_none => Fragments::Off,
            Goal::Size if !shares_ranges => Fragments::All,
            _ => Fragments::Tails,
        };
        let dedupe = if shares_ranges { Dedupe::Ranges } else { Dedupe::Files };
        (typed.fragments.unwrap_or(fragments), typed.dedupe.unwrap_or(dedupe))
    }
}

/// True for codecs that find little among similar files: for size, equal ranges of files save more
/// than one stream of all files does.
fn is_quick(codec: &CodecSettings) -> bool {
    match codec {
        CodecSettings::Lz4(_) | CodecSettings::Lz4Hc(_) => true,
        CodecSettings::Zstd(zstd) => zstd.level <= ZSTD_LEVEL_QUICK,
        _ => false,
    }
}

/// Errors: `Usage` for options that exclude each other.
fn check_together(typed: &Typed, fragments: Fragments, dedupe: Dedupe, index: IndexForm) -> Result<()> {
    let has_fragments = fragments != Fragments::Off;
    let inline_clusters = typed.inline_clusters == Some(true);
    let plain = dedupe != Dedupe::Ranges && index != IndexForm::Extents;
    let (message, hint) = if has_fragments && inline_clusters {
        ("inline-tails=on, but tails go to the packed inode", "fragments=off stores them as inline data")
    } else if typed.interlaced && !(has_fragments && plain) {
        ("interlaced=on goes with fragments, without dedupe=ranges and extents", "interlaced=off")
    } else if typed.block_len < BLOCK_LEN_DEFAULT && inline_clusters {
        // Kernels search for the start of such a cluster only within the rest of a block after its
        // position in the page.
        ("inline-tails=on, which kernels misread in blocks below 4096", "block=4096 or inline-tails=off")
    } else {
        return Ok(());
    };
    Err(Error::usage(message).hint(hint))
}

/// Returns prefixes for a kernel. Old kernels read them from the packed inode if it exists, where
/// metadata cannot be written, so they need an image without one (`is_plain`).
///
/// Errors: `Usage`.
fn prefixes(typed: &Typed, kernel: Version, is_plain: bool) -> Result<Prefixes> {
    let found = kernel >= kernel::PLAIN_PREFIXES || is_plain;
    match &typed.prefixes {
        Some(Prefixes::List(_)) if !found => {
            let error = Error::usage("prefixes together with fragments need Linux 6.18 or newer");
            Err(error.hint("kernel=6.18 can; for older ones use fragments=off"))
        }
        Some(prefixes) => Ok(prefixes.clone()),
        None if kernel >= kernel::XATTR_PREFIXES && found => Ok(Prefixes::Auto),
        None => Ok(Prefixes::Off),
    }
}

/// Compact metadata that a goal enables by default if the target kernel reads it. All of it is
/// lossless.
#[derive(Default)]
struct Compact {
    /// Compact inodes with individual times, and directories without `.`.
    wide: bool,
    /// Uncompressed length of a metadata cluster.
    metabox: Option<u32>,
    /// Tails after inodes: one read less for a small file, more for a listing.
    inline_clusters: bool,
}

impl Compact {
    fn new(goal: Goal, typed: &Typed, compressed: bool) -> Self {
        let metabox_len = match goal {
            Goal::Size => METABOX_LEN_SIZE,
            Goal::Read => METABOX_LEN_READ,
            Goal::Balanced | Goal::Build => return Compact::default(),
        };
        // The given kernel, not a newer one that another option needs.
        let kernel = typed.kernel.unwrap_or(kernel::KERNEL_DEFAULT);
        let wide = kernel >= kernel::WIDE && typed.wide != Some(false);
        let metabox = wide && kernel >= kernel::METABOX && compressed;
        let inline_clusters = goal == Goal::Size && kernel >= kernel::INLINE_CLUSTERS;
        Compact { wide, metabox: metabox.then_some(metabox_len), inline_clusters }
    }
}
