//! Packing: position of each file ([`CramfsPacker`]), and everything except data ([`layout`]).
//!
//! An image consists of superblock, directories, targets, and file data, in this order: named
//! structures are below 256 MiB, the limit of offsets in inodes, and data follows up to the limit
//! of block pointers.

mod bounds;
mod dirs;
mod in_place;
mod layout;
mod losses;
mod targets;

use crate::check::sum_of;
use crate::disk::{ByteOrder, CRC_AT, PAGE_LEN, POINTER_LEN};
use crate::options::Options;
use packfs_core::{Image, NodeId, NodeKind, Result, Tree};
use packfs_format::Capabilities;
use packfs_format::{
    AnyLayout, BlockPlan, BlockStorage, Blocks, FileJob, Incompressible, Layout, Lead, PackFormat,
    PackSettings, Placed, Plan, Section,
};

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(CramfsPacker { options: Options::new(settings)? }))
}

/// Alignment of an image's length, as in mkcramfs.
const PADDING: u64 = 4096;

/// Unit of offsets in inodes, in bytes.
pub(super) const OFFSET_UNIT: u32 = 4;

struct CramfsPacker {
    options: Options,
}

impl PackFormat for CramfsPacker {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn driver(&self) -> Option<&'static str> {
        // Linux only mounts the byte order of the machine.
        crate::INFO.driver_name().filter(|_| self.options.order == ByteOrder::native())
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Blocks(self)
    }

    fn seal(&self, image: &dyn Image) -> Result<Vec<Section>> {
        let start = self.options.super_block_at;
        let sum = sum_of(start, image.len(), &mut |at, part| image.read_exact_at(at, part))?;
        let bytes = self.options.order.word_bytes(sum).to_vec();
        Ok(vec![Section { owner: "superblock", offset: start + CRC_AT, bytes }])
    }

    fn capabilities(&self) -> Capabilities {
        bounds::CAPABILITIES
    }

    fn padding(&self) -> u64 {
        PADDING
    }
}

impl Layout<Blocks> for CramfsPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Blocks>> {
        let options = &self.options;
        let losses = losses::find(tree);
        // A tree that does not fit is not placed; the engine stops with its losses.
        let fits = !losses.iter().any(|loss| loss.fatal);
        let in_place = in_place::files(options, tree)?;
        let files = tree.nodes().filter_map(|(id, node)| match node.kind {
            NodeKind::File { len, .. } if len > 0 => {
                let is_flat = in_place.contains_key(&id);
                let storage = if is_flat { BlockStorage::Flat } else { BlockStorage::Blocks };
                Some(FileJob { node: id, storage })
            }
            _ => None,
        });
        Ok(Plan {
            data_start: if fits { layout::data_start(options, tree)? } else { 0 },
            files: files.collect(),
            first_used: first_used.to_vec(),
            reorder_len: 0,
            dedupe: options.share,
            holes: options.holes,
            losses,
            data: BlockPlan {
                incompressible: if options.extended {
                    Incompressible::StoreBlock
                } else {
                    Incompressible::Encode
                },
                file_align: OFFSET_UNIT,
                flat_align: PAGE_LEN,
                // Pointers precede their blocks.
                lead: Some(Lead { fixed_len: 0, per_block_len: POINTER_LEN }),
                ..BlockPlan::new(PAGE_LEN, options.codec.clone())
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
