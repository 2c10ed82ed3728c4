//! Packing: position of each file ([`LegacyPacker`]), and everything except data ([`layout`]).

mod dirs;
mod inodes;
mod layout;
mod losses;
mod owners;

use crate::legacy::options::Options;
use crate::pack::{Duplicates, reorder_len};
use packfs_core::{NodeId, Result, Tree};
use packfs_format::Capabilities;
use packfs_format::{
    AnyLayout, BlockPlan, Blocks, Coding, Layout, PackFormat, PackSettings, Placed, Plan, Section,
};

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(LegacyPacker { options: Options::new(settings)? }))
}

struct LegacyPacker {
    options: Options,
}

impl PackFormat for LegacyPacker {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::legacy::INFO
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn set_made_at(&mut self, seconds: i64) {
        self.options.made_at = crate::mkfs_time(seconds);
    }

    fn coding(&self) -> Option<Coding> {
        Some(crate::legacy::coding::of_options(&self.options))
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Blocks(self)
    }

    fn capabilities(&self) -> Capabilities {
        losses::capabilities(self.options.version)
    }

    fn padding(&self) -> u64 {
        self.options.padding
    }
}

impl Layout<Blocks> for LegacyPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Blocks>> {
        let options = &self.options;
        owners::Owners::new(tree)?;
        let codec = |stored: bool| (!stored).then(|| options.codec.clone());
        Ok(Plan {
            data_start: options.version.super_block_len() as u64,
            files: options.fragments.jobs(tree, options.block_len),
            first_used: first_used.to_vec(),
            reorder_len: reorder_len(options.block_len),
            dedupe: options.duplicates != Duplicates::Keep,
            holes: options.holes,
            losses: losses::find(tree, options.version, options.block_len),
            data: BlockPlan {
                shared_codec: codec(options.uncompressed.fragments),
                sharing: options.duplicates.sharing(options.fragments),
                ..BlockPlan::new(options.block_len, codec(options.uncompressed.data))
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

    fn plan(version: &str, kind: NodeKind) -> Result<Plan<Blocks>> {
        let mut builder = TreeBuilder::new(Meta::default());
        builder.add(&ImagePath::parse(b"one").unwrap(), kind, Meta::default(), Xattrs::new()).unwrap();
        let options = vec![("version".to_owned(), version.to_owned())];
        let settings = PackSettings { block_size: Some(4096), options, ..PackSettings::default() };
        LegacyPacker { options: Options::new(&settings)? }.plan(&builder.finish().unwrap(), &[])
    }

    #[test]
    fn refuses_files_that_no_inode_can_describe() {
        let file = |len| NodeKind::File { len, content: ContentId(0) };
        for (version, len_max) in [("2.0", (1 << 31) - 1), ("2.1", (1 << 31) - 1), ("3.0", BLOCKS_MAX * 4096)]
        {
            for (len, allowed) in [(len_max, true), (len_max + 1, false), (u64::MAX, false)] {
                let losses = plan(version, file(len)).unwrap().losses;
                assert_eq!(!losses.iter().any(|loss| loss.fatal), allowed, "{version}: {len}");
            }
        }
    }

    #[test]
    fn names_the_losses_of_a_version() {
        let of = |version, kind| {
            let losses = plan(version, kind).unwrap().losses;
            losses.into_iter().map(|loss| (loss.what, loss.refused)).collect::<Vec<_>>()
        };
        let link = NodeKind::Symlink(b"x".as_slice().into());
        assert!(of("3.1", link.clone()).is_empty());
        let [(what, refused)] = &of("2.1", link)[..] else { panic!() };
        assert!(what.contains("times of links") && !refused);
        let device = NodeKind::CharDevice(packfs_core::DeviceNumber { major: 8, minor: 256 });
        let [(what, refused)] = &of("3.1", device)[..] else { panic!() };
        assert!(what.contains("device numbers") && *refused);
    }
}
