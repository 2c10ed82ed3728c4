//! Packing: storage of each file ([`ErofsPacker`]), and everything except data ([`layout`]).

mod chunks;
mod coding;
pub(crate) mod composefs;
mod dirs;
mod features;
mod file_map;
mod index;
mod inodes;
mod layout;
mod losses;
pub(crate) mod merge;
mod metabox;
mod node;
mod plan;
mod room;
mod stream;
pub(crate) mod superblock;
#[cfg(test)]
mod tests;
mod times;
mod xattr_names;
mod xattrs;

use crate::codec;
use crate::options::Options;
use packfs_codec::Algorithm;
use packfs_core::{ErrorKind, NodeId, Result, Tree};
use packfs_format::Capabilities;
use packfs_format::{
    AnyLayout, ClusterPlan, Clusters, Coding, Layout, PackFormat, PackSettings, Placed, Plan, Recipe, Section,
};

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(ErofsPacker { options: Options::new(settings)?, merged: None }))
}

const PAGE_LEN_MIN: u32 = 4096;

struct ErofsPacker {
    options: Options,
    /// Recipes of the input images' clusters if the image is merged.
    merged: Option<Vec<Recipe>>,
}

impl PackFormat for ErofsPacker {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn set_made_at(&mut self, seconds: i64) {
        self.options.made_at = seconds;
    }

    fn driver(&self) -> Option<&'static str> {
        // Longer blocks need pages of that length.
        crate::INFO.driver_name().filter(|_| self.options.block_len <= PAGE_LEN_MIN)
    }

    fn metadata_advice(&self, tree: &Tree) -> Option<&'static str> {
        let is_compressed = self.options.metabox.as_ref().is_some_and(|metabox| metabox.serves(tree));
        (!is_compressed).then_some(
            "--optimize read -O kernel=6.18: inodes and names are a good part of this image, and Linux 6.17 and newer \
             read them compressed",
        )
    }

    fn default_advice(&self) -> Option<&'static str> {
        let reads_zstd = self.options.kernel >= codec::need(Algorithm::Zstd).since;
        let is_slow = self.options.codec_is_default && self.options.codec_name.starts_with("lz4hc");
        (is_slow && reads_zstd).then_some(
            "--codec zstd:3: smaller, and packs several times faster than lz4hc; this kernel reads it",
        )
    }

    fn coding(&self) -> Option<Coding> {
        Some(coding::of_options(&self.options))
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Clusters { layout: self, data_files: &self.options.devices }
    }

    fn warnings(&self, tree: &Tree) -> Vec<String> {
        let unmatched = [
            ("rule", self.options.rules.unmatched(tree)),
            ("device-of", self.options.device_of.unmatched(tree)),
        ];
        let rows = unmatched.into_iter().filter(|(_, globs)| !globs.is_empty());
        rows.map(|(option, globs)| {
            let globs: Vec<String> = globs.iter().map(|glob| format!("{glob:?}")).collect();
            format!("globs of -O {option} without effect, as no file matches: {}", globs.join(", "))
        })
        .collect()
    }

    fn capabilities(&self) -> Capabilities {
        losses::capabilities(self.options.typed.times)
    }

    fn padding(&self) -> u64 {
        superblock::image_unit(&self.options)
    }
}

impl Layout<Clusters> for ErofsPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Clusters>> {
        let plan = plan::plan(&self.options, tree, first_used)?;
        Ok(match &self.merged {
            Some(recipes) => {
                let recipes = recipes.clone();
                let data = ClusterPlan { recipes, byte_aligned: self.options.wide, ..plan.data };
                Plan { files: Vec::new(), data, ..plan }
            }
            None => plan,
        })
    }

    fn lay_out(
        &self,
        tree: &Tree,
        plan: &Plan<Clusters>,
        placed: &Placed<Clusters>,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()> {
        layout::write(&self.options, tree, plan, placed, put).map_err(|error| {
            let may_be_far = self.merged.is_some() && !self.options.wide;
            if may_be_far && error.kind() == ErrorKind::TooLarge {
                error.hint("--kernel 6.15 allows more than 2^32 blocks, and indexes for all of them")
            } else {
                error
            }
        })
    }
}
