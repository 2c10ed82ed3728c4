//! The options of EROFS images: what may be asked for, what holds otherwise, and what a kernel must have for it.

mod rows;
mod typed;
mod values;

pub(crate) use rows::ROWS;
pub(crate) use values::len_32 as len_of;

use crate::codec::{self, Codecs};
use crate::disk;
use crate::kernel::{self, Need, Version};
use crate::rules::{ByPath, Rules, Storage};
use packfs_codec::{Algorithm, CodecSettings};
use packfs_core::{Error, Goal, NodeKind, Result, Tree};
use packfs_format::{DataFile, PackSettings};
use typed::Typed;

/// Which files put bytes into the packed inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragments {
    /// None.
    Off,
    /// The last part of each file, small files whole.
    Tails,
    /// All files whole.
    All,
}

/// What files share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dedupe {
    /// Nothing.
    Off,
    /// Whole files with the same contents.
    Files,
    /// Parts of clusters too.
    Ranges,
}

/// How the clusters of compressed files are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexForm {
    /// Whatever is shortest.
    Auto,
    /// 8 bytes a block.
    Full,
    /// 2 or 4 bytes a block, where the file allows it.
    Compact,
    /// A record a cluster.
    Extents,
}

/// The image's own id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uuid {
    /// A hash of everything in it.
    Content,
    /// These bytes.
    Is([u8; 16]),
}

/// Prefixes of xattrs' names that the image defines for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    /// None.
    Off,
    /// Those that save more than a block.
    Auto,
    /// These.
    List(Vec<Vec<u8>>),
}

/// Compressed metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metabox {
    /// Bytes of input of a cluster.
    pub cluster_len: u32,
    pub codec: CodecSettings,
    /// True if it is for trees of small files only: in others it saves little, and lookups cost more.
    pub for_small_files: bool,
}

impl Metabox {
    /// True if the metadata of a tree are to be compressed; the root alone cannot be.
    pub(crate) fn serves(&self, tree: &Tree) -> bool {
        let lens = tree.nodes().filter_map(|(_, node)| match node.kind {
            NodeKind::File { len, .. } => Some(len),
            _ => None,
        });
        let (count, total) =
            lens.fold((0, 0u64), |(count, total), len| (count + 1, total.saturating_add(len)));
        tree.node_count() > 1 && (!self.for_small_files || total / SMALL_FILE_LEN < count)
    }
}

/// Everything that shapes an image, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub codec_name: String,
    /// The oldest kernel that is to mount the image.
    pub kernel: Version,
    pub block_len: u32,
    /// How files are stored that no rule is about.
    pub storage: Storage,
    pub rules: Rules,
    /// How files are stored that are used first and that no rule is about, if otherwise.
    pub first_used: Option<Storage>,
    pub fragments: Fragments,
    pub packed_cluster_len: u32,
    /// Whether last clusters lie beside their inodes.
    pub inline_clusters: bool,
    pub dedupe: Dedupe,
    pub index: IndexForm,
    /// Whether the image uses what came with 48-bit block numbers.
    pub wide: bool,
    pub byte_aligned: bool,
    /// Whether plain blocks are rotated that start amid a block of the file.
    pub interlaced: bool,
    pub metabox: Option<Metabox>,
    pub holes: bool,
    /// Whether maps of chunks have rows of 8 bytes where 4 would do.
    pub chunk_indexes: bool,
    pub label: [u8; disk::VOLUME_NAME_LEN],
    pub uuid: Uuid,
    /// Whether every inode has its own time; else all have the epoch.
    pub times: bool,
    pub epoch: Option<i64>,
    pub made_at: i64,
    pub xattr_filter: bool,
    pub shared_xattrs: bool,
    pub prefixes: Prefixes,
    pub align: u64,
    pub dot_omitted: bool,
    pub checksum: bool,
    /// The files that hold the data, if that is not the image.
    pub devices: Vec<DataFile>,
    /// The first of them that a file may lie on, counted from 0.
    pub device_of: ByPath<u16>,
}

const BLOCK_LEN_DEFAULT: u32 = 4096;
const CLUSTER_LEN_DEFAULT: u32 = 64 << 10;

/// Files are small if they are shorter than this on average: their metadata are a good part of an image then.
const SMALL_FILE_LEN: u64 = 4096;
/// Input of a cluster of metadata where size counts: 1 MiB saves 1 % more, and each lookup decodes it whole.
const METABOX_LEN_SIZE: u32 = 64 << 10;
/// Input of a cluster of metadata where reading counts: a lookup decodes little.
const METABOX_LEN_READ: u32 = 16 << 10;

/// The codec that holds if none is named.
fn codec_for(goal: Goal) -> &'static str {
    match goal {
        Goal::Size => "lzma",
        Goal::Balanced | Goal::Read => "lz4hc:12",
        Goal::Build => "lz4",
    }
}

