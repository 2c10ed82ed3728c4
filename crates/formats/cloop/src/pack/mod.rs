//! Packing: one file as a sequence of blocks, and the header and index before them, whose length
//! follows from the length of the disk.

use crate::DISK_NAME;
use crate::disk::{
    HEAD_LEN, METHOD_LZ4, METHOD_LZO, METHOD_SHIFT, METHOD_STORED, METHOD_XZ, METHOD_ZLIB, OFFSET_MASK, head,
};
use crate::options::{Options, Target};
use packfs_codec::{Algorithm, CodecSettings};
use packfs_core::{Error, NodeId, NodeKind, Result, Tree};
use packfs_format::{
    AnyLayout, BlockPlan, BlockStorage, Blocks, FileJob, Incompressible, Layout, PackFormat, PackSettings,
    Placed, Plan, Section, StoredBlock, Wrapping,
};
use packfs_format::{Capabilities, NO_XATTRS, Times};
use zerocopy::IntoBytes;

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(CloopPacker { options: Options::new(settings)? }))
}

struct CloopPacker {
    options: Options,
}

/// The disk: the only file of the tree.
struct Disk {
    node: NodeId,
    len: u64,
}

impl CloopPacker {
    fn disk(&self, tree: &Tree) -> Result<Disk> {
        let node = tree.lookup(NodeId::ROOT, DISK_NAME.as_bytes());
        let disk = node.and_then(|node| match tree.node(node).kind {
            NodeKind::File { len, .. } if tree.node_count() == 2 => Some(Disk { node, len }),
            _ => None,
        });
        let disk = disk.ok_or_else(|| {
            Error::usage(format!("a cloop holds one file, {DISK_NAME:?}, and nothing else"))
                .hint("packfs::pack wraps an image, or makes one of a directory")
        })?;
        if !disk.len.is_multiple_of(u64::from(self.options.block_len)) {
            let (len, block_len) = (disk.len, self.options.block_len);
            return Err(Error::usage(format!("a disk of {len} bytes does not fill blocks of {block_len}")));
        }
        if disk.len / u64::from(self.options.block_len) >= u64::from(u32::MAX) {
            let (len, block_len) = (disk.len, self.options.block_len);
            let message =
                format!("a disk of {len} bytes has more blocks of {block_len} than a cloop can count");
            return Err(Error::failed(message).hint("larger blocks allow longer disks"));
        }
        Ok(disk)
    }

    fn block_count(&self, disk: &Disk) -> u64 {
        disk.len / u64::from(self.options.block_len)
    }

    /// Start of blocks, after the header and the index.
    fn data_start(&self, disk: &Disk) -> u64 {
        HEAD_LEN + 8 * (self.block_count(disk) + 1)
    }

    fn row(&self, offset: u64, block: StoredBlock) -> u64 {
        let method = match (self.options.target(), &self.options.codec) {
            (Target::V2, _) => METHOD_ZLIB,
            (Target::V4, Some(codec)) if block.compressed => method_of(codec),
            (Target::V4, _) => METHOD_STORED,
        };
        method << METHOD_SHIFT | offset & OFFSET_MASK
    }
}

fn method_of(codec: &CodecSettings) -> u64 {
    match codec.algorithm() {
        Algorithm::Xz => METHOD_XZ,
        Algorithm::Lz4 => METHOD_LZ4,
        Algorithm::Lzo => METHOD_LZO,
        // The remaining permitted algorithm.
        _ => METHOD_ZLIB,
    }
}

impl PackFormat for CloopPacker {
    fn format(&self) -> &'static packfs_format::FormatInfo {
        &crate::INFO
    }

    fn codec_name(&self) -> String {
        self.options.codec_name.clone()
    }

    fn wraps(&self) -> Option<Wrapping> {
        let multiple_of = self.options.block_len.into();
        let inner = self.options.inner.clone();
        Some(Wrapping { file_name: DISK_NAME, multiple_of, inner })
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Blocks(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { times: Times::Unheld, xattr_losses: NO_XATTRS, ..Capabilities::ALL }
    }

    fn padding(&self) -> u64 {
        1
    }
}

impl Layout<Blocks> for CloopPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Blocks>> {
        let disk = self.disk(tree)?;
        let job = FileJob { node: disk.node, storage: BlockStorage::Blocks };
        Ok(Plan {
            data_start: self.data_start(&disk),
            files: if disk.len > 0 { vec![job] } else { Vec::new() },
            first_used: first_used.to_vec(),
            reorder_len: 0,
            dedupe: false,
            holes: false,
            losses: Vec::new(),
            data: BlockPlan {
                incompressible: if self.options.stored {
                    Incompressible::StoreBlock
                } else {
                    Incompressible::Encode
                },
                ..BlockPlan::new(self.options.block_len, self.options.codec.clone())
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
        let disk = self.disk(tree)?;
        if !placed.failed.is_empty() {
            return Err(Error::failed("the image could not be read, and a cloop cannot hold a part of it"));
        }
        let place = placed.files[disk.node.index()];
        let blocks = placed.blocks_of(&place);
        debug_assert_eq!(blocks.len() as u64, self.block_count(&disk));
        let mut offset = plan.data_start;
        let mut index = Vec::with_capacity(8 * (blocks.len() + 1));
        for block in blocks {
            index.extend_from_slice(&self.row(offset, *block).to_be_bytes());
            offset += u64::from(block.stored_len);
        }
        // End of the last block; without a codec, as nothing is stored there.
        index.extend_from_slice(&offset.to_be_bytes());
        let head = head(self.options.target().number(), self.options.block_len, blocks.len() as u32);
        put(Section { owner: "header", offset: 0, bytes: head.as_bytes().to_vec() })?;
        put(Section { owner: "index", offset: HEAD_LEN, bytes: index })
    }
}
