//! Packing: position of each file ([`IsoPacker`]), and everything except data ([`layout`]).
//!
//! Descriptors, tables, directories, and records precede the data, as in other writers: libarchive
//! reads an image from start to end.

mod areas;
mod boot;
mod components;
mod descriptors;
mod entries;
mod layout;
mod losses;
mod names;
mod path_table;
mod records;
mod stored;
mod trees;

use crate::disk::{DESCRIPTORS_AT, SECTOR_LEN};
use crate::options::{Options, Zisofs};
use packfs_core::{Error, ImagePath, NodeId, NodeKind, Result, Tree};
use packfs_format::Capabilities;
use packfs_format::{
    AnyLayout, BlockPlan, BlockStorage, Blocks, FileJob, Incompressible, Layout, PackFormat, PackSettings,
    Placed, Plan, Section,
};

pub(crate) fn packer(settings: &PackSettings) -> Result<Box<dyn PackFormat>> {
    Ok(Box::new(IsoPacker { options: Options::new(settings)?, codec_is_chosen: settings.codec.is_some() }))
}

/// Length from which files are too long for version 1 of zisofs.
const LONG: u64 = 1 << 32;
/// Longest file, by the number of extents that readers accept.
const FILE_LEN_MAX: u64 = 16_384 * stored::EXTENT_LEN_MAX;

struct IsoPacker {
    options: Options,
    /// False if the default compresses.
    codec_is_chosen: bool,
}

impl IsoPacker {
    /// Returns the version of zisofs for a tree; `None` for uncompressed files.
    fn version(&self, tree: &Tree) -> Option<u8> {
        self.options.codec.as_ref()?;
        let has_long = || tree.nodes().any(|(_, node)| file_len(&node.kind) >= LONG);
        Some(match self.options.zisofs {
            Zisofs::Version1 => 1,
            Zisofs::Version2 => 2,
            Zisofs::AsNeeded if has_long() => 2,
            Zisofs::AsNeeded => 1,
        })
    }

    /// Returns the files that firmware loads.
    fn boot_images(&self, tree: &Tree) -> Result<Vec<boot::Wanted>> {
        let options = &self.options;
        let mut wanted = Vec::new();
        let paths = [(&options.boot, false), (&options.efi_boot, true)];
        for (path, is_efi) in paths.into_iter().filter_map(|(path, is_efi)| Some((path.as_ref()?, is_efi))) {
            wanted.push(boot::Wanted { node: boot_file(tree, path)?, is_efi });
        }
        Ok(wanted)
    }

    /// Start of boot catalog, path tables, and directories: after the descriptors.
    fn metadata_start(&self) -> u64 {
        let options = &self.options;
        let has_boot = options.boot.is_some() || options.efi_boot.is_some();
        // Primary descriptor and terminator.
        let count = 2 + u64::from(has_boot) + u64::from(options.joliet.is_some());
        DESCRIPTORS_AT + count * SECTOR_LEN
    }

    fn store<'a>(
        &'a self,
        tree: &'a Tree,
        placed: Option<&'a Placed<Blocks>>,
        data_start: u64,
    ) -> stored::Store<'a> {
        let version = self.version(tree);
        stored::Store {
            tree,
            placed,
            data_start,
            lead: version.map(stored::lead),
            version,
            options: &self.options,
        }
    }
}

fn file_len(kind: &NodeKind) -> u64 {
    if let NodeKind::File { len, .. } = *kind { len } else { 0 }
}

fn boot_file(tree: &Tree, path: &ImagePath) -> Result<NodeId> {
    let found = tree.find(path).filter(|&id| file_len(&tree.node(id).kind) > 0);
    found.ok_or_else(|| {
        Error::failed(format!("boot image {path:?}: no such file with contents in the source"))
    })
}

impl PackFormat for IsoPacker {
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
        // Linux shows files of zisofs 2 in compressed form.
        let is_version_2 = self.options.codec.is_some() && self.options.zisofs == Zisofs::Version2;
        crate::INFO.driver_name().filter(|_| !is_version_2)
    }

    fn default_advice(&self) -> Option<&'static str> {
        (!self.codec_is_chosen)
            .then_some("--codec none: files are compressed by zisofs, which Windows and macOS do not read")
    }

    fn layout(&self) -> AnyLayout<'_> {
        AnyLayout::Blocks(self)
    }

    fn capabilities(&self) -> Capabilities {
        losses::CAPABILITIES
    }

    fn padding(&self) -> u64 {
        SECTOR_LEN
    }
}

impl Layout<Blocks> for IsoPacker {
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<Blocks>> {
        let version = self.version(tree);
        let boot_images = self.boot_images(tree)?;
        let losses = losses::find(tree, &self.options);
        // A tree that does not fit is not placed; the engine stops with its losses.
        let fits = !losses.iter().any(|loss| loss.fatal);
        let metadata_start = self.metadata_start();
        let metadata_len = if fits {
            layout::metadata_len(&self.store(tree, None, metadata_start), !boot_images.is_empty())?
        } else {
            0
        };
        let files = tree.nodes().filter(|(_, node)| file_len(&node.kind) > 0).map(|(id, node)| {
            let is_long = version == Some(1) && file_len(&node.kind) >= LONG;
            let is_boot_image = boot_images.iter().any(|image| image.node == id);
            let is_flat = is_long || is_boot_image;
            FileJob { node: id, storage: if is_flat { BlockStorage::Flat } else { BlockStorage::Blocks } }
        });
        Ok(Plan {
            data_start: metadata_start + metadata_len,
            files: files.collect(),
            first_used: first_used.to_vec(),
            reorder_len: 0,
            dedupe: true,
            holes: true,
            losses,
            data: BlockPlan {
                incompressible: Incompressible::StoreFile,
                file_align: SECTOR_LEN as u32,
                lead: version.map(stored::lead),
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
        let store = self.store(tree, Some(placed), plan.data_start);
        let image = layout::Image { store, metadata_start: self.metadata_start(), data_end: placed.data_end };
        layout::sections(image, &self.boot_images(tree)?, put)
    }
}
