//! Packing: position of each file ([`SquashfsPacker`]), and everything except data ([`layout`]).

mod dirs;
mod ids;
mod inodes;
mod layout;
mod losses;
mod xattrs;

use crate::pack::{Duplicates, reorder_len};
use crate::v4::codec_options;
use crate::v4::disk;
use crate::v4::options::Options;
use packfs_codec::{Algorithm, CodecSettings};
use packfs_core::{NodeId, Result, Tree};
use packfs_format::Capabilities;
use packfs_format::{
    AnyLayout, BlockPlan, Blocks, Coding, Layout, PackFormat, PackSettings, Placed, Plan, Section,
};

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(SquashfsPacker { options: Options::new(settings)? }))
}

struct SquashfsPacker {
    options: Options,
}

impl PackFormat for SquashfsPacker {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::v4::INFO
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn set_made_at(&mut self, seconds: i64) {
        self.options.made_at = crate::mkfs_time(seconds);
    }

    fn driver(&self) -> Option<&'static str> {
        // Linux does not decode LZMA.
        crate::v4::INFO.driver_name().filter(|_| self.options.codec.algorithm() != Algorithm::LzmaAlone)
    }

    fn coding(&self) -> Option<Coding> {
        Some(crate::v4::coding::of_options(&self.options))
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Blocks(self)
    }

    fn capabilities(&self) -> Capabilities {
        losses::CAPABILITIES
    }

    fn padding(&self) -> u64 {
        self.options.padding
    }
}

impl Layout<Blocks> for SquashfsPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Blocks>> {
        let options = &self.options;
        let codec = |stored: bool, codec: &CodecSettings| (!stored).then(|| codec.clone());
        Ok(Plan {
            data_start: size_of::<disk::SuperBlock>() as u64 + codec_options::block(options).len() as u64,
            files: options.fragments.jobs(tree, options.block_len),
            first_used: first_used.to_vec(),
            reorder_len: reorder_len(options.block_len),
            dedupe: options.duplicates != Duplicates::Keep,
            holes: options.holes,
            losses: losses::find(tree, options.block_len),
            data: BlockPlan {
                shared_codec: codec(options.uncompressed.fragments, &options.codec),
                sharing: options.duplicates.sharing(options.fragments),
                ..BlockPlan::new(options.block_len, codec(options.uncompressed.data, &options.own_codec))
            },
        })
    }

    fn lay_out(
        &self,
        tree: &Tree,
        plan: &Plan<Blocks>,
        placed: &Placed<Blocks>,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()> {
        layout::sections(&self.options, tree, plan, placed)?.into_iter().try_for_each(put)
    }
}

#[cfg(test)]
mod tests {
    use super::losses::BLOCKS_MAX;
    use super::*;
    use packfs_core::{ContentId, ImagePath, Meta, NodeKind, TreeBuilder, Xattrs};

    #[test]
    fn refuses_files_with_more_blocks_than_an_inode_can_list() {
        for (len, allowed) in [(BLOCKS_MAX * 4096, true), (BLOCKS_MAX * 4096 + 1, false), (u64::MAX, false)] {
            let mut builder = TreeBuilder::new(Meta::default());
            let kind = NodeKind::File { len, content: ContentId(0) };
            builder.add(&ImagePath::parse(b"big").unwrap(), kind, Meta::default(), Xattrs::new()).unwrap();
            let settings = PackSettings { block_size: Some(4096), ..PackSettings::default() };
            let plan = SquashfsPacker { options: Options::new(&settings).unwrap() }
                .plan(&builder.finish().unwrap(), &[])
                .unwrap();
            assert_eq!(!plan.losses.iter().any(|loss| loss.fatal), allowed, "{len}");
        }
    }
}
