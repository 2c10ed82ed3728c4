//! Storage of each file, and their order.

use super::losses;
use crate::codec::Codecs;
use crate::disk;
use crate::kernel;
use crate::options::{Dedupe, Fragments, Options};
use crate::rules::Storage;
use packfs_core::{Error, NodeId, NodeKind, Result, Tree};
use packfs_format::{
    ClusterPlan, ClusterRecipe, ClusterStorage, Clusters, FileJob, Plan, Recipe, SparsePlan, Tail, units::*,
};
use std::collections::HashSet;

/// Maximum decoded length of a cluster: kernels refuse more than 12 MiB.
const DECODED_LEN_MAX: u32 = disk::Z_EROFS_PCLUSTER_MAX_DSIZE - (64 << 10);
/// Maximum factor of decoded to stored length: higher ones save nothing, and cost decoding time.
const DECODED_FACTOR: u32 = 16;
const DECODED_LEN_MIN: u32 = 1 << 20;
/// Segments of a file that are compressed in parallel: long enough for the cluster at their end not
/// to matter, and short enough to keep several in memory.
const SEGMENT_LEN_MIN: u64 = 4 << 20;
const SEGMENT_CLUSTERS: u64 = 16;
/// Approximate limit of the rows of a chunk map; longer files get longer chunks.
const CHUNK_COUNT_MAX: u64 = 1 << 16;
/// Longest chunk of such a map, because one is kept in memory.
const CHUNK_LEN_MAX: u64 = 64 << 20;
/// Limit of the blocks of a file whose index has a row for each: 16 TiB in blocks of 4 KiB would
/// take 8 GiB of metadata.
const INDEXED_BLOCKS_MAX: u64 = 1 << 26;

const CODECS_LEN: u64 = 2 * 16 + 2 * 8;
const SLOT_LEN: u64 = size_of::<disk::DeviceSlot>() as u64;
pub(super) const DEVICES_AT: u64 =
    (disk::EROFS_SUPER_OFFSET + size_of::<disk::SuperBlock>() as u64 + CODECS_LEN).next_multiple_of(SLOT_LEN);

/// Returns the end of the superblock with settings of all codecs, the device table, and padding.
pub(super) fn head_len(options: &Options) -> u64 {
    // An image without devices has room for one, too.
    let slots = options.devices.len().max(1) as u64;
    (DEVICES_AT + slots * SLOT_LEN).next_multiple_of(options.block_len.into())
}

