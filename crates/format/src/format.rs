//! The interface between a format and the rest of packfs.

use crate::{
    Blocks, Capabilities, Clusters, Coding, DataKind, OpenOption, Opening, OptionRow, Placed, Plan, Section,
    Volume,
};
use packfs_core::{Error, Goal, Image, NodeId, Result, Tree};
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of a new image as the caller gives them, not yet checked by a format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackSettings {
    /// Codec as typed: `NAME[:LEVEL][,KEY=VALUE...]`; `None`: the format's default.
    pub codec: Option<String>,
    /// Block size in bytes; `None`: the format's default.
    pub block_size: Option<u32>,
    /// Goal that decides where no option does.
    pub optimize: Goal,
    /// When the image was made, seconds since 1970.
    pub made_at: i64,
    /// Options of the format, as typed.
    pub options: Vec<(String, String)>,
}

/// A way to pack that makes smaller images than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Codec as users type it.
    pub codec: &'static str,
    /// Block size in bytes.
    pub block_size: u32,
    /// Goal that decides where nothing was typed; `None`: as before.
    pub optimize: Option<Goal>,
}

/// Bytes that stand at a fixed place in every image of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Magic {
    /// The bytes.
    pub bytes: &'static [u8],
    /// Their offset from the start of the image.
    pub at: u64,
}

/// Linux's driver of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxDriver {
    /// Name, as `mount -t` takes it.
    pub name: &'static str,
    /// True if it mounts a regular file without a loop device, on kernels that can (EROFS from 6.12
    /// on).
    pub mounts_files: bool,
}

/// Things that an image of a format is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes {
    /// A tree of files.
    Tree,
    /// Another image.
    Image,
    /// Nothing: the format is only read.
    Nothing,
}

/// Identity of a format: all that is known of it without an image.
#[derive(Debug)]
pub struct FormatInfo {
    /// Name, as users type it.
    pub name: &'static str,
    /// File name extensions that mean it, without the dot; the first is the usual one.
    pub extensions: &'static [&'static str],
    /// Magic bytes used to scan blobs such as firmware. Each hit must be confirmed with
    /// [`Format::probe`]. Empty if images cannot be found by magic bytes.
    pub magics: &'static [Magic],
    /// Linux's driver; `None` if it has none.
    pub driver: Option<LinuxDriver>,
    /// Things that images are made of.
    pub makes: Makes,
    /// Set if images hold no free space, so that their length tells how well files compress.
    pub is_dense: bool,
    /// Options that [`Format::open_with`] takes.
    pub opens_with: &'static [OpenOption],
    /// Options that [`Format::packer`] takes besides codec and block size.
    pub options: &'static [OptionRow],
    /// Ways to pack that make smaller and smaller images, which take longer and longer to pack and
    /// read; empty where there is no choice.
    pub ladder: &'static [Rung],
}

impl PackSettings {
    /// Returns names and values of the options as typed.
    pub fn typed_options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl FormatInfo {
    /// A format without a name that is only read, for the fields that others leave out.
    pub const EMPTY: FormatInfo = FormatInfo {
        name: "",
        extensions: &[],
        magics: &[],
        driver: None,
        makes: Makes::Nothing,
        is_dense: false,
        opens_with: &[],
        options: &[],
        ladder: &[],
    };

    /// Returns the name of Linux's driver, if there is one.
    pub fn driver_name(&self) -> Option<&'static str> {
        self.driver.map(|driver| driver.name)
    }
}

/// One on-disk format. Formats are listed in one table, `packfs-formats`; nothing else knows them
/// by name.
pub trait Format: Send + Sync {
    /// Returns its identity.
    fn info(&self) -> &'static FormatInfo;

    /// Returns its name.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Returns true if the image starts like one of this format; false for images that are too
    /// short to tell.
    fn probe(&self, image: &dyn Image) -> Result<bool>;

    /// Opens an image: checks what describes the whole, nothing more.
    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>>;

    /// Opens an image with the options that [`FormatInfo::opens_with`] lists.
    ///
    /// Errors: as [`Format::open`]; `Usage` for a number of devices that is not the image's, and
    /// for a subvolume or snapshot that it does not have.
    fn open_with(&self, image: Arc<dyn Image>, opening: Opening) -> Result<Box<dyn Volume>> {
        let _ = opening;
        self.open(image)
    }

    /// Prepares to pack.
    ///
    /// Errors: `Usage` for settings out of range (saying what is allowed), `Unsupported` for a
    /// read-only format.
    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>>;