/// The length of clusters that holds if none is named.
fn cluster_len_for(goal: Goal) -> u32 {
    match goal {
        Goal::Size => disk::Z_EROFS_PCLUSTER_MAX_SIZE,
        Goal::Balanced | Goal::Read | Goal::Build => CLUSTER_LEN_DEFAULT,
    }
}

impl Options {
    /// Checks what the user asked for.
    ///
    /// Errors: `Usage`, naming what was found and what is allowed, or which kernel allows it.
    pub(crate) fn new(settings: &PackSettings) -> Result<Self> {
        let typed = Typed::new(&settings.options)?;
        let block_len = typed.block_len.unwrap_or(BLOCK_LEN_DEFAULT);
        let wants = Wants::new(settings, &typed, block_len)?;
        let kernel = kernel::choose(typed.kernel, &wants.needs)?;
        wants.resolve(settings, typed, kernel, block_len)
    }

    /// Every way in which files are stored: the usual one, then those of the rules, then that of files used first.
    pub(crate) fn storages(&self) -> impl Iterator<Item = &Storage> {
        std::iter::once(&self.storage).chain(self.rules.storages()).chain(&self.first_used)
    }
}

/// What was asked for outright, and so must be had.
struct Wants {
    typed_codec: String,
    /// As the user will read it.
    codec_name: String,
    compressed: bool,
    needs: Vec<Need>,
}