pub(super) fn plan(options: &Options, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Clusters>> {
    let mut recipes = Recipes { options, rows: Vec::new() };
    let first_used_set: HashSet<NodeId> = first_used.iter().copied().collect();
    let mut files = Vec::new();
    for (id, node) in tree.nodes() {
        if let NodeKind::File { len, .. } = node.kind
            && len > 0
        {
            let is_first_used = first_used_set.contains(&id);
            files.push(job(options, tree, &mut recipes, (id, is_first_used), len)?);
        }
    }
    let packed_recipe = recipes.packed();
    Ok(Plan {
        data_start: if options.devices.is_empty() { head_len(options) } else { 0 },
        files,
        // Decoded data of the packed inode remains in the kernel's page cache.
        first_used: first_used.to_vec(),
        reorder_len: u64::MAX,
        dedupe: options.dedupe != Dedupe::Off,
        holes: options.holes,
        losses: losses::find(tree, options),
        data: ClusterPlan {
            block_len: options.block_len,
            packed_recipe,
            segment_len: segment_len(options),
            byte_aligned: options.typed.byte_aligned,
            interlaced: options.typed.interlaced,
            share_ranges: options.dedupe == Dedupe::Ranges,
            decoded_len_max: decoded_len_max(options),
            share_tails: options.dedupe != Dedupe::Off,
            inline_flat_max: inline_flat_max(options),
            sparse: options.holes.then(|| sparse(options)),
            recipes: recipes.rows,
        },
    })
}

fn sparse(options: &Options) -> SparsePlan {
    let block_len = u64::from(options.block_len);
    SparsePlan {
        row_len: if options.typed.chunk_indexes { 8 } else { 4 },
        chunk_len_max: block_len << disk::EROFS_CHUNK_FORMAT_BLKBITS_MASK,
        clusters_len_max: INDEXED_BLOCKS_MAX * block_len,
    }
}

fn longest_cluster(options: &Options) -> u32 {
    let lens = options.storages().filter_map(|storage| storage.codecs().map(|(_, len)| len));
    lens.max().unwrap_or(options.block_len).max(options.packed_cluster_len)
}

fn decoded_len_max(options: &Options) -> u32 {
    longest_cluster(options).times(DECODED_FACTOR).clamp(DECODED_LEN_MIN, DECODED_LEN_MAX) / options.block_len
        * options.block_len
}

fn segment_len(options: &Options) -> u64 {
    (u64::from(longest_cluster(options)) * SEGMENT_CLUSTERS).next_power_of_two().max(SEGMENT_LEN_MIN)
}

/// Longest inline tail of a flat file. Kernels read inodes by the block, so listing the tree reads
/// every inline tail. A tail that nearly fills a block is better stored among the data.
fn inline_max(options: &Options) -> u32 {
    options.block_len / 4 * 3
}

/// The same for incompressible files. If other tails are stored in the packed inode, theirs may be,
/// too.
fn inline_flat_max(options: &Options) -> u32 {
    match options.fragments {
        Fragments::Off => inline_max(options),
        Fragments::Tails | Fragments::All => options.block_len / 32,
    }
}

fn job(
    options: &Options,
    tree: &Tree,
    recipes: &mut Recipes<'_>,
    (id, is_first_used): (NodeId, bool),
    len: u64,
) -> Result<FileJob<Clusters>> {
    let rule = (!options.rules.is_empty()).then(|| options.rules.find(&tree.path(id))).flatten();
    let rule = rule.or(options.first_used.as_ref().filter(|_| is_first_used));
    let device =
        (!options.device_of.is_empty()).then(|| options.device_of.find(&tree.path(id)).copied()).flatten();
    let block_len = u64::from(options.block_len);
    let inline_len = len % block_len;
    let is_inline = inline_len > 0 && inline_len <= u64::from(inline_max(options));
    let flat_tail = if is_inline { Tail::Inline } else { Tail::Own };
    let (recipe, tail) = match rule.unwrap_or(&options.storage) {
        Storage::Flat => {
            if !options.holes {
                refuse_far(options, tree, id, len)?;
            }
            (recipes.flat(len), flat_tail)
        }
        Storage::Chunks { chunk_len } => {
            refuse_endless(tree, id, len.div_ceil(u64::from(*chunk_len)), "chunks")?;
            (recipes.find(Recipe::Chunks { chunk_len: u64::from(*chunk_len) }), Tail::Own)
        }
        Storage::Clusters { codecs, cluster_len } => {
            let tail = match options.fragments {
                // Everything stored of it must be on the device.
                _ if device.is_some() && options.fragments != Fragments::Off => Tail::Own,
                // A rule's codec applies to the whole file.
                _ if rule.is_some()
                    && !packed_codecs(options).is_some_and(|packed| packed.is_same(codecs)) =>
                {
                    Tail::Own
                }
                Fragments::All => Tail::SharedWhole,
                Fragments::Tails => Tail::Shared,
                Fragments::Off if options.inline_clusters => Tail::Inline,
                Fragments::Off => Tail::Own,
            };
            if tail == Tail::Own && len < block_len {
                // Compression could not save a block.
                (recipes.flat(len), flat_tail)
            } else {
                if !options.holes {
                    refuse_endless(tree, id, len.div_ceil(block_len), "blocks")?;
                }
                let recipe = clusters(codecs, *cluster_len);
                (recipes.find(recipe), tail)
            }
        }
    };
    let storage = ClusterStorage { tail, recipe, data_file: device.unwrap_or(0) };
    Ok(FileJob { node: id, storage })
}

/// Returns the codecs of the packed inode: those of files that match no rule, or of the first rule
/// that compresses.
fn packed_codecs(options: &Options) -> Option<&Codecs> {
    options.storages().find_map(Storage::codecs).map(|(codecs, _)| codecs)
}

/// Errors: `Failed` for a file with a claimed length that no inode can list, as sparse ones in
/// hostile archives.
fn refuse_endless(tree: &Tree, id: NodeId, count: u64, what: &str) -> Result<()> {
    if count <= INDEXED_BLOCKS_MAX {
        return Ok(());
    }
    let message =
        format!("{:?} has {count} {what}, erofs lists at most {INDEXED_BLOCKS_MAX} here", tree.path(id));
    Err(Error::failed(message).hint("a rule such as -O rule=PATH=none stores it uncompressed, with holes"))
}

/// Errors: `Failed` for an uncompressed file, with holes as zeros, that is longer than the image
/// can be.
fn refuse_far(options: &Options, tree: &Tree, id: NodeId, len: u64) -> Result<()> {
    let bits = if options.wide { 48 } else { 32 };
    let most = u64::from(options.block_len) << bits;
    if len <= most {
        return Ok(());
    }
    let path = tree.path(id);
    let message =
        format!("cannot store {path:?} without holes: it has {len} bytes, at most {most} are allowed");
    Err(Error::failed(message).hint("kernel=5.15 or newer stores holes as holes"))
}

struct Recipes<'a> {
    options: &'a Options,
    rows: Vec<Recipe>,
}