    /// Prepares an image that holds the stored data of other images of the format. Its plan has no
    /// files.
    ///
    /// Errors: `Usage` for images whose data cannot lie in one image, naming both; `Unsupported`
    /// for a format, or a feature of an image, that cannot be merged.
    fn merger(&self, merging: &Merging<'_>) -> Result<Box<dyn PackFormat>> {
        let _ = merging;
        let error = Error::unsupported("request", format!("cannot merge {} images", self.name()));
        Err(error.hint("packfs merges SquashFS 4.0 and EROFS images"))
    }
}

/// Images to merge.
pub struct Merging<'a> {
    /// The images, of one format.
    pub volumes: Vec<&'a dyn Volume>,
    /// When the new image was made, seconds since 1970.
    pub made_at: i64,
    /// Files for the data, if the new image is not to hold it.
    pub data_files: Vec<DataFile>,
    /// True if the new image also holds these files, at the places that it gives to them.
    pub is_flat: bool,
    /// Oldest Linux version that is to read the new image, if the caller names one.
    pub kernel: Option<String>,
    /// Length of all images together, in bytes: the new one holds no more data.
    pub data_len: u64,
    /// Options of the format that describe the new image as a whole, such as its UUID.
    pub options: Vec<(String, String)>,
}

/// Wrapping of a single image, by a format that holds one image instead of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapping {
    /// The name of the one file that the tree to pack has, with the metadata of
    /// [`crate::ContainedFiles`].
    pub file_name: &'static str,
    /// Its length has to be a multiple of this, in bytes; what is shorter is filled up with zeros.
    pub multiple_of: u64,
    /// The format of the image that is to be made of a source that is none; `None` if it was not
    /// named. `none` has every file taken for an image.
    pub inner: Option<String>,
}

/// A file for data, beside the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its path.
    pub path: PathBuf,
    /// Most bytes in it; `None`: as many as there are.
    pub len_max: Option<u64>,
}

/// The packing side of a format, with its settings.
pub trait PackFormat: Send + Sync {
    /// Returns the identity of the format.
    fn format(&self) -> &'static FormatInfo;

    /// The codec and its settings as a user would type them.
    fn codec_name(&self) -> String;

    /// Name of the Linux driver that mounts the new image and shows what was packed; `None` if
    /// these settings, or the format, are beyond every driver. See [`FormatInfo::driver`].
    fn driver(&self) -> Option<&'static str> {
        None
    }

    /// Returns the options that would compress the metadata of the image of a tree, and the reason;
    /// `None` if it is compressed, or never can be.
    fn metadata_advice(&self, _tree: &Tree) -> Option<&'static str> {
        None
    }

    /// Returns what a default costs that the user did not choose, with the option that chooses
    /// otherwise; `None` where all was chosen, or nothing is lost.
    fn default_advice(&self) -> Option<&'static str> {
        None
    }

    /// Returns the encoding of the new image's blocks; [`Coding::serves`] decides if blocks of
    /// another image can be copied into it.
    fn coding(&self) -> Option<Coding> {
        None
    }

    /// Says that the format holds one image instead of a tree, and how that is to be given. A
    /// source that is an image is wrapped as it is then, and of any other an image is made first.
    fn wraps(&self) -> Option<Wrapping> {
        None
    }

    /// Warnings about options that say nothing of this tree, such as rules that no file matches.
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

    /// Returns the metadata that an image holds.
    fn capabilities(&self) -> Capabilities;

    /// Length of the finished image is rounded up to a multiple of this, with zeros.
    fn padding(&self) -> u64;
}

/// A format's planning side, by how the format stores data.
#[derive(Clone, Copy)]
pub enum AnyLayout<'a> {
    /// For data in blocks.
    Blocks(&'a dyn Layout<Blocks>),
    /// For data in clusters.
    Clusters {
        /// Plans, and makes the metadata.
        layout: &'a dyn Layout<Clusters>,
        /// The files that data is written to, if not to the image: all places of data are in the
        /// row that these files make, one after the other, and the sections alone fill the image.
        /// The stored bytes of one file of the tree lie in one of them, but for what it shares with
        /// others.
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
    /// Decides on order, cuts, codecs, and finds what cannot be held. Pure: reads no contents.
    /// `first_used` is for [`Plan::first_used`].
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan<K>>;

    /// Makes everything around the data and hands it to `put`, part by part, in the order of the
    /// image where that matters for speed. Pure: the same tree, plan and places give the same
    /// sections.
    ///
    /// Sections do not overlap each other or the data, and leave no gap from the start of the image
    /// to its end.
    ///
    /// Errors: `Failed` for what only now turns out not to fit, and whatever `put` and reading
    /// inline tails return.
    fn lay_out(
        &self,
        tree: &Tree,
        plan: &Plan<K>,
        placed: &Placed<K>,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()>;
}
