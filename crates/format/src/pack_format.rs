//! The packing side of a format.

use crate::{Blocks, Capabilities, Clusters, Coding, DataKind, FormatInfo, Placed, Plan, Section};
use packfs_core::{Image, NodeId, Result, Tree};
use std::path::PathBuf;

/// Wrapping of a single image, for a format that contains one image instead of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapping {
    /// The name of the one file that the tree to pack has, with the metadata of
    /// [`crate::ContainedFiles`].
    pub file_name: &'static str,
    /// Its length has to be a multiple of this, in bytes; a shorter image is padded with zeros.
    pub multiple_of: u64,
    /// The format of the image to make of a source that is not an image; `None` if it was not
    /// named. `none` treats every file as an image.
    pub inner: Option<String>,
}

/// A file for data, beside the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its path.
    pub path: PathBuf,
    /// Maximum length in bytes; `None`: unlimited.
    pub len_max: Option<u64>,
}

/// The packing side of a format, with its settings.
pub trait PackFormat: Send + Sync {
    /// Returns the identity of the format.
    fn format(&self) -> &'static FormatInfo;

    /// The codec and its settings as a user would type them.
    fn codec_name(&self) -> String;

    /// Sets the creation time, in seconds since 1970, once it is known; ignored by a format without
    /// one.
    fn set_made_at(&mut self, _seconds: i64) {}

    /// Name of the Linux driver that mounts the new image and shows its tree; `None` if no driver
    /// supports these settings, or the format. See [`FormatInfo::driver`].
    fn driver(&self) -> Option<&'static str> {
        None
    }

    /// Returns the options that would compress the metadata of the image of a tree, and the reason;
    /// `None` if it is compressed, or never can be.
    fn metadata_advice(&self, _tree: &Tree) -> Option<&'static str> {
        None
    }

    /// Returns the cost of a default that the user did not choose, with the option that changes it;
    /// `None` if everything was chosen, or nothing is lost.
    fn default_advice(&self) -> Option<&'static str> {
        None
    }

    /// Returns the encoding of the new image's blocks; [`Coding::serves`] decides if blocks of
    /// another image can be copied into it.
    fn coding(&self) -> Option<Coding> {
        None
    }

    /// Returns the wrapping, for a format that contains one image instead of a tree. A source that
    /// is an image is then wrapped unchanged, and of any other an image is made first.
    fn wraps(&self) -> Option<Wrapping> {
        None
    }

    /// Returns warnings about options without effect on this tree, such as rules that no file
    /// matches.
    fn warnings(&self, _tree: &Tree) -> Vec<String> {
        Vec::new()
    }

    /// Returns the side of the format that plans and lays out.
    fn layout(&self) -> AnyLayout<'_>;

    /// Returns patches to apply after the rest of the image is written, such as its checksum:
    /// sections that replace bytes of those from [`Layout::lay_out`]. `image` is the whole image
    /// with its padding.
    ///
    /// Errors: those of reading the image.
    fn seal(&self, image: &dyn Image) -> Result<Vec<Section>> {
        let _ = image;
        Ok(Vec::new())
    }

    /// Returns the metadata that an image can represent.
    fn capabilities(&self) -> Capabilities;

    /// The finished image is padded with zeros to a multiple of this length.
    fn padding(&self) -> u64;
}

/// A format's planning side, by how the format stores data.
#[derive(Clone, Copy)]
pub enum AnyLayout<'a> {
    /// Data in blocks.
    Blocks(&'a dyn Layout<Blocks>),
    /// Data in clusters.
    Clusters {
        /// Plans, and makes the metadata.
        layout: &'a dyn Layout<Clusters>,
        /// The files that data is written to, if not to the image: addresses of data refer to the
        /// concatenation of these files, and the image consists of the sections only. The stored
        /// bytes of one file of the tree are in one of them, except those shared with others.
        data_files: &'a [DataFile],
    },
}

impl<'a> AnyLayout<'a> {
    /// Returns the files that data is written to, if not to the image.
    pub fn data_files(self) -> &'a [DataFile] {
        match self {
            AnyLayout::Blocks(_) => &[],
            AnyLayout::Clusters { data_files, .. } => data_files,
        }
    }
}

/// Plans how files are stored, and makes the metadata around their data.
pub trait Layout<K: DataKind>: Send + Sync {
    /// Decides on order, cuts, and codecs, and finds losses. Pure: reads no contents.
    /// `first_used` is for [`Plan::first_used`].
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<K>>;

    /// Makes everything around the data and passes it to `put`, part by part, in the order of the
    /// image where that matters for speed. Pure: the same tree, plan, and positions give the same
    /// sections.
    ///
    /// Sections do not overlap each other or the data, and leave no gap from the start of the image
    /// to its end.
    ///
    /// Errors: `Failed` for metadata that does not fit, which only the layout shows; errors of
    /// `put` and of reading inline tails.
    fn lay_out(
        &self,
        tree: &Tree,
        plan: &Plan<K>,
        placed: &Placed<K>,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()>;
}