impl Recipes<'_> {
    fn find(&mut self, recipe: Recipe) -> u16 {
        let known = self.rows.iter().position(|row| *row == recipe);
        known.unwrap_or_else(|| {
            self.rows.push(recipe);
            self.rows.len() - 1
        }) as u16
    }

    /// Returns the recipe of uncompressed files; longer ones have coarser holes.
    fn flat(&mut self, len: u64) -> u16 {
        let block_len = u64::from(self.options.block_len);
        let chunk_len = len.div_ceil(CHUNK_COUNT_MAX).next_power_of_two().max(block_len);
        let sparse = self.options.holes.then_some(chunk_len.min(CHUNK_LEN_MAX));
        self.find(Recipe::Flat { sparse_chunk_len: sparse })
    }

    fn packed(&mut self) -> u16 {
        match packed_codecs(self.options) {
            Some(codecs) => self.find(clusters(codecs, self.options.packed_cluster_len)),
            None => self.find(Recipe::Flat { sparse_chunk_len: None }),
        }
    }
}

fn clusters(codecs: &Codecs, cluster_len: u32) -> Recipe {
    let Codecs { first, second } = codecs.clone();
    Recipe::Clusters(ClusterRecipe { codec: first, second, cluster_len })
}

/// True if the target kernel reads chunks, so that a flat file may become chunk-based.
pub(super) fn knows_chunks(options: &Options) -> bool {
    options.kernel >= kernel::CHUNKS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::ErofsPacker;
    use packfs_core::{ContentId, ImagePath, Meta, TreeBuilder, Xattrs};
    use packfs_format::Layout;
    use packfs_format::PackSettings;

    /// Plans files of these names and lengths, of which those with a `!` are used first; a recipe
    /// and a tail for each.
    fn planned(files: &[(&str, u64)], options: &[(&str, &str)]) -> Result<Vec<(Recipe, Tail)>> {
        let mut builder = TreeBuilder::new(Meta::default());
        for &(name, len) in files {
            let kind = NodeKind::File { len, content: ContentId(0) };
            builder.add(&ImagePath::parse(name.as_bytes())?, kind, Meta::default(), Xattrs::new())?;
        }
        let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let settings = PackSettings { codec: Some("lz4".into()), options, ..PackSettings::default() };
        let tree = builder.finish()?;
        let files = tree.nodes().filter(|(_, node)| matches!(node.kind, NodeKind::File { .. }));
        let first_used: Vec<NodeId> =
            files.map(|(id, _)| id).filter(|&id| tree.path(id).as_bytes().contains(&b'!')).collect();
        let plan =
            ErofsPacker { options: Options::new(&settings)?, merged: None }.plan(&tree, &first_used)?;
        assert_eq!(plan.first_used, first_used);
        let mut files = plan.files;
        files.sort_by_key(|job| job.node);
        Ok(files
            .iter()
            .map(|job| {
                let ClusterStorage { tail, recipe, .. } = job.storage;
                (plan.data.recipes[usize::from(recipe)].clone(), tail)
            })
            .collect())
    }

    #[test]
    fn a_rule_applies_to_whole_files_independent_of_other_tails() {
        let rules = [("rule", "b=zstd:3@16K"), ("rule", "c=none"), ("rule", "d=lz4@8K")];
        let rows = planned(&[("a", 9000), ("b", 9000), ("c", 9000), ("d", 9000)], &rules).unwrap();
        let cluster_len = |index: usize| match rows[index].0 {
            Recipe::Clusters(ClusterRecipe { cluster_len, .. }) => cluster_len,
            _ => 0,
        };
        assert_eq!((cluster_len(0), rows[0].1), (64 << 10, Tail::Shared));
        assert_eq!((cluster_len(1), rows[1].1), (16 << 10, Tail::Own));
        assert_eq!(rows[2], (Recipe::Flat { sparse_chunk_len: Some(4096) }, Tail::Inline));
        assert_eq!((cluster_len(3), rows[3].1), (8 << 10, Tail::Shared));
    }

    #[test]
    fn files_used_first_have_storage_of_their_own_unless_a_rule_matches() {
        let options = [("rule", "c!=none"), ("first-used", "lz4hc:3@16K")];
        let rows = planned(&[("a", 9000), ("b!", 9000), ("c!", 9000)], &options).unwrap();
        let clusters = |index: usize| match &rows[index].0 {
            Recipe::Clusters(ClusterRecipe { codec, cluster_len, .. }) => Some((codec.clone(), *cluster_len)),
            _ => None,
        };
        let (usual, first_used) = (clusters(0).unwrap(), clusters(1).unwrap());
        assert!(usual.0 != first_used.0, "{usual:?} and {first_used:?}");
        assert_eq!((usual.1, first_used.1, rows[1].1), (64 << 10, 16 << 10, Tail::Own));
        assert_eq!(clusters(2), None);
        let asked = [("first-used", "zstd:3"), ("codecs", "one")];
        assert!(planned(&[], &asked).unwrap_err().to_string().contains("codecs=one"));
        assert!(planned(&[], &[("first-used", "zstd:3"), ("kernel", "6.1")]).is_err());
    }

    #[test]
    fn files_below_a_block_stay_flat_where_nothing_shares_their_cluster() {
        let rows = planned(&[("a", 100), ("b", 5000)], &[("kernel", "5.4")]).unwrap();
        assert_eq!(rows[0], (Recipe::Flat { sparse_chunk_len: None }, Tail::Inline));
        assert!(matches!(rows[1], (Recipe::Clusters(_), Tail::Own)));
    }

    #[test]
    fn refuses_files_with_more_blocks_than_an_inode_can_list() {
        let most = INDEXED_BLOCKS_MAX * 4096;
        for (len, allowed) in [(most, true), (most + 1, false)] {
            assert_eq!(planned(&[("big", len)], &[("holes", "off")]).is_ok(), allowed, "{len}");
            let chunks = [("rule", "big=none"), ("chunks", "4096")];
            assert_eq!(planned(&[("big", len)], &chunks).is_ok(), allowed, "{len}");
            // With holes it depends on the source, which the engine asks.
            assert!(planned(&[("big", len)], &[]).is_ok());
            assert!(planned(&[("big", len)], &[("rule", "big=none")]).is_ok());
        }
    }

    #[test]
    fn refuses_what_no_image_is_long_enough_for_where_holes_are_stored() {
        let flat = [("rule", "big=none"), ("holes", "off")];
        assert!(planned(&[("big", 4096 << 32)], &flat).is_ok());
        let error = planned(&[("big", (4096 << 32) + 1)], &flat).unwrap_err();
        assert!(error.to_string().contains("17592186044416"), "{error}");
    }
}