impl Wants {
    fn new(settings: &PackSettings, typed: &Typed, block_len: u32) -> Result<Self> {
        let typed_codec = settings.codec.as_deref().unwrap_or(codec_for(settings.goal));
        let typed_codec = packfs_codec::codec_for_goal(typed_codec, settings.goal).into_owned();
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
        needs.extend(algorithms.iter().map(|&algorithm| codec::need(algorithm)));
        if compressed && codecs.iter().any(|codecs| codecs.second.is_some()) {
            needs.push(Need::new("a second codec in a file", kernel::SECOND_CODEC, "one codec"));
        }
        let cluster_len = settings.block_len.max(typed.all_rules().filter_map(|rule| rule.cluster_len).max());
        if compressed && cluster_len.is_some_and(|len| len > block_len) {
            let cluster = values::display_len(cluster_len.unwrap_or_default());
            let what = format!("clusters of {cluster} in blocks of {}", values::display_len(block_len));
            needs.push(Need::new(what, kernel::BIG_CLUSTERS, "a block size that is one block"));
        }
        if block_len < BLOCK_LEN_DEFAULT {
            let (what, since) = match compressed {
                true => ("compressed files in blocks", kernel::SMALL_BLOCKS_COMPRESSED),
                false => ("files in blocks", kernel::SMALL_BLOCKS),
            };
            let what = format!("{what} of {}", values::display_len(block_len));
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

    fn resolve(
        self,
        settings: &PackSettings,
        typed: Typed,
        kernel: Version,
        block_len: u32,
    ) -> Result<Options> {
        let big = match kernel >= kernel::BIG_CLUSTERS {
            true => cluster_len_for(settings.goal),
            false => block_len,
        };
        let cluster_len = settings.block_len.unwrap_or(big);
        let byte_aligned = typed.byte_aligned.unwrap_or(false);
        let compact = Compact::new(settings.goal, &typed, self.compressed);
        let wide = typed.wants_wide() || compact.wide;
        let (devices, device_of) = (typed.devices(block_len)?, typed.device_of()?);
        let index = typed.index.unwrap_or(if byte_aligned { IndexForm::Extents } else { IndexForm::Auto });
        let check = |len: u32| values::check_cluster_len(len, block_len, index);
        check(cluster_len)?;
        let storage = match typed.chunk_len {
            Some(chunk_len) => Storage::Chunks { chunk_len: chunk_len.max(block_len) },
            None => codec::storage(&self.typed_codec, cluster_len)?,
        };
        let chunk_len = typed.chunk_len.map(|len| len.max(block_len));
        let rules = Rules::of_rules(&typed.rules, cluster_len, chunk_len)?;
        let first_used = typed.first_used.as_ref().map(|rule| rule.storage(cluster_len, chunk_len));
        let first_used = first_used.transpose()?;
        for (_, len) in rules.storages().chain(&first_used).filter_map(Storage::codecs) {
            check(len)?;
        }
        let fragments = match typed.fragments {
            Some(fragments) => fragments,
            None if kernel >= kernel::FRAGMENTS
                && self.compressed
                && !typed.inline_clusters.unwrap_or(false) =>
            {
                if settings.goal == Goal::Size {
                    Fragments::All
                } else {
                    Fragments::Tails
                }
            }
            None => Fragments::Off,
        };
        let inline_clusters = self.compressed
            && fragments == Fragments::Off
            && index != IndexForm::Extents
            && block_len == BLOCK_LEN_DEFAULT
            && typed.inline_clusters.unwrap_or(compact.inline_clusters);
        if fragments != Fragments::Off && typed.inline_clusters == Some(true) {
            let error = Error::usage("inline-tails=on, but tails go to the packed inode");
            return Err(error.hint("fragments=off keeps them beside their inodes"));
        }
        let interlaced = typed.interlaced.unwrap_or(false);
        let shared_ranges = typed.dedupe == Some(Dedupe::Ranges);
        if interlaced && (fragments == Fragments::Off || shared_ranges || index == IndexForm::Extents) {
            let error = Error::usage("interlaced=on goes with fragments, without dedupe=ranges and extents");
            return Err(error.hint("interlaced=off"));
        }
        if block_len < BLOCK_LEN_DEFAULT && typed.inline_clusters == Some(true) {
            // Kernels look for the start of such a cluster in as many bytes as a block has behind its place in the page.
            let error = Error::usage("inline-tails=on, which kernels misread in blocks below 4096");
            return Err(error.hint("block=4096 or inline-tails=off"));
        }
        let packed_cluster_len = typed.packed_cluster_len.unwrap_or(cluster_len);
        check(packed_cluster_len)?;
        let metabox = typed.metabox.unwrap_or(compact.metabox).map(|cluster_len| Metabox {
            cluster_len,
            codec: codec::of_metadata(&storage, cluster_len),
            for_small_files: typed.metabox.is_none() && settings.goal == Goal::Read,
        });
        // Older kernels look for prefixes in the packed inode if there is one; metadata cannot be put there.
        let prefixes_found =
            kernel >= kernel::PLAIN_PREFIXES || (fragments == Fragments::Off && metabox.is_none());
        let prefixes = match typed.prefixes {
            Some(Prefixes::List(_)) if !prefixes_found => {
                let message = "prefixes together with fragments need Linux 6.18 or newer";
                return Err(Error::usage(message).hint("kernel=6.18 can; for older ones use fragments=off"));
            }
            Some(prefixes) => prefixes,
            None if kernel >= kernel::XATTR_PREFIXES && prefixes_found => Prefixes::Auto,
            None => Prefixes::Off,
        };
        Ok(Options {
            codec_name: if typed.chunk_len.is_some() { "none".into() } else { self.codec_name },
            kernel,
            block_len,
            storage,
            rules,
            first_used,
            fragments,
            packed_cluster_len,
            inline_clusters,
            dedupe: typed.dedupe.unwrap_or(Dedupe::Files),
            index,
            wide,
            byte_aligned,
            interlaced,
            metabox,
            holes: typed.holes.unwrap_or(true) && kernel >= kernel::CHUNKS,
            chunk_indexes: typed.chunk_indexes.unwrap_or(false),
            label: typed.label.unwrap_or_default(),
            uuid: typed.uuid.unwrap_or(Uuid::Content),
            times: typed.times.unwrap_or(true),
            epoch: typed.epoch,
            made_at: settings.made_at,
            xattr_filter: typed.xattr_filter.unwrap_or(true),
            shared_xattrs: typed.shared_xattrs.unwrap_or(true),
            prefixes,
            align: typed.align.unwrap_or(1),
            dot_omitted: typed.dot_omitted.unwrap_or(compact.wide),
            checksum: typed.checksum.unwrap_or(true),
            devices,
            device_of,
        })
    }
}

/// Compact metadata that a goal turns on where nothing was typed and the kernel asked for reads it. All of it is lossless.
#[derive(Default)]
struct Compact {
    /// Small inodes with times of their own, and directories without `.`.
    wide: bool,
    /// Bytes of input of a cluster of metadata.
    metabox: Option<u32>,
    /// Last clusters beside their inodes: one read less for a small file, more to read for a listing.
    inline_clusters: bool,
}

impl Compact {
    fn new(goal: Goal, typed: &Typed, compressed: bool) -> Self {
        let metabox_len = match goal {
            Goal::Size => METABOX_LEN_SIZE,
            Goal::Read => METABOX_LEN_READ,
            Goal::Balanced | Goal::Build => return Compact::default(),
        };
        // The kernel that was asked for, not the newer one that another option needs.
        let kernel = typed.kernel.unwrap_or(kernel::KERNEL_DEFAULT);
        let wide = kernel >= kernel::WIDE && typed.wide != Some(false);
        let metabox = wide && kernel >= kernel::METABOX && compressed;
        let inline_clusters = goal == Goal::Size && kernel >= kernel::INLINE_CLUSTERS;
        Compact { wide, metabox: metabox.then_some(metabox_len), inline_clusters }
    }
}

#[cfg(test)]
mod tests;
