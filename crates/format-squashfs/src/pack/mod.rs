//! The pack side: which file goes where ([`plan`]), and everything around the data ([`layout`]).

mod codec_options;
mod dirs;
mod ids;
mod inodes;
mod layout;
mod losses;
mod metadata_writer;
mod numbering;
mod xattrs;

use crate::disk;
use crate::options::{Fragments, Options};
use packfs_core::{
    Cut, FileJob, NodeKind, PackFormat, PackSettings, Placed, Plan, Progress, Result, Section, Tail, Tree,
};

/// Prepares to pack SquashFS images.
pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(SquashfsPacker { options: Options::new(settings)? }))
}

struct SquashfsPacker {
    options: Options,
}

impl PackFormat for SquashfsPacker {
    fn format_name(&self) -> &'static str {
        "squashfs"
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn plan(&self, tree: &Tree) -> Result<Plan> {
        let options = &self.options;
        let tail = |len: u64| match options.fragments {
            Fragments::Off => Tail::Own,
            Fragments::SmallFiles if len >= u64::from(options.block_len) => Tail::Own,
            Fragments::SmallFiles | Fragments::Always => Tail::Shared,
        };
        let files = tree.nodes().filter_map(|(id, node)| match node.kind {
            NodeKind::File { len, .. } if len > 0 => Some(FileJob { node: id, tail: tail(len) }),
            _ => None,
        });
        let codec = |stored: bool| (!stored).then(|| options.codec.clone());
        Ok(Plan {
            data_start: size_of::<disk::SuperBlock>() as u64 + codec_options::block(options).len() as u64,
            cut: Cut::FixedInput { block_len: options.block_len },
            block_codec: codec(options.uncompressed.data),
            shared_codec: codec(options.uncompressed.fragments),
            files: files.collect(),
            dedupe: options.share_duplicates,
            holes: options.holes,
            losses: losses::find(tree),
        })
    }

    fn layout(
        &self,
        tree: &Tree,
        plan: &Plan,
        placed: &Placed,
        _progress: &dyn Progress,
    ) -> Result<Vec<Section>> {
        layout::sections(&self.options, tree, plan, placed)
    }

    fn padding(&self) -> u64 {
        self.options.padding
    }
}
